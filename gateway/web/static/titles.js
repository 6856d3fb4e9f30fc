// What the conversations are called, as far as the page has learned it. A title that was learned stays known, whatever
// the list is searched for.

import { getConversation, listBranches, renameConversation } from "/static/routes.js";

export class Titles {
  #known = new Map();
  #asked = new Set();
  #learned;

  /** `learned()` is called when a title that was asked for is known. */
  constructor(learned) {
    this.#learned = learned;
  }

  /** Take the titles of conversations that were read. */
  take(conversations) {
    for (const { id, title } of conversations) this.#known.set(id, title);
  }

  /** The title; empty if there is none, or it is not known. */
  of(conversationId) {
    return this.#known.get(conversationId) ?? "";
  }

  /** The title, which is asked for once if it is not known. */
  find(conversationId) {
    const title = this.of(conversationId);
    if (!title && !this.#asked.has(conversationId)) {
      this.#asked.add(conversationId);
      this.read(conversationId);
    }
    return title;
  }

  /** Ask for a title. */
  async read(conversationId) {
    const conversation = await getConversation(conversationId).catch(() => null);
    if (!conversation) return;
    this.take([conversation]);
    this.#learned();
  }

  /** Rename a conversation and its branches: the list shows one name for all of them. */
  async rename(conversationId, title) {
    this.take([{ id: conversationId, title }]);
    await renameConversation(conversationId, title);
    for (const branch of await listBranches(conversationId)) {
      await renameConversation(branch.conversationId, title);
      this.take([{ id: branch.conversationId, title }]);
    }
    this.#learned();
  }
}
