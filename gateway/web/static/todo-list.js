// A list of what is to do, and how far each entry is.

import { el } from "/static/dom.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { showHidden } from "/static/visible.js";

const MARKS = { pending: null, in_progress: "chevron", completed: "check" };

/** `entries`: `{text, state}` in order. */
export function todoList(entries) {
  return el("ul", { class: "todo-list", "data-testid": "todo-list", "aria-label": t("todo_list") }, entries.map(({ text, state: told }) => {
    const state = told in MARKS ? told : "pending";
    return el("li", { class: `todo is-${state}` }, el("span", { class: "todo-mark", role: "img", "aria-label": t(`todo_${state}`) }, MARKS[state] ? icon(MARKS[state]) : null), el("span", { dir: "auto" }, showHidden(text)));
  }));
}
