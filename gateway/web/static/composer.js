// The message box. Enter sends, Shift+Enter breaks the line; Enter that confirms an input method's choice does neither.

import { setText } from "/static/dom.js";
import { formatCount } from "/static/format.js";
import { t } from "/static/i18n.js";

const MAX_CHARS = 200_000;
const HINT_FROM_CHARS = 180_000;

export class Composer {
  #form;
  #field;
  #send;
  #stop;
  #stopWords;
  #hint;
  #isComposing = false;

  /** `on`: send(text), stop(), edited(text). */
  constructor({ form, field, send, stop, stopWords, hint }, on) {
    this.#form = form;
    this.#field = field;
    this.#send = send;
    this.#stop = stop;
    this.#stopWords = stopWords;
    this.#hint = hint;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit(on.send);
    });
    field.addEventListener("compositionstart", () => { this.#isComposing = true; });
    // Safari ends the composition before the key that ended it: the flag falls a moment later.
    field.addEventListener("compositionend", () => setTimeout(() => { this.#isComposing = false; }, 0));
    field.addEventListener("keydown", (event) => this.#key(event));
    field.addEventListener("input", () => {
      this.#changed();
      on.edited(field.value);
    });
    stop.addEventListener("click", () => {
      on.stop();
      // The button goes away; whoever pressed it is not left nowhere.
      this.focus();
    });
    form.addEventListener("pointerdown", (event) => {
      if (event.target === form) setTimeout(() => field.focus(), 0);
    });
    this.#changed();
  }

  #key(event) {
    const isImeKey = event.isComposing || this.#isComposing || event.keyCode === 229;
    if (event.key !== "Enter" || event.shiftKey || event.altKey || isImeKey) return;
    event.preventDefault();
    this.#form.requestSubmit();
  }

  #submit(send) {
    const text = this.#field.value.toWellFormed?.() ?? this.#field.value;
    if (!text.trim() || this.#count(text) > MAX_CHARS) return;
    this.text = "";
    send(text);
  }

  // The limit counts characters; a string's length counts some of them twice.
  #count(text) {
    return text.length < HINT_FROM_CHARS ? text.length : [...text].length;
  }

  #changed() {
    const text = this.#field.value;
    const count = this.#count(text);
    this.#send.disabled = !text.trim() || count > MAX_CHARS;
    const isLong = count > HINT_FROM_CHARS;
    this.#hint.classList.toggle("is-counting", isLong);
    this.#hint.classList.toggle("is-warning", count > MAX_CHARS);
    setText(this.#hint, isLong ? t(count > MAX_CHARS ? "too_long" : "nearly_too_long", { count: formatCount(count), limit: formatCount(MAX_CHARS) }) : t("hint"));
    this.#field.style.height = "auto";
    this.#field.style.height = `${this.#field.scrollHeight}px`;
  }

  get text() {
    return this.#field.value;
  }

  set text(text) {
    this.#field.value = text;
    this.#changed();
  }

  /** A turn runs: what is sent now waits, and there is something to stop. */
  showActivity({ isBusy, canStop, isStopping }) {
    this.#stop.hidden = !canStop;
    this.#stop.disabled = isStopping;
    setText(this.#stopWords, t(isStopping ? "stopping" : "stop"));
    this.#field.placeholder = t(isBusy ? "queue_placeholder" : "ask_placeholder");
    const words = t(isBusy ? "send_queue" : "send");
    this.#send.setAttribute("aria-label", words);
    this.#send.title = words;
  }

  focus() {
    // On a touch screen the keyboard would cover what the reader came to see.
    if (matchMedia("(hover: hover)").matches) this.#field.focus();
  }
}
