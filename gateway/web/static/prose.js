// Rendered text of a model: framed code, tables that scroll, tasks, notes, formulas, diagrams, files of the workspace.

import { colorCode, frameCode } from "/static/code-block.js";
import { drawDiagram } from "/static/diagram.js";
import { el } from "/static/dom.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { earlierItems, normalized, parseBlocks, renderBlock } from "/static/markdown.js";
import { drawMath } from "/static/math.js";
import { linkFile, showImage } from "/static/workspace-links.js";

const SLICE_MS = 24;
// Lists and tables with more tokens than this are rendered in parts.
const MAX_TOKENS = 600;
const BATCH_TOKENS = 150;
const STRETCH_CHARS = 20_000;
const DEFINITION = /^ {0,3}\[[^\]\n]+\]:/m;
const BLOCKS = "p, h1, h2, h3, h4, h5, h6, td, th, div[data-note]";
const LISTS = "ul, ol, li, blockquote";
const RIGHT_TO_LEFT = /^[^\p{L}]*[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Nko}\p{Script=Syriac}\p{Script=Thaana}]/u;
// Text of this length breaks into lines, and between Chinese characters it breaks anywhere.
const LONG_CELL_CHARS = 12;

function frameTable(table) {
  const frame = el("div", { class: "table-frame", tabindex: "0" });
  table.replaceWith(frame);
  frame.append(table);
}

function markTask(item) {
  const isDone = item.dataset.task === "done";
  const box = el("span", { class: "task-box", role: "img", "aria-label": t(isDone ? "task_done" : "task_open") }, isDone ? icon("check") : null);
  (item.querySelector(":scope > p") ?? item).prepend(box);
}

/** A link between a note's number in the text and the note. */
function noteLink(name, words, selector) {
  const go = (event) => {
    event.preventDefault();
    const target = event.currentTarget.closest(".prose")?.querySelector(selector);
    target?.scrollIntoView({ block: "nearest" });
    target?.focus({ preventScroll: true });
  };
  return el("a", { class: "note-link", href: "#", "aria-label": words, title: words, onclick: go }, name);
}

function linkNote(reference) {
  const number = reference.dataset.noteReference;
  reference.append(noteLink(number, t("note", { number }), `div[data-note="${number}"]`));
}

function frameNote(note) {
  const number = note.dataset.note;
  note.tabIndex = -1;
  note.prepend(noteLink(`${number}.`, `${number}. ${t("note_back")}`, `[data-note-reference="${number}"] a`));
}

/** Give a rendered fragment its frames, marks and links. */
function frame(fragment) {
  const each = (selector, change) => fragment.querySelectorAll(selector).forEach(change);
  each("pre", frameCode);
  each("table", frameTable);
  each("li[data-task]", markTask);
  each("sup[data-note-reference]", linkNote);
  each("div[data-note]", frameNote);
  each("a[data-path]", linkFile);
  each("td, th", (cell) => cell.classList.toggle("is-long", cell.textContent.length > LONG_CELL_CHARS));
  each(BLOCKS, (block) => { block.dir = "auto"; });
  // "auto" does not look into blocks that have a direction themselves.
  each(LISTS, (list) => { list.dir = RIGHT_TO_LEFT.test(list.textContent) ? "rtl" : "ltr"; });
  drawMath(fragment);
  return fragment;
}

/** Start what takes its time: colours, and of text that no more will be added to, diagrams and pictures. */
export function enliven(root, { isOpen = false } = {}) {
  if (root.nodeType === Node.TEXT_NODE || root.nodeType === Node.COMMENT_NODE) return;
  const frames = [...(root.matches?.(".code") ? [root] : []), ...root.querySelectorAll(".code")];
  for (const code of frames) {
    colorCode(code, { isOpen });
    if (!isOpen) drawDiagram(code);
  }
  if (!isOpen) root.querySelectorAll("a[data-image]").forEach(showImage);
}

function* partsOf(tokens, isPart) {
  let start = 1;
  let depth = 0;
  for (let index = 1; index < tokens.length - 1; index += 1) {
    depth += tokens[index].nesting;
    if (depth === 0 && isPart(tokens[start]) && index - start >= MAX_TOKENS) {
      yield tokens.slice(start, index + 1);
      start = index + 1;
    }
  }
  yield tokens.slice(start, -1);
}

/** The parts of a list or table that are rendered one after the other, each as a whole of its own; else the block. */
function* slicesOf(tokens) {
  const [open, close] = [tokens[0], tokens.at(-1)];
  const isList = /list_open$/.test(open.type);
  const body = tokens.findIndex((token) => token.type === "tbody_open");
  if (tokens.length <= MAX_TOKENS || !(isList || (open.type === "table_open" && body > 0))) {
    yield tokens;
  } else if (isList) {
    for (const part of partsOf(tokens, (token) => token.type === "list_item_open")) yield [open, ...part, close];
  } else {
    let head = tokens.slice(0, body);
    for (const part of partsOf(tokens.slice(body, -1), (token) => token.type === "tr_open")) {
      yield [...head, tokens[body], ...part, tokens.at(-2), close];
      head = [open];
    }
  }
}

/** Append what a slice became; a later slice of a block goes on with the element of the first. */
function append(before, fragment, isFurther) {
  const target = before.previousElementSibling;
  if (!isFurther || !target) {
    before.before(fragment);
    return;
  }
  const isTable = target.classList.contains("table-frame");
  const rows = isTable ? fragment.querySelector("tbody") : fragment.firstElementChild;
  (isTable ? target.querySelector("tbody") : target).append(...rows.childNodes);
}

const slice = () => new Promise((resolve) => { setTimeout(resolve, 0); });

async function writeRest(mark, steps) {
  for (let isOver = false; !isOver && mark.parentNode;) {
    await slice();
    isOver = writeFor(mark, steps);
  }
  mark.remove();
}

/** Write for a moment; returns whether all is written. */
function writeFor(mark, steps) {
  const end_ms = performance.now() + SLICE_MS;
  do {
    const { done, value } = steps.next();
    if (done) return true;
    const part = frame(value.render());
    enliven(part);
    append(mark, part, value.isFurther);
  } while (performance.now() < end_ms);
  return false;
}

/** The blocks of a text, parsed a stretch at a time; all at once where links or notes are defined, perhaps at its end. */
function* blocksOf(text, env) {
  const step = DEFINITION.test(text) ? text.length : STRETCH_CHARS;
  let [start, size, isFurther] = [0, step, false];
  for (;;) {
    const end = text.indexOf("\n", start + size) + 1 || text.length;
    const blocks = parseBlocks(text.slice(start, end), env);
    if (isFurther && blocks.length) blocks[0].isFurther = true;
    // The last block may go on behind the stretch, and so may the last item of a list.
    const open = end < text.length ? blocks.pop() : null;
    yield* blocks;
    if (end === text.length) return;
    const items = open && earlierItems(open);
    if (items) {
      yield items;
      [start, size, isFurther] = [start + items.end, step, true];
    } else {
      [start, size, isFurther] = blocks.length ? [start + open.start, step, false] : [start, size * 2, isFurther];
    }
  }
}

/** What is rendered at once: some small blocks together, because sanitizing has its price each time, or part of a large one. */
function* stepsOf(blocks, env) {
  let batch = [];
  let weight = 0;
  const take = () => {
    const tokens = batch;
    [batch, weight] = [[], 0];
    return { render: () => renderBlock(tokens, env), isFurther: false };
  };
  for (const { tokens, isFurther: goesOn } of blocks) {
    if (tokens.length <= MAX_TOKENS && !goesOn) {
      batch.push(...tokens);
      weight += tokens.reduce((sum, token) => sum + 1 + token.content.length / 100, 0);
      if (weight >= BATCH_TOKENS) yield take();
      continue;
    }
    if (batch.length) yield take();
    let isFurther = Boolean(goesOn);
    for (const part of slicesOf(tokens)) {
      yield { render: () => renderBlock(part, env), isFurther };
      isFurther = true;
    }
  }
  if (batch.length) yield take();
}

/**
 * The rendered text as a fragment, ready for the page. Of a long text the beginning: the rest comes in short tasks
 * at the place where the fragment was put. Colours, formulas and pictures come when they are there.
 */
export function renderProse(text) {
  const env = {};
  const steps = stepsOf(blocksOf(normalized(text), env), env);
  const fragment = document.createDocumentFragment();
  const mark = document.createComment("");
  fragment.append(mark);
  if (writeFor(mark, steps)) mark.remove();
  else writeRest(mark, steps);
  return fragment;
}

/**
 * An element with the rendered text. If the text is in `written`, texts with `{text, element, finish()}` that were written before
 * the reader's eyes, it is taken from there, where it stands, so that nobody loses what is selected in it.
 */
export function proseElement(text, written = []) {
  const index = written.findLastIndex((known) => known.text.trim() === text.trim());
  const [live] = index < 0 ? [] : written.splice(index, 1);
  return live?.finish() ? live.element : el("div", {}, renderProse(text));
}

/** One block of a text that is being written, as a fragment that is not yet enlivened. */
export const renderOpenBlock = (tokens, env, isOpen) => frame(renderBlock(tokens, env, { isOpen }));
