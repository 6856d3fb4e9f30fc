// The tab's own storage. If the browser forbids storage, only the convenience is lost.

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
