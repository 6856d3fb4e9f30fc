// The log of a turn: a timeline of its steps, and its lines, each with its full text on request, and a download.

import { el } from "/static/dom.js";
import { openDialog } from "/static/dialog.js";
import { download } from "/static/download.js";
import { formatCount } from "/static/format.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { timeline } from "/static/log-timeline.js";
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

function lineView(line, value, index) {
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

class Lines {
  #list;
  #lines;
  #values;
  #texts = null;
  #found = [];
  #views = new Map();
  #more = el("button", { class: "button", type: "button", onclick: () => this.#show(this.#views.size + PAGE_LINES) }, t("show_more"));

  constructor(list, lines, values) {
    this.#list = list;
    this.#lines = lines;
    this.#values = values;
    this.filter("");
  }

  /** Show the lines that hold `query`, in any case of letters; returns their number. */
  filter(query) {
    const wanted = query.trim().toLowerCase();
    if (wanted) this.#texts ??= this.#lines.map((line, index) => (this.#values[index] ? JSON.stringify(this.#values[index]) : line).toLowerCase());
    this.#found = [...this.#lines.keys()].filter((index) => !wanted || this.#texts[index].includes(wanted));
    this.#views.clear();
    this.#list.replaceChildren();
    this.#show(PAGE_LINES);
    return this.#found.length;
  }

  #show(count) {
    this.#more.remove();
    for (const index of this.#found.slice(this.#views.size, count)) {
      this.#views.set(index, lineView(this.#lines[index], this.#values[index], index));
      this.#list.append(this.#views.get(index));
    }
    if (this.#views.size < this.#found.length) this.#list.append(this.#more);
  }

  /** Open a line that is among those found, and lead the reader there. */
  open(index) {
    if (!this.#views.has(index)) this.#show(this.#found.indexOf(index) + 1);
    const view = this.#views.get(index);
    view.open = true;
    view.scrollIntoView({ block: "start" });
    view.querySelector("summary").focus();
  }
}

async function fill(parts, logFile, signal) {
  try {
    const text = await readLog(logFile, signal);
    const lines = text.split("\n").filter((line) => line.trim());
    const count = (number) => { parts.count.textContent = t("log_lines", { count: formatCount(number) }); };
    count(lines.length);
    const values = lines.map(parseLine);
    parts.list.replaceChildren();
    const shown = new Lines(parts.list, lines, values);
    const search = (query) => { parts.search.value = query; count(shown.filter(query)); };
    parts.search.addEventListener("input", () => search(parts.search.value));
    const steps = timeline(values, (line) => {
      if (parts.search.value) search("");
      shown.open(line);
    });
    parts.search.disabled = false;
    if (steps) parts.list.before(steps);
    parts.save.disabled = false;
    parts.save.addEventListener("click", () => download(logFile.split("/").at(-1), text, "application/x-ndjson"));
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
    count: el("span", { class: "log-count", role: "status" }),
    search: el("input", { type: "search", class: "log-search", disabled: true, "aria-label": t("log_search"), placeholder: t("log_search"), "data-testid": "log-search" }),
    list: el("div", { class: "log-lines", "data-testid": "log-lines" }, el("p", { class: "quiet" }, t("loading"))),
    save: el("button", { class: "button", type: "button", disabled: true, "data-testid": "log-download" }, icon("download"), t("download")),
  };
  const close = el("button", { class: "icon-button", type: "button", "aria-label": t("close"), title: t("close"), autofocus: true }, icon("close"));
  const head = el("header", { class: "log-head" },
    el("div", { class: "log-title" }, el("h2", {}, t("log_title")), el("p", {}, el("code", {}, showHidden(logFile)), parts.count)),
    parts.search, parts.save, close);
  const content = el("div", { class: "log-frame", "data-testid": "log-dialog" }, head, parts.list);
  const dialog = openDialog({ label: t("log_title"), className: "log", content, onClose: () => reading.abort() });
  close.addEventListener("click", () => dialog.close());
  fill(parts, logFile, reading.signal);
}
