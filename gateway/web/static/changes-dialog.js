// What a turn changed in the workspace: a button with the figures, and a dialog with a diff for each file.

import { el } from "/static/dom.js";
import { openDialog } from "/static/dialog.js";
import { formatCount } from "/static/format.js";
import { t, wordsFor } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { listFileChanges } from "/static/routes.js";
import { diffTable } from "/static/tool-block.js";
import { showHidden } from "/static/visible.js";

// With more files than this the reader chooses which to look at.
const MAX_OPEN = 5;

const counted = (one, many, count) => t(count === 1 ? one : many, { count: formatCount(count) });

/** Signs and colours, which are named in words; what is zero is not named. */
function figures(added, removed) {
  const words = [added && counted("line_added", "lines_added", added), removed && counted("line_removed", "lines_removed", removed)].filter(Boolean);
  return words.length > 0 && el("span", { class: "change-figures", role: "img", "aria-label": words.join(t("comma")) },
    el("span", { class: "is-added" }, `+${formatCount(added)}`), el("span", { class: "is-removed" }, `−${formatCount(removed)}`));
}

/** What a turn changed; where that was nothing, a reply that claims otherwise stands beside it. Null for a turn of which it is not told. */
export function changesButton(result) {
  const { changes } = result;
  if (!changes) return null;
  if (!changes.files) return el("span", { class: "turn-unchanged", title: t("changes_means"), "data-testid": "no-changes" }, t(changes.complete ? "file_none_changed" : "changes_unknown"));
  return el("button", { class: "link-button", type: "button", "aria-haspopup": "dialog", "data-testid": "changes-link", onclick: () => openChanges(result) },
    icon("pencil"), counted("file_changed", "files_changed", changes.files), figures(changes.added, changes.removed));
}

/** The hunks of a unified diff: the line that says where each stands, and its lines. */
function hunksOf(diff) {
  const hunks = [];
  for (const line of diff.replace(/\n$/u, "").split("\n").slice(2)) {
    if (line.startsWith("@@")) hunks.push({ place: line, rows: [] });
    else if (line.startsWith("\\")) hunks.at(-1)?.rows.push({ sign: " ", text: t("no_end_of_line") });
    else hunks.at(-1)?.rows.push({ sign: line[0] ?? " ", text: line.slice(1) });
  }
  return hunks;
}

function fileView(file, isOpen) {
  const hunks = file.diff ? hunksOf(file.diff) : [];
  const from = file.moved_from ? el("bdi", { class: "change-from" }, showHidden(file.moved_from), " → ") : null;
  return el("details", { class: "change", "data-testid": "change", "data-kind": file.kind, open: isOpen },
    el("summary", {}, icon("chevron"), el("span", { class: `change-kind is-${file.kind}` }, wordsFor("change", file.kind)),
      el("span", { class: "change-path" }, from, el("bdi", {}, showHidden(file.path))), figures(file.added, file.removed)),
    el("div", { class: "change-diff", tabindex: hunks.length ? "0" : null, role: hunks.length ? "region" : null, "aria-label": hunks.length ? showHidden(file.path) : null },
      hunks.flatMap(({ place, rows }) => [el("div", { class: "change-hunk" }, showHidden(place)), diffTable(rows)])),
    file.unread || !hunks.length ? el("p", { class: "change-note" }, file.unread ? wordsFor("unread", file.unread) : t("change_no_text")) : null);
}

/** The views of changed files, and a note where there may be more. */
export const fileViews = ({ files, complete }) => [
  ...files.map((file) => fileView(file, files.length <= MAX_OPEN)),
  ...complete ? [] : [el("p", { class: "change-note is-warning" }, icon("alert"), t("changes_incomplete"))]];

/** The frame of a dialog about changes: its content, the button that closes it, and how it tells a failure. */
export function changesFrame(title, means, body) {
  const close = el("button", { class: "icon-button", type: "button", title: t("close"), "aria-label": t("close"), autofocus: true }, icon("close"));
  return {
    close,
    content: el("div", { class: "log-frame", "data-testid": "changes-dialog" },
      el("div", { class: "log-head" }, el("div", { class: "log-title" }, el("h2", {}, title), el("p", {}, means)), close), body),
    fail: (error) => body.replaceChildren(el("p", { class: "change-note is-warning", role: "alert" }, icon("alert"), showHidden(error.message))),
  };
}

export async function openChanges({ conversation_id: conversationId, turn_id: turnId }) {
  const body = el("div", { class: "changes", "data-testid": "changes-list" }, el("p", { class: "quiet" }, t("loading")));
  const { close, content, fail } = changesFrame(t("changes_title"), t("changes_means"), body);
  const dialog = openDialog({ label: t("changes_title"), className: "log", content });
  close.addEventListener("click", () => dialog.close());
  try {
    body.replaceChildren(...fileViews(await listFileChanges(conversationId, turnId)));
  } catch (error) {
    fail(error);
  }
}
