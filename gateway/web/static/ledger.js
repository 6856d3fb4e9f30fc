// Records which events of which turns were applied. Several streams may carry a turn; each event counts once.

export class Ledger {
  #taken = new Map();
  #closed = new Set();

  /** "new" (and now taken), "seen", or "gap": an earlier event of the turn is missing. */
  take(turnId, number) {
    if (this.#closed.has(turnId)) return "seen";
    const last = this.#taken.get(turnId) ?? 0;
    if (number <= last) return "seen";
    if (number > last + 1) return "gap";
    this.#taken.set(turnId, number);
    return "new";
  }

  /** Take an event although earlier ones are lost for good. */
  takeAfterGap(turnId, number) {
    this.#taken.set(turnId, number);
  }

  /** Nothing more of this turn is wanted: it is complete, or was taken back. */
  close(turnId) {
    this.#closed.add(turnId);
  }

  /** The `Last-Event-ID` from which nothing of the turn is missed; number 0 asks for the turn from its start. */
  resumeAfter(turnId) {
    return `${turnId}:${this.#taken.get(turnId) ?? 0}`;
  }
}

/** `trn_x:12` as its two parts, or null. */
export function parseEventId(id) {
  const colon = id.lastIndexOf(":");
  const number = Number(id.slice(colon + 1));
  return colon > 0 && Number.isInteger(number) ? { turnId: id.slice(0, colon), number } : null;
}
