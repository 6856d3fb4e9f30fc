// Asks for the gateway's token; the panel stays until the token is accepted.

import { el } from "/static/dom.js";
import { t } from "/static/i18n.js";

/** Resolves to the token typed, or to that of another tab (`elsewhere`). `isWrong`: the one before was refused. */
export function askForToken(isWrong, elsewhere) {
  return new Promise((resolve) => {
    const field = el("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true, autofocus: true, "data-testid": "token-input" });
    const form = el("form", { class: "dialog-body" },
      el("h2", {}, t("sign_in_title")),
      el("p", {}, t("sign_in_body")),
      el("label", { class: "field", for: "token" }, el("span", {}, t("token")), field),
      isWrong && el("p", { class: "field-error", role: "alert" }, t("sign_in_wrong")),
      el("div", { class: "dialog-actions" }, el("button", { class: "button primary", type: "submit", "data-testid": "token-submit" }, t("sign_in"))));
    const dialog = el("dialog", { class: "dialog sign-in", "aria-label": t("sign_in_title"), "data-testid": "sign-in" }, form);
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const token = field.value.trim();
      if (!token) return;
      dialog.remove();
      resolve(token);
    });
    elsewhere.then((token) => {
      dialog.remove();
      resolve(token);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
