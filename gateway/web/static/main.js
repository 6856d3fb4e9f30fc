// Starts the page.

import { onTokenNeeded } from "/static/api.js";
import { showDemoBanner } from "/static/banner.js";
import { byId } from "/static/dom.js";
import { applyWords, t } from "/static/i18n.js";
import { drawIcons } from "/static/icons.js";
import { Page } from "/static/page.js";
import { readReadiness } from "/static/routes.js";
import { startShortcuts } from "/static/shortcuts.js";
import { askForToken } from "/static/sign-in.js";
import { showHidden } from "/static/visible.js";
import { showSandbox } from "/static/sandbox-badge.js";

async function showReadiness() {
  const readiness = await readReadiness().catch(() => ({}));
  byId("version").textContent = readiness.version ?? "";
  const model = showHidden(readiness.model ?? "");
  const words = [model, readiness.demo ? t("demo_short") : ""].filter(Boolean).join(" · ");
  byId("model").textContent = words;
  byId("model").hidden = !words;
  showSandbox(byId("wall"), readiness.parts?.sandbox?.kind);
  if (readiness.demo) showDemoBanner(byId("banner"), model);
}

applyWords();
drawIcons();
onTokenNeeded(askForToken);
const page = new Page();
page.start();
startShortcuts(page);
showReadiness();
