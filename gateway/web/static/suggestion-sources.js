// What the message box offers: files of the workspace after `@`; commands, skills and saved prompts after `/`.
// What is typed stands in the `name` of each.

import { t } from "/static/i18n.js";
import { listFolder, findFiles } from "/static/routes.js";
import { dropPrompt, savedPrompts } from "/static/saved-prompts.js";
import { readSkills } from "/static/skills.js";

const MAX_FILES = 12;
// Chinese and Japanese have no spaces; behind other letters `@` is part of an address.
const MENTION = /(?:^|[\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}，。、；：！？（《「“])[@＠]([^\s@＠]*)$/u;
const COMMAND = /^[/／](\S*)$/u;

// The gateway shows the model a picture that is named in backticks.
const PICTURE = /^[^`\n]+\.(?:png|jpe?g|gif|webp)$/iu;

function asWord(path) {
  if (PICTURE.test(path)) return `\`${path}\``;
  return /[\s`]/u.test(path) ? JSON.stringify(path) : path;
}

async function filesFor(query) {
  const isFolder = query === "" || query.endsWith("/");
  const entries = isFolder ? await listFolder(query.replace(/\/+$/u, "")) : await findFiles(query, MAX_FILES);
  return entries.filter((entry) => entry.readable && (query !== "" || !entry.name.startsWith("."))).slice(0, MAX_FILES).map((entry) => {
    const isInside = entry.kind === "folder";
    return {
      icon: isInside ? "folder" : "file",
      label: entry.name,
      name: entry.path,
      detail: entry.path.slice(0, -entry.name.length).replace(/\/$/u, ""),
      // A folder's entries come next.
      insert: isInside ? `@${entry.path}/` : `${asWord(entry.path)} `,
    };
  });
}

let skills = null;

async function loadSkills() {
  const found = (await readSkills()).skills.filter(({ kind, loaded }) => loaded && kind !== "agent");
  return found.map(({ name, description }) => ({ icon: "spark", label: `/${name}`, name, detail: description, insert: `/${name} ` }));
}

async function commandsFor(query) {
  // A workspace without skills is no failure; it may have some the next time.
  skills ??= loadSkills().catch(() => { skills = null; return []; });
  const wanted = query.toLowerCase();
  const commands = [
    { icon: "plus", label: "/clear", name: "clear", detail: t("command_clear"), insert: "/clear" },
    { icon: "book", label: "/compact", name: "compact", detail: t("command_compact"), insert: "/compact " },
    { icon: "check", label: "/plan", name: "plan", detail: t("command_plan"), insert: "/plan " },
    ...await skills];
  const prompts = savedPrompts().map((text) => {
    const [label] = text.split("\n", 1);
    return { icon: "bookmark", label, name: label, detail: t("saved_prompt"), insert: text, remove: () => dropPrompt(text) };
  });
  return [...commands, ...prompts].filter(({ name }) => name.toLowerCase().includes(wanted));
}

function source(pattern, replaces, load) {
  return {
    load,
    /** Where the text to replace begins, and what was typed of it; null where nothing is offered. */
    match(before) {
      const found = pattern.exec(before);
      return found && { start: before.length - found[1].length - replaces, query: found[1] };
    },
  };
}

export const SOURCES = [source(MENTION, 1, filesFor), source(COMMAND, 1, commandsFor)];
