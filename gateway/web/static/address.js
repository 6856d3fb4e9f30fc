// Keeps the open conversation in the page's address, so that reload, back, forward and bookmarks find it.

const SHAPE = /^#\/c\/([\w-]+)$/;

export const conversationInAddress = () => SHAPE.exec(location.hash)?.[1] ?? null;

export function setAddress(conversationId, { replace = false } = {}) {
  if (conversationInAddress() === conversationId) return;
  const address = conversationId ? `#/c/${conversationId}` : location.pathname;
  history[replace ? "replaceState" : "pushState"](null, "", address);
}
