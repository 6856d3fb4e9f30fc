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
    lastActivity: raw.last_activity ?? raw.last_activity_at ?? raw.updated_at ?? raw.created_at ?? null,
    queue: listOf(raw.queue).map((item) => ({ turnId: item.turn_id ?? item.id, text: item.text ?? item.message ?? "", position: item.position ?? null })),
  };
}

function toMessage(raw) {
  const result = raw.result ?? (raw.outcome ? raw : null);
  return {
    role: raw.role ?? (result ? "assistant" : "user"),
    turnId: raw.turn_id ?? result?.turn_id,
    text: raw.text ?? raw.message ?? raw.content ?? "",
    createdAt: raw.created_at ?? null,
    state: raw.state ?? (result ? "completed" : null),
    result,
  };
}

export function toApproval(raw) {
  return {
    approvalId: raw.approval_id ?? raw.id,
    ...toCall(raw),
    name: raw.name ?? "",
    summary: raw.summary ?? "",
    expiresAt: raw.expires_at ?? null,
  };
}

export async function listConversations({ q = "", cursor = null, limit = 30, signal } = {}) {
  const query = new URLSearchParams({ limit });
  if (cursor) query.set("cursor", cursor);
  if (q) query.set("q", q);
  const answer = await requestJson(`/conversations?${query}`, { signal });
  return { conversations: listOf(answer, "conversations").map(toConversation), nextCursor: answer?.next_cursor ?? null };
}

export const getConversation = async (conversationId, signal) => toConversation(await requestJson(path("conversations", conversationId), { signal }));

const changeConversation = (conversationId, body) => requestJson(path("conversations", conversationId), { method: "PATCH", body });

export const renameConversation = (conversationId, title) => changeConversation(conversationId, { title });

/** Gives what the conversation may remember now; `change` is a body of `changeBetween`. */
export const changeMemory = async (conversationId, change) => toConversation(await changeConversation(conversationId, change)).settings;

export const deleteConversation = (conversationId) => request(path("conversations", conversationId), { method: "DELETE" });

/** A new conversation; `leaving` is the one that nobody will go on with. */
export async function newConversation(leaving) {
  const answer = await requestJson("/new-conversation", { method: "POST", body: leaving ? { conversation_id: leaving } : {} });
  return answer.conversation_id;
}

/** A new conversation that may remember what `change` says; where that cannot be set, there is none. */
export async function newConversationWith(change) {
  const id = await newConversation(null);
  try {
    return { id, settings: await changeMemory(id, change) };
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

export const takeBackTurn = (conversationId, turnId) => request(path("conversations", conversationId, "queue", turnId), { method: "DELETE" });

export const answerApproval = (approvalId, decision, remember) => requestJson(path("approvals", approvalId), { method: "POST", body: { decision, remember } });

export async function readLog(logFile, signal) {
  const response = await request(path("logs", ...logFile.split("/")), { accept: "*/*", signal });
  return response.text();
}

/** What the gateway says of itself, also while it is not ready. */
export async function readReadiness() {
  const response = await request("/readyz", { anyStatus: true });
  return response.json().catch(() => ({}));
}
