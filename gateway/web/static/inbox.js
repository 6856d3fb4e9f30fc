// What waits for the person's approval in all conversations: a bar under the top bar, a dialog, badges, a notification.

import { announceUrgently } from "/static/announcer.js";
import { ApprovalCard } from "/static/approval-card.js";
import { setWaiting } from "/static/badge.js";
import { isReachable } from "/static/connection.js";
import { dialogHead, openDialog } from "/static/dialog.js";
import { el, place, setText } from "/static/dom.js";
import { ErrorLine } from "/static/error-line.js";
import { formatCountdown } from "/static/format.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { notify } from "/static/notification.js";
import { answerApproval, getConversation, listApprovals } from "/static/routes.js";
import { startTicking } from "/static/ticker.js";
import { toolBrief, toolWords } from "/static/tool-words.js";
import { isAsking } from "/static/turn.js";
import { showHidden } from "/static/visible.js";

const READ_MS = 3000;
const READ_HIDDEN_MS = 10_000;
// What was answered in the dialog goes on, and may ask again at once.
const READ_GOING_ON_MS = 1000;

const wordsOf = (approval) => ({ name: showHidden(toolWords(approval.name)), summary: showHidden(toolBrief(approval).text) });

export class Inbox {
  #slot;
  #on;
  #waiting = new Map();
  /** Answered in the open dialog, and their turns go on: entries by conversation. */
  #goingOn = new Map();
  #timer = null;
  #reading = null;
  #words = el("span", { class: "inbox-words" });
  #left = el("span", { class: "inbox-left" });
  #bar;
  #dialog = null;
  #cards = el("div", { class: "inbox-cards" });
  #errors = el("div", {});

  /** `on`: open(conversationId), isOpen(conversationId), titleOf(conversationId), counted(counts), listed(approvals), answered(), left(). */
  constructor(slot, on) {
    this.#slot = slot;
    this.#on = on;
    const review = el("button", { class: "button small primary", type: "button", "data-testid": "inbox-review", "aria-keyshortcuts": "Alt+A", onclick: () => this.#open() }, t("inbox_review"), el("kbd", { "aria-hidden": "true" }, "Alt+A"));
    this.#bar = el("div", { class: "inbox-bar", "data-testid": "inbox" }, icon("shield"), this.#words, this.#left, review);
    document.addEventListener("visibilitychange", () => { if (!document.hidden && this.#timer) this.refresh(); });
  }

  /** Read what waits; a second call while one is on its way starts another after it. */
  async refresh() {
    clearTimeout(this.#timer);
    if (this.#reading) {
      this.#reading.again = true;
      return;
    }
    const reading = { again: false };
    this.#reading = reading;
    let asks = true;
    try {
      const answer = await listApprovals();
      await this.#dropEnded();
      asks = answer.asks;
      this.#take(answer.approvals);
    } catch {
      // The page's other requests tell of it; this one is tried again.
    }
    this.#reading = null;
    const pause_ms = document.hidden ? READ_HIDDEN_MS : this.#goingOn.size ? READ_GOING_ON_MS : READ_MS;
    if (reading.again) this.refresh();
    else if (asks || this.#goingOn.size) this.#timer = setTimeout(() => this.refresh(), pause_ms);
  }

  /** A turn that was answered in the dialog stays there until it ends. */
  async #dropEnded() {
    for (const id of this.#goingOn.keys()) {
      const { state } = await getConversation(id).catch((error) => ({ state: error.status === 404 ? "idle" : "running" }));
      if (state === "idle") this.#goingOn.delete(id);
    }
  }

  #take(approvals) {
    const known = this.#waiting;
    this.#on.listed(approvals);
    const asking = approvals.filter((approval) => isAsking({ ...approval, decision: null }));
    this.#waiting = new Map(asking.map((approval) => [approval.approvalId, this.#updated(known.get(approval.approvalId), approval)]));
    for (const [id, entry] of this.#waiting) if (!known.has(id)) this.#announce(entry.approval);
    const counts = new Map();
    for (const { approval } of this.#waiting.values()) counts.set(approval.conversationId, (counts.get(approval.conversationId) ?? 0) + 1);
    setWaiting(this.#waiting.size);
    this.#on.counted(counts);
    this.draw();
  }

  #updated(entry, raw) {
    if (!entry) return this.#entryOf(raw);
    Object.assign(entry.approval, raw);
    return entry;
  }

  #entryOf(raw) {
    const approval = { ...raw, sent: null, decision: null };
    const entry = { approval };
    entry.card = new ApprovalCard(approval, (_, reply) => this.#answer(entry, reply), { isAlone: true });
    entry.title = el("button", { class: "link-button inbox-title", type: "button", onclick: () => this.#goTo(approval.conversationId) });
    entry.element = el("div", { class: "inbox-entry" }, entry.title, entry.card.element);
    return entry;
  }

  #announce(approval) {
    const words = t("approval_waits", wordsOf(approval));
    announceUrgently(words);
    notify(this.#on.titleOf(approval.conversationId), words, approval.approvalId, () => this.#goTo(approval.conversationId));
  }

  #goTo(conversationId) {
    this.#dialog?.close();
    this.#on.open(conversationId);
  }

  async #answer(entry, reply) {
    const { approval, card } = entry;
    approval.sent = reply.decision;
    card.update(approval);
    try {
      await answerApproval(approval.approvalId, reply);
      Object.assign(approval, { decision: reply.decision, by: "user", message: reply.message ?? "", answers: reply.answers ?? null });
      card.update(approval);
      entry.element.append(el("p", { class: "inbox-goes-on" }, el("span", { class: "spinner" }), t("inbox_goes_on")));
      if (this.#dialog) this.#goingOn.set(approval.conversationId, entry);
      this.#on.answered();
    } catch (error) {
      // Answered already, elsewhere or by the clock: it leaves the list.
      if (error.status !== 404 && error.status !== 409) {
        approval.sent = null;
        card.update(approval);
        new ErrorLine(this.#errors).show(error);
      }
    }
    this.refresh();
  }

  /** Show the bar where something waits that the open conversation does not show by itself. */
  draw() {
    const entries = [...this.#waiting.values()].filter(({ approval }) => isAsking(approval));
    const elsewhere = entries.filter(({ approval }) => !this.#on.isOpen(approval.conversationId));
    if (elsewhere.length) {
      const [{ approval }] = elsewhere;
      setText(this.#words, elsewhere.length === 1
        ? t("inbox_one", { title: this.#on.titleOf(approval.conversationId), ...wordsOf(approval) })
        : t("inbox_many", { count: elsewhere.length }));
    }
    place(this.#slot, [elsewhere.length ? this.#bar : null]);
    if (elsewhere.length) {
      const first_ms = Math.min(...elsewhere.map(({ approval }) => Date.parse(approval.expiresAt)).filter(Number.isFinite));
      startTicking(this.#left, () => setText(this.#left, Number.isFinite(first_ms) && isReachable() ? formatCountdown(first_ms - Date.now()) : ""));
    }
    if (this.#dialog) this.#drawCards(entries);
  }

  #drawCards(entries) {
    const isWriting = this.#cards.contains(document.activeElement) && document.activeElement.matches("input");
    const asksAgain = new Set(entries.map(({ approval }) => approval.conversationId));
    const goingOn = [...this.#goingOn].filter(([id]) => !asksAgain.has(id)).map(([, entry]) => entry);
    for (const { approval, title } of [...goingOn, ...entries]) setText(title, this.#on.titleOf(approval.conversationId));
    place(this.#cards, [...goingOn, ...entries].map((entry) => entry.element));
    for (const { approval, card } of entries) card.update(approval);
    if (entries.length + goingOn.length === 0) this.#dialog.close();
    else if (entries.length && !this.#dialog.contains(document.activeElement)) this.#refocus(entries[0], isWriting);
  }

  /** What had the focus is gone. The letters that somebody goes on writing are no answers to the next call. */
  #refocus(next, isWriting) {
    if (!isWriting) {
      next.card.focus();
      return;
    }
    const heading = this.#dialog.querySelector("h2");
    heading.tabIndex = -1;
    heading.focus();
  }

  /** Put the focus on what waits longest: on its card in the open conversation, or in the dialog. */
  review() {
    if (this.#dialog) return;
    // The card of the open conversation may be there before the list of what waits.
    const shown = document.querySelector("#transcript .approval-asked :is(.choice input, .choice-own, .approval-actions button):enabled");
    if (shown) {
      shown.focus({ preventScroll: true });
      shown.scrollIntoView({ block: "center" });
    } else if (this.#waiting.size > 0) {
      this.#open();
    }
  }

  /** Go to what is asked in the open conversation, unless the person is at something else than the empty `field`. */
  offerKeys(field) {
    const at = document.activeElement;
    if (this.#dialog || (at !== document.body && (at !== field || field.value))) return;
    [...document.querySelectorAll("#transcript .approval:has(.approval-actions kbd)")].at(-1)?.focus({ preventScroll: true });
  }

  #open() {
    this.#errors.replaceChildren();
    const content = el("div", { class: "dialog-body" }, dialogHead(t("inbox_title"), () => this.#dialog.close()), this.#errors, this.#cards);
    this.#dialog = openDialog({ label: t("inbox_title"), className: "inbox-dialog", content, mayLeave: () => true, onClose: () => {
      this.#dialog = null;
      this.#goingOn.clear();
      if (this.#waiting.size === 0) this.#on.left();
    } });
    this.#dialog.dataset.testid = "inbox-dialog";
    this.draw();
    this.#waiting.values().next().value?.card.focus();
  }
}
