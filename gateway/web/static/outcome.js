// The end of a turn: outcome, problems, duration, model and log.

import { changesButton } from "/static/changes-dialog.js";
import { copyButton } from "/static/copy.js";
import { el } from "/static/dom.js";
import { formatCount, formatDuration, formatFull } from "/static/format.js";
import { t, wordsFor } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { plainText } from "/static/markdown.js";
import { turnUsage } from "/static/usage.js";
import { showHidden } from "/static/visible.js";

const LOOKS = {
  answered: ["calm", "minus"], // but something cut it short; whole answers look better
  answered_with_failures: ["warn", "alert"],
  tool_failed: ["bad", "cross"],
  interrupted: ["calm", "minus"],
  stopped: ["warn", "clock"],
  engine_failed: ["bad", "alert"],
  empty: ["calm", "minus"],
};

// These reasons say more than the outcome does; `end_turn` does not.
const TELLING_REASONS = new Set(["user_interrupt", "policy_interrupt", "doom_loop", "max_turns", "timeout", "budget", "api_error", "model_timeout", "context_window", "engine_crash", "refusal"]);

const NOTICE_ICONS = { unsupported_claim: "alert", picture_left_out: "clip", conversation_summarised: "book" };

export function noticeLine(notice) {
  return el("p", { class: "notice", "data-testid": "notice", "data-code": notice.code }, icon(NOTICE_ICONS[notice.code] ?? "info"), el("span", { dir: "auto" }, showHidden(notice.message || wordsFor("notice", notice.code))));
}

const reasonOf = (result) => (TELLING_REASONS.has(result.stop_reason) ? wordsFor("stop", result.stop_reason) : "");
const isWhole = (result) => result.outcome === "answered" && !reasonOf(result);

// A cause says who ended the turn where the stop reason alone would name somebody else.
const wordsOf = (result) => (result.cause ? wordsFor("cause", result.cause) : [wordsFor("outcome", result.outcome), reasonOf(result)].filter(Boolean).join(" · "));

/** What is read aloud at the end of a turn: how it ended, unless all went well, and the reply. */
export const spokenEnd = (result) => [isWhole(result) ? "" : wordsOf(result), t("reply_ready", { text: plainText(result.reply ?? "") })].filter(Boolean).join(t("full_stop"));

function badge(result) {
  const [look, shape] = result.cause === "waiting" ? ["warn", "clock"] : isWhole(result) ? ["ok", "check"] : LOOKS[result.outcome] ?? ["calm", "info"];
  const words = wordsOf(result);
  return el("span", { class: `outcome is-${look}`, "data-testid": "outcome", "data-outcome": result.outcome, "data-stop-reason": result.stop_reason }, icon(shape), el("span", {}, showHidden(words)));
}

function timing(result) {
  return el("span", { class: "turn-duration", title: formatFull(result.finished_at) }, formatDuration(result.duration_ms));
}

/** How many calls there were and how many of them came to nothing, such as "3 calls, 1 failed"; null for none. */
function calls({ tools = [] }) {
  if (!tools.length) return null;
  const bad = ["failed", "denied", "interrupted", "unknown"].map((status) => [status, tools.filter((tool) => tool.status === status).length]);
  const words = bad.filter(([, count]) => count).map(([status, count]) => t(`calls_${status}`, { count: formatCount(count) }));
  return el("span", { class: "turn-calls", "data-testid": "turn-calls" }, [t(tools.length === 1 ? "calls_one" : "calls", { count: formatCount(tools.length) }), ...words].join(t("comma")));
}

function usage(result) {
  const used = turnUsage(result);
  return used && el("span", { class: "turn-usage", title: used.whole, "data-testid": "turn-usage" }, used.short);
}

// What is about to happen is of no use once the turn has ended; its log keeps it.
const MOMENTARY = new Set(["answer_restarted", "model_retrying", "model_silent"]);

// Each call that did not succeed says so itself, where it happened.
const isShown = (notice, result) => !MOMENTARY.has(notice.code) && (notice.code !== "tools_failed" || !result.tools?.length);

const noticeLines = (result) => (result.notices ?? []).filter((notice) => isShown(notice, result)).map(noticeLine);

/** Show the notices of a result in its `line`, whatever else stands there. */
export const showNotices = (line, result) => line.querySelector(".notices").replaceChildren(...noticeLines(result));

/** The notices and the line under a reply. `openLog(logFile)` shows the turn's log; `tools` stand at its end. */
export function outcomeLine(result, openLog, tools = []) {
  const logFile = result.log_file;
  return el("footer", { class: "turn-end" },
    el("div", { class: "notices" }, noticeLines(result)),
    el("div", { class: "turn-facts" },
      badge(result),
      calls(result),
      changesButton(result),
      timing(result),
      usage(result),
      result.model && el("span", { class: "turn-model" }, showHidden(result.model)),
      logFile && el("button", { class: "link-button", type: "button", "data-testid": "log-link", "data-log-file": logFile, onclick: () => openLog(logFile) }, icon("file"), t("log")),
      el("span", { class: "turn-tools" }, result.reply && copyButton(() => result.reply), tools)));
}
