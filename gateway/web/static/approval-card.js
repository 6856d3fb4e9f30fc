// A tool call that a person is asked about: its input, the remaining time, the answers and what each of them covers;
// afterwards the answer.

import { isReachable } from "/static/connection.js";
import { byId, el, place, setText } from "/static/dom.js";
import { download } from "/static/download.js";
import { keepAnswers, recallAnswers } from "/static/drafts.js";
import { formatCount, formatCountdown, formatFull, formatMoment } from "/static/format.js";
import { t, wordsFor } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { permitWords } from "/static/permit.js";
import { isPlan, planProse } from "/static/plan.js";
import { isQuestion, questionForm, questionsOf } from "/static/question-form.js";
import { extendApproval, readApprovalInput } from "/static/routes.js";
import { startTicking, stopTicking } from "/static/ticker.js";
import { fieldList } from "/static/tool-block.js";
import { callBlocks } from "/static/tool-cards.js";
import { toolBrief, toolWords } from "/static/tool-words.js";
import { isAsking, isUntold } from "/static/turn.js";
import { showHidden } from "/static/visible.js";

const MAX_MESSAGE_CHARS = 2000;
// The focus came by itself: a letter that was on its way to the message box is no answer.
const GRACE_MS = 600;

const ICONS = { approval: "shield", plan: "check", question: "question" };
const ANSWERS = ":is(.approval-actions, .approval-row, .approval-time, .questions) :is(button, select, input)";
const FIRST_CONTROL = ".choice input, .choice-own, .approval-actions button";

const key = (letter) => el("kbd", { "aria-hidden": "true" }, letter);

export class ApprovalCard {
  #approval;
  #answer;
  #isAlone;
  #kind;
  #countdown = el("span", { class: "approval-countdown" });
  #problem = el("p", { class: "tool-note", role: "alert" });
  #asked = el("div", { class: "approval-asked" });
  #answered = el("div", { class: "approval-answered" });
  #buttons = {};
  #message;
  #refusal;
  #parts = {};
  #grace = null;
  element = el("div", { class: "approval", role: "group", tabindex: "-1", "data-testid": "approval" });

  /** `answer(approval, reply)` tells the gateway; see `answerApproval`. `isAlone`: nothing beside it names the call. */
  constructor(approval, answer, { isAlone = false } = {}) {
    this.#approval = approval;
    this.#answer = (reply) => answer(approval, reply);
    this.#isAlone = isAlone;
    this.#kind = isQuestion(approval) ? "question" : isPlan(approval) ? "plan" : "approval";
    this.element.addEventListener("keydown", (event) => this.#key(event));
    this.element.addEventListener("focusin", (event) => this.#focused(event));
    this.element.addEventListener("focusout", (event) => {
      if (!this.element.contains(event.relatedTarget)) this.#offerKeys(false);
    });
  }

  #words(key) {
    return t(`${this.#kind}_${key}`);
  }

  /** A part of what is asked, made anew only where what it has `told` is another: nobody loses the button or the field they are at. */
  #part(name, told, draw) {
    const version = JSON.stringify(told);
    if (this.#parts[name]?.version !== version) this.#parts[name] = { version, elements: [draw()].flat().filter(Boolean) };
    return this.#parts[name].elements;
  }

  #drawAsked(approval) {
    const { state, canExtend, reason, isUnlisted, why, touches, input, hidden, isTruncated, inputChars, permits } = approval;
    const isWaiting = state === "waiting";
    const title = isWaiting ? t("approval_still") : this.#words("title");
    const questions = questionsOf(approval);
    const focused = this.#asked.contains(document.activeElement) ? document.activeElement : null;
    place(this.#asked, [
      ...this.#part("head", [title, canExtend], () => this.#head(title, canExtend)),
      ...this.#part("why", [isWaiting, reason, isUnlisted, why, touches], () => [isWaiting && el("p", { class: "approval-why" }, showHidden(reason)), ...unlistedWords(approval)]),
      ...questions ? this.#part("answers", questions, () => this.#questions(questions)) : [
        ...this.#part("call", [input, hidden, isTruncated, inputChars], () => el("div", { class: "approval-call" }, this.#call(approval), this.#leftOut(approval))),
        ...this.#part("answers", [], () => this.#answers()),
        ...this.#part("rule", permits.map((permit) => [permit.reach, permitWords(permit)]), () => this.#rule(permits))],
      this.#problem]);
    if (this.#buttons.a) setText(this.#buttons.a.firstChild, isWaiting ? t("approval_run_again") : this.#words("allow"));
    // What may be allowed from now on has changed, and somebody was at it.
    if (focused?.isConnected === false) this.#asked.querySelector(`[data-testid="${focused.dataset.testid}"]`)?.focus({ preventScroll: true });
    this.#name(title, approval);
  }

  #head(title, canExtend) {
    const more = canExtend && el("button", { class: "link-button", type: "button", "data-testid": "approval-extend", onclick: () => this.#extend() }, t("approval_extend"));
    return el("div", { class: "approval-head" }, icon(ICONS[this.#kind]), el("strong", {}, title), el("span", { class: "approval-time" }, this.#countdown, more));
  }

  /** Name the group after what it says and the call; the title of a plan or a question says what is called. */
  #name(words, approval) {
    this.element.setAttribute("aria-label", [words, this.#kind === "approval" ? showHidden(toolWords(approval.name)) : "", showHidden(toolBrief(approval).text)].filter(Boolean).join(" "));
  }

  #questions(questions) {
    const { approvalId } = this.#approval;
    return questionForm(questions, recallAnswers(approvalId), {
      edited: (drafts) => keepAnswers(approvalId, drafts),
      send: (answers) => this.#answer({ decision: "allow", answers }),
      skip: () => this.#answer({ decision: "deny" }),
    });
  }

  #call(approval) {
    return (this.#kind === "plan" && planProse(approval)) || [
      this.#isAlone && el("span", { class: "tool-name" }, showHidden(approval.name)),
      approval.input ? callBlocks({ ...approval, isAsked: true }) : el("bdi", { class: "approval-summary" }, showHidden(approval.summary))].flat().filter(Boolean);
  }

  #answers() {
    const isOfPlan = this.#kind === "plan";
    const refusal = isOfPlan ? { decision: "deny", message: t("plan_keep") } : { decision: "deny" };
    this.#message = el("input", { type: "text", maxlength: MAX_MESSAGE_CHARS, "aria-label": this.#words("word"), placeholder: this.#words("word_placeholder"), "data-testid": "approval-message" });
    this.#buttons = {
      a: this.#button(this.#words("allow"), "button primary", "approval-allow", "A", () => this.#answer({ decision: "allow" })),
      d: this.#button(this.#words("deny"), isOfPlan ? "button" : "button quiet-danger", "approval-deny", "D", () => this.#answer(refusal)),
      w: this.#button(this.#words("word"), "button", "approval-word", "W", () => this.#askWhy()),
    };
    const { a, d, w } = this.#buttons;
    this.#refusal = el("form", { class: "approval-row", hidden: true }, this.#message, el("button", { class: isOfPlan ? "button" : "button danger", type: "submit", "data-testid": "approval-deny-word" }, this.#words("deny")));
    this.#refusal.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#answer({ decision: "deny", message: this.#message.value.trim() });
    });
    return [el("div", { class: "approval-actions" }, a, d, w), this.#refusal];
  }

  /** What may be allowed from now on. */
  #rule(permits) {
    const reach = el("select", { "aria-label": t("approval_reach"), "data-testid": "approval-reach" },
      permits.map((permit) => el("option", { value: permit.reach }, permitWords(permit))));
    const allow = this.#button(el("span", {}), "button", "approval-allow-conversation", "C", () => this.#answer({ decision: "allow", remember: "conversation", reach: reach.value }));
    this.#buttons.c = allow;
    // The button says what it allows: nobody has to read a list beside it for that.
    const tellRule = () => setText(allow.firstChild, t("approval_rule", { rule: reach.selectedOptions[0]?.textContent ?? "" }));
    reach.addEventListener("change", tellRule);
    tellRule();
    return permits.length > 0 && el("div", { class: "approval-row approval-rule" }, el("span", {}, t("approval_from_now_on")), reach, allow);
  }

  /** What of the call is not to be seen here: nobody approves it unknowingly. */
  #leftOut({ hidden, isTruncated, inputChars }) {
    const load = el("button", { class: "link-button", type: "button", "data-testid": "approval-input", onclick: () => this.#saveInput() }, t("approval_download"));
    return [
      ...hidden.map(({ path, chars }) => el("p", { class: "approval-left-out", "data-testid": "approval-hidden" }, icon("alert"), t("approval_hidden", { count: formatCount(chars), path: showHidden(path) }))),
      isTruncated && el("p", { class: "approval-left-out", "data-testid": "approval-truncated" }, icon("alert"), el("span", {}, t("approval_truncated", { count: formatCount(inputChars) }), " ", load)),
    ].filter(Boolean);
  }

  #try(work) {
    setText(this.#problem, "");
    return work().catch((error) => setText(this.#problem, showHidden(error.message)));
  }

  #saveInput() {
    const { approvalId } = this.#approval;
    return this.#try(async () => download(`${approvalId}.txt`, await readApprovalInput(approvalId)));
  }

  #extend() {
    return this.#try(async () => {
      const answer = await extendApproval(this.#approval.approvalId);
      this.#approval.expiresAt = answer?.expires_at ?? this.#approval.expiresAt;
    });
  }

  #button(words, className, testId, letter, press) {
    return el("button", { class: className, type: "button", "data-testid": testId, "aria-keyshortcuts": letter, onclick: press }, words, key(letter));
  }

  #askWhy() {
    this.#refusal.hidden = false;
    this.#message.focus();
  }

  /** Go to the first answer. */
  focus() {
    this.#asked.querySelector(FIRST_CONTROL)?.focus();
    this.element.scrollIntoView({ block: "nearest" });
  }

  /** The keys count while the focus is here; where it came by itself, a moment later. */
  #focused({ target }) {
    if (target !== this.element) this.#offerKeys(true);
    else this.#grace ??= setTimeout(() => this.#offerKeys(true), GRACE_MS);
  }

  #offerKeys(isOffered) {
    clearTimeout(this.#grace);
    this.#grace = null;
    this.element.classList.toggle("has-keys", isOffered);
  }

  /** Single letters count while the focus is on the card, and not in its fields. */
  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat) return;
    if (event.key === "Escape" && this.#refusal?.hidden === false) {
      event.stopPropagation();
      event.preventDefault();
      this.#refusal.hidden = true;
      this.#buttons.w.focus();
    }
    // Somebody was about to write: the letter goes where it was meant to.
    if (this.#grace !== null && event.key.length === 1) byId("message").focus();
    const button = this.#buttons[event.key.toLowerCase()];
    if (!this.element.classList.contains("has-keys") || !button?.isConnected || button.disabled || event.target.matches("input, select")) return;
    event.preventDefault();
    button.click();
  }

  /** Show the time left for as long as the card is in the page. */
  #countDown() {
    if (isAsking(this.#approval)) startTicking(this.element, () => this.#tick());
  }

  #tick() {
    const { sent, state, expiresAt } = this.#approval;
    const isAway = !isReachable();
    // While the server is away an answer can be written, but not sent.
    for (const control of this.#asked.querySelectorAll(ANSWERS)) control.disabled = sent !== null || (isAway && !control.matches("input"));
    const left_ms = Date.parse(expiresAt) - Date.now();
    const isCounting = state === "pending" && Number.isFinite(left_ms) && !isAway;
    // The gateway's clock decides; the buttons stay until it says that the time is over.
    const words = left_ms > 0 ? t(this.#kind === "approval" ? "approval_left" : "question_left", { left: formatCountdown(left_ms) }) : t("approval_over");
    setText(this.#countdown, isCounting ? words : isAway ? t("approval_away") : "");
    this.#countdown.classList.toggle("is-short", isCounting && left_ms < 15_000);
  }

  #drawAnswered(approval) {
    stopTicking(this.element);
    const { decision, state } = approval;
    if (this.#kind === "question" && (decision || state)) keepAnswers(approval.approvalId, []);
    const isAllowed = String(decision).startsWith("allow");
    this.element.dataset.decision = decision ? (isAllowed ? "allow" : "deny") : state ?? "";
    this.element.hidden = !decision && !state;
    const ended = state === "lost" ? showHidden(approval.reason) || t("approval_lost") : t("approval_is_over");
    const words = decision ? [this.#words(isAllowed ? "allowed" : "denied"), approval.by ? showHidden(wordsFor("by", approval.by)) : ""].filter(Boolean).join(t("space")) : ended;
    this.#name(words, approval);
    this.#answered.replaceChildren(...[
      icon(decision ? (isAllowed ? "check" : "cross") : "clock"),
      el("span", {}, words),
      this.#isAlone && this.#kind === "approval" && el("span", { class: "tool-name" }, showHidden(approval.name)),
      this.#isAlone && !approval.answers && this.#kind !== "plan" && el("bdi", { class: "tool-summary" }, showHidden(approval.summary)),
      approval.permit && el("span", { class: "approval-said" }, t("approval_kept", { rule: permitWords(approval.permit) })),
      approval.message && el("bdi", { class: "approval-said" }, t("approval_said", { message: showHidden(approval.message) })),
      approval.answers && el("div", { class: "approval-note" }, fieldList(approval.answers)),
    ].filter(Boolean));
  }

  get #isWriting() {
    return this.#asked.contains(document.activeElement) && document.activeElement.matches("input");
  }

  update(approval) {
    const isAsked = isAsking(approval);
    // Its run is over, and whether it can be answered still is told in a moment: nobody is taken out of a field for that.
    if (isUntold({ approval }) && this.#isWriting) return;
    if (isAsked) this.#drawAsked(approval);
    else this.#drawAnswered(approval);
    if (isAsked) {
      delete this.element.dataset.decision;
      this.element.hidden = false;
    }
    place(this.element, [isAsked ? this.#asked : this.#answered]);
    if (isAsked) this.#countDown();
  }
}

/** Why a call that the policy does not know is not allowed by itself, and what it may touch. */
function unlistedWords({ isUnlisted, why, touches }) {
  if (!isUnlisted) return [];
  return [
    why && el("p", { class: "approval-why", "data-testid": "approval-unlisted" }, t("unlisted_why", { why: showHidden(why) })),
    el("p", { class: "approval-why", "data-testid": "approval-touches" }, t(`touches_${touches ?? "named"}`)),
  ];
}

/** What let a call pass without a question: an earlier yes, or a model in a person's place. */
export function letPass({ by, rule, at }) {
  const words = by === "rule" ? t("passed_rule", { rule: typeof rule === "string" ? showHidden(rule) : rule ? permitWords(rule) : "" }) : wordsFor("passed", by);
  return el("div", { class: "approval", "data-testid": "let-pass", "data-decision": "allow" },
    el("div", { class: "approval-answered", title: formatFull(at) }, icon("shield"), el("span", {}, words), at && el("span", { class: "approval-said" }, formatMoment(at))));
}
