// Notices when the gateway cannot be reached, says so in a banner, tries again by itself, and goes away.

import { onUnreachable } from "/static/api.js";
import { el, setText } from "/static/dom.js";
import { backoff, pause } from "/static/follow.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";

async function answers() {
  try {
    return (await fetch("./healthz", { cache: "no-store", redirect: "error" })).ok;
  } catch {
    return false;
  }
}

let isAway = false;

/** False while the banner says that the gateway cannot be reached. */
export const isReachable = () => !isAway;

/** `reconnected()` is called when the gateway answers again after the banner was shown. */
export function watchConnection(slot, reconnected) {
  let isTrying = false;
  let retryNow = new AbortController();
  const words = el("span", { class: "banner-words" });
  const again = el("button", { class: "button small", type: "button", "data-testid": "offline-retry", onclick: () => retryNow.abort() }, t("try_now"));
  const banner = el("div", { class: "banner is-offline", "data-testid": "offline" }, icon("alert"), words, again);

  async function tryUntilItAnswers() {
    // A request may fail where the gateway itself is well: only one that does not answer at all is away.
    for (let failures = 1; !(await answers()); failures += 1) {
      setText(words, t("offline"));
      if (!banner.isConnected) slot.replaceChildren(banner);
      isAway = true;
      retryNow = new AbortController();
      await pause(backoff(failures), retryNow.signal).catch(() => {});
    }
    if (!isAway) return;
    isAway = false;
    banner.remove();
    // What was said of it is no longer so, and whoever waits to try again need not wait longer.
    for (const line of document.querySelectorAll('.error-line[data-code="network"]')) line.remove();
    window.dispatchEvent(new Event("online"));
    reconnected();
  }

  onUnreachable(() => {
    if (isTrying) return;
    isTrying = true;
    tryUntilItAnswers().finally(() => { isTrying = false; });
  });
}
