// The conversation list: the pinned ones, then newest first by day; read on by scrolling, searchable, refreshed
// while the page is visible. The branches of one conversation stand as one row.

import { el, place } from "/static/dom.js";
import { dayGroup } from "/static/format.js";
import { t } from "/static/i18n.js";
import { listConversations } from "/static/routes.js";
import { ConversationItem } from "/static/conversation-item.js";

const PAGE = 30;
const MAX_REFRESHED = 100;
const SEARCH_DELAY_MS = 250;
const REFRESH_MS = 20_000;
const REFRESH_RUNNING_MS = 4000;
const NEAR = "200px 0px";

export class ConversationList {
  #list;
  #end;
  #search;
  #on;
  #conversations = [];
  #pinned = [];
  #items = new Map();
  #headings = new Map();
  #nextCursor = null;
  #current = null;
  #reading = null;
  #timer = null;
  #isRead = false;
  #isReadingOn = false;
  #more = el("button", { class: "button small", type: "button", "data-testid": "more-conversations", onclick: () => this.#readOn() }, t("show_more"));
  #edge;
  #waiting = new Map();

  /** `on`: open, pin, rename, remove (see `ConversationItem`), failed(error, retry), refreshed(). */
  constructor({ list, end, search }, on) {
    this.#list = list;
    this.#end = end;
    this.#search = search;
    this.#on = on;
    this.#edge = new IntersectionObserver((entries) => { if (entries.some((entry) => entry.isIntersecting)) this.#readOn(); }, { root: end.parentElement, rootMargin: NEAR });
    let delay;
    search.addEventListener("input", () => {
      clearTimeout(delay);
      delay = setTimeout(() => this.refresh({ isNewQuestion: true }), SEARCH_DELAY_MS);
    });
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.refresh(); });
  }

  set current(conversationId) {
    this.#current = conversationId;
    this.#draw();
  }

  /** How many calls wait for the person, by conversation. */
  set waiting(counts) {
    this.#waiting = counts;
    this.#draw();
  }

  /** What is listed of all conversations. */
  get all() {
    return [...this.#pinned, ...this.#conversations];
  }

  /** What is listed of a conversation, or undefined. */
  find(conversationId) {
    return this.all.find((conversation) => conversation.id === conversationId);
  }

  /** Read the list again, as far as it was shown. The newest call wins. */
  async refresh({ isNewQuestion = false } = {}) {
    this.#reading?.abort();
    const reading = new AbortController();
    this.#reading = reading;
    const q = this.#search.value.trim();
    const limit = isNewQuestion ? PAGE : Math.min(MAX_REFRESHED, Math.max(PAGE, this.#conversations.length));
    try {
      const [page, pinned] = await Promise.all([
        listConversations({ q, limit, signal: reading.signal }),
        q ? { conversations: [] } : listConversations({ isPinned: true, signal: reading.signal }),
      ]);
      if (reading.signal.aborted) return;
      this.#pinned = pinned.conversations;
      const rest = isNewQuestion ? [] : this.#conversations.slice(limit);
      this.#accept(page, rest);
      if (isNewQuestion) this.#end.parentElement.scrollTop = 0;
      this.#on.refreshed();
    } catch (error) {
      if (reading.signal.aborted) return;
      if (this.#items.size === 0) this.#on.failed(error, () => this.refresh());
    } finally {
      if (!reading.signal.aborted) this.#schedule();
    }
  }

  #accept({ conversations, nextCursor }, rest) {
    const known = new Set(conversations.map((conversation) => conversation.id));
    const kept = rest.filter((conversation) => !known.has(conversation.id));
    this.#conversations = [...conversations, ...kept];
    if (kept.length === 0) this.#nextCursor = nextCursor;
    this.#isRead = true;
    this.#draw();
  }

  #schedule() {
    clearTimeout(this.#timer);
    const isRunning = this.#conversations.some((conversation) => conversation.state !== "idle");
    this.#timer = setTimeout(() => (document.hidden ? this.#schedule() : this.refresh()), isRunning ? REFRESH_RUNNING_MS : REFRESH_MS);
  }

  async #readOn() {
    if (this.#isReadingOn || !this.#nextCursor) return;
    this.#isReadingOn = true;
    try {
      const page = await listConversations({ q: this.#search.value.trim(), cursor: this.#nextCursor, limit: PAGE });
      const known = new Set(this.#conversations.map((conversation) => conversation.id));
      this.#conversations.push(...page.conversations.filter((conversation) => !known.has(conversation.id)));
      this.#nextCursor = page.nextCursor;
      this.#isReadingOn = false;
      this.#draw();
    } catch (error) {
      this.#isReadingOn = false;
      this.#on.failed(error, () => this.#readOn());
    }
  }

  /** Change a conversation and its branches at once; the next refresh confirms it. */
  amend(conversationId, changes) {
    const lineId = this.find(conversationId)?.lineId;
    for (const conversation of this.all) {
      if (conversation.lineId === lineId) Object.assign(conversation, changes);
    }
    this.#draw();
  }

  /** A conversation is gone, with all its branches. */
  drop({ lineId }) {
    const isLeft = (conversation) => conversation.lineId !== lineId;
    this.#pinned = this.#pinned.filter(isLeft);
    this.#conversations = this.#conversations.filter(isLeft);
    this.#draw();
  }

  /** One conversation for each line of branches: the open one, or else the latest. */
  #rows() {
    const rows = new Map();
    for (const conversation of this.all) {
      if (conversation.isBare && conversation.id !== this.#current) continue;
      const row = rows.get(conversation.lineId);
      if (!row) rows.set(conversation.lineId, { conversation, isBranched: false });
      else if (row.conversation.id !== conversation.id) Object.assign(row, { isBranched: true }, conversation.id === this.#current ? { conversation } : {});
    }
    return [...rows.values()];
  }

  #draw() {
    const rows = this.#rows();
    const wanted = new Set(rows.map(({ conversation }) => conversation.id));
    for (const id of this.#items.keys()) if (!wanted.has(id)) this.#items.delete(id);
    const isPinned = new Set(this.#pinned.map((conversation) => conversation.lineId));
    const lines = [];
    let group = null;
    for (const row of rows) {
      const heading = isPinned.has(row.conversation.lineId) ? t("pinned") : dayGroup(row.conversation.lastActivity);
      if (heading !== group) lines.push(this.#heading(heading));
      group = heading;
      lines.push(this.#itemOf(row).element);
    }
    const focused = this.#list.contains(document.activeElement) ? document.activeElement : null;
    const isKeyboard = focused?.matches(":focus-visible");
    place(this.#list, lines);
    // A row that was moved lost the focus. Under a pointer the list stays where it is.
    if (focused !== document.activeElement && this.#list.contains(focused)) focused.focus({ preventScroll: !isKeyboard });
    this.#drawEnd(rows.length === 0);
  }

  #heading(words) {
    if (!this.#headings.has(words)) this.#headings.set(words, el("li", { class: "list-heading" }, words));
    return this.#headings.get(words);
  }

  #itemOf({ conversation, isBranched }) {
    if (!this.#items.has(conversation.id)) this.#items.set(conversation.id, new ConversationItem(conversation, this.#on));
    const item = this.#items.get(conversation.id);
    item.update(conversation, { isCurrent: conversation.id === this.#current, isBranched, waiting: this.#waiting.get(conversation.id) ?? 0 });
    return item;
  }

  #drawEnd(isEmpty) {
    const q = this.#search.value.trim();
    const words = q ? t("none_found", { q }) : t("none_yet");
    place(this.#end, [
      this.#isRead && isEmpty && !this.#nextCursor ? el("p", { class: "quiet" }, words) : null,
      this.#nextCursor ? this.#more : null,
    ]);
    // Observed anew, an end that is still near is told of again.
    this.#edge.disconnect();
    if (this.#nextCursor && !this.#isReadingOn) this.#edge.observe(this.#more);
  }
}
