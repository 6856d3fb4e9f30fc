// One webhook: its address, its switch, a test message, its last deliveries, deleting it; of a new one the secret, once.

import { requestJson, request } from "/static/api.js";
import { copyButton } from "/static/copy.js";
import { confirmDialog } from "/static/dialog.js";
import { el, setText } from "/static/dom.js";
import { formatDuration, formatFull } from "/static/format.js";
import { t, wordsFor } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { showHidden } from "/static/visible.js";

const SHOWN_DELIVERIES = 20;
const READ_MS = 2000;

const link = (name, words, id, attributes = {}) => el("button", { class: "link-button", type: "button", "data-testid": id, ...attributes }, icon(name), words);

const secretBox = (secret, id) => el("div", { class: "webhook-secret", "data-testid": "webhook-secret" }, el("p", { id }, t("webhook_secret")),
  el("div", { class: "webhook-secret-line" }, el("code", { tabindex: "0", role: "textbox", "aria-readonly": "true", "aria-labelledby": id }, secret), copyButton(() => secret)));

function showOutcome(place, { delivered, status, error, duration_ms: took_ms }) {
  place.classList.toggle("is-bad", !delivered);
  setText(place, t(delivered ? "webhook_test_taken" : "webhook_test_failed", { status, error: showHidden(error ?? ""), time: formatDuration(took_ms) }));
}

function deliveryRow(path, raw, { showError, again }) {
  const retry = raw.status !== "delivered" && link("undo", t("try_again"), "webhook-retry");
  if (retry) {
    retry.addEventListener("click", async () => {
      retry.disabled = true;
      try {
        await requestJson(`${path}/deliveries/${encodeURIComponent(raw.id)}/retry`, { method: "POST" });
        again();
      } catch (error) {
        retry.disabled = false;
        showError(error);
      }
    });
  }
  return el("li", {},
    el("span", { class: "ops-name" }, wordsFor("webhook_event", raw.type)), el("span", {}, wordsFor("delivery", raw.status)),
    el("span", {}, t("ops_attempts", { count: raw.attempts })), el("span", {}, formatFull(raw.created_at)),
    raw.next_attempt_at && el("span", {}, t("webhook_next", { time: formatFull(raw.next_attempt_at) })),
    raw.last_error && el("span", { class: "ops-detail" }, showHidden(raw.last_error)), retry);
}

/** `showError(error)` shows an error, null none; `gone()` is called once it is deleted. */
export function webhookRow(webhook, { showError, gone }) {
  const path = `/webhooks/${encodeURIComponent(webhook.id)}`;
  const name = `webhook-${webhook.id}`;
  const state = el("span", { class: "webhook-state" });
  const input = el("input", { class: "switch", type: "checkbox", role: "switch", "aria-labelledby": name, "data-testid": "webhook-switch" });
  const outcome = el("p", { class: "webhook-outcome", role: "status", "data-testid": "webhook-outcome" });
  const rows = el("ul", { class: "ops-rows", id: `${name}-deliveries`, "data-testid": "webhook-deliveries", hidden: true });
  const test = link("spark", t("webhook_test"), "webhook-test");
  const list = link("clock", t("webhook_deliveries"), "webhook-list", { "aria-expanded": "false", "aria-controls": rows.id });
  const remove = link("trash", t("webhook_delete"), "webhook-delete");
  let timer = null;
  let shown = null;

  function show(now) {
    input.checked = now.state === "on";
    setText(state, wordsFor("webhook_state", now.state));
  }

  async function read() {
    const { deliveries } = await requestJson(`${path}/deliveries?limit=${SHOWN_DELIVERIES}`);
    clearTimeout(timer);
    if (deliveries.some(({ status }) => status === "pending")) timer = setTimeout(() => { if (rows.isConnected && !rows.hidden) read().catch(showError); }, READ_MS);
    const now = JSON.stringify(deliveries);
    if (now === shown) return;
    shown = now;
    const again = () => {
      list.focus();
      attempt(read);
    };
    const hadFocus = rows.contains(document.activeElement);
    rows.replaceChildren(...(deliveries.length ? deliveries.map((raw) => deliveryRow(path, raw, { showError, again })) : [el("li", { class: "quiet" }, t("ops_no_deliveries"))]));
    if (hadFocus) list.focus();
  }

  async function attempt(act) {
    try {
      showError(null);
      await act();
    } catch (error) {
      showError(error);
    }
  }

  input.addEventListener("change", () => attempt(async () => {
    const wanted = input.checked ? "on" : "off";
    input.checked = !input.checked;
    show(await requestJson(path, { method: "PATCH", body: { state: wanted } }));
  }));
  test.addEventListener("click", () => attempt(async () => {
    setText(outcome, t("webhook_testing"));
    showOutcome(outcome, await requestJson(`${path}/test`, { method: "POST" }).catch((error) => { setText(outcome, ""); throw error; }));
  }));
  list.addEventListener("click", () => attempt(async () => {
    rows.hidden = !rows.hidden;
    list.setAttribute("aria-expanded", String(!rows.hidden));
    if (!rows.hidden) await read();
  }));
  remove.addEventListener("click", async () => {
    if (!await confirmDialog({ title: t("webhook_delete"), body: t("webhook_delete_means", { url: showHidden(webhook.url) }), confirm: t("webhook_delete") })) return;
    await attempt(async () => {
      await request(path, { method: "DELETE" });
      gone();
    });
  });

  show(webhook);
  return el("li", { class: "webhook", "data-testid": "webhook" },
    el("div", { class: "webhook-head" }, el("strong", { class: "webhook-url", id: name, dir: "ltr" }, showHidden(webhook.url)), state, input),
    el("p", { class: "quiet" }, webhook.events.map((event) => wordsFor("webhook_event", event)).join(" · ")),
    webhook.secret && secretBox(webhook.secret, `${name}-secret`),
    el("div", { class: "memory-actions" }, test, list, remove), outcome, rows);
}
