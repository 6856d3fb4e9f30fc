// What an opened tool call shows: each tool's input and output in the form that speaks for it.

import { ansiNodes, withoutAnsi } from "/static/ansi.js";
import { el } from "/static/dom.js";
import { diffBlock, wholeTexts } from "/static/file-diff.js";
import { t } from "/static/i18n.js";
import { planProse } from "/static/plan.js";
import { questionsOf } from "/static/question-form.js";
import { todoList } from "/static/todo-list.js";
import { block, code, fieldList, numberedCode, plain } from "/static/tool-block.js";
import { workspaceImage } from "/static/tool-image.js";
import { isToldInWords } from "/static/tool-words.js";
import { showHidden } from "/static/visible.js";

const IMAGE = /\.(png|jpe?g|gif|webp)$/i;
const NUMBERED = /^ *(\d+)(?:\t|→)(.*)$/;
const REMINDER = /\n*<system-reminder>[\s\S]*?<\/system-reminder>\s*$/;
const HIT = /^(.+?):(\d+):(.*)$/;

const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "");
const textOf = (input, name) => asText(input?.[name] ?? "");
const baseName = (path) => path.split(/[\\/]/).at(-1) || "output.txt";

const fields = (label, input) => (input && Object.keys(input).length ? block(label, asText(input), fieldList(input), { fileName: "input.json" }) : null);

const generic = { shows: [], input: () => [], output: (text) => block(t("tool_output"), text, plain(showHidden(text))) };

// -- Bash -----------------------------------------------------------------------------------------

const bash = {
  shows: ["command", "description"],
  input: ({ input, ran }) => {
    const written = textOf(input, "command");
    const command = ran?.command ?? written;
    return [
      input.description ? el("p", { class: "tool-note", dir: "auto" }, showHidden(textOf(input, "description"))) : null,
      block(t(ran?.command ? "tool_ran" : "tool_command"), command, plain(code(command, "bash")), { className: "is-command", fileName: "command.sh" }),
      ran?.command ? el("p", { class: "tool-note" }, t("tool_canonical"), " ", el("code", {}, showHidden(written))) : null,
    ];
  },
  output: (text) => block(t("tool_output"), withoutAnsi(text), plain(...ansiNodes(text))),
};

// -- Edit, Write ----------------------------------------------------------------------------------

const quietOutput = (text) => el("p", { class: "tool-note" }, showHidden(text));

const edit = {
  shows: ["file_path", "old_string", "new_string", "replace_all"],
  input: ({ input, status, place, isTruncated }) => {
    const path = textOf(input, "file_path");
    const [before, after] = [textOf(input, "old_string"), textOf(input, "new_string")];
    const how = { isDone: status === "ok", isEverywhere: input.replace_all === true };
    const find = isTruncated ? null : (text) => wholeTexts(text, before, after, how);
    return [...diffBlock(path, before, after, { place, find }), input.replace_all === true ? el("p", { class: "tool-note" }, t("tool_replace_all")) : null];
  },
  output: quietOutput,
};

const write = {
  shows: ["file_path", "content"],
  input: ({ input, place, isAsked, isTruncated }) => {
    const content = textOf(input, "content");
    // What would be written over is known only before it runs.
    return diffBlock(textOf(input, "file_path"), "", content, { place, find: isAsked && !isTruncated ? (text) => [text, content] : null });
  },
  output: quietOutput,
};
const notebook = { shows: ["notebook_path", "new_source"], input: ({ input }) => diffBlock(textOf(input, "notebook_path"), "", textOf(input, "new_source")), output: quietOutput };

// -- Read, Grep -----------------------------------------------------------------------------------

/** `12<tab>text` for each line; null where the output has another form. */
function numberedLines(output) {
  const lines = output.replace(REMINDER, "").split("\n").map((line) => NUMBERED.exec(line) ?? line);
  return lines.some((line) => typeof line !== "string") ? lines.map((line) => (typeof line === "string" ? { number: "", text: line } : { number: line[1], text: line[2] })) : null;
}

const read = {
  shows: ["file_path"],
  input: () => [],
  output: (output, { input }) => {
    const path = textOf(input, "file_path");
    if (IMAGE.test(path)) return workspaceImage(path);
    const lines = numberedLines(output);
    if (!lines) return generic.output(output.replace(REMINDER, ""));
    const texts = lines.map(({ text }) => text);
    return block(showHidden(path), texts.join("\n"), numberedCode(texts, lines.map(({ number }) => number), path), { fileName: baseName(path) });
  },
};

/** The hits by file, in order: `[path, [{number, text}]]`; null where the output is a list of files or counts. */
function hitsByFile(output) {
  const files = new Map();
  for (const line of output.split("\n")) {
    const [, path, number, text] = HIT.exec(line) ?? contextLine(line, files) ?? [];
    if (path) files.set(path, [...files.get(path) ?? [], { number, text }]);
  }
  return files.size ? files : null;
}

/** A line around a hit is `path-12-text`; only a file that has a hit tells where its path ends. */
function contextLine(line, files) {
  const path = [...files.keys()].find((known) => line.startsWith(`${known}-`));
  const found = path && /^-(\d+)-(.*)$/.exec(line.slice(path.length));
  return found ? [line, path, found[1], found[2]] : null;
}

const grep = {
  ...generic,
  output: (output) => {
    const files = hitsByFile(output);
    if (!files) return generic.output(output);
    return [...files].map(([path, hits]) => {
      const texts = hits.map(({ text }) => text);
      return block(showHidden(path), texts.join("\n"), numberedCode(texts, hits.map(({ number }) => number), path), { fileName: baseName(path) });
    });
  },
};

// -- TodoWrite ------------------------------------------------------------------------------------

const todos = {
  shows: ["todos"],
  input: ({ input }) => (Array.isArray(input.todos) ? [todoList(input.todos.map((todo) => ({ text: asText(todo?.content ?? todo), state: todo?.status })))] : [fields(t("tool_input"), input)]),
  output: () => null,
};

// -- Agent ----------------------------------------------------------------------------------------

const agent = {
  shows: ["description", "prompt", "subagent_type"],
  input: ({ input }) => [block(t("agent_task"), textOf(input, "prompt"), plain(showHidden(textOf(input, "prompt"))))],
  output: (text) => block(t("agent_report"), text, plain(showHidden(text))),
};

// -- AskUserQuestion ------------------------------------------------------------------------------

const question = {
  shows: ["questions"],
  input: (tool) => {
    const answers = Object.fromEntries((questionsOf(tool) ?? []).map((asked) => [asked.question, tool.ran?.answers?.[asked.question] ?? "…"]));
    return [fields(t("ask_person"), answers)];
  },
  output: (text, { ran }) => (ran?.answers ? null : generic.output(text)),
};

// -- ExitPlanMode ---------------------------------------------------------------------------------

const plan = {
  shows: ["plan", "planFilePath"],
  input: (tool) => [planProse(tool)],
  output: (text, { input }) => (planProse({ input }) ? null : generic.output(text)),
};

const CARDS = { Agent: agent, AskUserQuestion: question, Bash: bash, Edit: edit, ExitPlanMode: plan, Write: write, NotebookEdit: notebook, Read: read, Grep: grep, TodoWrite: todos };

/** What `inputBlocks` of a call depends on: an edit that is done is looked for in the file by its other side. */
export const inputVersion = ({ name, input, ran, status }) => [input, ran, name === "Edit" && status === "ok"];

/** What of a call is known before it has run. */
export function inputBlocks(tool) {
  const card = CARDS[tool.name] ?? generic;
  const input = tool.input ?? {};
  const rest = Object.fromEntries(Object.entries(input).filter(([name]) => !card.shows.includes(name)));
  return [
    isToldInWords(tool.name) ? block(t("tool_name"), tool.name, plain(showHidden(tool.name))) : null,
    ...card.input({ ...tool, input }),
    fields(t("tool_input"), rest),
    card !== bash && card !== question && card !== plan && tool.ran ? fields(t("tool_ran_with"), tool.ran) : null,
  ].flat().filter(Boolean);
}

/** What came of a call. What failed is shown once: the agent program repeats the error as output. */
export function outputBlocks(tool) {
  const card = CARDS[tool.name] ?? generic;
  const input = tool.input ?? {};
  const failure = tool.error ? block(t("tool_error"), withoutAnsi(asText(tool.error)), plain(...ansiNodes(asText(tool.error))), { className: "is-error" }) : null;
  const output = tool.output && tool.output !== tool.error ? card.output(asText(tool.output), { ...tool, input }) : null;
  return [failure, output].flat().filter(Boolean);
}

/** The parts of a call that is known whole. */
export const callBlocks = (tool) => [...inputBlocks(tool), ...outputBlocks(tool)];
