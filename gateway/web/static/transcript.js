// The turns on the page. Only the latest are in the document; earlier ones are added on request.

import { el, place } from "/static/dom.js";
import { t } from "/static/i18n.js";
import { TurnView } from "/static/turn-view.js";

const PAGE_TURNS = 20;
// While the reader follows the end, turns beyond this number leave the document again.
const MAX_TURNS = 40;

export class Transcript {
  #root;
  #scroll;
  #actions;
  #conversation = null;
  #views = new Map();
  #shown = PAGE_TURNS;
  #empty = null;
  #earlier = el("button", { class: "button show-earlier", type: "button", "data-testid": "show-earlier", onclick: () => this.#showEarlier() }, t("show_earlier"));

  constructor(root, scroll, actions) {
    this.#root = root;
    this.#scroll = scroll;
    this.#actions = actions;
  }

  /** Show a conversation; `empty` stands where it has no turns yet. Call `update` after its turns changed. */
  show(conversation, empty = null) {
    this.#conversation = conversation;
    this.#views.clear();
    this.#shown = PAGE_TURNS;
    this.#empty = empty;
    this.#root.replaceChildren();
    this.update();
    this.#scroll.toEnd();
  }

  /** Draw what changed: one turn, or without a name all that are in the document. */
  update(changed = null) {
    if (changed && this.#views.has(changed)) {
      // The scroll keeper sees the growth by itself, once a frame.
      this.#views.get(changed).update();
      return;
    }
    if (this.#scroll.isAtEnd && this.#shown > PAGE_TURNS) this.#shown = Math.min(this.#shown, MAX_TURNS);
    const { turns, hasEarlier } = this.#conversation;
    const hidden = Math.max(0, turns.length - this.#shown);
    const inView = turns.slice(hidden);
    for (const turn of this.#views.keys()) if (!inView.includes(turn)) this.#views.delete(turn);
    const elements = inView.map((turn) => this.#viewOf(turn).element);
    place(this.#root, [hidden || hasEarlier ? this.#earlier : null, ...elements, elements.length ? null : this.#empty]);
    this.#scroll.settle();
  }

  #viewOf(turn) {
    if (this.#views.has(turn)) this.#views.get(turn).update();
    else this.#views.set(turn, new TurnView(turn, this.#actions));
    return this.#views.get(turn);
  }

  async #showEarlier() {
    const conversation = this.#conversation;
    if (conversation.turns.length < this.#shown + PAGE_TURNS && conversation.hasEarlier) {
      this.#earlier.disabled = true;
      await this.#actions.loadEarlier(conversation);
      this.#earlier.disabled = false;
      if (conversation !== this.#conversation) return;
    }
    this.#scroll.keepPlace(() => {
      this.#shown += PAGE_TURNS;
      this.update();
    });
  }
}
