// The button in the top bar that shows and changes the memory settings of the open conversation.

import { el, setText } from "/static/dom.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { openMemoryDialog } from "/static/memory-dialog.js";
import { showHidden } from "/static/visible.js";

function glance({ enabled, caseMemory }) {
  if (caseMemory) return t("memory_cases_short");
  return enabled ? t("memory_short") : t("memory_off_short");
}

function wholeSentence({ enabled, caseMemory, appCode, environment }) {
  const place = [appCode || t("any_app"), environment || t("any_environment")].map(showHidden).join(t("list_comma"));
  return [
    t(enabled ? "memory_is_on" : "memory_is_off"),
    caseMemory ? t("cases_are_on", { place }) : t("cases_are_off"),
  ].join(t("space"));
}

export class MemoryButton {
  #button;
  #word = el("span", { class: "memory-word" });
  #more = el("span", { class: "visually-hidden" });
  #conversation = null;
  #dialog = null;

  /** `failed(error, retry)` hears of what went wrong after its dialog was closed. */
  constructor(button, { failed }) {
    this.#button = button;
    button.append(el("span", { class: "memory-mark" }, icon("book")), this.#word, this.#more);
    button.addEventListener("click", () => this.#open(failed));
  }

  /** Another conversation is open; a dialog about the one before has nothing to say any more. */
  show(conversation) {
    this.#conversation = conversation;
    this.#dialog?.close();
    this.draw();
  }

  draw() {
    const { settings } = this.#conversation;
    this.#button.disabled = settings === null;
    const known = settings ?? { enabled: true };
    this.#button.classList.toggle("is-cases", known.caseMemory === true);
    setText(this.#word, glance(known));
    const words = settings ? wholeSentence(settings) : t("loading");
    this.#button.title = words;
    setText(this.#more, ` ${words}`);
  }

  #open(failed) {
    const conversation = this.#conversation;
    const isHere = () => this.#conversation === conversation;
    const save = (change) => conversation.choose(change);
    this.#dialog = openMemoryDialog({
      settings: conversation.settings,
      isBusy: conversation.isBusy,
      save,
      failedLater: (error, change) => {
        const retry = () => save(change).catch((again) => { if (isHere()) failed(again, retry); });
        if (isHere()) failed(error, retry);
      },
      closed: () => { this.#dialog = null; },
    });
  }
}
