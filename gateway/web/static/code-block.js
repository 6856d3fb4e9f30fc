// A block of code: its language, a copy button, and colours once they are there.

import { copyButton } from "/static/copy.js";
import { el } from "/static/dom.js";
import { highlight } from "/static/highlight.js";
import { patchAll } from "/static/patch.js";

// Code that is still being written is coloured again as it grows; longer code when it is whole.
const MAX_OPEN_CHARS = 20_000;
const isColoring = new WeakSet();
const colored = new WeakMap();

async function color(code) {
  const text = code.textContent;
  if (isColoring.has(code) || colored.get(code) === text) return;
  isColoring.add(code);
  const fragment = await highlight(text, code.dataset.language);
  isColoring.delete(code);
  const now = code.textContent;
  if (!now.startsWith(text)) return;
  if (now !== text) fragment.append(now.slice(text.length));
  patchAll([...code.childNodes], [...fragment.childNodes], code, null);
  colored.set(code, text);
  if (now !== text && now.length <= MAX_OPEN_CHARS) color(code);
}

/** Frame a `pre` of rendered Markdown where it stands. */
export function frameCode(pre) {
  const code = pre.querySelector("code") ?? pre;
  const frame = el("div", { class: "code" });
  pre.replaceWith(frame);
  pre.tabIndex = 0;
  frame.append(el("div", { class: "code-bar" }, el("span", {}, code.dataset.language ?? ""), copyButton(() => code.textContent)), pre);
  return frame;
}

const codeIn = (frame) => frame.querySelector("pre code");

/** Color the code of a frame; while it `isOpen`, only where that is quick. */
export function colorCode(frame, { isOpen = false } = {}) {
  const code = codeIn(frame);
  if (code?.dataset.language && !(isOpen && code.textContent.length > MAX_OPEN_CHARS)) color(code);
}

/** Let a frame show what another one holds, if that is the same code with more behind it. */
export function extendCode(frame, other) {
  const [code, next] = [codeIn(frame), codeIn(other)];
  if (!code || !next || code.dataset.language !== next.dataset.language) return false;
  const [old, text] = [code.textContent, next.textContent];
  if (!text.startsWith(old)) return false;
  if (text.length > old.length) code.append(text.slice(old.length));
  return true;
}
