// The end of a turn: outcome, problems, duration, model and log.

import { copyButton } from "/static/copy.js";
import { el } from "/static/dom.js";
import { formatCount, formatDuration, formatFull } from "/static/format.js";
import { t, wordsFor } from "/static/i18n.js";
import { icon } from "/static/icons.js";
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

export function noticeLine(notice) {
  return el("p", { class: "notice", "data-testid": "notice", "data-code": notice.code }, icon("info"), el("span", { dir: "auto" }, showHidden(notice.message)));
}

function badge(result) {
  const reason = TELLING_REASONS.has(result.stop_reason) ? wordsFor("stop", result.stop_reason) : "";
  const isWhole = result.outcome === "answered" && !reason;
  const [look, shape] = isWhole ? ["ok", "check"] : LOOKS[result.outcome] ?? ["calm", "info"];
  // A cause says who ended the turn where the stop reason alone would name somebody else.
  const words = result.cause ? wordsFor("cause", result.cause) : [wordsFor("outcome", result.outcome), reason].filter(Boolean).join(" · ");
  return el("span", { class: `outcome is-${look}`, "data-testid": "outcome", "data-outcome": result.outcome, "data-stop-reason": result.stop_reason }, icon(shape), el("span", {}, showHidden(words)));
}

function timing(result) {
  const usage = result.usage?.input_tokens !== undefined ? t("usage", { input: formatCount(result.usage.input_tokens), output: formatCount(result.usage.output_tokens ?? 0) }) : "";
  const cost = result.cost_usd ? `$${result.cost_usd.toFixed(4)}` : "";
  const title = [formatFull(result.finished_at), usage, cost].filter(Boolean).join(" · ");
  return el("span", { class: "turn-duration", title }, formatDuration(result.duration_ms));
}

/** The notices and the line under a reply. `openLog(logFile)` shows the turn's log. */
export function outcomeLine(result, openLog) {
  const logFile = result.log_file;
  return el("footer", { class: "turn-end" },
    el("div", { class: "notices" }, (result.notices ?? []).map(noticeLine)),
    el("div", { class: "turn-facts" },
      badge(result),
      timing(result),
      result.model && el("span", { class: "turn-model" }, showHidden(result.model)),
      logFile && el("button", { class: "link-button", type: "button", "data-testid": "log-link", "data-log-file": logFile, onclick: () => openLog(logFile) }, icon("file"), t("log")),
      result.reply && copyButton(() => result.reply)));
}
