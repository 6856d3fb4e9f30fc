// A tool call that waits for approval: its input, the remaining time and the three answers.

import { el, place, setText } from "/static/dom.js";
import { formatCountdown } from "/static/format.js";
import { t, wordsFor } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { startTicking, stopTicking } from "/static/ticker.js";
import { showHidden } from "/static/visible.js";

// An input up to this length is shown at once; a longer one on request.
const SHORT_INPUT_CHARS = 600;
const MAX_SHOWN_CHARS = 20_000;

/** All that the call was given: its summary may leave out what matters. */
function inputDetails(input) {
  if (!input || Object.keys(input).length === 0) return null;
  const text = JSON.stringify(input, null, 2);
  const shown = text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}\n…` : text;
  return el("details", { class: "approval-input", open: text.length <= SHORT_INPUT_CHARS },
    el("summary", {}, icon("chevron"), t("tool_input")),
    el("pre", { tabindex: "0" }, showHidden(shown)));
}

export class ApprovalCard {
  #countdown = el("span", { class: "approval-countdown" });
  #actions;
  #asked;
  #answered = el("div", { class: "approval-answered" });
  element = el("section", { class: "approval", "data-testid": "approval" });

  /** `answer(approval, decision, remember)` tells the gateway. */
  constructor(approval, answer) {
    const button = (words, className, testId, ...reply) => el("button", {
      class: className, type: "button", "data-testid": testId, onclick: () => answer(approval, ...reply),
    }, words);
    this.#actions = el("div", { class: "approval-actions" },
      button(t("approval_allow"), "button primary", "approval-allow", "allow", "once"),
      button(t("approval_conversation"), "button", "approval-allow-conversation", "allow", "conversation"),
      button(t("approval_deny"), "button quiet-danger", "approval-deny", "deny", "once"));
    this.#asked = el("div", { class: "approval-asked" },
      el("div", { class: "approval-head" }, icon("shield"), el("strong", {}, t("approval_title")), this.#countdown),
      el("div", { class: "approval-call" },
        el("span", { class: "tool-name" }, showHidden(approval.name)),
        el("bdi", { class: "approval-summary" }, showHidden(approval.summary)),
        inputDetails(approval.input)),
      this.#actions);
    this.element.setAttribute("aria-label", t("approval_title"));
    const expiresAt_ms = Date.parse(approval.expiresAt);
    if (Number.isFinite(expiresAt_ms)) startTicking(this.element, () => this.#showTimeLeft(expiresAt_ms - Date.now()));
  }

  #showTimeLeft(left_ms) {
    // The gateway's clock decides; the buttons stay until it says that the time is over.
    setText(this.#countdown, left_ms > 0 ? t("approval_left", { left: formatCountdown(left_ms) }) : t("approval_over"));
    this.#countdown.classList.toggle("is-short", left_ms < 15_000);
  }

  update(approval) {
    for (const button of this.#actions.children) button.disabled = approval.sent !== null;
    if (approval.decision) {
      stopTicking(this.element);
      const isAllowed = String(approval.decision).startsWith("allow");
      this.element.dataset.decision = isAllowed ? "allow" : "deny";
      const words = [t(isAllowed ? "approval_allowed" : "approval_denied"), approval.by ? showHidden(wordsFor("by", approval.by)) : ""];
      this.#answered.replaceChildren(
        icon(isAllowed ? "check" : "cross"),
        el("span", {}, words.filter(Boolean).join(" ")),
        el("span", { class: "tool-name" }, showHidden(approval.name)),
        el("bdi", { class: "tool-summary" }, showHidden(approval.summary)));
    }
    place(this.element, [approval.decision ? this.#answered : this.#asked]);
  }
}
