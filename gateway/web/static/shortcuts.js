// Keyboard shortcuts of the page. Each is shown beside its control.

import { byId } from "/static/dom.js";
import { openShortcuts } from "/static/shortcuts-dialog.js";

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

export function startShortcuts(page) {
  byId("new-conversation-keys").textContent = isMac ? "⇧⌘O" : "Ctrl+Shift+O";
  byId("new-conversation").setAttribute("aria-keyshortcuts", isMac ? "Meta+Shift+O" : "Control+Shift+O");
  byId("open-shortcuts").addEventListener("click", openShortcuts);
  document.addEventListener("keydown", (event) => {
    if ((isMac ? event.metaKey : event.ctrlKey) && event.code === "Slash" && !document.querySelector("dialog[open]")) {
      event.preventDefault();
      openShortcuts();
    }
    if (event.altKey && !event.ctrlKey && !event.metaKey && event.code === "KeyA") {
      event.preventDefault();
      page.review();
    }
    const isCommand = isMac ? event.metaKey : event.ctrlKey;
    const act = { KeyO: () => page.startNew(), KeyF: () => page.find() }[event.code];
    if (event.isComposing || event.repeat || !isCommand || !event.shiftKey || !act) return;
    event.preventDefault();
    act();
  });
}
