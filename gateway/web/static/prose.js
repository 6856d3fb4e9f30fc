// A block of rendered model text: code with language and copy button, wide tables that scroll.

import { el } from "/static/dom.js";
import { copyButton } from "/static/copy.js";
import { renderMarkdown } from "/static/markdown.js";

function frameCode(pre) {
  const code = pre.querySelector("code") ?? pre;
  const frame = el("div", { class: "code" });
  pre.replaceWith(frame);
  pre.tabIndex = 0;
  const bar = el("div", { class: "code-bar" }, el("span", {}, code.dataset.language ?? ""), copyButton(() => code.textContent));
  frame.append(bar, pre);
}

function frameTable(table) {
  const frame = el("div", { class: "table-frame", tabindex: "0" });
  table.replaceWith(frame);
  frame.append(table);
}

/** The rendered text as a fragment, ready for the page. */
export function renderProse(text) {
  const fragment = renderMarkdown(text);
  fragment.querySelectorAll("pre").forEach(frameCode);
  fragment.querySelectorAll("table").forEach(frameTable);
  fragment.querySelectorAll("p, li, h1, h2, h3, h4, h5, h6, td, th, blockquote").forEach((block) => { block.dir = "auto"; });
  return fragment;
}
