// Keyboard shortcuts of the page. Each is shown beside its control.

import { byId } from "/static/dom.js";
import { openShortcuts } from "/static/shortcuts-dialog.js";

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

export function startShortcuts(page) {
  byId("new-conversation-keys").textContent = isMac ? "⇧⌘O" : "Ctrl+Shift+O";
  byId("new-conversation").setAttribute("aria-keyshortcuts", isMac ? "Meta+Shift+O" : "Control+Shift+O");
  byId("open-shortcuts").addEventListener("click", openShortcuts);
  document.addEventListener("keydown", (event) => {
    const isCommand = isMac ? event.metaKey : event.ctrlKey;
    let act = null;
    if (isCommand && event.code === "Slash") act = openShortcuts;
    else if (event.altKey && !event.ctrlKey && !event.metaKey && event.code === "KeyA") act = () => page.review();
    else if (isCommand && event.shiftKey && !event.isComposing && !event.repeat) act = { KeyO: () => page.startNew(), KeyF: () => page.find() }[event.code];
    if (!act) return;
    event.preventDefault();
    // The page behind a dialog stays as it is.
    if (!document.querySelector("dialog[open]")) act();
  });
}
