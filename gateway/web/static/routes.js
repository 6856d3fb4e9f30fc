// The gateway's routes, with answers in the form that the page uses.

import { request, requestJson } from "/static/api.js";
import { toSettings } from "/static/memory-settings.js";
import { toCall } from "/static/turn.js";

const path = (...parts) => `/${parts.map(encodeURIComponent).join("/")}`;

const listOf = (answer, ...names) => {
  if (Array.isArray(answer)) return answer;
  const name = ["items", ...names].find((candidate) => Array.isArray(answer?.[candidate]));
  return name ? answer[name] : [];
};

function toConversation(raw) {
  return {
    id: raw.conversation_id ?? raw.id,
    title: raw.title || "",
    state: raw.state ?? "idle",
    turnCount: Number(raw.turns ?? raw.turn_count ?? 0),
    settings: toSettings(raw),
    lineId: raw.root_id ?? raw.id,
    isPinned: raw.pinned === true,
    isBare: !raw.title && Number(raw.turns ?? 0) === 0 && (raw.state ?? "idle") === "idle",
    match: raw.match ? { turnId: raw.match.turn_id, before: raw.match.before, text: raw.match.text, after: raw.match.after } : null,
    lastActivity: raw.last_activity ?? raw.last_activity_at ?? raw.updated_at ?? raw.created_at ?? null,
    queue: listOf(raw.queue).map((item) => ({ turnId: item.turn_id ?? item.id, text: item.text ?? item.message ?? "" })),
  };
}

function toMessage(raw) {
  const result = raw.result ?? (raw.outcome ? raw : null);
  return {
    role: raw.role ?? (result ? "assistant" : "user"),
    turnId: raw.turn_id ?? result?.turn_id,
    text: raw.text ?? raw.message ?? raw.content ?? "",
    createdAt: raw.created_at ?? null,
    schedule: raw.schedule ?? null,
    state: raw.state ?? (result ? "completed" : null),
    result,
  };
}

/** The list has what would run as the person is to see it; events are kept, and have it masked. */
export function toApproval(raw, isListed = false) {
  return {
    isListed,
    isUnlisted: raw.unlisted ?? false,
    why: raw.why ?? "",
    touches: raw.touches ?? null,
    approvalId: raw.approval_id ?? raw.id,
    ...toCall(raw),
    name: raw.name ?? "",
    summary: raw.summary ?? "",
    conversationId: raw.conversation_id ?? null,
    turnId: raw.turn_id ?? null,
    input: raw.input ?? null,
    inputChars: raw.input_chars ?? 0,
    isTruncated: raw.truncated === true,
    hidden: listOf(raw.hidden),
    permits: listOf(raw.permits),
    state: raw.state ?? "pending",
    canExtend: raw.state === "pending",
    reason: raw.reason ?? "",
    expiresAt: raw.expires_at ?? null,
  };
}

export async function listConversations({ q = "", cursor = null, limit = 30, isPinned = false, signal } = {}) {
  const query = new URLSearchParams({ limit });
  if (isPinned) query.set("pinned", "1");
  if (cursor) query.set("cursor", cursor);
  if (q) query.set("q", q);
  const answer = await requestJson(`/conversations?${query}`, { signal });
  return { conversations: listOf(answer, "conversations").map(toConversation), nextCursor: answer?.next_cursor ?? null };
}

export const getConversation = async (conversationId, signal) => toConversation(await requestJson(path("conversations", conversationId), { signal }));

const changeConversation = (conversationId, body) => requestJson(path("conversations", conversationId), { method: "PATCH", body });

export const pinConversation = (conversationId, pinned) => changeConversation(conversationId, { pinned });

export const renameConversation = (conversationId, title) => changeConversation(conversationId, { title });

/** Gives the conversation's settings then; `change` is a body of `changeBetween`. */
export const changeSettings = async (conversationId, change) => toConversation(await changeConversation(conversationId, change)).settings;

export const deleteConversation = (conversationId) => request(path("conversations", conversationId), { method: "DELETE" });

/** A new conversation; `leaving` is the one that nobody will go on with. */
export async function newConversation(leaving) {
  const answer = await requestJson("/new-conversation", { method: "POST", body: leaving ? { conversation_id: leaving } : {} });
  return answer.conversation_id;
}

/** A new conversation after `leaving`, changed by `change`, either of them null for none; where it cannot be changed, there is none. */
export async function newConversationWith(leaving, change) {
  const id = await newConversation(leaving);
  try {
    if (change) await changeConversation(id, change);
    return id;
  } catch (error) {
    deleteConversation(id).catch(() => {});
    throw error;
  }
}

// Two messages a turn: what was asked, and what came of it.
const PAGE_MESSAGES = 80;

/** The latest messages in order, or those before a place; `earlier` is the place to go on from, null at the beginning. */
export async function listMessages(conversationId, { before = null, signal } = {}) {
  const query = new URLSearchParams({ limit: PAGE_MESSAGES });
  if (before) query.set("before", before);
  const answer = await requestJson(`${path("conversations", conversationId, "messages")}?${query}`, { signal });
  return { messages: listOf(answer, "messages").map(toMessage), earlier: answer?.next_before ?? null };
}

/** Where the conversation holds a text, the latest turn first: `{turn_id, before, text, after}`. */
export async function findInConversation(conversationId, q, signal) {
  const answer = await requestJson(`${path("conversations", conversationId, "matches")}?${new URLSearchParams({ q, limit: 100 })}`, { signal });
  return listOf(answer, "matches");
}

/** What the conversation's own turns have used. */
export async function readUsage(conversationId, signal) {
  const raw = await requestJson(path("conversations", conversationId, "usage"), { signal });
  return { turns: raw.turns, read: raw.input_tokens + raw.cached_tokens, written: raw.output_tokens, cost_usd: raw.cost_usd };
}

/** The whole conversation as text; `format`: markdown or jsonl. */
export async function exportConversation(conversationId, format) {
  const response = await request(`${path("conversations", conversationId, "export")}?format=${format}`, { accept: "*/*" });
  return response.text();
}

/** The other branches of a conversation's line, oldest first. */
export async function listBranches(conversationId, signal) {
  const answer = await requestJson(path("conversations", conversationId, "branches"), { signal });
  return listOf(answer, "branches").map((raw) => ({ afterTurnId: raw.after_turn_id, conversationId: raw.conversation_id, turnId: raw.turn_id, createdAt: raw.created_at }));
}

/** A branch that goes on after a turn, or with `before` as if that turn had never been. */
export async function forkConversation(conversationId, turnId, { before }) {
  const answer = await requestJson(path("conversations", conversationId, "fork"), { method: "POST", body: { turn_id: turnId, before } });
  return answer.conversation_id;
}

/** Start a turn; the response's body is its event stream. The same key never starts a second one. */
export function startTurn({ message, conversationId, idempotencyKey, signal }) {
  const body = { message, when_busy: "enqueue", idempotency_key: idempotencyKey };
  if (conversationId) body.conversation_id = conversationId;
  return request("/chat/stream", { method: "POST", body, accept: "text/event-stream", signal });
}

/** Every event of the conversation after `lastEventId` (null: from the first), then the live ones. */
export function followEvents(conversationId, lastEventId, signal) {
  const headers = lastEventId ? { "Last-Event-ID": lastEventId } : {};
  return request(path("conversations", conversationId, "events"), { accept: "text/event-stream", headers, signal });
}

export const interruptConversation = (conversationId) => requestJson(path("conversations", conversationId, "interrupt"), { method: "POST" });

/** A call's input, output and what the gate replaced in its input. */
export const readToolCall = (conversationId, turnId, index, isWhole) => requestJson(path("conversations", conversationId, "turns", turnId, "tools", index) + (isWhole ? "?whole=1" : ""));

export const takeBackTurn = (conversationId, turnId) => request(path("conversations", conversationId, "queue", turnId), { method: "DELETE" });

/** What waits for the person in all conversations; `asks`: whether this gateway asks at all. */
export async function listApprovals() {
  const answer = await requestJson("/approvals");
  return { approvals: listOf(answer, "approvals").map((raw) => toApproval(raw, true)), asks: answer?.asks !== false };
}

/** `reply`: `decision`, and optionally `message`, `remember`, `reach` and `answers`. */
export const answerApproval = (approvalId, reply) => requestJson(path("approvals", approvalId), { method: "POST", body: reply });

/** Give the person more time for it. */
export const extendApproval = (approvalId) => requestJson(path("approvals", approvalId, "extend"), { method: "POST" });

/** The whole input of a call that waits. */
export async function readApprovalInput(approvalId) {
  const response = await request(path("approvals", approvalId, "input"), { accept: "*/*" });
  return response.text();
}

/** The rules under which calls of the conversation pass unasked. */
export async function listPermissions(conversationId) {
  return listOf(await requestJson(path("conversations", conversationId, "permissions")), "permissions");
}

export const withdrawPermission = (conversationId, approvalId) => request(path("conversations", conversationId, "permissions", approvalId), { method: "DELETE" });

export async function readLog(logFile, signal) {
  const response = await request(path("logs", ...logFile.split("/")), { accept: "*/*", signal });
  return response.text();
}

let shown = null;

/** The conversation whose files are meant from now on: it may have a work tree of its own. */
export const showFilesOf = (conversation) => { shown = conversation; };

const treeOf = (conversationId, query) => new URLSearchParams(conversationId ? { ...query, conversation_id: conversationId } : query);
const inTree = (query) => treeOf(shown?.id, query);
const readFolder = async (query) => listOf(await requestJson(`/workspace?${inTree(query)}`), "entries");

/** The entries of a folder of the workspace, folders first; the empty path is the workspace. */
export const listFolder = (folder) => readFolder({ path: folder });

/** The readable files whose paths hold all words, the closest first. */
export const findFiles = (words, limit) => readFolder({ q: words, limit });

/** Store a file in the workspace of a conversation, null for a new one; gives `{path, name, size_bytes}`. */
export async function uploadFile(file, conversationId, signal) {
  const form = new FormData();
  form.append("files", file, file.name || "file");
  const answer = await requestJson(`/workspace/files?${treeOf(conversationId, {})}`, { method: "POST", body: form, signal });
  return listOf(answer, "files")[0];
}

/** The files that a turn changed, and whether that is all. */
export const listFileChanges = (conversationId, turnId) => requestJson(path("conversations", conversationId, "turns", turnId, "changes"));

export const fileAddress = (file) => `/workspace/file?${inTree({ path: file })}`;

export const readWorkspaceFile = (file, signal) => request(fileAddress(file), { accept: "*/*", signal });

/** The user whose requests these are: `{user, role, signed_in_by}`. */
export const readSession = () => requestJson("/session");

/** What the gateway says of itself, also while it is not ready. */
export async function readReadiness() {
  const response = await request("/readyz", { anyStatus: true });
  return response.json().catch(() => ({}));
}

/** Forgets an item of memory; one that is gone already is forgotten, too. */
export async function forgetItem(itemId) {
  try {
    await request(path("memory", "items", itemId), { method: "DELETE" });
  } catch (error) {
    if (error.status !== 404) throw error;
  }
}
