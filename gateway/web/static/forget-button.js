// "Forget this": asks once more in place, then forgets an item of memory everywhere.

import { el, setText } from "/static/dom.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { forgetItem } from "/static/routes.js";

/** The button with its question and its outcome. `forgotten()` is called once the item is gone. */
export function forgetButton(item, forgotten = () => {}) {
  const state = el("span", { class: "memory-why", role: "status" });
  const ask = el("button", { class: "link-button", type: "button", "data-testid": "forget", onclick: () => show(true) }, icon("trash"), t("forget_this"));
  const keep = el("button", { class: "link-button", type: "button", onclick: () => show(false) }, t("forget_keep"));
  const proceed = el("button", { class: "link-button is-danger", type: "button", "data-testid": "forget-confirm", onclick: forget }, t("forget_confirm"));
  const question = el("span", { class: "forget-question", hidden: true }, t(item.kind === "fact" ? "forget_sure_fact" : "forget_sure"), proceed, keep);
  const place = el("span", { class: "forget" }, ask, question, state);

  function show(isAsking) {
    ask.hidden = isAsking;
    question.hidden = !isAsking;
    (isAsking ? keep : ask).focus();
  }

  async function forget() {
    proceed.disabled = true;
    try {
      await forgetItem(item.id);
      question.remove();
      ask.remove();
      setText(state, t("forgotten"));
      forgotten();
    } catch (error) {
      proceed.disabled = false;
      setText(state, error.message);
    }
  }

  return place;
}
