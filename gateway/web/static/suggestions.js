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
  /** The person led the mark there with the arrows: it stays on that row as long as there is one. */
  #isLed = false;
  #place = null;
  #asked = 0;
  #timer = null;
  #dismissed = null;
  /** Resolves when no row is pressed. */
  #press = Promise.resolve();

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
    let release = () => {};
    this.#list.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      if (event.button === 0) this.#press = new Promise((resolve) => { release = resolve; });
    });
    // The click of a finger comes a little after its end.
    for (const type of ["pointerup", "pointercancel"]) addEventListener(type, () => setTimeout(release, PAUSE_MS));
  }

  get isOpen() {
    return !this.#list.hidden;
  }

  close() {
    this.#asked += 1;
    clearTimeout(this.#timer);
    this.#isLed = false;
    this.#list.hidden = true;
    this.#list.replaceChildren();
    this.#field.removeAttribute("aria-activedescendant");
  }

  /** True where the key was meant for the list. */
  takesKey(event) {
    if (!this.isOpen) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      this.#isLed = true;
      this.#move((this.#at + step + this.#items.length) % this.#items.length);
    } else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey) return this.#take(event);
    else if (event.key === "Escape") this.#dismiss();
    else return false;
    event.preventDefault();
    return true;
  }

  /** Choose the marked suggestion; false where it stands there already, so that the key means what it means without a list. */
  #take(event) {
    const item = this.#items[this.#at];
    // An input method may write letters and the slash in full width.
    if (item.insert === this.#field.value.slice(this.#place.start, this.#place.end).normalize("NFKC")) {
      this.close();
      return false;
    }
    event.preventDefault();
    this.#choose(item);
    return true;
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
    if (this.isOpen) this.#narrow(place);
    const asked = ++this.#asked;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(async () => {
      const items = await found.source.load(place.query).catch(() => []);
      await this.#press;
      if (asked !== this.#asked) return;
      this.#show(items, place);
      if (this.isOpen) announce(t("suggestions_count", { count: items.length }));
    }, PAUSE_MS);
  }

  /** Until the list for the newest text is there, offer what of the last one fits it: a row replaces all that was typed. */
  #narrow(place) {
    const wanted = place.query.toLowerCase();
    const isSame = this.#place.start === place.start;
    this.#show(this.#items.filter(({ name }) => isSame && name.toLowerCase().includes(wanted)), place);
  }

  #show(items, place) {
    const led = this.#isLed ? this.#items[this.#at].insert : null;
    const kept = items.findIndex(({ insert }) => insert === led);
    this.#isLed = kept >= 0;
    this.#items = items;
    this.#place = place;
    this.#list.hidden = items.length === 0;
    if (this.#list.hidden) {
      this.#field.removeAttribute("aria-activedescendant");
      return;
    }
    this.#list.replaceChildren(...items.map((item, index) => this.#row(item, index)));
    this.#move(Math.max(0, kept));
  }

  #row(item, index) {
    const remove = item.remove && el("span", { class: "completion-remove", title: t("forget_prompt") }, icon("close"));
    remove?.addEventListener("click", (event) => {
      event.stopPropagation();
      item.remove();
      this.#show(this.#items.filter((other) => other !== item), this.#place);
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
