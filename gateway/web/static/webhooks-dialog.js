// The dialog with the person's webhooks: the list, and what a new one needs.

import { requestJson } from "/static/api.js";
import { openDialog } from "/static/dialog.js";
import { el } from "/static/dom.js";
import { ErrorLine } from "/static/error-line.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { webhookRow } from "/static/webhook-row.js";

const EVENTS = ["turn.completed", "approval.requested", "conversation.created"];

function newForm(add) {
  const url = el("input", { id: "webhook-url", type: "url", required: true, maxlength: 2048, autocomplete: "off", spellcheck: "false", placeholder: "https://example.org/hooks", dir: "ltr", "data-testid": "webhook-url" });
  const boxes = EVENTS.map((event) => el("input", { type: "checkbox", value: event, checked: event === EVENTS[0], "data-testid": `webhook-event-${event}` }));
  const submit = el("button", { class: "button primary", type: "submit", "data-testid": "webhook-add" }, t("webhook_add"));
  const form = el("form", { class: "webhook-form" },
    el("label", { class: "field", for: url.id }, el("span", {}, t("webhook_url")), url),
    el("fieldset", { class: "webhook-events" }, el("legend", {}, t("webhook_events")),
      boxes.map((box) => el("label", {}, box, t(`webhook_event_${box.value}`)))),
    el("div", { class: "dialog-actions" }, submit));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (submit.getAttribute("aria-disabled") === "true") return;
    submit.setAttribute("aria-disabled", "true");
    const sent = url.value;
    if (await add({ url: sent.trim(), events: boxes.filter((box) => box.checked).map((box) => box.value) }) && url.value === sent) url.value = "";
    submit.setAttribute("aria-disabled", "false");
  });
  return form;
}

export function openWebhooks() {
  const errors = el("div", { class: "panel-errors" });
  const line = new ErrorLine(errors);
  const showError = (error) => (error ? line.show(error) : line.clear());
  const means = el("p", { class: "quiet" }, t("webhooks_mean"));
  const list = el("ul", { class: "webhook-list", "data-testid": "webhook-rows" });
  const place = el("div", {});

  function showRow(webhook) {
    const row = webhookRow(webhook, { showError, gone: () => {
      row.remove();
      close.focus();
    } });
    list.append(row);
    row.querySelector("code")?.focus();
  }

  async function add(body) {
    try {
      showError(null);
      showRow(await requestJson("/webhooks", { method: "POST", body }));
      return true;
    } catch (error) {
      showError(error);
      return false;
    }
  }

  async function read() {
    const { webhooks, enabled } = await requestJson("/webhooks");
    webhooks.forEach(showRow);
    place.replaceChildren(enabled ? newForm(add) : el("p", { "data-testid": "webhooks-off" }, t("webhooks_off")));
  }

  const close = el("button", { class: "icon-button", type: "button", "aria-label": t("close"), title: t("close") }, icon("close"));
  const content = el("div", { class: "panel", "data-testid": "webhooks" },
    el("header", { class: "panel-head" }, el("h2", {}, t("webhooks")), close), errors,
    el("div", { class: "panel-body webhooks" }, means, list, place));
  const dialog = openDialog({ label: t("webhooks"), className: "panel-dialog", content });
  close.addEventListener("click", () => dialog.close());
  read().catch(showError);
}
