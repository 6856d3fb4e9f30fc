// Starts the page.

import { onTokenNeeded } from "/static/api.js";
import { showDemoBanner } from "/static/banner.js";
import { watchConnection } from "/static/connection.js";
import { byId } from "/static/dom.js";
import { applyWords } from "/static/i18n.js";
import { drawIcons } from "/static/icons.js";
import { Page } from "/static/page.js";
import { applyLooks } from "/static/preferences.js";
import { readReadiness, readSession } from "/static/routes.js";
import { signedInAs } from "/static/session.js";
import { startShortcuts } from "/static/shortcuts.js";
import { askForToken } from "/static/sign-in.js";
import { showHidden } from "/static/visible.js";
import { showSandbox } from "/static/sandbox-badge.js";

async function showReadiness() {
  const readiness = await readReadiness().catch(() => ({}));
  byId("version").textContent = readiness.version ?? "";
  const model = showHidden(readiness.model ?? "");
  page.showServer({ model: readiness.model ?? "", isDemo: readiness.demo === true, checksAnswers: readiness.checks_answers === true });
  showSandbox(byId("wall"), readiness.parts?.sandbox?.kind, () => page.conversationId, readiness.parts?.sandbox?.shell);
  byId("open-schedules").hidden = readiness.runs_schedules !== true;
  if (readiness.demo) showDemoBanner(byId("banner"), model);
}

/** Another tab may have changed who is signed in. */
async function noteUser() {
  const { user } = await readSession().catch(() => ({}));
  if (user) await signedInAs(user);
}

applyLooks();
applyWords();
drawIcons();
onTokenNeeded(askForToken);
const page = new Page();
page.start();
startShortcuts(page);
byId("open-settings").addEventListener("click", async () => (await import("/static/settings-dialog.js")).openSettings(() => page.preferencesChanged()));
watchConnection(byId("offline"), () => {
  page.refresh();
  showReadiness();
  noteUser();
});
byId("open-operations").addEventListener("click", async () => (await import("/static/operations-panel.js")).openOperations());
byId("open-schedules").addEventListener("click", async () => (await import("/static/schedules-panel.js")).openSchedules({ here: page.here, changed: () => page.refresh() }));
byId("open-memory").addEventListener("click", async () => (await import("/static/memory-panel.js")).openMemoryPanel());
showReadiness();
noteUser();
document.addEventListener("visibilitychange", () => { if (!document.hidden) noteUser(); });
