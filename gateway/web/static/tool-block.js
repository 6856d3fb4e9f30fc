// One part of an opened tool call: a label, a text in some form, copy and download, and "show all" for a long one.

import { copyButton } from "/static/copy.js";
import { el } from "/static/dom.js";
import { download } from "/static/download.js";
import { formatCount } from "/static/format.js";
import { highlight } from "/static/highlight.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { showHidden } from "/static/visible.js";

// A longer text is folded to about this height.
const FOLDED_LINES = 18;
const FOLDED_CHARS = 2400;

const countLines = (text) => text.replace(/\n$/, "").split("\n").length;

function showAllButton(frame, lines) {
  const button = el("button", { class: "link-button tool-show-all", type: "button", "data-testid": "show-all" }, t("tool_show_all", { count: formatCount(lines) }));
  button.addEventListener("click", () => {
    frame.classList.remove("is-folded");
    button.remove();
    frame.focus();
  });
  return button;
}

/** `body` shows the text; `fileName` is what it is saved as. */
export function block(label, text, body, { className = "", fileName = "output.txt" } = {}) {
  const lines = countLines(text);
  const isLong = lines > FOLDED_LINES || text.length > FOLDED_CHARS;
  const frame = el("div", { class: `tool-frame${isLong ? " is-folded" : ""}`, tabindex: "0" }, body);
  const save = el("button", { class: "icon-button small", type: "button", title: t("download"), "aria-label": t("download"), "data-testid": "tool-download", onclick: () => download(fileName, text) }, icon("download"));
  return el("div", { class: `tool-block ${className}`, role: "group", "aria-label": label },
    el("div", { class: "tool-block-head" }, el("span", { class: "tool-block-label" }, label), copyButton(() => text), save),
    frame,
    isLong && showAllButton(frame, lines));
}

export const plain = (...nodes) => el("pre", { class: "tool-text" }, nodes);

/** Code, plain at first and coloured as soon as the library is there. */
export function code(text, language) {
  const shown = showHidden(text);
  const node = el("code", {}, shown);
  if (language) highlight(shown, language).then((fragment) => node.replaceChildren(fragment));
  return node;
}

/** Code beside the numbers of its lines. */
export const numberedCode = (lines, numbers, language) => el("div", { class: "tool-lines" },
  el("pre", { class: "tool-numbers", "aria-hidden": "true" }, numbers.join("\n")),
  el("pre", { class: "tool-code" }, code(lines.join("\n"), language)));

const SIGN_WORDS = { "+": "diff_added", "-": "diff_removed" };

/** Rows of `lineDiff`, each with its sign for those who do not see the colour, and with the number of its line where that is known. */
export const diffTable = (rows) => el("pre", { class: "tool-diff" }, rows.map(({ sign, text, number, isApart }) => el("span",
  { class: `diff-row${sign === " " ? "" : sign === "+" ? " is-added" : " is-removed"}${isApart ? " is-apart" : ""}` },
  number && el("span", { class: "diff-number", "aria-hidden": "true" }, String(number)),
  el("span", { class: "diff-sign", "aria-label": SIGN_WORDS[sign] ? t(SIGN_WORDS[sign]) : null }, sign), `${showHidden(text)}\n`)));

/** The fields of an input, one below the other. */
export const fieldList = (fields) => el("dl", { class: "tool-fields" }, Object.entries(fields).map(([name, value]) => [
  el("dt", {}, showHidden(name)),
  el("dd", {}, showHidden(typeof value === "string" ? value : JSON.stringify(value, null, 2))),
]).flat());
