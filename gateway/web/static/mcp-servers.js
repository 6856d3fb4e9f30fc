// The MCP servers of the gateway: their states, and the tools of each with theirs.

import { el } from "/static/dom.js";
import { t, wordsFor } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { showHidden } from "/static/visible.js";

const mark = (isOk) => el("span", { class: isOk ? "ops-ok" : "ops-bad" }, icon(isOk ? "check" : "alert"));

function toolRow({ name, state, effect }) {
  const about = [wordsFor("mcp_effect", effect), state === "offered" ? null : wordsFor("mcp_tool", state)].filter(Boolean).join(" · ");
  return el("li", {}, mark(state === "offered"), el("span", { class: "ops-name" }, showHidden(name)), el("span", { class: "ops-detail" }, about));
}

function serverRows({ name, state, transport, box, tools }) {
  const about = [wordsFor("mcp_state", state), transport === "http" ? "HTTP" : wordsFor("mcp_box", box === "off" ? "off" : "on")].join(" · ");
  return [
    el("li", {}, mark(state === "running"), el("span", { class: "ops-name" }, el("strong", {}, showHidden(name))), el("span", { class: "ops-detail" }, about)),
    ...tools.map(toolRow),
  ];
}

/** The section for a list of servers; null without any. */
export function mcpServers(servers) {
  if (servers.length === 0) return null;
  return el("section", { class: "ops-section" }, el("h3", {}, t("mcp_servers")), el("ul", { class: "ops-rows", "data-testid": "ops-mcp" }, servers.flatMap(serverRows)));
}
