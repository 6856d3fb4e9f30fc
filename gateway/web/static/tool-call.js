// One tool call: a line with its state, who let it pass, and its input, error and output on request.

import { ApprovalCard, letPass } from "/static/approval-card.js";
import { el, place, setText } from "/static/dom.js";
import { formatCount, formatDuration, formatElapsed } from "/static/format.js";
import { t, wordsFor } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { startTicking, stopTicking } from "/static/ticker.js";
import { growBlock } from "/static/tool-block.js";
import { inputBlocks, inputVersion, outputBlocks } from "/static/tool-cards.js";
import { isAsking, isOpen, statusOf } from "/static/turn.js";
import { toolBrief, toolError, toolWords } from "/static/tool-words.js";
import { showHidden } from "/static/visible.js";

const ICONS = { waiting: "clock", ok: "check", failed: "cross", denied: "shield", interrupted: "minus", unknown: "question" };

const CLIPPED = /^… [\d,. ]+ (?:characters|lines) left out\b/m;

const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

export class ToolCallView {
  #mark = el("span", { class: "tool-mark" });
  #name = el("span", { class: "tool-name" });
  #summary = el("bdi", { class: "tool-summary" });
  #status = el("span", { class: "tool-status" });
  #time = el("span", { class: "tool-time" });
  #error = el("div", { class: "tool-error-line" });
  #body = el("div", { class: "tool-body" });
  #below = el("div", { class: "tool-below", "data-testid": "tool-below" });
  #head = el("button", { class: "tool-head", type: "button", "aria-expanded": "false" },
    this.#mark, this.#name, this.#summary, this.#status, this.#time, el("span", { class: "tool-chevron" }, icon("chevron")));
  #tool = null;
  #read;
  #drawnStatus = null;
  #drawnBody = null;
  #reading = null;
  #input = { of: [undefined], blocks: [] };
  #output = [];
  #answer;
  #passed = { of: null, card: null, element: null };
  element = el("div", { class: "tool", "data-testid": "tool-call" });

  /**
   * `read(tool, isWhole)` gives the call as its route has it, long texts clipped unless it is to be whole;
   * `answer(approval, reply)` tells the gateway what a person says of it.
   */
  constructor(read, answer) {
    this.#read = read;
    this.#answer = answer;
    this.#head.addEventListener("click", () => this.#toggle());
    this.element.append(this.#head);
  }

  /** Show the calls that this one's sub-agent made. */
  nest(elements) {
    place(this.#below, elements);
    if (this.#below.parentNode !== this.element) this.element.append(this.#below);
  }

  update(tool) {
    this.#tool = tool;
    setText(this.#name, showHidden(toolWords(tool.name, tool.status)));
    const brief = toolBrief(tool);
    setText(this.#summary, showHidden(brief.text));
    this.#summary.title = showHidden(brief.text);
    this.#summary.classList.toggle("is-words", brief.isWords);
    const status = statusOf(tool);
    if (this.#drawnStatus !== status) this.#drawStatus(tool, status);
    if (status !== "running") setText(this.#time, formatDuration(tool.duration_ms ?? NaN));
    setText(this.#error, tool.error ? showHidden(asText(toolError(tool))) : "");
    const passed = this.#drawPassed(tool);
    const isAsked = isAsking(tool.approval);
    this.element.classList.toggle("is-asked", isAsked);
    if (this.#isOpen && !isAsked) this.#drawBody();
    // What a person has denied says so already.
    const isTold = tool.approval?.by === "user" || isAsked || this.#isOpen;
    place(this.element, [this.#head, passed, tool.error && !isTold ? this.#error : null, this.#isOpen && !isAsked ? this.#body : null, this.#below.childNodes.length ? this.#below : null]);
  }

  /** What a person is or was asked about it; else the earlier yes, or the model, that let it pass. */
  #drawPassed({ approval, allowed_by: allowedBy }) {
    const of = approval ?? allowedBy;
    if (this.#passed.of !== of) {
      const card = approval && new ApprovalCard(approval, this.#answer);
      this.#passed = { of, card, element: card?.element ?? (allowedBy && letPass(allowedBy)) };
    }
    this.#passed.card?.update(approval);
    return this.#passed.element;
  }

  #drawStatus(tool, status) {
    this.#drawnStatus = status;
    this.element.dataset.status = status;
    const isRunning = status === "running";
    this.#mark.replaceChildren(isRunning ? el("span", { class: "spinner" }) : icon(ICONS[status] ?? "question"));
    setText(this.#status, wordsFor("tool", status));
    if (isRunning) startTicking(this.element, () => setText(this.#time, formatElapsed(Date.now() - tool.startedAt_ms)));
    else stopTicking(this.element);
  }

  get #isOpen() {
    return this.#head.getAttribute("aria-expanded") === "true";
  }

  #toggle() {
    if (isAsking(this.#tool.approval)) {
      this.#passed.card.focus();
      return;
    }
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
      const { input, output, ran, error, output_chars: chars, output_kept_chars: kept } = await this.#read(this.#tool, isWhole);
      Object.assign(this.#tool, { input: input ?? {}, output: output ?? "", ran: ran ?? null, error: error ?? null, output_chars: chars ?? null, output_kept_chars: kept ?? null, isWhole });
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
    const parts = this.#reading ? this.#drawReading() : [...this.#drawInput(), ...this.#drawOutput(), ...this.#drawClipped()];
    place(this.#body, parts.length ? parts : [el("p", { class: "tool-note" }, t("tool_nothing"))]);
  }

  /** Made anew only where it is another one: what a command writes comes in many pieces. */
  #drawInput() {
    const of = inputVersion(this.#tool);
    if (!this.#input.of.every((known, index) => known === of[index])) this.#input = { of, blocks: inputBlocks(this.#tool) };
    return this.#input.blocks;
  }

  #drawOutput() {
    const blocks = outputBlocks(this.#tool);
    const isGrown = blocks.length === 1 && this.#output.length === 1 && growBlock(this.#output[0], blocks[0]);
    if (!isGrown) this.#output = blocks;
    return this.#output;
  }

  /** What stands here is what the model got of a long output; a person can have the rest. */
  #drawClipped() {
    const { input, output, error, output_chars: chars, output_kept_chars: kept, isWhole } = this.#tool;
    if (isWhole) return chars > kept && kept ? [el("p", { class: "tool-note", "data-testid": "tool-kept" }, t("tool_kept", { kept: formatCount(kept), count: formatCount(chars) }))] : [];
    if (isOpen(this.#tool) || !CLIPPED.test([output, error, ...Object.values(input ?? {})].join("\n"))) return [];
    const open = el("button", { class: "link-button tool-whole", type: "button", "data-testid": "tool-whole", onclick: () => { this.#load(true); this.update(this.#tool); } }, t("tool_whole"));
    return [el("p", { class: "tool-note" }, chars ? t("tool_clipped_of", { count: formatCount(chars) }) : t("tool_clipped"), " ", open)];
  }

  #drawReading() {
    if (this.#reading === "reading") return [el("p", { class: "tool-note" }, t("loading"))];
    const again = el("button", { class: "link-button", type: "button", onclick: () => { this.#load(false); this.update(this.#tool); } }, t("try_again"));
    return [el("p", { class: "tool-note", role: "alert" }, showHidden(this.#reading.message), this.#reading.retryable === false ? null : again)];
  }
}
