// The turns of one conversation, from stored messages and events; no network here.

import { Ledger, parseEventId } from "/static/ledger.js";
import { applyEvent, completeTurn, isActive, isUnfinished, newTurn } from "/static/turn.js";

// A gap that the gateway cannot fill is taken as lost after this many tries.
const MAX_GAP_TRIES = 3;
const WITHDRAWN = new Set(["taken_back", "withdrawn", "cancelled", "canceled", "removed"]);

export function parseData(event) {
  try {
    return JSON.parse(event.data);
  } catch {
    return null;
  }
}

export class TurnStore {
  /** In order; the array itself stays the same for those who draw it. */
  turns = [];
  #ledger = new Ledger();
  #gapTries = 0;
  /** The turn of which events are missing, perhaps one that is not known yet. */
  #gapTurnId = null;
  #withdrawn = new Set();

  get isBusy() {
    return this.turns.some(isUnfinished);
  }

  get activeTurn() {
    return this.turns.find(isActive) ?? null;
  }

  /** Where to go on: the turn with a gap, else the oldest unfinished turn, so that nothing of it is missed; later turns follow it. */
  get position() {
    if (this.#gapTurnId) return this.#ledger.resumeAfter(this.#gapTurnId);
    const turn = this.turns.find((candidate) => candidate.turnId && isUnfinished(candidate));
    return turn ? this.#ledger.resumeAfter(turn.turnId) : null;
  }

  /** The last event of a turn that was read. */
  lastOf(turn) {
    return this.#ledger.resumeAfter(turn.turnId);
  }

  find(turnId) {
    return turnId ? this.turns.find((turn) => turn.turnId === turnId) : undefined;
  }

  #findOrAdd(turnId, state) {
    if (!this.find(turnId)) this.turns.push(newTurn({ turnId, state }));
    return this.find(turnId);
  }

  /** An answer that was on its way when the turn was withdrawn does not bring it back. */
  drop(turn) {
    if (!this.turns.includes(turn)) return;
    if (turn.turnId) {
      this.#ledger.close(turn.turnId);
      this.#withdrawn.add(turn.turnId);
    }
    this.turns.splice(this.turns.indexOf(turn), 1);
    this.#numberQueued();
  }

  /** What the gateway told of their places holds only until one before them starts or is taken back. */
  #numberQueued() {
    this.turns.filter((turn) => turn.state === "queued").forEach((turn, index) => { turn.position = index + 1; });
  }

  /** The gateway gave a sent message its turn. */
  bind(turn, turnId) {
    const { text, createdAt } = turn;
    // The stream of events may have told of this turn before the answer to its message did.
    const twin = this.find(turnId);
    if (twin) this.turns.splice(this.turns.indexOf(twin), 1);
    Object.assign(turn, twin ?? { state: "running" }, { turnId, text, createdAt });
  }

  // -- events -----------------------------------------------------------------------------------

  /** "seen", "gap" (an event before this one is missing: go on from `position`), or what changed: `{turn, isNew, data}`. */
  take(event) {
    const place = parseEventId(event.id);
    const data = parseData(event);
    if (!place || !data) return "seen";
    const verdict = this.#ledger.take(place.turnId, place.number);
    if (verdict === "seen") return "seen";
    if (verdict === "gap" && this.#gapTries < MAX_GAP_TRIES) {
      this.#gapTries += 1;
      this.#gapTurnId = place.turnId;
      return "gap";
    }
    if (verdict === "gap") this.#ledger.takeAfterGap(place.turnId, place.number);
    this.#gapTries = 0;
    this.#gapTurnId = null;
    const isNew = !this.find(place.turnId);
    const turn = this.#findOrAdd(place.turnId, "running");
    applyEvent(turn, event.type, data);
    if (!isUnfinished(turn)) this.#ledger.close(turn.turnId);
    this.#numberQueued();
    return { turn, isNew, data };
  }

  // -- what is stored ---------------------------------------------------------------------------

  /** The latest messages, and what else the gateway says of the conversation now. */
  merge(messages, summary) {
    const known = [...this.turns];
    this.#gapTurnId = null;
    for (const message of messages) this.#mergeMessage(message);
    for (const item of summary.queue) this.#mergeQueued(item);
    this.#order(messages, known);
    this.#numberQueued();
    if (summary.state === "stopping" && this.activeTurn) this.activeTurn.state = "stopping";
  }

  /** Messages before all that are known. */
  mergeEarlier(messages) {
    const known = [...this.turns];
    for (const message of messages) this.#mergeMessage(message);
    const fresh = this.turns.filter((turn) => !known.includes(turn));
    this.turns.splice(0, this.turns.length, ...fresh, ...known);
  }

  #mergeMessage(message) {
    if (this.#withdrawn.has(message.turnId)) return;
    if (WITHDRAWN.has(message.state)) {
      this.drop(this.find(message.turnId));
      return;
    }
    const turn = this.#findOrAdd(message.turnId, message.state === "queued" ? "queued" : "running");
    if (message.role === "user") {
      turn.text = message.text;
      turn.createdAt = message.createdAt;
      turn.schedule = message.schedule;
    }
    if (!isUnfinished(turn)) {
      // What was found out about a reply afterwards is added to its notices.
      if (message.result && turn.result.notices?.length !== message.result.notices?.length) turn.result = message.result;
      return;
    }
    if (message.result) {
      completeTurn(turn, message.result);
      this.#ledger.close(turn.turnId);
    } else if (message.state === "queued" && turn.segments.length === 0) {
      turn.state = "queued";
    }
  }

  #mergeQueued(item) {
    if (this.#withdrawn.has(item.turnId)) return;
    const turn = this.#findOrAdd(item.turnId, "queued");
    if (!isUnfinished(turn) || turn.segments.length) return;
    Object.assign(turn, { state: "queued", text: turn.text ?? item.text });
  }

  /** Stored turns in their order; before them what was known to be earlier, after them what is not stored yet. */
  #order(messages, known) {
    const ranks = new Map();
    for (const message of messages) if (!ranks.has(message.turnId)) ranks.set(message.turnId, ranks.size);
    const isStored = (turn) => ranks.has(turn.turnId);
    const stored = this.turns.filter(isStored).sort((one, other) => ranks.get(one.turnId) - ranks.get(other.turnId));
    const firstStored = known.findIndex(isStored);
    const earlier = known.slice(0, Math.max(0, firstStored)).filter((turn) => this.turns.includes(turn));
    const later = this.turns.filter((turn) => !isStored(turn) && !earlier.includes(turn));
    this.turns.splice(0, this.turns.length, ...earlier, ...stored, ...later);
  }
}
