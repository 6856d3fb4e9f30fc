// Asks for the gateway's token; the panel stays until the token is accepted.

import { el } from "/static/dom.js";
import { t } from "/static/i18n.js";
import { isSendable } from "/static/session.js";

const REASONS = new Set(["sign_in_refused", "provider_unavailable"]);

/** Why the provider's sign-in failed from which the person comes back; told once. */
function takeReason() {
  const reason = new URLSearchParams(location.search).get("sign_in");
  if (!REASONS.has(reason)) return null;
  history.replaceState(history.state, "", `${location.pathname}${location.hash}`);
  return reason;
}

/**
 * Resolves to the token typed, or to that of another tab (`elsewhere`). `isWrong`: the one before was refused. `path`: where the provider's
 * sign-in begins; null without a provider.
 */
export function askForToken(isWrong, elsewhere, path) {
  return new Promise((resolve) => {
    const field = el("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true, autofocus: !path, "data-testid": "token-input" });
    const wrong = el("p", { class: "field-error", role: "alert", hidden: !isWrong }, t("sign_in_wrong"));
    const reason = takeReason();
    const provider = path && el("div", { class: "dialog-actions" },
      el("a", { class: "button primary", href: `.${path}`, autofocus: true, "data-testid": "provider-sign-in" }, t("sign_in_provider")));
    const form = el("form", { class: "dialog-body" },
      el("h2", {}, t("sign_in_title")),
      reason && el("p", { class: "field-error", role: "alert", "data-testid": "sign-in-failed" }, t(reason)),
      provider,
      el("p", {}, t(path ? "sign_in_or_token" : "sign_in_body")),
      el("label", { class: "field", for: "token" }, el("span", {}, t("token")), field),
      wrong,
      el("div", { class: "dialog-actions" }, el("button", { class: "button primary", type: "submit", "data-testid": "token-submit" }, t("sign_in"))));
    const dialog = el("dialog", { class: "dialog sign-in", "aria-label": t("sign_in_title"), "data-testid": "sign-in" }, form);
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      // An input method may have typed it in wide characters.
      const token = field.value.normalize("NFKC").trim();
      if (!token) return;
      wrong.hidden = isSendable(token);
      if (!wrong.hidden) {
        field.select();
        return;
      }
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
