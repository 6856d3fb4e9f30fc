// What a turn saved in memory, each with an undo. Hidden if it saved nothing.

import { el, setText } from "/static/dom.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { forgetItem } from "/static/routes.js";
import { showHidden } from "/static/visible.js";

function savedItem(item) {
  const state = el("span", { class: "memory-why", role: "status" });
  const undo = el("button", { class: "link-button", type: "button", "data-testid": "saved-undo", onclick: takeBack }, icon("undo"), t("saved_undo"));
  const row = el("li", { "data-testid": "saved-item" }, el("span", { class: "memory-title", dir: "auto" }, showHidden(item.title || t("kind_fact"))), undo, state);

  async function takeBack() {
    undo.disabled = true;
    try {
      await forgetItem(item.id);
      undo.remove();
      setText(state, t("saved_undone"));
      row.classList.add("is-undone");
    } catch (error) {
      undo.disabled = false;
      setText(state, error.message);
    }
  }

  return row;
}

/** The list as an element, or null where nothing was saved. */
export function savedFacts(memory) {
  if (!memory?.saved?.length) return null;
  return el("details", { class: "chip memory saved", open: true, "data-testid": "saved" },
    el("summary", {}, icon("book"), el("span", {}, t("saved_count", { count: memory.saved.length }))),
    el("div", { class: "chip-body" }, el("ul", {}, memory.saved.map(savedItem))));
}
