// A conversation's settings as the gateway sends them, and a person's changes.

// An app or environment of this name is any, like one that was never set.
const ANY = "default";

/** What a conversation begins with that follows no other one. */
export const USUAL_SETTINGS = Object.freeze({ enabled: true, caseMemory: false, appCode: "", environment: "", model: "", projectId: "" });

function labelOf(value) {
  const text = String(value ?? "").trim();
  return text.toLowerCase() === ANY ? "" : text;
}

/** From a conversation of the API, or from a form; an empty app or environment is any. */
export const toSettings = ({ memory, app_code: appCode, environment, model, project_id: projectId }) => ({
  enabled: memory?.enabled !== false,
  caseMemory: memory?.case_memory === true,
  appCode: labelOf(appCode),
  environment: labelOf(environment),
  model: String(model ?? "").trim(),
  projectId: String(projectId ?? "").trim(),
});

/** The settings after a change as `changeBetween` gives it. */
export const changedBy = (settings, { memory, ...labels }) => toSettings({
  memory: { enabled: settings.enabled, case_memory: settings.caseMemory, ...memory },
  app_code: settings.appCode, environment: settings.environment, model: settings.model, project_id: settings.projectId, ...labels,
});

/** The request body that turns one into the other: only what differs, null where nothing does. */
export function changeBetween(before, after) {
  const memory = {};
  if (after.enabled !== before.enabled) memory.enabled = after.enabled;
  if (after.caseMemory !== before.caseMemory) memory.case_memory = after.caseMemory;
  const change = {};
  if (Object.keys(memory).length) change.memory = memory;
  if (after.appCode !== before.appCode) change.app_code = after.appCode || ANY;
  if (after.environment !== before.environment) change.environment = after.environment || ANY;
  if (after.model !== before.model) change.model = after.model || null;
  if (after.projectId !== before.projectId) change.project_id = after.projectId || null;
  return Object.keys(change).length ? change : null;
}
