// Follows a conversation's events across dropped connections while the caller waits for a turn.

import { ApiError } from "/static/api.js";
import { followEvents } from "/static/routes.js";
import { readEvents } from "/static/sse.js";

const BACKOFF_MS = [300, 800, 2000, 4000, 8000, 15_000];

/** Wait, but no longer than until the browser is online again or the caller gives up. */
export function pause(delay_ms, signal) {
  return new Promise((resolve, reject) => {
    const finish = () => {
      clearTimeout(timer);
      window.removeEventListener("online", finish);
      signal?.removeEventListener("abort", giveUp);
      resolve();
    };
    const giveUp = () => {
      finish();
      reject(signal.reason);
    };
    const timer = setTimeout(finish, delay_ms);
    window.addEventListener("online", finish);
    signal?.addEventListener("abort", giveUp);
  });
}

export const backoff = (failures) => {
  const base_ms = BACKOFF_MS[Math.min(failures, BACKOFF_MS.length) - 1] ?? 0;
  return base_ms * (0.75 + Math.random() / 2);
};

const isFinal = (error) => error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429;

/** The events after a place; `<turn>:0` is the place before a turn's first event. */
async function* eventsAfter(place, conversationId, signal, connected) {
  const response = await followEvents(conversationId, place, signal);
  connected(true);
  yield* readEvents(response);
}

/** Call `changed` each time the gateway says that a stored result has changed, while it answers. */
export async function followChanges({ conversationId, place, changed, signal }) {
  for await (const event of eventsAfter(place, conversationId, signal, () => {})) {
    if (event.type === "conversation.changed") changed();
  }
}

/**
 * `position()` names the event after which to go on, null when no turn is left to wait for.
 * `take(event)` is true when the event was new, seen or not needed, false when one before it is missing.
 * `connected(isConnected)` hears of each change. Throws only what no waiting can mend.
 */
export async function follow({ conversationId, position, take, connected, signal }) {
  let failures = 0;
  while (position() !== null) {
    let hasGap = false;
    try {
      for await (const event of eventsAfter(position(), conversationId, signal, connected)) {
        hasGap = !take(event);
        if (hasGap) break;
        failures = 0;
        if (position() === null) return;
      }
    } catch (failure) {
      if (signal.aborted) return;
      if (isFinal(failure)) throw failure;
    }
    failures += 1;
    // One quick second attempt is the ordinary case and not worth a word.
    if (failures > 1) connected(false);
    try {
      // What is missing is stored: it can be read at once.
      await pause(hasGap && failures === 1 ? 0 : backoff(failures), signal);
    } catch {
      return;
    }
  }
}
