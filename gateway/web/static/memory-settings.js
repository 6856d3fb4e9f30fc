// A conversation's memory settings as the gateway sends them, and a person's changes.

// An app or environment of this name is any, like one that was never set.
const ANY = "default";

/** What a conversation begins with that follows no other one. */
export const USUAL_SETTINGS = Object.freeze({ enabled: true, caseMemory: false, appCode: "", environment: "" });

function labelOf(value) {
  const text = String(value ?? "").trim();
  return text.toLowerCase() === ANY ? "" : text;
}

/** From a conversation of the API, or from a form; an empty app or environment is any. */
export const toSettings = ({ memory, app_code: appCode, environment }) => ({
  enabled: memory?.enabled !== false,
  caseMemory: memory?.case_memory === true,
  appCode: labelOf(appCode),
  environment: labelOf(environment),
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
  return Object.keys(change).length ? change : null;
}
