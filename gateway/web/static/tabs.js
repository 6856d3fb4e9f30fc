// Notifies the browser's other tabs of changes.

const channel = "BroadcastChannel" in window ? new BroadcastChannel("candor") : null;

export const tellOtherTabs = () => channel?.postMessage("changed");

export function onOtherTabs(hear) {
  channel?.addEventListener("message", hear);
}
