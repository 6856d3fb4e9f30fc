// Text that is being streamed. Finished blocks are rendered once; the last one is brought up to date in place.

import { extendCode } from "/static/code-block.js";
import { el } from "/static/dom.js";
import { earlierItems, normalized, parseBlocks } from "/static/markdown.js";
import { patchAll } from "/static/patch.js";
import { enliven, renderOpenBlock } from "/static/prose.js";

const MIN_INTERVAL_MS = 40;
const SLICE_MS = 20;
// Rendering may take this share of the time at most, so that a very long block cannot freeze the page.
const MAX_LOAD_RATIO = 0.25;

const MAX_REST_CHARS = 20_000;
// The items of a longer list are settled although it goes on.
const MAX_LIST_TOKENS = 400;

const isCode = (node) => node.nodeType === Node.ELEMENT_NODE && node.classList.contains("code");

// Code is coloured later: it is only added to.
const CODE = { extend: (old, next) => isCode(old) && isCode(next) && extendCode(old, next), isWhole: isCode };

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
  #isFinished = false;
  #next_ms = 0;

  constructor() {
    this.element.append(this.#end);
  }

  get text() {
    return this.#text;
  }

  update(text) {
    if (text.length === this.#text.length || this.#isFinished) return;
    // The model's answer broke off, and its last words are void.
    if (text.length < this.#text.length) this.#beginAnew();
    this.#text = text;
    this.#schedule();
  }

  #beginAnew() {
    this.element.replaceChildren(this.#end);
    [this.#settled, this.#tail, this.#list, this.#items, this.#env] = [0, 0, null, 0, {}];
  }

  /** Draw the whole text, to which nothing more will be added; false where too much is left to render, or what is defined late changes what came before. */
  finish() {
    const rest = normalized(this.#text).slice(this.#settled);
    if (rest.length > MAX_REST_CHARS) return false;
    const blocks = parseBlocks(rest, this.#env);
    if (this.#env.notes || this.#env.references) return false;
    for (const { tokens } of blocks) this.#settle(tokens);
    this.#end.remove();
    this.#isFinished = true;
    return true;
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
    if (!this.element.isConnected || this.#isFinished) return;
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
    patchAll(old(), [...next.childNodes], parent, end, CODE);
    for (const node of old()) enliven(node, { isOpen });
  }
}
