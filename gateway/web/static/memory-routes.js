// The gateway's routes about memory and cases, with answers as the gateway sends them.

import { request, requestJson } from "/static/api.js";

const path = (...parts) => `/memory/${parts.map(encodeURIComponent).join("/")}`;

const withQuery = (address, values) => {
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value));
  return query.size ? `${address}?${query}` : address;
};

// What the gateway lists at once.
const MAX_ITEMS = 200;

/** A page of items, latest first: `{items, next_cursor}`. */
export const listItems = ({ kind = "", q = "", cursor = "", signal }) => requestJson(withQuery("/memory/items", { kind, q, cursor, limit: 30 }), { signal });

/** A test for facts, by one request for the latest ones: whether a fact of an id is known to be gone. */
export async function findGoneFacts() {
  const { items, next_cursor: next } = await requestJson(withQuery("/memory/items", { kind: "fact", limit: MAX_ITEMS }));
  const ids = new Set(items.map(({ id }) => id));
  // Of one that is not among them nothing is known where there are more.
  return (id) => !next && !ids.has(id);
}

export const readItem = (itemId, signal) => requestJson(path("items", itemId), { signal });

export const changeFact = (itemId, change) => requestJson(path("items", itemId), { method: "PATCH", body: change });

/** Keep a statement; `earlier` are those that it superseded, as a turn result has them. */
export const writeFact = (text, { projectId = null, lasting = false, earlier = [], replaces = [] } = {}) =>
  requestJson("/memory/facts", { method: "POST", body: { text, project_id: projectId, lasting, earlier, replaces } });

export const readProfile = () => requestJson("/memory/profile");

export const writeProfile = (text) => requestJson("/memory/profile", { method: "PUT", body: { text } });

export const exportMemory = async () => (await request("/memory/export", { accept: "*/*" })).text();

// The gateway takes 1 MiB in one body, and JSON escapes some characters.
const IMPORT_CHARS = 300_000;

/** Import exported lines, some at a time; gives how many went which way. */
export async function importMemory(text) {
  const counts = {};
  let lines = [];
  let size = 0;
  const send = async () => {
    const answer = await requestJson("/memory/import", { method: "POST", body: { lines } });
    for (const [name, count] of Object.entries(answer)) counts[name] = (counts[name] ?? 0) + count;
    lines = [];
    size = 0;
  };
  for (const line of text.split("\n").filter((candidate) => candidate.trim())) {
    if (size && size + line.length > IMPORT_CHARS) await send();
    lines.push(line);
    size += line.length;
  }
  if (lines.length) await send();
  return counts;
}

export const searchCases = (q, signal) => requestJson(withQuery("/memory/cases/search", { q, limit: 10 }), { signal });

export const readCase = (caseId) => requestJson(path("cases", caseId));

export const judgeCase = (caseId, vote) => requestJson(`${path("cases", caseId)}/feedback`, { method: "POST", body: vote });

/** Merge another case into this one; the other is forgotten. Gives the case afterwards. */
