// What waits for the person's approval in all conversations: a bar under the top bar, a dialog, badges, a notification.

import { announceUrgently } from "/static/announcer.js";
import { ApprovalCard } from "/static/approval-card.js";
import { setWaiting } from "/static/badge.js";
import { openDialog } from "/static/dialog.js";
import { el, place, setText } from "/static/dom.js";
import { ErrorLine } from "/static/error-line.js";
import { formatCountdown } from "/static/format.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { notify } from "/static/notification.js";
import { answerApproval, listApprovals } from "/static/routes.js";
import { startTicking } from "/static/ticker.js";
import { toolWords } from "/static/tool-words.js";
import { showHidden } from "/static/visible.js";

const READ_MS = 3000;
const READ_HIDDEN_MS = 10_000;

export class Inbox {
  #slot;
  #on;
  #waiting = new Map();
  #timer = null;
  #reading = null;
  #words = el("span", { class: "inbox-words" });
  #left = el("span", { class: "inbox-left" });
  #bar;
  #dialog = null;
  #cards = el("div", { class: "inbox-cards" });
  #errors = el("div", {});

  /** `on`: open(conversationId), isOpen(conversationId), titleOf(conversationId), counted(counts), left(). */
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
      asks = answer.asks;
      this.#take(answer.approvals);
    } catch {
      // The page's other requests tell of it; this one is tried again.
    }
    this.#reading = null;
    if (reading.again) this.refresh();
    else if (asks) this.#timer = setTimeout(() => this.refresh(), document.hidden ? READ_HIDDEN_MS : READ_MS);
  }

  #take(approvals) {
    const known = this.#waiting;
    this.#waiting = new Map(approvals.map((approval) => [approval.approvalId, known.get(approval.approvalId) ?? this.#entryOf(approval)]));
    for (const [id, entry] of this.#waiting) if (!known.has(id)) this.#announce(entry.approval);
    const counts = new Map();
    for (const { approval } of this.#waiting.values()) counts.set(approval.conversationId, (counts.get(approval.conversationId) ?? 0) + 1);
    setWaiting(this.#waiting.size);
    this.#on.counted(counts);
    this.draw();
  }

  #entryOf(raw) {
    const approval = { ...raw, sent: null, decision: null };
    const card = new ApprovalCard(approval, (_, reply) => this.#answer(approval, card, reply));
    const title = el("button", { class: "link-button inbox-title", type: "button", onclick: () => this.#goTo(approval.conversationId) });
    card.update(approval);
    return { approval, card, title, element: el("div", { class: "inbox-entry" }, title, card.element) };
  }

  #announce(approval) {
    const words = t("approval_waits", { name: showHidden(toolWords(approval.name)), summary: showHidden(approval.summary) });
    announceUrgently(words);
    notify(this.#on.titleOf(approval.conversationId), words, approval.approvalId, () => this.#goTo(approval.conversationId));
  }

  #goTo(conversationId) {
    this.#dialog?.close();
    this.#on.open(conversationId);
  }

  async #answer(approval, card, reply) {
    approval.sent = reply.decision;
    card.update(approval);
    try {
      await answerApproval(approval.approvalId, reply);
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
    const entries = [...this.#waiting.values()];
    const elsewhere = entries.filter(({ approval }) => !this.#on.isOpen(approval.conversationId));
    for (const { approval, title } of entries) setText(title, this.#on.titleOf(approval.conversationId));
    if (elsewhere.length) {
      const [{ approval }] = elsewhere;
      setText(this.#words, elsewhere.length === 1
        ? t("inbox_one", { title: this.#on.titleOf(approval.conversationId), name: showHidden(toolWords(approval.name)), summary: showHidden(approval.summary) })
        : t("inbox_many", { count: elsewhere.length }));
    }
    place(this.#slot, [elsewhere.length ? this.#bar : null]);
    if (elsewhere.length) {
      const first_ms = Math.min(...elsewhere.map(({ approval }) => Date.parse(approval.expiresAt)));
      startTicking(this.#left, () => setText(this.#left, formatCountdown(first_ms - Date.now())));
    }
    if (!this.#dialog) return;
    place(this.#cards, entries.map((entry) => entry.element));
    for (const { card } of entries) card.countDown();
    if (entries.length === 0) this.#dialog.close();
    else if (!this.#dialog.contains(document.activeElement)) entries[0].card.focus();
  }

  /** Put the focus on what waits longest: on its card in the open conversation, or in the dialog. */
  review() {
    if (this.#waiting.size === 0 || this.#dialog) return;
    const shown = document.querySelector("#transcript .approval-asked :is(.choice input, .choice-own, .approval-actions button):enabled");
    if (shown) {
      shown.focus();
      shown.scrollIntoView({ block: "center" });
    } else {
      this.#open();
    }
  }

  #open() {
    this.#errors.replaceChildren();
    const content = el("div", { class: "dialog-body" }, el("h2", {}, t("inbox_title")), this.#errors, this.#cards);
    this.#dialog = openDialog({ label: t("inbox_title"), className: "inbox-dialog", content, onClose: () => {
      this.#dialog = null;
      if (this.#waiting.size === 0) this.#on.left();
    } });
    this.#dialog.dataset.testid = "inbox-dialog";
    this.draw();
    this.#waiting.values().next().value?.card.focus();
  }
}
