// One tool call: a line with its state, and its input, error and output on request.

import { el, place, setText } from "/static/dom.js";
import { formatDuration, formatElapsed } from "/static/format.js";
import { t, wordsFor } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { startTicking, stopTicking } from "/static/ticker.js";
import { callBlocks } from "/static/tool-cards.js";
import { isOpen } from "/static/turn.js";
import { toolBrief, toolError, toolWords } from "/static/tool-words.js";
import { showHidden } from "/static/visible.js";

const ICONS = { waiting: "clock", ok: "check", failed: "cross", denied: "shield", interrupted: "minus", unknown: "question" };

const CLIPPED = /^… \d+ characters left out …$/m;

const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

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
  #read;
  #drawnStatus = null;
  #drawnBody = null;
  #reading = null;
  element = el("div", { class: "tool", "data-testid": "tool-call" });

  /** `read(tool, isWhole)` gives the call's `{input, output, ran, error}`, long texts clipped unless it is to be whole. */
  constructor(read) {
    this.#read = read;
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
    if (this.#isOpen) this.#drawBody();
    place(this.element, [this.#head, tool.error && !this.#isOpen ? this.#error : null, this.#isOpen ? this.#body : null]);
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

  #toggle() {
    this.#head.setAttribute("aria-expanded", String(!this.#isOpen));
    if (this.#isOpen && this.#lacksDetails) this.#load(false);
    this.update(this.#tool);
  }

  /** After a reload a call's line is all that is known of it. */
  get #lacksDetails() {
    return this.#tool.input === null || (!isOpen(this.#tool) && this.#tool.output === null);
  }

  async #load(isWhole) {
    if (this.#reading === "reading") return;
    this.#reading = "reading";
    try {
      const { input, output, ran, error } = await this.#read(this.#tool, isWhole);
      Object.assign(this.#tool, { input: input ?? {}, output: output ?? "", ran: ran ?? null, error: error ?? null });
      this.#reading = null;
    } catch (error) {
      this.#reading = error;
    }
    this.#drawnBody = null;
    this.update(this.#tool);
  }

  #drawBody() {
    const { input, error, output, ran } = this.#tool;
    const version = JSON.stringify([Boolean(input), error, output?.length, Boolean(ran), String(this.#reading)]);
    if (version === this.#drawnBody) return;
    this.#drawnBody = version;
    this.#body.replaceChildren(...this.#reading ? this.#drawReading() : [...callBlocks(this.#tool), ...this.#drawClipped()]);
    if (!this.#body.childNodes.length) this.#body.append(el("p", { class: "tool-note" }, t("tool_nothing")));
  }

  /** The events hold long texts without their middle; the log of the turn has it. */
  #drawClipped() {
    const { input, output, error } = this.#tool;
    if (isOpen(this.#tool) || !CLIPPED.test([output, error, ...Object.values(input ?? {})].join("\n"))) return [];
    return [el("button", { class: "link-button tool-whole", type: "button", "data-testid": "tool-whole", onclick: () => { this.#load(true); this.update(this.#tool); } }, t("tool_whole"))];
  }

  #drawReading() {
    if (this.#reading === "reading") return [el("p", { class: "tool-note" }, t("loading"))];
    const again = el("button", { class: "link-button", type: "button", onclick: () => { this.#load(false); this.update(this.#tool); } }, t("try_again"));
    return [el("p", { class: "tool-note", role: "alert" }, showHidden(this.#reading.message), this.#reading.retryable === false ? null : again)];
  }
}
