// The items of memory: searched, page by page, each opened to its text, its source and what can be done with it.

import { fillStored } from "/static/dialog.js";
import { el, place, setText } from "/static/dom.js";
import { ErrorLine } from "/static/error-line.js";
import { forgetButton } from "/static/forget-button.js";
import { formatMoment } from "/static/format.js";
import { t, wordsFor } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { changeFact, listItems, readItem, writeFact } from "/static/memory-routes.js";
import { clippedText } from "/static/memory-chip.js";
import { dateOf, kindWords, sourceOf } from "/static/memory-words.js";
import { showHidden } from "/static/visible.js";

const SEARCH_DELAY_MS = 250;
const MAX_FACT_CHARS = 2000;

/** A fact's text in a field, to be corrected. */
function correction(item, text, row) {
  const error = el("div", {});
  const field = el("textarea", { rows: 2, maxlength: MAX_FACT_CHARS, "aria-label": t("fact_text"), "data-testid": "fact-text" });
  fillStored(field, item.body);
  let isSaved = false;
  // What was saved before somebody wrote on is what holds now.
  const leave = () => (isSaved ? row.redraw() : form.replaceWith(text));
  const form = el("form", { class: "fact-form" }, field, error,
    el("div", { class: "fact-actions" },
      el("button", { class: "button small primary", type: "submit", "data-testid": "fact-save" }, t("save")),
      el("button", { class: "button small", type: "button", onclick: leave }, t("cancel"))));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const sent = field.value;
    try {
      Object.assign(item, await changeFact(item.id, { text: sent }));
      isSaved = true;
      field.defaultValue = item.body;
      // Somebody may have written on meanwhile.
      if (field.value === sent) leave();
    } catch (failure) {
      new ErrorLine(error).show(failure);
    }
  });
  text.replaceWith(form);
  field.focus();
}

class ItemRow {
  #item;
  #isRead = false;
  #title = el("span", { class: "memory-title", dir: "auto" });
  #body = el("div", { class: "memory-row-body" }, el("p", { class: "quiet" }, t("loading")));
  element;

  constructor(item, openCase) {
    this.#item = item;
    setText(this.#title, showHidden(item.title || kindWords(item.kind)));
    this.element = el("details", { class: "memory-row", "data-testid": "memory-row", "data-kind": item.kind },
      el("summary", {}, icon("chevron"), this.#title, el("span", { class: "memory-kind" }, kindWords(item.kind)), el("span", { class: "memory-when" }, formatMoment(item.occurred_at))),
      this.#body);
    this.element.addEventListener("toggle", () => { if (this.element.open && !this.#isRead) this.#read(openCase); });
  }

  /** What could not be read is read when the row is opened again. */
  async #read(openCase) {
    this.#isRead = true;
    try {
      this.#item = { ...this.#item, ...await readItem(this.#item.id) };
      this.redraw(openCase);
    } catch (error) {
      this.#isRead = false;
      this.#body.replaceChildren(el("p", { class: "quiet" }, error.status === 404 ? t("memory_gone_since") : error.message));
    }
  }

  redraw(openCase) {
    const item = this.#item;
    setText(this.#title, showHidden(item.title));
    const text = clippedText(item.body ?? item.markdown ?? "");
    const facts = [
      (item.conversation_id || item.kind === "note") && sourceOf(item), dateOf(item),
      item.origin && el("span", {}, wordsFor("origin", item.origin)),
      item.scope?.project_id && el("span", {}, t("in_project", { name: showHidden(item.scope.project_id) })),
      item.scope?.app_code && el("span", {}, showHidden(item.scope.app_code)),
      item.valid_until && el("span", {}, t("holds_no_longer")),
      item.repeats > 0 && el("span", {}, t("repeated", { count: item.repeats })),
    ];
    const isFact = item.kind === "fact";
    const actions = el("div", { class: "memory-actions" },
      isFact && !item.valid_until && el("button", { class: "link-button", type: "button", "data-testid": "correct", onclick: () => correction(item, text, this) }, icon("pencil"), t("correct")),
      item.kind === "case" && openCase && el("button", { class: "link-button", type: "button", "data-testid": "open-case", onclick: () => openCase(item.id) }, icon("search"), t("open_case")),
      forgetButton(item, () => this.#forgotten(actions)));
    this.#body.replaceChildren(text, el("div", { class: "memory-facts" }, facts.filter(Boolean)), actions);
  }

  #forgotten(actions) {
    this.element.classList.add("is-undone");
    actions.querySelector("[data-testid=correct]")?.remove();
    // Stored anew it would be a fact that holds.
    if (this.#item.kind !== "fact" || this.#item.valid_until) return;
    const undo = el("button", { class: "link-button", type: "button", "data-testid": "forget-undo" }, icon("undo"), t("saved_undo"));
    const failed = el("span", { class: "memory-why", role: "status" });
    undo.addEventListener("click", async () => {
      undo.disabled = true;
      setText(failed, "");
      try {
        const { body, scope, lasting, replaces } = this.#item;
        // What it had replaced holds again since.
        this.#item = { ...this.#item, ...await writeFact(body, { projectId: scope?.project_id, lasting, replaces }) };
        this.element.classList.remove("is-undone");
        this.redraw();
      } catch (error) {
        undo.disabled = false;
        setText(failed, error.message);
      }
    });
    actions.append(undo, failed);
  }
}

export class MemoryList {
  #kind;
  #openCase;
  #search = el("input", { type: "search", autocomplete: "off", spellcheck: "false", placeholder: t("memory_search"), "aria-label": t("memory_search"), "data-testid": "memory-search" });
  #rows = el("div", { class: "memory-rows" });
  #end = el("div", { class: "memory-end" });
  #reading = null;
  /** The rows by the id of their item, each with what it was made of: one that is open, or being corrected, stays when the list is read again. */
  #known = new Map();
  element;

  /** `kind`: one of the gateway's kinds, or empty for all. `openCase(id)` shows a case whole. */
  constructor(kind, openCase) {
    this.#kind = kind;
    this.#openCase = openCase;
    let delay;
    this.#search.addEventListener("input", () => {
      clearTimeout(delay);
      delay = setTimeout(() => this.read(), SEARCH_DELAY_MS);
    });
    this.element = el("div", { class: "memory-list" },
      el("label", { class: "search" }, icon("search"), this.#search),
      kind === "fact" && this.#newFact(), this.#rows, this.#end);
  }

  #newFact() {
    const field = el("input", { type: "text", maxlength: MAX_FACT_CHARS, placeholder: t("fact_new"), "aria-label": t("fact_new"), "data-testid": "fact-new" });
    const form = el("form", { class: "fact-new" }, field, el("button", { class: "button small", type: "submit" }, t("remember")));
    let isSaving = false;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const text = field.value;
      if (!text.trim() || isSaving) return;
      isSaving = true;
      try {
        await writeFact(text);
        // The next one may have been begun.
        if (field.value === text) field.value = "";
        this.read();
      } catch (error) {
        this.#tell(error);
      }
      isSaving = false;
    });
    return form;
  }

  #tell(error) {
    new ErrorLine(this.#end).show(error, () => this.read());
  }

  #rowOf(item) {
    const version = JSON.stringify(item);
    const known = this.#known.get(item.id);
    if (known && (known.version === version || known.element.querySelector("form"))) return known.element;
    const { element } = new ItemRow(item, this.#openCase);
    this.#known.set(item.id, { version, element });
    return element;
  }

  /** Show what is stored now, from the beginning or from a place of it. */
  async read(cursor = "") {
    this.#reading?.abort();
    const reading = new AbortController();
    this.#reading = reading;
    try {
      const page = await listItems({ kind: this.#kind, q: this.#search.value.trim(), cursor, signal: reading.signal });
      if (reading.signal.aborted) return;
      const rows = page.items.map((item) => this.#rowOf(item));
      // What somebody is correcting stays, whatever is searched for.
      const kept = [...this.#rows.children].filter((row) => !rows.includes(row) && (cursor || row.querySelector("form")));
      place(this.#rows, [...kept, ...rows]);
      for (const [id, { element }] of this.#known) if (!element.parentNode) this.#known.delete(id);
      const isEmpty = !cursor && rows.length === 0;
      this.#end.replaceChildren(...[
        isEmpty && el("p", { class: "quiet" }, this.#search.value.trim() ? t("none_found", { q: this.#search.value.trim() }) : t("memory_none")),
        page.next_cursor && el("button", { class: "button small", type: "button", onclick: () => this.read(page.next_cursor) }, t("show_more")),
      ].filter(Boolean));
    } catch (error) {
      if (!reading.signal.aborted) this.#tell(error);
    }
  }
}
