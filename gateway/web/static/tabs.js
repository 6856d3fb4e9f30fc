// The page's other tabs in this browser: each says when something changed, so that none waits for its next look.

const channel = "BroadcastChannel" in window ? new BroadcastChannel("candor") : null;

export const tellOtherTabs = () => channel?.postMessage("changed");

export function onOtherTabs(hear) {
  channel?.addEventListener("message", hear);
}
