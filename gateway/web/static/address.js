// Keeps the open conversation in the page's address, so that reload, back, forward and bookmarks find it.

const SHAPE = /^#\/c\/([\w-]+)(?:\/([\w-]+))?$/;

export const conversationInAddress = () => SHAPE.exec(location.hash)?.[1] ?? null;

/** The turn that the address points at, or null. */
export const turnInAddress = () => SHAPE.exec(location.hash)?.[2] ?? null;

/** The address of a conversation, or of one of its turns, for a link; null for what is no id. */
export function addressOf(id, turnId = null) {
  const address = ["#/c", id, turnId].filter(Boolean).join("/");
  return id && SHAPE.test(address) ? address : null;
}

export function setAddress(conversationId, { replace = false } = {}) {
  if (conversationInAddress() === conversationId) return;
  const address = addressOf(conversationId) ?? location.pathname;
  history[replace ? "replaceState" : "pushState"](null, "", address);
}
