// The error of a failed action, with a way to retry unless that cannot succeed.

import { el } from "/static/dom.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { showHidden } from "/static/visible.js";

export class ErrorLine {
  #slot;

  constructor(slot) {
    this.#slot = slot;
  }

  /** `retry`, where given, runs after the line is gone. */
  show(error, retry = null) {
    const again = retry && !error.isFinal ? el("button", { class: "button small", type: "button", "data-testid": "retry" }, t("try_again")) : null;
    const close = el("button", { class: "icon-button small", type: "button", "aria-label": t("dismiss"), title: t("dismiss"), onclick: () => this.clear() }, icon("close"));
    again?.addEventListener("click", () => {
      this.clear();
      retry();
    });
    const request = error.requestId && el("span", { class: "error-request" }, t("error_request", { id: showHidden(error.requestId) }));
    this.#slot.replaceChildren(el("div", { class: "error-line", role: "alert", "data-testid": "error-line", "data-code": error.code ?? "unknown" },
      icon("alert"), el("span", { class: "error-words", dir: "auto" }, showHidden(error.message), request && " ", request), ...[again, close].filter(Boolean)));
  }

  clear() {
    this.#slot.replaceChildren();
  }
}
