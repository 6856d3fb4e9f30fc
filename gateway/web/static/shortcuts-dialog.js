// The list of the page's keyboard shortcuts.

import { dialogHead, openDialog } from "/static/dialog.js";
import { el } from "/static/dom.js";
import { t } from "/static/i18n.js";
import { preferences } from "/static/preferences.js";

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
const command = isMac ? "⌘" : "Ctrl";

function rows() {
  const isPlain = preferences.sendKey !== "command";
  return [
    [isPlain ? ["Enter"] : [command, "Enter"], "key_send"],
    [isPlain ? ["Shift", "Enter"] : ["Enter"], "key_line"],
    [["↑"], "key_recall"],
    [["@"], "key_file"],
    [["/"], "key_command"],
    [[command, "Shift", "O"], "key_new"],
    [[command, "Shift", "F"], "find"],
    [["Alt", "A"], "key_review"],
    [["Esc"], "key_close"],
    [[command, "/"], "key_list"],
  ];
}

export function openShortcuts() {
  const list = el("dl", { class: "shortcuts" }, rows().map(([keys, name]) => el("div", {},
    el("dt", {}, t(name)), el("dd", {}, keys.map((key) => el("kbd", {}, key))))));
  const content = el("div", { class: "dialog-body" }, dialogHead(t("shortcuts"), () => dialog.close()), list);
  const dialog = openDialog({ label: t("shortcuts"), className: "shortcuts-dialog", content });
}
