// The browser's notifications, where the person switched them on here and in the browser.

import { preferences } from "/static/preferences.js";

const isPossible = "Notification" in window;

/** Ask the browser for the permission; resolves to whether there is one. */
export async function allowNotifications() {
  if (!isPossible) return false;
  return (await Notification.requestPermission()) === "granted";
}

/** Tell a person who looks elsewhere. `tag` keeps two tabs from telling the same twice. */
export function notify(title, body, tag, onClick) {
  if (!isPossible || !preferences.notifications || Notification.permission !== "granted" || document.hasFocus()) return;
  const notification = new Notification(title, { body, tag });
  notification.addEventListener("click", () => {
    window.focus();
    notification.close();
    onClick();
  });
}
