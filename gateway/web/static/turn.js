// One turn as plain data, and how each event changes it.

/**
 * `state`: sending, queued, running, stopping, completed.
 * `segments`: what happened, in order: `{kind: text|thinking|tool|approval|notice, …}`.
 */
export function newTurn({ turnId = null, text = null, createdAt = null, state = "sending" }) {
  return {
    turnId, text, createdAt, state,
    position: null, model: null, logFile: null, memory: null,
    segments: [], result: null, takingBack: false,
  };
}

export const isUnfinished = (turn) => turn.state !== "completed";
export const isActive = (turn) => turn.state === "running" || turn.state === "stopping";

function addText(turn, kind, text) {
  const last = turn.segments.at(-1);
  if (last?.kind === kind) last.text += text;
  else turn.segments.push({ kind, text });
}

/** What identifies a call: its number in the turn. Events of version 1.0 have only the model's id, which may repeat. */
export const toCall = (data) => ({ index: data.index ?? null, toolUseId: data.tool_use_id ?? null });

const isOf = (call, tool) => (call.index === null || tool.index === null ? tool.toolUseId === call.toolUseId : tool.index === call.index);

const findTool = (turn, call) => turn.segments.find((segment) => segment.kind === "tool" && isOf(call, segment));

function ensureTool(turn, data) {
  const call = toCall(data);
  let tool = findTool(turn, call);
  if (!tool) {
    tool = {
      kind: "tool", ...call, name: data.name ?? "", summary: "", input: null,
      status: "running", error: null, output: null, duration_ms: null, startedAt_ms: Date.now(),
    };
    turn.segments.push(tool);
  }
  tool.index ??= call.index;
  return tool;
}

const takeFields = (target, data, ...names) => {
  for (const name of names) if (data[name] !== undefined && data[name] !== null) target[name] = data[name];
};

export function addApproval(turn, approval) {
  if (turn.segments.some((segment) => segment.kind === "approval" && segment.approvalId === approval.approvalId)) return;
  const tool = findTool(turn, approval);
  turn.segments.push({ kind: "approval", ...approval, input: tool?.input ?? null, decision: null, by: null, sent: null });
  if (tool?.status === "running") tool.status = "waiting";
}

function resolveApproval(turn, data) {
  const approval = turn.segments.find((segment) => segment.kind === "approval" && segment.approvalId === data.approval_id);
  if (!approval) return;
  Object.assign(approval, { decision: data.decision, by: data.by ?? null });
  const tool = findTool(turn, approval);
  if (tool?.status === "waiting") Object.assign(tool, { status: "running", startedAt_ms: Date.now() });
}

function addNotice(turn, data) {
  const previous = turn.segments.at(-1);
  // A service that is retried says the same thing again with a new number: the latest one stands.
  if (previous?.kind === "notice" && previous.code === data.code) previous.message = data.message;
  else turn.segments.push({ kind: "notice", code: data.code, message: data.message });
}

/** The result is the truth: streamed text gives way to its reply, and each tool call takes its final state. */
export function completeTurn(turn, result) {
  turn.state = "completed";
  turn.result = result;
  turn.model = result.model ?? turn.model;
  turn.logFile = result.log_file ?? turn.logFile;
  turn.memory = result.memory ?? turn.memory;
  const isReplaced = (segment) => segment.kind === "text" || (segment.kind === "notice" && isTold(result, segment));
  turn.segments = turn.segments.filter((segment) => !isReplaced(segment));
  for (const tool of result.tools ?? []) takeFields(ensureTool(turn, tool), tool, "name", "summary", "status", "error", "duration_ms");
  for (const segment of turn.segments) {
    if (segment.kind === "tool" && isOpen(segment)) segment.status = "unknown";
    if (segment.kind === "approval" && !segment.decision) segment.decision = "deny";
  }
}

/** The call has not come back yet. */
export const isOpen = (tool) => tool.status === "running" || tool.status === "waiting";

const isTold = (result, notice) => (result.notices ?? []).some((told) => told.code === notice.code && told.message === notice.message);

const CHANGES = {
  "turn.queued": (turn, data) => Object.assign(turn, { state: "queued", position: data.position ?? null }),
  "turn.started": (turn, data) => Object.assign(turn, {
    state: turn.state === "stopping" ? "stopping" : "running",
    position: null,
    model: data.model ?? turn.model,
    logFile: data.log_file ?? turn.logFile,
  }),
  "memory.injected": (turn, data) => { turn.memory = data; },
  "text.delta": (turn, data) => addText(turn, "text", data.text ?? ""),
  "thinking.delta": (turn, data) => addText(turn, "thinking", data.text ?? ""),
  "tool.started": (turn, data) => takeFields(ensureTool(turn, data), data, "name", "summary", "input"),
  "tool.finished": (turn, data) => takeFields(ensureTool(turn, data), data, "name", "status", "error", "output", "duration_ms"),
  "approval.resolved": resolveApproval,
  notice: addNotice,
  "turn.completed": completeTurn,
};

/** Fold one event into its turn. Event types that are not known yet change nothing. */
export function applyEvent(turn, type, data) {
  if (!isUnfinished(turn)) return;
  if (type !== "turn.queued" && type !== "turn.completed" && (turn.state === "queued" || turn.state === "sending")) turn.state = "running";
  CHANGES[type]?.(turn, data);
}
