// The message box. Enter sends (or Ctrl+Enter, if the person prefers that), Shift+Enter breaks the line; Enter that confirms an input method's choice does neither.

import { announce } from "/static/announcer.js";
import { Attachments } from "/static/attachments.js";
import { setText } from "/static/dom.js";
import { formatCount } from "/static/format.js";
import { t } from "/static/i18n.js";
import { preferences } from "/static/preferences.js";
import { savePrompt as keepPrompt } from "/static/saved-prompts.js";
import { SOURCES } from "/static/suggestion-sources.js";
import { Suggestions } from "/static/suggestions.js";

const MAX_CHARS = 200_000;
const HINT_FROM_CHARS = 180_000;
// Measuring the box lays the whole page out.
const GROWS_BY_ITSELF = CSS.supports("field-sizing", "content");
/** The person acted by key last: a device that reports no hover may have a keyboard. What is typed into a field may come from a screen. */
let isByKey = false;
addEventListener("keydown", ({ ctrlKey, metaKey, altKey, target }) => {
  isByKey ||= ctrlKey || metaKey || altKey || !target.closest?.("input, textarea");
}, true);
addEventListener("pointerdown", () => { isByKey = false; }, true);

export class Composer {
  #form;
  #field;
  #send;
  #stop;
  #stopWords;
  #hint;
  #isComposing = false;
  /** The message is sent once its files are uploaded, unless the person changes it before. */
  #isWaiting = false;
  #attachments;
  #suggestions;
  #savePrompt;
  #on;
  #recalled = null;

  /** `on`: send(text), stop(), edited(text), failed(error, retry), sent(): the messages sent before, the latest last. */
  constructor({ form, field, send, stop, stopWords, hint, savePrompt, attachments }, on) {
    this.#on = on;
    this.#form = form;
    this.#field = field;
    this.#send = send;
    this.#stop = stop;
    this.#stopWords = stopWords;
    this.#hint = hint;
    this.#savePrompt = savePrompt;
    this.#attachments = new Attachments({ field, ...attachments }, {
      changed: () => this.#filesChanged(),
      removed: (isLast) => {
        this.#isWaiting = false;
        if (isLast) this.focus();
      },
      failed: (error, retry) => {
        this.#isWaiting = false;
        on.failed(error, retry);
      },
    });
    this.#suggestions = new Suggestions(field, form, SOURCES, () => this.#edited());
    savePrompt.addEventListener("click", () => {
      const isKept = keepPrompt(field.value);
      setText(hint, t(isKept ? "prompt_saved" : "prompt_not_saved"));
      field.focus();
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit(on.send);
    });
    field.addEventListener("compositionstart", () => { this.#isComposing = true; });
    // Safari ends the composition before the key that ended it: the flag falls a moment later.
    field.addEventListener("compositionend", () => setTimeout(() => { this.#isComposing = false; }, 0));
    field.addEventListener("keydown", (event) => this.#key(event));
    field.addEventListener("input", () => this.#edited());
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

  #filesChanged() {
    this.#changed();
    if (this.#isWaiting && !this.#attachments.isUploading) this.#form.requestSubmit();
  }

  #edited() {
    this.#isWaiting = false;
    this.#changed();
    this.#on.edited(this.#field.value);
  }

  #key(event) {
    const isImeKey = event.isComposing || this.#isComposing || event.keyCode === 229;
    if (isImeKey || this.#suggestions.takesKey(event)) return;
    if (event.key === "ArrowUp" || event.key === "ArrowDown") this.#recall(event);
    if (event.key !== "Enter" || event.shiftKey || event.altKey || isImeKey) return;
    if (preferences.sendKey === "command" && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.#form.requestSubmit();
  }

  /** In an empty box the arrows lead through what was sent before; edited, a message is the person's again. */
  #recall(event) {
    const text = this.#field.value;
    if (event.shiftKey || event.altKey || event.ctrlKey || event.metaKey || (text && text !== this.#recalled?.text)) return;
    const sent = this.#on.sent();
    const at = (text ? this.#recalled.at : sent.length) + (event.key === "ArrowUp" ? -1 : 1);
    if (at < 0 || at > sent.length || (!text && event.key === "ArrowDown")) return;
    event.preventDefault();
    this.#recalled = { at, text: sent[at] ?? "" };
    this.text = this.#recalled.text;
    this.#on.edited(this.text);
    this.#field.setSelectionRange(this.text.length, this.text.length);
  }

  #submit(send) {
    const written = this.#field.value.toWellFormed?.() ?? this.#field.value;
    if (this.#send.disabled) return;
    this.#isWaiting = this.#attachments.isUploading;
    if (this.#isWaiting) {
      announce(t("waits_for_upload"));
      this.#changed();
      return;
    }
    const text = [written, this.#attachments.take()].filter((part) => part.trim()).join("\n\n");
    this.#recalled = null;
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
    const isEmpty = !text.trim();
    this.#send.disabled = (isEmpty && this.#attachments.isEmpty) || count > MAX_CHARS;
    this.#savePrompt.hidden = isEmpty;
    const isLong = count > HINT_FROM_CHARS;
    this.#hint.classList.toggle("is-needed", isLong || this.#isWaiting);
    this.#hint.classList.toggle("is-warning", count > MAX_CHARS);
    const usual = this.#isWaiting ? "waits_for_upload" : preferences.sendKey === "enter" ? "hint" : "hint_command";
    setText(this.#hint, isLong ? t(count > MAX_CHARS ? "too_long" : "nearly_too_long", { count: formatCount(count), limit: formatCount(MAX_CHARS) }) : t(usual));
    if (GROWS_BY_ITSELF) return;
    this.#field.style.height = "auto";
    this.#field.style.height = `${this.#field.scrollHeight}px`;
  }

  /** Show a conversation's draft and what is attached to it. */
  open(conversationId, text) {
    this.#isWaiting = false;
    this.#attachments.open(conversationId);
    this.text = text;
  }

  /** What is attached belongs to another conversation from now on. */
  moveAttached(conversationId) {
    this.#attachments.move(conversationId);
  }

  /** A conversation was deleted, with what was attached in it. */
  forgetAttached(conversationId) {
    this.#attachments.forget(conversationId);
  }

  /** Attach a file of the workspace. */
  attach(path) {
    this.#attachments.addPath(path);
    this.focus();
  }

  get text() {
    return this.#field.value;
  }

  set text(text) {
    this.#isWaiting = false;
    this.#suggestions.close(); // they were for another text
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
    if (isByKey || matchMedia("(hover: hover)").matches) this.#field.focus();
  }
}
