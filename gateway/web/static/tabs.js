// Notifies the browser's other tabs of changes.

/** A channel to the browser's other tabs; null where there is none, or where the browser forbids it along with storage. */
export function openChannel(name) {
  try {
    return new BroadcastChannel(name);
  } catch {
    return null;
  }
}

const channel = openChannel("candor");

export const tellOtherTabs = () => channel?.postMessage("changed");

export function onOtherTabs(hear) {
  channel?.addEventListener("message", hear);
}
