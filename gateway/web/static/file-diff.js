// An edit of a file: the lines that differ, and where the file can be read, their numbers and the lines around them.

import { el } from "/static/dom.js";
import { formatMoment } from "/static/format.js";
import { t } from "/static/i18n.js";
import { lineDiff } from "/static/line-diff.js";
import { listFolder, readWorkspaceFile } from "/static/routes.js";
import { block, diffTable } from "/static/tool-block.js";
import { showHidden } from "/static/visible.js";

const AROUND = 3;
const MAX_BYTES = 1_000_000;

/** Rows of `lineDiff` with the numbers of their lines, without what is far from any difference. */
export function numberedRows(before, after) {
  const last = { "-": 0, "+": 0 };
  const rows = lineDiff(before, after).map((row) => {
    for (const sign of row.sign === " " ? "-+" : row.sign) last[sign] += 1;
    return { ...row, number: last[row.sign === "-" ? "-" : "+"] };
  });
  const near = new Set(rows.flatMap(({ sign }, index) => (sign === " " ? [] : Array.from({ length: 2 * AROUND + 1 }, (_, step) => index - AROUND + step))));
  return rows.map((row, index) => ({ ...row, isApart: index > 0 && !near.has(index - 1) })).filter((_, index) => near.has(index));
}

/**
 * The file before and after an edit of which it holds one side, as `[before, after]`; null where that side does not
 * stand there, or in several places of which nobody knows the right one.
 */
export function wholeTexts(text, before, after, { isDone, isEverywhere }) {
  const held = isDone ? after : before;
  const count = held ? text.split(held).length - 1 : 0;
  if (count === 0 || (count > 1 && (isDone || !isEverywhere))) return null;
  const other = text.replaceAll(held, () => (isDone ? before : after));
  return isDone ? [other, text] : [text, other];
}

/** The text of a file of the workspace; null where it cannot be shown, or `mayLack` and it is not there. */
async function textOf(path, mayLack) {
  const [, folder, name] = /^(?:(.*)\/)?(.*)$/u.exec(path);
  if (mayLack && !(await listFolder(folder ?? "")).some((entry) => entry.name === name && entry.readable)) return null;
  const reading = new AbortController();
  const response = await readWorkspaceFile(path, reading.signal);
  const isShort = Number(response.headers.get("Content-Length")) <= MAX_BYTES && response.headers.get("Content-Type")?.startsWith("text/");
  if (isShort) return (await response.text()).replaceAll("\r\n", "\n");
  reading.abort();
  return null;
}

/**
 * What differs between two texts of a file. `find(text)` gives the whole file before and after, from what it holds now, or
 * null; what it found of these two is kept in `place`, since the file changes. Without a text before, there may be no such file.
 */
export function diffBlock(path, before, after, { find = null, place = {} } = {}) {
  const rows = lineDiff(before, after);
  const text = rows.map(({ sign, text: line }) => `${sign}${line}\n`).join("");
  const frame = el("div", {}, diffTable(before === "" ? numberedRows(before, after) : rows));
  const note = el("p", { class: "tool-note" });
  const show = ({ found, at }) => {
    if (found) frame.replaceChildren(diffTable(found));
    note.textContent = found ? t("lines_at", { time: formatMoment(at) }) : t("lines_gone");
  };
  if (place.found && place.before === before && place.after === after) show(place);
  else if (find) {
    textOf(path, before === "").then((now) => {
      if (now === null) return;
      const texts = find(now);
      Object.assign(place, { before, after, found: texts && numberedRows(...texts), at: new Date().toISOString() });
      show(place);
    }).catch(() => {}); // a file that is not there, or that nobody may read, has no lines to show
  }
  const fileName = `${path.split(/[\\/]/).at(-1) || "output"}.diff`;
  return [block(showHidden(path), text, frame, { fileName }), note];
}
