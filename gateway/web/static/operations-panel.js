// What the server is doing now: conversations, agent processes, readiness, backends, deliveries, figures.

import { addressOf } from "/static/address.js";
import { request, requestJson } from "/static/api.js";
import { openDialog } from "/static/dialog.js";
import { el, setText } from "/static/dom.js";
import { ErrorLine } from "/static/error-line.js";
import { formatCount, formatDuration, formatFull } from "/static/format.js";
import { t, wordsFor } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { mcpServers } from "/static/mcp-servers.js";
import { bars, bucketsOf, parseMetrics, sparkline, sumsBy } from "/static/metrics-chart.js";
import { patchAll } from "/static/patch.js";
import { readReadiness } from "/static/routes.js";
import { readSkills, skillSection } from "/static/skills.js";
import { showHidden } from "/static/visible.js";

const READ_MS = 3000;
const KEPT_SAMPLES = 60;

const megabytes = (bytes) => `${formatCount(Math.round(bytes / 1_048_576))} MB`;
const section = (words, ...content) => el("section", { class: "ops-section" }, el("h3", {}, words), content);
const mark = (isOk) => el("span", { class: isOk ? "ops-ok" : "ops-bad" }, icon(isOk ? "check" : "alert"));

function tiles({ conversations, prewarmed, memory_bytes: memory }, history) {
  const tile = (name, value, shown = formatCount(value)) => {
    const values = history.get(name) ?? [];
    values.push(value);
    history.set(name, values.slice(-KEPT_SAMPLES));
    return el("div", { class: "ops-tile", "data-testid": `ops-${name}` }, el("span", {}, t(`ops_${name}`)), el("strong", {}, shown), sparkline(history.get(name)));
  };
  return el("div", { class: "ops-tiles" },
    tile("live", conversations.live), tile("asleep", conversations.asleep), tile("running", conversations.running_turns),
    tile("queued", conversations.queued_turns), tile("prewarmed", prewarmed), tile("memory", memory, megabytes(memory)));
}

function processRows(processes) {
  if (processes.length === 0) return el("p", { class: "quiet" }, t("ops_no_processes"));
  return el("ul", { class: "ops-rows", "data-testid": "ops-processes" }, processes.map((process) => el("li", {},
    process.conversation_id ? el("a", { class: "ops-name", href: addressOf(process.conversation_id) }, showHidden(process.title) || t("untitled")) : el("span", { class: "ops-name" }, t("ops_another")),
    el("span", {}, wordsFor("ops_process", process.state)), el("span", {}, formatDuration(process.age_s * 1000)), el("span", {}, process.memory_bytes ? megabytes(process.memory_bytes) : "–"))));
}

/** What a part says of itself: in the page's words where its kind or state is known, else in the server's. */
function detailOf({ message, kind, mode, state = mode, detail }) {
  if (kind) return t(`wall_${kind}_means`);
  return message ?? [state && wordsFor("part_state", state), detail].filter(Boolean).join(" · ");
}

const readinessRows = (parts = {}) => el("ul", { class: "ops-rows", "data-testid": "ops-readiness" }, Object.entries(parts).map(([name, part]) => el("li", {},
  mark(part.ok), el("span", { class: "ops-name" }, showHidden(wordsFor("part", name))), el("span", { class: "ops-detail" }, showHidden(detailOf(part))))));

const backendRows = (backends = []) => el("ul", { class: "ops-rows", "data-testid": "ops-backends" }, backends.map((backend) => el("li", {},
  mark(["ok", "off"].includes(backend.state)), el("span", { class: "ops-name" }, showHidden(wordsFor("part", backend.name))),
  el("span", {}, showHidden(wordsFor("part_state", backend.state))), backend.state !== "off" && backend.breaker && el("span", {}, wordsFor("breaker", backend.breaker)),
  backend.lag_s > 0 && el("span", {}, t("ops_lag", { time: formatDuration(backend.lag_s * 1000) })),
  el("span", { class: "ops-detail" }, showHidden(backend.last_error ?? (backend.state === "off" && backend.name === "vectors" ? t("ops_no_embedder") : backend.detail) ?? "")))));

function delivery(raw, tell) {
  const state = el("span", {}, wordsFor("delivery", raw.status));
  const retry = el("button", { class: "link-button", type: "button", "data-testid": "ops-retry" }, icon("undo"), t("try_again"));
  retry.addEventListener("click", async () => {
    retry.disabled = true;
    try {
      const after = await requestJson(`/memory/outbox/${encodeURIComponent(raw.id)}/retry`, { method: "POST" });
      setText(state, wordsFor("delivery", after.status));
    } catch (error) {
      if (error.code === "already_delivered") return setText(state, wordsFor("delivery", "delivered"));
      retry.disabled = false;
      tell(error);
    }
  });
  return el("li", {}, el("span", { class: "ops-name" }, showHidden(`${wordsFor("delivery_of", raw.operation)} → ${wordsFor("part", raw.backend)}`)), state, el("span", {}, t("ops_attempts", { count: raw.attempts })),
    el("span", {}, formatFull(raw.created_at)), el("span", { class: "ops-detail" }, showHidden(raw.last_error ?? "")), raw.status === "delivered" ? null : retry);
}

async function deliveries(place, tell) {
  const waiting = (await Promise.all(["dead", "pending"].map((status) => requestJson(`/memory/outbox?status=${status}&limit=20`)))).flatMap((page) => page.deliveries);
  place.replaceChildren(...(waiting.length ? waiting.map((raw) => delivery(raw, tell)) : [el("li", { class: "quiet" }, t("ops_no_deliveries"))]));
}

function figures(samples) {
  const chart = (words, rows, name) => (rows.length ? el("div", { class: "ops-chart" }, el("h4", {}, words), bars(rows, name)) : null);
  return [
    chart(t("ops_turns"), sumsBy(samples, "candor_turns_total", "outcome"), (name) => wordsFor("outcome", name)),
    chart(t("ops_tools"), sumsBy(samples, "candor_tool_calls_total", "status"), (name) => wordsFor("tool", name)),
    chart(t("ops_turn_seconds"), bucketsOf(samples, "candor_turn_seconds").filter(([, count]) => count > 0)),
    chart(t("ops_first_text"), bucketsOf(samples, "candor_first_text_seconds").filter(([, count]) => count > 0)),
    chart(t("ops_http"), sumsBy(samples, "candor_http_requests_total", "status")),
  ].filter(Boolean);
}

export function openOperations() {
  const history = new Map();
  const errors = el("div", { class: "panel-errors" });
  const tell = (error) => new ErrorLine(errors).show(error);
  const live = el("div", {});
  const parts = el("div", {});
  const skills = el("div", {});
  const outbox = el("ul", { class: "ops-rows", "data-testid": "ops-outbox" });
  const charts = el("div", { class: "ops-charts" });
  let timer = null;
  let isFailing = false;
  // Somebody may be at a link, or select what a part says of itself to copy it.
  const show = (place, ...nodes) => patchAll([...place.childNodes], nodes, place, null);

  async function read() {
    try {
      const [now, ready, health, mcp, text] = await Promise.all([requestJson("/operations"), readReadiness(), requestJson("/memory/health"), requestJson("/mcp-servers"), request("/metrics", { accept: "*/*" }).then((answer) => answer.text())]);
      show(live, tiles(now, history), section(t("ops_processes"), processRows(now.processes)));
      show(parts, ...[section(t("ops_readiness"), readinessRows(ready.parts)), section(t("ops_backends"), backendRows(health.backends)), mcpServers(mcp.servers)].filter(Boolean));
      show(charts, ...figures(parseMetrics(text)));
      // What else has failed stays to be read.
      if (isFailing) errors.replaceChildren();
      isFailing = false;
    } catch (error) {
      isFailing = true;
      tell(error);
    }
    if (dialog.open) timer = setTimeout(read, READ_MS);
  }

  const close = el("button", { class: "icon-button", type: "button", "aria-label": t("close"), title: t("close") }, icon("close"));
  const content = el("div", { class: "panel", "data-testid": "operations" }, el("header", { class: "panel-head" }, el("h2", {}, t("operations")), close), errors,
    el("div", { class: "panel-body" }, live, parts, skills, section(t("ops_outbox"), outbox), section(t("ops_figures"), charts)));
  const dialog = openDialog({ label: t("operations"), className: "panel-dialog", content, onClose: () => clearTimeout(timer) });
  close.addEventListener("click", () => dialog.close());
  content.addEventListener("click", (event) => { if (event.target.closest("a")) dialog.close(); });
  read();
  deliveries(outbox, tell).catch(tell);
  readSkills().then((found) => skills.replaceChildren(skillSection(found))).catch(tell);
}
