// The empty conversation: a greeting and suggestions.

import { el } from "/static/dom.js";
import { t } from "/static/i18n.js";

export function welcome(ask) {
  const chips = t("chips").map((words) => el("button", { class: "suggestion", type: "button", "data-testid": "suggestion", dir: "auto", onclick: () => ask(words) }, words));
  return el("div", { class: "welcome", "data-testid": "welcome" },
    el("img", { class: "welcome-mark", src: document.querySelector(".brand-mark").src, alt: "", width: 52, height: 52 }),
    el("h2", {}, t("welcome")),
    el("p", {}, t("welcome_body")),
    el("div", { class: "suggestions" }, chips));
}
