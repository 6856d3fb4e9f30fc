// The banner of the demo model: how to connect a real one. When dismissed, a word beside the model's name stays.

import { el } from "/static/dom.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { keep, recall } from "/static/storage.js";

const PUT_AWAY = "demo-banner-put-away";

export function showDemoBanner(slot, model) {
  if (recall(PUT_AWAY)) return;
  const close = el("button", { class: "icon-button small", type: "button", "aria-label": t("dismiss"), title: t("dismiss") }, icon("close"));
  const banner = el("div", { class: "banner", role: "note", "data-testid": "demo-banner" },
    icon("spark"),
    el("div", { class: "banner-words" },
      el("strong", {}, t("demo_title")), " ", t("demo_body", { model: model || "candor-demo" }), " ",
      el("details", {}, el("summary", {}, t("demo_how")), el("p", {}, t("demo_steps")))),
    close);
  close.addEventListener("click", () => {
    keep(PUT_AWAY, "yes");
    banner.remove();
  });
  slot.replaceChildren(banner);
}
