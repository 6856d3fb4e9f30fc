// Prompts that the person keeps for later, in this browser.

const KEY = "candor.prompts";
const MAX_PROMPTS = 100;

/** The texts, the latest first. */
export function savedPrompts() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept.filter((text) => typeof text === "string") : [];
  } catch {
    return [];
  }
}

function keep(texts) {
  try {
    localStorage.setItem(KEY, JSON.stringify(texts.slice(0, MAX_PROMPTS)));
    return true;
  } catch {
    return false;
  }
}

/** False where the browser keeps nothing. */
export const savePrompt = (text) => keep([text, ...savedPrompts().filter((other) => other !== text)]);

export const dropPrompt = (text) => keep(savedPrompts().filter((other) => other !== text));
