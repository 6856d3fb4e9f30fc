// A file that goes with the next message: its name, and a button that takes it away or cancels its upload.

import { el, setText } from "/static/dom.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { showHidden } from "/static/visible.js";

export class AttachmentChip {
  name;
  path;
  #uploading = new AbortController();
  #sign = el("span", { class: "attachment-sign" });
  #words = el("bdi", { class: "attachment-name" });
  #button;
  element;

  /** `path` is null while the file is being uploaded. `removed(chip)` is called when the person takes it away. */
  constructor(name, path, removed) {
    this.#button = el("button", { class: "icon-button small", type: "button", onclick: () => {
      this.#uploading.abort();
      removed(this);
    } }, icon("close"));
    this.element = el("li", { class: "attachment", "data-testid": "attachment" }, this.#sign, this.#words, this.#button);
    this.update(name, path);
  }

  /** Aborted when the person takes it away. */
  get signal() {
    return this.#uploading.signal;
  }

  focus() {
    this.#button.focus();
  }

  update(name, path) {
    Object.assign(this, { name, path });
    const shown = showHidden(name);
    const words = t(path === null ? "cancel_upload" : "detach", { name: shown });
    this.#sign.replaceChildren(path === null ? el("span", { class: "spinner" }) : icon("file"));
    setText(this.#words, shown);
    this.#words.title = shown;
    this.#button.title = words;
    this.#button.setAttribute("aria-label", words);
    if (path !== null) this.element.dataset.path = path;
  }
}
