// Edits a message that was sent. Enter sends it again, Shift+Enter breaks the line, Escape leaves it as it was.

import { el } from "/static/dom.js";
import { t } from "/static/i18n.js";

export class MessageEditor {
  #field = el("textarea", { class: "editor-field", rows: "1", dir: "auto", "aria-label": t("edit_message"), "data-testid": "edit-field" });
  #send = el("button", { class: "button small primary", type: "submit", "data-testid": "edit-send" }, t("send_again"));
  element;

  /** `on`: edited(text), send(text), cancel(). */
  constructor(text, on) {
    const cancel = el("button", { class: "button small", type: "button", onclick: on.cancel }, t("cancel"));
    this.element = el("form", { class: "editor" }, this.#field,
      el("div", { class: "editor-row" }, el("span", { class: "editor-hint" }, t("edit_means")), cancel, this.#send));
    this.#field.value = text;
    this.#field.addEventListener("input", () => {
      this.#fit();
      on.edited(this.#field.value);
    });
    this.#field.addEventListener("keydown", (event) => {
      if (event.isComposing || event.keyCode === 229) return;
      if (event.key === "Escape") on.cancel();
      if (event.key !== "Enter" || event.shiftKey || event.altKey) return;
      event.preventDefault();
      this.element.requestSubmit();
    });
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      const edited = this.#field.value.toWellFormed?.() ?? this.#field.value;
      if (edited.trim()) on.send(edited);
    });
  }

  #fit() {
    this.#send.disabled = !this.#field.value.trim();
    this.#field.style.height = "auto";
    this.#field.style.height = `${this.#field.scrollHeight}px`;
  }

  focus() {
    this.#fit();
    this.#field.focus();
    this.#field.setSelectionRange(this.#field.value.length, this.#field.value.length);
  }
}
