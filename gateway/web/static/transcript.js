// The turns on the page. A window of them is in the document; it grows as the reader comes near its edges.

import { el, place } from "/static/dom.js";
import { t } from "/static/i18n.js";
import { TurnView } from "/static/turn-view.js";
import { BranchSwitch } from "/static/turn-tools.js";

const PAGE_TURNS = 20;
// Beyond this number turns leave the document at the other edge.
const MAX_TURNS = 60;
const NEAR = "600px 0px";
const FOUND_MS = 2400;

export class Transcript {
  #root;
  #scroll;
  #actions;
  #conversation = null;
  #views = new Map();
  // The first and the last turn in the document; null: the latest ones.
  #first = null;
  #last = null;
  #top = null;
  #empty = null;
  #isReading = false;
  /** The earlier turns could not be read: they are not asked for again but by the person. */
  #isRefused = false;
  #earlier = el("button", { class: "button show-earlier", type: "button", "data-testid": "show-earlier", onclick: () => this.#showEarlier() }, t("show_earlier"));
  #later = el("button", { class: "button show-later", type: "button", "data-testid": "show-later", onclick: () => this.#showLater() }, t("show_later"));
  #branches;
  #branchEnd;
  #edges;

  constructor(root, scroll, actions) {
    this.#root = root;
    this.#scroll = scroll;
    this.#actions = actions;
    this.#branches = new BranchSwitch(actions);
    this.#branchEnd = el("div", { class: "branch-end", "data-testid": "branch-end" }, t("branch_end"), " ");
    this.#edges = new IntersectionObserver((entries) => this.#reached(entries), { root: scroll.element, rootMargin: NEAR });
    scroll.onLatest(() => this.toLatest());
  }

  /** Show a conversation; `empty` stands where it has no turns yet. Call `update` after its turns changed. */
  show(conversation, empty = null) {
    this.#conversation = conversation;
    this.#views.clear();
    this.#empty = empty;
    this.#isRefused = false;
    this.#root.replaceChildren();
    this.toLatest();
  }

  toLatest() {
    this.#first = null;
    this.#last = null;
    this.update();
    this.#scroll.toEnd({ isEmpty: this.#conversation.turns.length === 0 });
  }

  /** Show the place of a turn, reading back as far as it takes; false if there is none of that id. */
  async reveal(turnId) {
    const conversation = this.#conversation;
    const find = () => conversation.turns.find((turn) => turn.turnId === turnId);
    this.#isReading = true;
    try {
      while (!find() && conversation.hasEarlier) await conversation.loadEarlier();
    } finally {
      this.#isReading = false;
    }
    const { turns } = conversation;
    const index = turns.indexOf(find());
    if (index < 0 || conversation !== this.#conversation) return false;
    this.#first = turns[Math.max(0, index - PAGE_TURNS / 2)];
    this.#last = turns[index + PAGE_TURNS] ?? null;
    this.update();
    const { element } = this.#views.get(turns[index]);
    this.#scroll.show(element);
    element.classList.add("is-found");
    setTimeout(() => element.classList.remove("is-found"), FOUND_MS);
    return true;
  }

  /** Draw what changed: one turn, or without a name all that are in the document. */
  update(changed = null) {
    if (changed && this.#views.has(changed)) {
      // The scroll keeper sees the growth by itself, once a frame.
      this.#views.get(changed).update();
      return;
    }
    const { turns, hasEarlier } = this.#conversation;
    const [from, to] = this.#window(turns);
    const inView = turns.slice(from, to);
    this.#top = inView[0];
    for (const turn of this.#views.keys()) if (!inView.includes(turn)) this.#views.delete(turn);
    const elements = inView.map((turn) => this.#viewOf(turn).element);
    const isWhole = to === turns.length;
    this.#scroll.isAtLatest = isWhole;
    const ways = isWhole ? this.#branches.draw(this.#conversation.waysAt(null)) : null;
    if (ways) this.#branchEnd.append(ways);
    place(this.#root, [from > 0 || hasEarlier ? this.#earlier : null, ...elements, isWhole ? null : this.#later, elements.length ? null : this.#empty, ways && this.#branchEnd]);
    this.#scroll.settle();
    // Observed anew, an edge that is still near is told of again.
    this.#edges.disconnect();
    for (const edge of [this.#isRefused ? null : this.#earlier, this.#later]) if (edge?.isConnected) this.#edges.observe(edge);
  }

  /** The part of the turns that is shown; the ends move only where the reader is not. */
  #window(turns) {
    const last = turns.indexOf(this.#last);
    const to = last < 0 ? turns.length : last + 1;
    if (last < 0) this.#last = null;
    const first = turns.indexOf(this.#first);
    let from = first < 0 ? Math.max(0, to - PAGE_TURNS) : Math.min(first, to);
    if (this.#last === null && this.#scroll.isAtEnd && to - from > MAX_TURNS) from = to - PAGE_TURNS;
    this.#first = to - from < PAGE_TURNS ? null : turns[from];
    return [from, to];
  }

  #viewOf(turn) {
    if (this.#views.has(turn)) this.#views.get(turn).update();
    else this.#views.set(turn, new TurnView(turn, this.#actions));
    return this.#views.get(turn);
  }

  #reached(entries) {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      if (target === this.#earlier) this.#showEarlier();
      else this.#showLater();
    }
  }

  async #showEarlier() {
    const conversation = this.#conversation;
    if (this.#isReading) return;
    const shown = () => conversation.turns.indexOf(this.#top);
    if (shown() < PAGE_TURNS && conversation.hasEarlier) {
      this.#isReading = true;
      const isRead = await this.#actions.loadEarlier(conversation);
      this.#isReading = false;
      if (conversation !== this.#conversation) return;
      this.#isRefused = !isRead;
    }
    const { turns } = conversation;
    const from = Math.max(0, shown() - PAGE_TURNS);
    this.#move(turns[from], from + MAX_TURNS < turns.length && !this.#scroll.isAtEnd ? turns[from + MAX_TURNS - 1] : this.#last);
  }

  #showLater() {
    const { turns } = this.#conversation;
    const to = turns.indexOf(this.#last) + 1 + PAGE_TURNS;
    const from = Math.max(turns.indexOf(this.#top), to - MAX_TURNS);
    this.#move(turns[from], to < turns.length ? turns[to - 1] : null);
  }

  /** Change the window around what the reader sees. */
  #move(first, last) {
    this.#first = first;
    this.#last = last;
    const kept = [...this.#views].filter(([turn]) => this.#isBetween(turn)).map(([, view]) => view.element);
    this.#scroll.keepPlace(kept, () => this.update());
  }

  #isBetween(turn) {
    const { turns } = this.#conversation;
    const index = turns.indexOf(turn);
    return index >= turns.indexOf(this.#first) && (this.#last === null || index <= turns.indexOf(this.#last));
  }
}
