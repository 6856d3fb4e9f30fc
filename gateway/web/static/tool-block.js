// One part of an opened tool call: a label, a text in some form, copy and download, and "show all" for a long one.

import { copyButton } from "/static/copy.js";
import { el, setText } from "/static/dom.js";
import { download } from "/static/download.js";
import { formatCount } from "/static/format.js";
import { highlight } from "/static/highlight.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { patchAll } from "/static/patch.js";
import { showHidden } from "/static/visible.js";

// A longer text is folded to about this height.
const FOLDED_LINES = 18;
const FOLDED_CHARS = 2400;

const countLines = (text) => text.replace(/\n$/, "").split("\n").length;

/** The text and the elements of each block, for one that grows. */
const states = new WeakMap();

/** Fold a block to its beginning where its text is long, unless the reader has unfolded it. */
function fold(state) {
  const { element, frame, text, isUnfolded } = state;
  const lines = countLines(text);
  if (isUnfolded || (lines <= FOLDED_LINES && text.length <= FOLDED_CHARS)) return;
  frame.classList.add("is-folded");
  state.button ??= el("button", { class: "link-button tool-show-all", type: "button", "data-testid": "show-all", onclick: () => {
    state.isUnfolded = true;
    frame.classList.remove("is-folded");
    state.button.remove();
    frame.focus();
  } });
  setText(state.button, t("tool_show_all", { count: formatCount(lines) }));
  if (state.button.parentNode !== element) element.append(state.button);
}

/** `body` shows the text; `fileName` is what it is saved as. */
export function block(label, text, body, { className = "", fileName = "output.txt" } = {}) {
  const state = { text, body, isUnfolded: false, button: null };
  state.frame = el("div", { class: "tool-frame", tabindex: "0" }, body);
  const save = el("button", { class: "icon-button small", type: "button", title: t("download"), "aria-label": t("download"), "data-testid": "tool-download", onclick: () => download(fileName, state.text) }, icon("download"));
  state.element = el("div", { class: `tool-block ${className}`, role: "group", "aria-label": label },
    el("div", { class: "tool-block-head" }, el("span", { class: "tool-block-label" }, label), copyButton(() => state.text), save),
    state.frame);
  fold(state);
  states.set(state.element, state);
  return state.element;
}

/**
 * Let a block show what another one holds, if that is plain text as well: its place, its fold, and what is selected in it
 * stay. False if they are not alike.
 */
export function growBlock(old, next) {
  const [state, grown] = [states.get(old), states.get(next)];
  const isAlike = state && grown && old.className === next.className && [state, grown].every(({ body }) => body.matches?.(".tool-text"));
  if (!isAlike) return false;
  state.text = grown.text;
  patchAll([...state.body.childNodes], [...grown.body.childNodes], state.body, null);
  fold(state);
  return true;
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
