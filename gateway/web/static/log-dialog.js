// The log of a turn, line by line, with each line's kind, its full text on request, and a download.

import { el } from "/static/dom.js";
import { openDialog } from "/static/dialog.js";
import { formatCount } from "/static/format.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { readLog } from "/static/routes.js";
import { showHidden } from "/static/visible.js";

const PAGE_LINES = 200;
const BRIEF_CHARS = 200;
const PLACE_FIELDS = new Set(["ts", "seq", "kind", "conversation_id", "turn_id"]);

function parseLine(line) {
  try {
    const value = JSON.parse(line);
    return value !== null && typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}

/** What kind of thing a message is says more than its first bytes. */
function briefField(name, field) {
  const text = typeof field === "string" ? field : JSON.stringify(field);
  if (typeof field?.type !== "string") return `${name}: ${text}`;
  return [field.type, field.subtype, field.event?.type].filter((word) => typeof word === "string").concat(text).join(" ");
}

function brief(value) {
  const own = Object.entries(value).filter(([name]) => !PLACE_FIELDS.has(name));
  return own.map(([name, field]) => briefField(name, field)).join(" · ").slice(0, BRIEF_CHARS);
}

function lineView(line, index) {
  const value = parseLine(line);
  const kind = value?.kind ?? t("log_bad_line");
  const whole = el("pre", { tabindex: "0" });
  const view = el("details", { class: "log-line", "data-kind": kind },
    el("summary", {},
      el("span", { class: "log-seq" }, String(value?.seq ?? index + 1)),
      el("span", { class: "log-kind" }, showHidden(kind)),
      el("span", { class: "log-brief" }, showHidden(value ? brief(value) : line.slice(0, BRIEF_CHARS))),
      el("span", { class: "log-time" }, String(value?.ts ?? "").slice(11, 23))),
    whole);
  view.addEventListener("toggle", () => {
    if (view.open && !whole.textContent) whole.textContent = showHidden(value ? JSON.stringify(value, null, 2) : line);
  });
  return view;
}

function showLines(list, lines, from = 0) {
  const until = Math.min(lines.length, from + PAGE_LINES);
  list.append(...lines.slice(from, until).map((line, index) => lineView(line, from + index)));
  if (until === lines.length) return;
  const more = el("button", { class: "button", type: "button" }, t("show_more"));
  more.addEventListener("click", () => {
    more.remove();
    showLines(list, lines, until);
  });
  list.append(more);
}

function download(logFile, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "application/x-ndjson" }));
  el("a", { href: address, download: logFile.split("/").at(-1) }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

async function fill(parts, logFile, signal) {
  try {
    const text = await readLog(logFile, signal);
    const lines = text.split("\n").filter((line) => line.trim());
    parts.count.textContent = t("log_lines", { count: formatCount(lines.length) });
    parts.list.replaceChildren();
    showLines(parts.list, lines);
    parts.save.disabled = false;
    parts.save.addEventListener("click", () => download(logFile, text));
  } catch (error) {
    if (signal.aborted) return;
    const again = el("button", { class: "button", type: "button" }, t("try_again"));
    again.addEventListener("click", () => fill(parts, logFile, signal));
    parts.list.replaceChildren(el("p", { class: "error-line", "data-testid": "error-line" }, icon("alert"), el("span", {}, showHidden(error.message)), again));
  }
}

export function openLog(logFile) {
  const reading = new AbortController();
  const parts = {
    count: el("span", { class: "log-count" }),
    list: el("div", { class: "log-lines", "data-testid": "log-lines" }, el("p", { class: "quiet" }, t("loading"))),
    save: el("button", { class: "button", type: "button", disabled: true, "data-testid": "log-download" }, icon("download"), t("download")),
  };
  const close = el("button", { class: "icon-button", type: "button", "aria-label": t("close"), title: t("close"), autofocus: true }, icon("close"));
  const head = el("header", { class: "log-head" },
    el("div", { class: "log-title" }, el("h2", {}, t("log_title")), el("p", {}, el("code", {}, showHidden(logFile)), parts.count)),
    parts.save, close);
  const content = el("div", { class: "log-frame", "data-testid": "log-dialog" }, head, parts.list);
  const dialog = openDialog({ label: t("log_title"), className: "log", content, onClose: () => reading.abort() });
  close.addEventListener("click", () => dialog.close());
  fill(parts, logFile, reading.signal);
}
