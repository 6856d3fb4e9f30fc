// Text that is being streamed. Finished blocks are rendered once; the last one is brought up to date in place.

import { extendCode } from "/static/code-block.js";
import { el } from "/static/dom.js";
import { normalized, parseBlocks } from "/static/markdown.js";
import { enliven, keepWritten, renderOpenBlock } from "/static/prose.js";

const MIN_INTERVAL_MS = 40;
const SLICE_MS = 20;
// Rendering may take this share of the time at most, so that a very long block cannot freeze the page.
const MAX_LOAD_RATIO = 0.25;

const MAX_REST_CHARS = 20_000;

const isCode = (node) => node.nodeType === Node.ELEMENT_NODE && node.classList.contains("code");

/** Make `old` look like `next`, keeping what is the same; returns the node that stands there now. */
function patch(old, next) {
  if (old.isEqualNode(next)) return;
  if (old.nodeType === Node.TEXT_NODE && next.nodeType === Node.TEXT_NODE) old.data = next.data;
  else if (isCode(old) && isCode(next) && extendCode(old, next)) return;
  else if (old.nodeName === next.nodeName && old.nodeType === Node.ELEMENT_NODE && !isCode(old) && old.cloneNode().isEqualNode(next.cloneNode())) patchAll([...old.childNodes], [...next.childNodes], old, null);
  else old.replaceWith(next);
}

function patchAll(old, next, parent, end) {
  next.forEach((node, index) => {
    if (index < old.length) patch(old[index], node);
    else parent.insertBefore(node, end);
  });
  old.slice(next.length).forEach((node) => node.remove());
}

export class LiveText {
  element = el("div", { class: "prose live" });
  #end = document.createComment("");
  #env = {};
  #tail = 0;
  #settled = 0;
  #text = "";
  #isScheduled = false;
  #next_ms = 0;

  constructor() {
    this.element.append(this.#end);
    keepWritten(this);
  }

  get text() {
    return this.#text;
  }

  update(text) {
    if (text.length === this.#text.length) return;
    this.#text = text;
    this.#schedule();
  }

  /** Give the whole text's elements away; null where too much is left to render, or what is defined late changes what came before. */
  take() {
    const rest = normalized(this.#text).slice(this.#settled);
    if (rest.length > MAX_REST_CHARS || this.#env.notes || this.#env.references) return null;
    for (const { tokens } of parseBlocks(rest, this.#env)) {
      this.#patchTail(tokens, false);
      this.#tail = this.element.childNodes.length - 1;
    }
    const fragment = document.createDocumentFragment();
    fragment.append(...[...this.element.childNodes].slice(0, -1));
    // If more text comes after all, it is drawn anew.
    [this.#settled, this.#tail, this.#env] = [0, 0, {}];
    return fragment;
  }

  #schedule() {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const wait_ms = this.#next_ms - performance.now();
    if (wait_ms > 0) setTimeout(() => requestAnimationFrame(() => this.#draw()), wait_ms);
    else requestAnimationFrame(() => this.#draw());
  }

  /** What comes after a block cannot change it: all but the last are settled. */
  #draw() {
    this.#isScheduled = false;
    if (!this.element.isConnected) return;
    const started_ms = performance.now();
    const open = normalized(this.#text).slice(this.#settled);
    const blocks = parseBlocks(open, this.#env, { isOpen: true });
    const last = blocks.pop();
    let settled = 0;
    for (const [index, { tokens }] of blocks.entries()) {
      this.#patchTail(tokens, false);
      this.#tail = this.element.childNodes.length - 1;
      settled = blocks[index + 1]?.start ?? last.start;
      if (performance.now() - started_ms > SLICE_MS) break;
    }
    this.#settled += settled;
    if (last && settled === (blocks.length ? last.start : 0)) this.#patchTail(last.tokens, true);
    else if (blocks.length) this.#schedule();
    const now_ms = performance.now();
    this.#next_ms = now_ms + Math.max(MIN_INTERVAL_MS, (now_ms - started_ms) / MAX_LOAD_RATIO);
  }

  #patchTail(tokens, isOpen) {
    const next = [...renderOpenBlock(tokens, this.#env, isOpen).childNodes];
    patchAll([...this.element.childNodes].slice(this.#tail, -1), next, this.element, this.#end);
    for (const node of [...this.element.childNodes].slice(this.#tail, -1)) enliven(node, { isOpen });
  }
}
