// The button in the top bar that names the model and shows how full its context is; it opens the conversation's details.

import { openDetails } from "/static/details-dialog.js";
import { el, setText } from "/static/dom.js";
import { t } from "/static/i18n.js";
import { contextPercent, contextWords } from "/static/usage.js";
import { showHidden } from "/static/visible.js";

export class DetailsButton {
  #button;
  #model = el("span", { class: "model-name" });
  #ring = el("span", { class: "context-ring", "aria-hidden": "true" });
  #more = el("span", { class: "visually-hidden" });
  #server = { model: "", isDemo: false };
  #conversation = null;
  #dialog = null;

  constructor(button) {
    this.#button = button;
    button.append(this.#ring, this.#model, this.#more);
    button.addEventListener("click", () => {
      this.#dialog = openDetails(this.#conversation, { serverModel: this.#server.model, closed: () => { this.#dialog = null; } });
    });
  }

  /** Another conversation is open; a dialog about the one before has nothing to say any more. */
  show(conversation) {
    this.#conversation = conversation;
    this.#dialog?.close();
    this.draw();
  }

  showServer(server) {
    this.#server = server;
    this.draw();
  }

  draw() {
    const { settings, context } = this.#conversation;
    setText(this.#model, [showHidden(settings?.model || this.#server.model) || t("model"), this.#server.isDemo ? t("demo_short") : ""].filter(Boolean).join(" · "));
    this.#ring.hidden = !context;
    if (context) this.#ring.style.setProperty("--used", `${contextPercent(context)}%`);
    const words = context ? contextWords(context) : t("details_title");
    this.#button.title = words;
    setText(this.#more, ` ${words}`);
  }
}
