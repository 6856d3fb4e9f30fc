// The token of the person, shared by the open tabs of this browser and kept nowhere else: the last tab that closes takes it along.

import { forgetAll, keep, ownedBy, recall } from "/static/storage.js";
import { openChannel } from "/static/tabs.js";

const TOKEN_KEY = "token";
const ASK_MS = 300;

const channel = openChannel("candor-session");

// A header carries nothing else, and a request with such a token fails before it is sent.
const SENDABLE = /^[\x21-\x7e]+$/;

export const isSendable = (token) => SENDABLE.test(token);

/** The token kept in this tab; null if there is none that can be sent. */
export function currentToken() {
  const token = recall(TOKEN_KEY);
  return token !== null && isSendable(token) ? token : null;
}

/** Keep a token in this tab, and give it to tabs that wait for one. */
export function signedIn(token) {
  keep(TOKEN_KEY, token);
  channel?.postMessage({ token });
}

/** Load the page anew, at no conversation. */
function startOver() {
  history.replaceState(null, "", location.pathname);
  location.reload();
}

/** Note who is signed in. After another user the page is loaded anew without what that user left, and this never returns. */
export async function signedInAs(user) {
  if (!ownedBy(user, { [TOKEN_KEY]: currentToken() })) return;
  startOver();
  await new Promise(() => {});
}

/** Forget the token in every tab, and what was typed there: the next person may be another user. */
export function signOut() {
  forgetAll();
  channel?.postMessage({ isOut: true });
  startOver();
}

/** Resolves to the first token of another tab that is not `refused`. */
function nextToken(refused, signal) {
  return new Promise((resolve) => {
    channel?.addEventListener("message", ({ data }) => {
      if (data?.token && isSendable(data.token) && data.token !== refused) resolve(data.token);
    }, { signal });
  });
}

/**
 * A token from another tab, else from the person: `ask(isWrong, elsewhere)` shows the panel, which a token
 * from `elsewhere` closes.
 */
export async function findToken(refused, ask) {
  const listening = new AbortController();
  const elsewhere = nextToken(refused, listening.signal);
  channel?.postMessage({ isAsking: true });
  const silence = new Promise((resolve) => { setTimeout(resolve, channel ? ASK_MS : 0, null); });
  try {
    return await Promise.race([elsewhere, silence]) ?? await ask(Boolean(refused), elsewhere);
  } finally {
    listening.abort();
  }
}

channel?.addEventListener("message", ({ data }) => {
  const token = currentToken();
  if (data?.isAsking && token) channel.postMessage({ token });
  if (data?.isOut) {
    forgetAll();
    startOver();
  }
});
