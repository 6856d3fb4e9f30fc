// One tool call: a line with its state, and its input, error and output on request.

import { el, place, setText } from "/static/dom.js";
import { formatDuration, formatElapsed } from "/static/format.js";
import { t, wordsFor } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { startTicking, stopTicking } from "/static/ticker.js";
import { isToldInWords, toolBrief, toolError, toolWords } from "/static/tool-words.js";
import { showHidden } from "/static/visible.js";

const ICONS = { waiting: "clock", ok: "check", failed: "cross", denied: "shield", interrupted: "minus", unknown: "question" };
// The page shows this much; the turn's log has the rest.
const MAX_SHOWN_CHARS = 20_000;

function asText(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

function block(label, value, className = "") {
  const text = asText(value);
  const clipped = text.length > MAX_SHOWN_CHARS;
  const shown = clipped ? `${text.slice(0, MAX_SHOWN_CHARS)}\n…` : text;
  return el("div", { class: `tool-block ${className}` },
    el("div", { class: "tool-block-label" }, clipped && label === t("tool_output") ? t("tool_output_clipped") : label),
    el("pre", { tabindex: "0" }, showHidden(shown)));
}

export class ToolCallView {
  #mark = el("span", { class: "tool-mark" });
  #name = el("span", { class: "tool-name" });
  #summary = el("bdi", { class: "tool-summary" });
  #status = el("span", { class: "tool-status" });
  #time = el("span", { class: "tool-time" });
  #error = el("div", { class: "tool-error-line" });
  #body = el("div", { class: "tool-body" });
  #head = el("button", { class: "tool-head", type: "button", "aria-expanded": "false" },
    this.#mark, this.#name, this.#summary, this.#status, this.#time, el("span", { class: "tool-chevron" }, icon("chevron")));
  #tool = null;
  #drawnStatus = null;
  element = el("div", { class: "tool", "data-testid": "tool-call" });

  constructor() {
    this.#head.addEventListener("click", () => this.#toggle());
    this.element.append(this.#head);
  }

  update(tool) {
    this.#tool = tool;
    setText(this.#name, showHidden(toolWords(tool.name, tool.status)));
    const brief = toolBrief(tool);
    setText(this.#summary, showHidden(brief.text));
    this.#summary.title = showHidden(brief.text);
    this.#summary.classList.toggle("is-words", brief.isWords);
    if (this.#drawnStatus !== tool.status) this.#drawStatus(tool);
    if (tool.status !== "running") setText(this.#time, formatDuration(tool.duration_ms ?? NaN));
    setText(this.#error, tool.error ? showHidden(asText(toolError(tool))) : "");
    this.#drawBody();
    place(this.element, [this.#head, tool.error && !this.#isOpen ? this.#error : null, this.#isOpen ? this.#body : null]);
    this.#head.disabled = !this.#hasDetails;
  }

  #drawStatus(tool) {
    this.#drawnStatus = tool.status;
    this.element.dataset.status = tool.status;
    const isRunning = tool.status === "running";
    this.#mark.replaceChildren(isRunning ? el("span", { class: "spinner" }) : icon(ICONS[tool.status] ?? "question"));
    setText(this.#status, wordsFor("tool", tool.status));
    if (isRunning) startTicking(this.element, () => setText(this.#time, formatElapsed(Date.now() - tool.startedAt_ms)));
    else stopTicking(this.element);
  }

  get #isOpen() {
    return this.#head.getAttribute("aria-expanded") === "true";
  }

  get #hasDetails() {
    return Boolean(isToldInWords(this.#tool.name) || this.#tool.error || this.#tool.output || (this.#tool.input && Object.keys(this.#tool.input).length));
  }

  #toggle() {
    this.#head.setAttribute("aria-expanded", String(!this.#isOpen));
    this.#drawnBody = null;
    this.update(this.#tool);
  }

  #drawnBody = null;

  #drawBody() {
    if (!this.#isOpen) return;
    const { name, summary, error, output } = this.#tool;
    const isInWords = isToldInWords(name);
    // After a reload its line is all that is left of what it was given.
    const input = this.#tool.input ?? (isInWords ? summary : null);
    const version = JSON.stringify([Boolean(input), error, output?.length]);
    if (version === this.#drawnBody) return;
    this.#drawnBody = version;
    this.#body.replaceChildren(...[
      isInWords ? block(t("tool_name"), name) : null,
      input && Object.keys(input).length ? block(t("tool_input"), input) : null,
      error ? block(t("tool_error"), error, "is-error") : null,
      output ? block(t("tool_output"), output) : null,
    ].filter(Boolean));
  }
}
