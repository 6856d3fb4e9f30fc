// One item of the conversation list: open, pin, rename in place, delete.

import { el, place, setText } from "/static/dom.js";
import { formatFull, formatMoment } from "/static/format.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { showHidden } from "/static/visible.js";

const MAX_TITLE_CHARS = 200;

export class ConversationItem {
  conversation;
  #on;
  #dot = el("span", { class: "dot" });
  #waiting = el("span", { class: "item-waiting", "data-testid": "item-waiting" });
  #title = el("bdi", { class: "item-title" });
  #when = el("span", { class: "item-when" });
  #branched = el("span", { class: "item-branched", title: t("has_branches") }, icon("branch"));
  #match = el("span", { class: "item-match", dir: "auto", "data-testid": "item-match" });
  #pin;
  #open;
  #rename;
  #delete;
  #editor = null;
  element;

  /** `on`: open(id, turnId), pin(conversation), rename(id, title), remove(conversation, isBranched). */
  constructor(conversation, on) {
    this.#on = on;
    this.#open = el("button", { class: "item-open", type: "button", onclick: () => on.open(this.conversation.id, this.conversation.match?.turnId) }, this.#dot, this.#title, this.#branched, this.#waiting, this.#when, this.#match);
    this.#pin = el("button", { class: "icon-button small", type: "button", "data-testid": "pin", onclick: () => on.pin(this.conversation) }, icon("pin"));
    this.#rename = el("button", { class: "icon-button small", type: "button", "data-testid": "rename", onclick: () => this.#edit() }, icon("pencil"));
    this.#delete = el("button", { class: "icon-button small", type: "button", "data-testid": "delete", onclick: () => on.remove(this.conversation, !this.#branched.hidden) }, icon("trash"));
    this.element = el("li", { class: "item", "data-testid": "conversation-item", "data-conversation-id": conversation.id },
      this.#open, el("span", { class: "item-actions" }, this.#pin, this.#rename, this.#delete));
    this.update(conversation);
  }

  /** `waiting`: how many of its calls wait for the person. `isBranched`: it stands for several branches. */
  update(conversation, { isCurrent = false, isBranched = false, waiting = 0 } = {}) {
    this.conversation = conversation;
    const title = showHidden(conversation.title) || t("untitled");
    setText(this.#title, title);
    this.#open.title = title;
    setText(this.#when, formatMoment(conversation.lastActivity));
    this.#when.title = formatFull(conversation.lastActivity);
    this.element.dataset.state = conversation.state;
    const isQuiet = conversation.state === "idle";
    setText(this.#dot, isQuiet ? "" : t(`state_${conversation.state}`));
    this.#dot.classList.toggle("is-on", !isQuiet);
    this.#waiting.hidden = waiting === 0;
    setText(this.#waiting, waiting ? String(waiting) : "");
    this.#waiting.title = waiting ? t("waiting_count", { count: waiting }) : "";
    if (isCurrent) this.#open.setAttribute("aria-current", "page");
    else this.#open.removeAttribute("aria-current");
    this.#branched.hidden = !isBranched;
    this.#drawMatch(conversation.match);
    this.#label(this.#pin, t(conversation.isPinned ? "unpin" : "pin", { title }));
    this.#pin.setAttribute("aria-pressed", String(conversation.isPinned));
    this.#label(this.#rename, t("rename", { title }));
    this.#label(this.#delete, t("delete", { title }));
  }

  #drawMatch(match) {
    this.#match.hidden = !match;
    if (match) this.#match.replaceChildren(showHidden(match.before), el("mark", {}, showHidden(match.text)), showHidden(match.after));
  }

  #label(button, words) {
    button.setAttribute("aria-label", words);
    button.title = words;
  }

  #edit() {
    if (this.#editor) return;
    const field = el("input", { class: "item-editor", type: "text", maxlength: MAX_TITLE_CHARS, "aria-label": t("rename_field"), "data-testid": "rename-input" });
    field.value = this.conversation.title;
    this.#editor = field;
    place(this.element, [field]);
    field.focus();
    field.select();
    const finish = (isKept) => {
      if (!this.#editor) return;
      this.#editor = null;
      const title = field.value.trim();
      place(this.element, [this.#open, this.#rename.parentElement]);
      if (isKept && title && title !== this.conversation.title) this.#on.rename(this.conversation.id, title);
    };
    field.addEventListener("keydown", (event) => {
      if (event.isComposing || event.keyCode === 229 || (event.key !== "Enter" && event.key !== "Escape")) return;
      // The focus goes to the button that opened the field; this key must not press it.
      event.preventDefault();
      event.stopPropagation();
      finish(event.key === "Enter");
      this.#rename.focus();
    });
    // A list that moves the row, and another window, give the focus back.
    field.addEventListener("blur", () => setTimeout(() => document.activeElement === field || finish(true)));
  }
}
