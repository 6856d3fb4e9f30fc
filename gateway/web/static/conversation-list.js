// The conversation list: newest first, by day, in pages, searchable, refreshed while the page is visible.

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

export class ConversationList {
  #list;
  #end;
  #search;
  #on;
  #conversations = [];
  #items = new Map();
  #headings = new Map();
  #nextCursor = null;
  #current = null;
  #reading = null;
  #timer = null;
  #isRead = false;

  /** `on`: open, rename, remove (see `ConversationItem`), failed(error, retry), refreshed(conversations). */
  constructor({ list, end, search }, on) {
    this.#list = list;
    this.#end = end;
    this.#search = search;
    this.#on = on;
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

  titleOf(conversationId) {
    return this.#conversations.find((conversation) => conversation.id === conversationId)?.title ?? null;
  }

  /** Read the list again, as far as it was shown. The newest call wins. */
  async refresh({ isNewQuestion = false } = {}) {
    this.#reading?.abort();
    const reading = new AbortController();
    this.#reading = reading;
    const q = this.#search.value.trim();
    const limit = isNewQuestion ? PAGE : Math.min(MAX_REFRESHED, Math.max(PAGE, this.#conversations.length));
    try {
      const page = await listConversations({ q, limit, signal: reading.signal });
      if (reading.signal.aborted) return;
      const rest = isNewQuestion ? [] : this.#conversations.slice(limit);
      this.#accept(page, rest);
      this.#on.refreshed(this.#conversations);
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

  async #more() {
    try {
      const page = await listConversations({ q: this.#search.value.trim(), cursor: this.#nextCursor, limit: PAGE });
      const known = new Set(this.#conversations.map((conversation) => conversation.id));
      this.#conversations.push(...page.conversations.filter((conversation) => !known.has(conversation.id)));
      this.#nextCursor = page.nextCursor;
      this.#draw();
    } catch (error) {
      this.#on.failed(error, () => this.#more());
    }
  }

  /** Change a line at once; the next refresh confirms it. */
  amend(conversationId, changes) {
    const conversation = this.#conversations.find((candidate) => candidate.id === conversationId);
    if (!conversation) return;
    Object.assign(conversation, changes);
    this.#draw();
  }

  drop(conversationId) {
    this.#conversations = this.#conversations.filter((conversation) => conversation.id !== conversationId);
    this.#draw();
  }

  #draw() {
    const wanted = new Set(this.#conversations.map((conversation) => conversation.id));
    for (const id of this.#items.keys()) if (!wanted.has(id)) this.#items.delete(id);
    const lines = [];
    let group = null;
    for (const conversation of this.#conversations) {
      const heading = dayGroup(conversation.lastActivity);
      if (heading !== group) lines.push(this.#heading(heading));
      group = heading;
      lines.push(this.#itemOf(conversation).element);
    }
    place(this.#list, lines);
    this.#drawEnd();
  }

  #heading(words) {
    if (!this.#headings.has(words)) this.#headings.set(words, el("li", { class: "list-heading", role: "presentation" }, words));
    return this.#headings.get(words);
  }

  #itemOf(conversation) {
    if (!this.#items.has(conversation.id)) this.#items.set(conversation.id, new ConversationItem(conversation, this.#on));
    const item = this.#items.get(conversation.id);
    item.update(conversation, conversation.id === this.#current);
    return item;
  }

  #drawEnd() {
    const q = this.#search.value.trim();
    const words = q ? t("none_found", { q }) : t("none_yet");
    this.#end.replaceChildren(...[
      this.#isRead && this.#conversations.length === 0 ? el("p", { class: "quiet" }, words) : null,
      this.#nextCursor ? el("button", { class: "button small", type: "button", "data-testid": "more-conversations", onclick: () => this.#more() }, t("show_more")) : null,
    ].filter(Boolean));
  }
}
