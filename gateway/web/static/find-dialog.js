// Finds a text in the messages and replies of one conversation.

import { dialogHead, openDialog } from "/static/dialog.js";
import { el, setText } from "/static/dom.js";
import { ErrorLine } from "/static/error-line.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { findInConversation } from "/static/routes.js";
import { showHidden } from "/static/visible.js";

const DELAY_MS = 200;

/** `go(turnId)` shows the turn that the person chose. */
export function openFind(conversationId, go) {
  const field = el("input", { type: "search", autocomplete: "off", spellcheck: "false", autofocus: true, "aria-label": t("find"), placeholder: t("find"), "data-testid": "find-field" });
  const told = el("p", { class: "quiet", role: "status" });
  const list = el("ul", { class: "find-list" });
  const errors = el("div", {});
  const content = el("div", { class: "dialog-body" }, dialogHead(t("find"), () => dialog.close()), el("label", { class: "search" }, icon("search"), field), errors, list, told);
  let reading = null;
  let delay = null;

  const hit = ({ turn_id: turnId, before, text, after }) => el("li", {}, el("button", {
    class: "find-hit", type: "button", dir: "auto", "data-testid": "find-hit",
    onclick: () => {
      dialog.close();
      go(turnId);
    },
  }, showHidden(before), el("mark", {}, showHidden(text)), showHidden(after)));

  async function find() {
    reading?.abort();
    const { signal } = reading = new AbortController();
    const q = field.value.trim();
    try {
      const matches = q ? await findInConversation(conversationId, q, signal) : [];
      if (signal.aborted) return;
      errors.replaceChildren();
      list.replaceChildren(...matches.map(hit));
      setText(told, q && !matches.length ? t("none_found", { q }) : "");
    } catch (error) {
      if (!signal.aborted) new ErrorLine(errors).show(error, find);
    }
  }

  field.addEventListener("input", () => {
    clearTimeout(delay);
    delay = setTimeout(find, DELAY_MS);
  });
  const dialog = openDialog({ label: t("find"), className: "find-dialog", content, onClose: () => reading?.abort() });
}
