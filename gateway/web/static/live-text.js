// Text that is being streamed. Finished blocks are rendered once; only the tail is rendered again.

import { el } from "/static/dom.js";
import { renderProse } from "/static/prose.js";

const MIN_INTERVAL_MS = 60;
// Rendering may take this share of the time at most, so that a very long block cannot freeze the page.
const MAX_LOAD_RATIO = 0.25;

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const CONTINUES = /^(\s|[-*+>|]|\d+[.)])/;

/** The length of the text's part that no later text can change: whole blocks, no open fence, no list that may go on. */
export function settledLength(text) {
  let fence = null;
  let settled = 0;
  let offset = 0;
  let blankBefore = false;
  for (const line of text.split("\n")) {
    const mark = FENCE.exec(line)?.[1];
    if (!fence && blankBefore && line.trim() && !CONTINUES.test(line)) settled = offset;
    if (mark && !fence) fence = mark;
    else if (fence && mark && mark[0] === fence[0] && mark.length >= fence.length && line.trim() === mark) fence = null;
    blankBefore = line.trim() === "";
    offset += line.length + 1;
  }
  return settled;
}

export class LiveText {
  element = el("div", { class: "prose live" });
  #tail = el("div", { class: "live-tail" });
  #settled = 0;
  #text = "";
  #isScheduled = false;
  #next_ms = 0;

  constructor() {
    this.element.append(this.#tail);
  }

  update(text) {
    if (text.length === this.#text.length) return;
    this.#text = text;
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const wait_ms = this.#next_ms - performance.now();
    if (wait_ms > 0) setTimeout(() => requestAnimationFrame(() => this.#draw()), wait_ms);
    else requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    this.#isScheduled = false;
    if (!this.element.isConnected) return;
    const started_ms = performance.now();
    const open = this.#text.slice(this.#settled);
    const length = settledLength(open);
    if (length > 0) {
      this.#tail.before(renderProse(open.slice(0, length)));
      this.#settled += length;
    }
    this.#tail.replaceChildren(renderProse(open.slice(length)));
    const now_ms = performance.now();
    this.#next_ms = now_ms + Math.max(MIN_INTERVAL_MS, (now_ms - started_ms) / MAX_LOAD_RATIO);
  }
}
