// What a yes for the conversation covers, in a person's words.

import { t } from "/static/i18n.js";
import { toolWords } from "/static/tool-words.js";
import { showHidden } from "/static/visible.js";

/** The rule as a sentence; `permit` is as the gateway sends it. */
export function permitWords(permit) {
  const name = [permit.command ?? toolWords(permit.tool, "ok"), ...(permit.options ?? [])].join(" ");
  const values = { name: showHidden(name), call: showHidden(permit.call ?? ""), folder: showHidden(permit.folder ?? "") };
  if (permit.reach === "exact") return permit.command ? t("permit_exact_command", values) : t("permit_exact", values);
  if (permit.reach === "rule") return t("permit_rule");
  if (permit.reach === "files") return t("permit_files", values);
  if (permit.reach === "folder") return t(permit.folder ? "permit_folder" : "permit_workspace", values);
  return t("permit_any", values);
}
