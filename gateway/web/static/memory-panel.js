// The person's memory: every kind of item, the profile, cases, export and import.

import { CasePanel } from "/static/case-panel.js";
import { fillStored, isUnwritten, openDialog } from "/static/dialog.js";
import { el, setText } from "/static/dom.js";
import { ErrorLine } from "/static/error-line.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { MemoryList } from "/static/memory-list.js";
import { exportMemory, importMemory, readProfile, writeProfile } from "/static/memory-routes.js";

const MAX_PROFILE_CHARS = 2000;
const TABS = ["all", "fact", "profile", "note", "episode", "turn", "case"];

/** The lines that somebody has `written` over `before`, without those that are gone from what is stored `now`, and with those that are new there. */
function withStored(written, before, now) {
  const [had, has] = [before.split("\n"), now.split("\n")];
  const kept = written.split("\n").filter((line) => has.includes(line) || !had.includes(line));
  const known = [...had, ...kept];
  return [...kept, ...has.filter((line) => line && !known.includes(line))].join("\n");
}

/** `read()` shows what is stored now. */
function profileView() {
  const field = el("textarea", { rows: 8, maxlength: MAX_PROFILE_CHARS, "aria-label": t("tab_profile"), disabled: true, "data-testid": "profile-text" });
  const state = el("span", { class: "memory-why", role: "status" });
  const errors = el("div", {});
  const form = el("form", { class: "memory-list" }, el("p", { class: "quiet" }, t("profile_means")), field, errors,
    el("div", { class: "fact-actions" }, el("button", { class: "button small primary", type: "submit", "data-testid": "profile-save" }, t("save")), state));
  const line = new ErrorLine(errors);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const sent = field.value;
    try {
      const { text } = await writeProfile(sent);
      // The gateway masks secrets: what it kept is shown, unless somebody has written on.
      if (field.value === sent) fillStored(field, text);
      else field.defaultValue = text;
      setText(state, t("saved"));
    } catch (error) {
      line.show(error);
    }
  });
  field.addEventListener("input", () => setText(state, ""));

  let isUnread = false;
  async function read() {
    const before = field.defaultValue;
    try {
      const { text } = await readProfile();
      // Saved meanwhile: what came may be older than that.
      if (field.defaultValue === before && text !== before) {
        const written = field.value;
        fillStored(field, text);
        if (written !== before) field.value = withStored(written, before, text);
      }
      if (isUnread) line.clear();
      field.disabled = isUnread = false;
    } catch (error) {
      isUnread = true;
      line.show(error, read);
    }
  }

  return { element: form, read };
}

function download(text) {
  const address = URL.createObjectURL(new Blob([text], { type: "application/x-ndjson" }));
  el("a", { href: address, download: `candor-memory-${new Date().toISOString().slice(0, 10)}.jsonl` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

export function openMemoryPanel() {
  const body = el("div", { class: "panel-body" });
  const state = el("p", { class: "panel-state", role: "status" });
  const errors = el("div", { class: "panel-errors" });
  // What was written in a tab stays while somebody looks at another one, where a lasting fact may be forgotten.
  const views = new Map();
  const openCase = (id) => { choose("case"); body.replaceChildren(new CasePanel(id).element); };
  const tabs = TABS.map((name) => el("button", { class: "tab", type: "button", "data-tab": name, onclick: () => choose(name) }, t(`tab_${name}`)));
  const file = el("input", { type: "file", accept: ".jsonl,.ndjson,application/x-ndjson", hidden: true, "data-testid": "memory-import-file" });
  const tell = (error) => new ErrorLine(errors).show(error);

  function viewOf(name) {
    if (name === "case") return new CasePanel().element;
    if (!views.has(name)) views.set(name, name === "profile" ? profileView() : new MemoryList(name === "all" ? "" : name, openCase));
    const { element } = views.get(name);
    views.get(name).read();
    return element;
  }

  function choose(name) {
    for (const tab of tabs) tab.setAttribute("aria-pressed", String(tab.dataset.tab === name));
    body.replaceChildren(viewOf(name));
    body.scrollTop = 0;
  }

  file.addEventListener("change", async () => {
    const [chosen] = file.files;
    if (!chosen) return;
    setText(state, t("importing"));
    try {
      const counts = await importMemory(await chosen.text());
      setText(state, t("imported", { stored: (counts.stored ?? 0) + (counts.merged ?? 0), there: counts.there ?? 0, left: (counts.left_out ?? 0) + (counts.refused ?? 0) }));
      choose("all");
    } catch (error) {
      setText(state, "");
      tell(error);
    }
    file.value = "";
  });
  const close = el("button", { class: "icon-button", type: "button", "aria-label": t("close"), title: t("close") }, icon("close"));
  const head = el("header", { class: "panel-head" }, el("h2", {}, t("memory_panel")),
    el("button", { class: "button small", type: "button", "data-testid": "memory-export", onclick: () => exportMemory().then(download).catch(tell) }, icon("download"), t("export")),
    el("button", { class: "button small", type: "button", "data-testid": "memory-import", onclick: () => file.click() }, icon("up"), t("import")),
    file, close);
  const content = el("div", { class: "panel", "data-testid": "memory-panel" }, head, el("nav", { class: "tabs", "aria-label": t("memory_panel") }, tabs), errors, state, body);
  const dialog = openDialog({ label: t("memory_panel"), className: "panel-dialog", content, mayLeave: () => [{ element: content }, ...views.values()].every(({ element }) => isUnwritten(element)) });
  close.addEventListener("click", () => dialog.close());
  // A link to where something was said leads out of the panel.
  body.addEventListener("click", (event) => { if (event.target.closest("a[href^='#'], a[href^='/#']")) dialog.close(); });
  choose("all");
}
