// A tool call that waits for the person: its input, the remaining time, the answers, and what each of them covers.

import { el, place, setText } from "/static/dom.js";
import { formatCountdown } from "/static/format.js";
import { t, wordsFor } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { permitWords } from "/static/permit.js";
import { isPlan, planProse } from "/static/plan.js";
import { isQuestion, questionForm, questionsOf } from "/static/question-form.js";
import { startTicking, stopTicking } from "/static/ticker.js";
import { fieldList } from "/static/tool-block.js";
import { callBlocks } from "/static/tool-cards.js";
import { showHidden } from "/static/visible.js";

const MAX_MESSAGE_CHARS = 2000;

const ICONS = { approval: "shield", plan: "check", question: "question" };

const key = (letter) => el("kbd", { "aria-hidden": "true" }, letter);

export class ApprovalCard {
  #answer;
  #countdown = el("span", { class: "approval-countdown" });
  #asked;
  #answered = el("div", { class: "approval-answered" });
  #buttons = {};
  #expiresAt_ms;
  #kind;
  #reach;
  #message;
  #refusal;
  element = el("div", { class: "approval", role: "group", "data-testid": "approval" });

  /** `answer(approval, reply)` tells the gateway; see `answerApproval`. */
  constructor(approval, answer) {
    this.#answer = (reply) => answer(approval, reply);
    const questions = questionsOf(approval);
    this.#kind = isQuestion(approval) ? "question" : isPlan(approval) ? "plan" : "approval";
    const title = this.#words("title");
    this.#asked = el("div", { class: "approval-asked" },
      el("div", { class: "approval-head" }, icon(ICONS[this.#kind]), el("strong", {}, title), this.#countdown),
      questions ? this.#questions(questions) : this.#call(approval));
    this.element.setAttribute("aria-label", title);
    this.#expiresAt_ms = Date.parse(approval.expiresAt);
    this.countDown();
  }

  #words(key) {
    return t(`${this.#kind}_${key}`);
  }

  #questions(questions) {
    return questionForm(questions, {
      send: (answers) => this.#answer({ decision: "allow", answers }),
      skip: () => this.#answer({ decision: "deny" }),
    });
  }

  #call(approval) {
    const isOfPlan = this.#kind === "plan";
    const refusal = isOfPlan ? { decision: "deny", message: t("plan_keep") } : { decision: "deny" };
    this.#message = el("input", { type: "text", maxlength: MAX_MESSAGE_CHARS, "aria-label": this.#words("word"), placeholder: this.#words("word_placeholder"), "data-testid": "approval-message" });
    this.#buttons = {
      a: this.#button(this.#words("allow"), "button primary", "approval-allow", "A", () => this.#answer({ decision: "allow" })),
      d: this.#button(this.#words("deny"), isOfPlan ? "button" : "button quiet-danger", "approval-deny", "D", () => this.#answer(refusal)),
      w: this.#button(this.#words("word"), "button", "approval-word", "W", () => this.#askWhy()),
      c: this.#button(t("approval_conversation"), "button", "approval-allow-conversation", "C", () => this.#answer({ decision: "allow", remember: "conversation", reach: this.#reach.value })),
    };
    const { a, d, w, c } = this.#buttons;
    this.#reach = el("select", { "aria-label": t("approval_reach"), "data-testid": "approval-reach" },
      (approval.permits ?? []).map((permit) => el("option", { value: permit.reach }, permitWords(permit))));
    this.#refusal = el("form", { class: "approval-row", hidden: true }, this.#message, el("button", { class: isOfPlan ? "button" : "button danger", type: "submit", "data-testid": "approval-deny-word" }, this.#words("deny")));
    this.#refusal.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#answer({ decision: "deny", message: this.#message.value.trim() });
    });
    const call = (isOfPlan && planProse(approval)) || [
      el("span", { class: "tool-name" }, showHidden(approval.name)),
      approval.input ? callBlocks(approval) : el("bdi", { class: "approval-summary" }, showHidden(approval.summary))].flat();
    const parts = [
      el("div", { class: "approval-call" }, call),
      el("div", { class: "approval-actions" }, a, d, w),
      this.#refusal,
      this.#reach.options.length > 0 && el("div", { class: "approval-row approval-rule" }, el("span", {}, t("approval_from_now_on")), this.#reach, c),
    ];
    this.element.addEventListener("keydown", (event) => this.#key(event));
    return parts;
  }

  /** Show the time left for as long as the card is in the page; again after it was taken out and put back. */
  countDown() {
    if (Number.isFinite(this.#expiresAt_ms)) startTicking(this.element, () => this.#showTimeLeft(this.#expiresAt_ms - Date.now()));
  }

  focus() {
    this.#asked.querySelector(".choice input, .choice-own, .approval-actions button").focus();
    this.element.scrollIntoView({ block: "nearest" });
  }

  #button(words, className, testId, letter, press) {
    return el("button", { class: className, type: "button", "data-testid": testId, "aria-keyshortcuts": letter, onclick: press }, words, key(letter));
  }

  /** Single letters count while the focus is on the card, and not in its fields. */
  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat) return;
    if (event.key === "Escape" && !this.#refusal.hidden) {
      event.stopPropagation();
      event.preventDefault();
      this.#refusal.hidden = true;
      this.#buttons.w.focus();
    }
    const button = this.#buttons[event.key.toLowerCase()];
    if (!button?.isConnected || button.disabled || event.target.matches("input, select")) return;
    event.preventDefault();
    button.click();
  }

  #askWhy() {
    this.#refusal.hidden = false;
    this.#message.focus();
  }

  #showTimeLeft(left_ms) {
    // The gateway's clock decides; the buttons stay until it says that the time is over.
    setText(this.#countdown, left_ms > 0 ? t(this.#kind === "approval" ? "approval_left" : "question_left", { left: formatCountdown(left_ms) }) : t("approval_over"));
    this.#countdown.classList.toggle("is-short", left_ms < 15_000);
  }

  update(approval) {
    for (const control of this.#asked.querySelectorAll("button, select, input")) control.disabled = approval.sent !== null;
    if (approval.decision) {
      stopTicking(this.element);
      const isAllowed = String(approval.decision).startsWith("allow");
      this.element.dataset.decision = isAllowed ? "allow" : "deny";
      const words = [this.#words(isAllowed ? "allowed" : "denied"), approval.by ? showHidden(wordsFor("by", approval.by)) : ""];
      this.#answered.replaceChildren(...[
        icon(isAllowed ? "check" : "cross"),
        el("span", {}, words.filter(Boolean).join(" ")),
        this.#kind !== "approval" ? null : el("span", { class: "tool-name" }, showHidden(approval.name)),
        approval.answers || this.#kind === "plan" ? null : el("bdi", { class: "tool-summary" }, showHidden(approval.summary)),
        approval.answers && el("div", { class: "approval-note" }, fieldList(approval.answers)),
        approval.permit && el("span", { class: "approval-note" }, t("approval_kept", { rule: permitWords(approval.permit) })),
        approval.message && el("bdi", { class: "approval-note" }, t("approval_said", { message: showHidden(approval.message) })),
      ].filter(Boolean));
    }
    place(this.element, [approval.decision ? this.#answered : this.#asked]);
  }
}
