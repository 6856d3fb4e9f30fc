// The tab's own storage, which belongs to one user. If the browser forbids storage, it lasts only as long as the page.

const PREFIX = "candor.";
const OWNER_KEY = "owner";
// Once everything is forgotten the page is loaded anew; what it still holds must not be stored for the next user.
let isClosed = false;
const unstored = new Map();

export function recall(key) {
  try {
    return sessionStorage.getItem(PREFIX + key);
  } catch {
    return unstored.get(key) ?? null;
  }
}

export function keep(key, text) {
  if (isClosed) return;
  try {
    if (text) sessionStorage.setItem(PREFIX + key, text);
    else sessionStorage.removeItem(PREFIX + key);
  } catch {
    unstored.set(key, text || null);
  }
}

/** The user whose storage this is; null until the gateway has named one. */
export const owner = () => recall(OWNER_KEY);

function removeAll() {
  try {
    for (const key of Object.keys(sessionStorage)) if (key.startsWith(PREFIX)) sessionStorage.removeItem(key);
  } catch {
    unstored.clear();
  }
}

/** Forget everything, and store nothing more until the page is loaded anew. */
export function forgetAll() {
  removeAll();
  isClosed = true;
}

/** Give the storage to a user, with the values of `kept`. True if it was another user's, whose values are forgotten; the page must be loaded anew then. */
export function ownedBy(user, kept) {
  const isOther = owner() !== null && owner() !== user;
  if (isOther) {
    removeAll();
    for (const [key, text] of Object.entries(kept)) keep(key, text);
  }
  keep(OWNER_KEY, user);
  isClosed ||= isOther;
  return isOther;
}
