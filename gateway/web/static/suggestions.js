// The list above the message box that completes what is being typed; the focus stays in the box.

import { announce } from "/static/announcer.js";
import { el } from "/static/dom.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { showHidden } from "/static/visible.js";

const PAUSE_MS = 80;

export class Suggestions {
  #field;
  #sources;
  #inserted;
  #list = el("ul", { class: "completions", id: "suggestions", role: "listbox", "data-testid": "completions", "aria-label": t("suggestions"), hidden: true });
  #items = [];
  #at = 0;
  #place = null;
  #asked = 0;
  #timer = null;
  // The list on its way, for what was typed since the shown one was asked for.
  #isOutdated = false;
  #isTakenOnArrival = false;
  #dismissed = null;

  /** `sources`: see `suggestion-sources.js`. `inserted()` hears that the text was completed. */
  constructor(field, form, sources, inserted) {
    this.#field = field;
    this.#sources = sources;
    this.#inserted = inserted;
    form.append(this.#list);
    field.setAttribute("aria-autocomplete", "list");
    field.setAttribute("aria-controls", "suggestions");
    field.addEventListener("input", () => this.#look());
    field.addEventListener("click", () => this.#look());
    field.addEventListener("blur", () => this.close());
    // A press in the list must not take the focus.
    this.#list.addEventListener("pointerdown", (event) => event.preventDefault());
  }

  get isOpen() {
    return !this.#list.hidden;
  }

  close() {
    this.#asked += 1;
    clearTimeout(this.#timer);
    this.#isOutdated = false;
    this.#isTakenOnArrival = false;
    this.#list.hidden = true;
    this.#list.replaceChildren();
    this.#field.removeAttribute("aria-activedescendant");
  }

  /** True where the key was meant for the list. */
  takesKey(event) {
    if (!this.isOpen) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.#move((this.#at + step + this.#items.length) % this.#items.length);
    else if (event.key === "Enter" || event.key === "Tab") this.#take();
    else if (event.key === "Escape") this.#dismiss();
    else return false;
    event.preventDefault();
    return true;
  }

  /** Take the marked suggestion; where a list for the newest text is on its way, the first of that one. */
  #take() {
    if (this.#isOutdated) this.#isTakenOnArrival = true;
    else this.#choose(this.#items[this.#at]);
  }

  #dismiss() {
    this.#dismissed = this.#place?.start ?? null;
    this.close();
  }

  #look() {
    const { selectionStart, selectionEnd, value } = this.#field;
    const before = selectionStart === selectionEnd ? value.slice(0, selectionStart) : "";
    const found = this.#sources.map((source) => ({ source, place: source.match(before) })).find(({ place }) => place);
    if (!found || found.place.start === this.#dismissed) {
      if (!found) this.#dismissed = null;
      this.close();
      return;
    }
    const place = { ...found.place, end: selectionStart };
    if (this.isOpen && this.#place.start !== place.start) this.close();
    // A row of the shown list that is clicked replaces what was typed since, too.
    this.#place = place;
    this.#isOutdated = this.isOpen;
    this.#isTakenOnArrival = false;
    const asked = ++this.#asked;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(async () => {
      const items = await found.source.load(place.query).catch(() => []);
      if (asked === this.#asked) this.#show(items);
    }, PAUSE_MS);
  }

  #show(items) {
    const isTaken = this.#isTakenOnArrival;
    this.#items = items;
    this.#isOutdated = false;
    this.#isTakenOnArrival = false;
    this.#list.hidden = items.length === 0;
    if (this.#list.hidden) {
      this.#field.removeAttribute("aria-activedescendant");
      return;
    }
    if (isTaken) {
      this.#choose(items[0]);
      return;
    }
    this.#list.replaceChildren(...items.map((item, index) => this.#row(item, index)));
    this.#move(0);
    announce(t("suggestions_count", { count: items.length }));
  }

  #row(item, index) {
    const remove = item.remove && el("span", { class: "completion-remove", title: t("forget_prompt") }, icon("close"));
    remove?.addEventListener("click", (event) => {
      event.stopPropagation();
      item.remove();
      this.#show(this.#items.filter((other) => other !== item));
    });
    return el("li", { class: "completion", id: `suggestion-${index}`, role: "option", "data-testid": "completion", onclick: () => this.#choose(item), onpointermove: () => this.#move(index) },
      icon(item.icon), el("bdi", { class: "completion-label" }, showHidden(item.label)), el("bdi", { class: "completion-detail" }, showHidden(item.detail)), remove);
  }

  #move(index) {
    this.#at = index;
    [...this.#list.children].forEach((row, at) => row.setAttribute("aria-selected", String(at === index)));
    this.#field.setAttribute("aria-activedescendant", `suggestion-${index}`);
    this.#list.children[index]?.scrollIntoView({ block: "nearest" });
  }

  #choose(item) {
    const { start, end } = this.#place;
    this.close();
    this.#field.setSelectionRange(start, end);
    // Only text that the browser inserts can be undone with its own keys.
    if (!document.execCommand("insertText", false, item.insert)) this.#field.setRangeText(item.insert, start, end, "end");
    this.#inserted();
    this.#look();
  }
}
