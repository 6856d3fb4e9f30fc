// Keyboard shortcuts of the page. Each is shown beside its control.

import { byId } from "/static/dom.js";

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

export function startShortcuts(page) {
  byId("new-conversation-keys").textContent = isMac ? "⇧⌘O" : "Ctrl+Shift+O";
  byId("new-conversation").setAttribute("aria-keyshortcuts", isMac ? "Meta+Shift+O" : "Control+Shift+O");
  document.addEventListener("keydown", (event) => {
    const isCommand = isMac ? event.metaKey : event.ctrlKey;
    if (event.isComposing || event.repeat || !isCommand || !event.shiftKey || event.code !== "KeyO") return;
    event.preventDefault();
    page.startNew();
  });
}
