// What this tab keeps for itself. A browser that forbids storage loses the convenience, never the page.

const PREFIX = "candor.";

export function recall(key) {
  try {
    return sessionStorage.getItem(PREFIX + key);
  } catch {
    return null;
  }
}

export function keep(key, text) {
  try {
    if (text) sessionStorage.setItem(PREFIX + key, text);
    else sessionStorage.removeItem(PREFIX + key);
  } catch {
    // Full or forbidden: the text is still in the page.
  }
}
