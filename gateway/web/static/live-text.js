// Text that is being streamed. Finished blocks are rendered once; the last one is brought up to date in place.

import { extendCode } from "/static/code-block.js";
import { el } from "/static/dom.js";
import { earlierItems, normalized, parseBlocks } from "/static/markdown.js";
import { enliven, keepWritten, renderOpenBlock } from "/static/prose.js";

const MIN_INTERVAL_MS = 40;
const SLICE_MS = 20;
// Rendering may take this share of the time at most, so that a very long block cannot freeze the page.
const MAX_LOAD_RATIO = 0.25;

const MAX_REST_CHARS = 20_000;
// The items of a longer list are settled although it goes on.
const MAX_LIST_TOKENS = 400;

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
  // The list that goes on, and how many of its nodes are settled.
  #list = null;
  #items = 0;
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
    if (rest.length > MAX_REST_CHARS) return null;
    const blocks = parseBlocks(rest, this.#env);
    if (this.#env.notes || this.#env.references) return null;
    for (const { tokens } of blocks) this.#settle(tokens);
    const fragment = document.createDocumentFragment();
    fragment.append(...[...this.element.childNodes].slice(0, -1));
    // If more text comes after all, it is drawn anew.
    [this.#settled, this.#tail, this.#list, this.#env] = [0, 0, null, {}];
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
      this.#settle(tokens);
      settled = blocks[index + 1]?.start ?? last.start;
      if (performance.now() - started_ms > SLICE_MS) break;
    }
    this.#settled += settled;
    if (last && settled === (blocks.length ? last.start : 0)) this.#drawLast(last, settled);
    else if (blocks.length) this.#schedule();
    const now_ms = performance.now();
    this.#next_ms = now_ms + Math.max(MIN_INTERVAL_MS, (now_ms - started_ms) / MAX_LOAD_RATIO);
  }

  /** The last block may go on; of a long list only its last item. */
  #drawLast(last, settled) {
    const items = last.tokens.length > MAX_LIST_TOKENS && earlierItems(last);
    this.#patchTail(items ? items.tokens : last.tokens, !items);
    if (!items) return;
    this.#list ??= this.element.childNodes[this.#tail];
    this.#items = this.#list.childNodes.length;
    this.#settled += items.end - settled;
    this.#schedule();
  }

  #settle(tokens) {
    this.#patchTail(tokens, false);
    this.#list = null;
    this.#tail = this.element.childNodes.length - 1;
  }

  #patchTail(tokens, isOpen) {
    const fragment = renderOpenBlock(tokens, this.#env, isOpen);
    const [parent, next, from, end] = this.#list
      ? [this.#list, fragment.firstElementChild, this.#items, null]
      : [this.element, fragment, this.#tail, this.#end];
    const old = () => [...parent.childNodes].slice(from, end ? -1 : undefined);
    patchAll(old(), [...next.childNodes], parent, end);
    for (const node of old()) enliven(node, { isOpen });
  }
}
