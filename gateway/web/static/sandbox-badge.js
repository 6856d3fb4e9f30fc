// The badge beside the model's name: what the kernel's sandbox protects, and what the person allowed for good.

import { openDialog } from "/static/dialog.js";
import { el } from "/static/dom.js";
import { ErrorLine } from "/static/error-line.js";
import { t } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { permitWords } from "/static/permit.js";
import { listPermissions, withdrawPermission } from "/static/routes.js";

const KINDS = new Set(["landlock", "bubblewrap", "off"]);

/** `conversationId()` is the open conversation's, null before its first message; `shell` is how commands run. */
export function showSandbox(place, kind, conversationId = () => null, shell = "listed") {
  if (!KINDS.has(kind)) return;
  place.title = [t(`wall_${kind}_means`), ...(shell === "sandboxed" ? [t("wall_box_means")] : [])].join(t("space"));
  place.classList.toggle("is-off", kind === "off");
  place.replaceChildren(
    icon("shield"),
    el("span", { class: "wall-word", "aria-hidden": "true" }, t(`wall_${kind}`)),
    // A narrow window has no place for the word.
    el("span", { class: "visually-hidden" }, [t(`wall_${kind}`), place.title].join(t("full_stop"))),
  );
  place.onclick = () => openWall(place.title, conversationId());
  place.hidden = false;
}

function openWall(means, conversationId) {
  const rules = el("ul", { class: "wall-rules", "data-testid": "wall-rules" });
  const errors = el("div", {});
  const close = el("button", { class: "button", type: "button", autofocus: true }, t("close"));
  const dialog = openDialog({ label: t("wall_title"), content: el("div", { class: "dialog-body" },
    el("h2", {}, t("wall_title")), el("p", {}, means),
    el("h3", {}, t("wall_rules")), rules, errors, el("div", { class: "dialog-actions" }, close)) });
  close.addEventListener("click", () => dialog.close());
  showRules(rules, new ErrorLine(errors), conversationId);
}

async function showRules(list, errors, conversationId) {
  const draw = (permissions) => list.replaceChildren(...(permissions.length ? permissions.map(line) : [el("li", { class: "quiet" }, t("wall_no_rules"))]));
  const line = (permission) => el("li", {},
    el("bdi", {}, permitWords(permission)),
    el("button", { class: "link-button", type: "button", "data-testid": "rule-withdraw", onclick: () => withdraw(permission) }, icon("undo"), t("wall_ask_again")));
  const read = async () => draw(conversationId ? await listPermissions(conversationId) : []);
  const withdraw = async (permission) => {
    try {
      await withdrawPermission(conversationId, permission.approval_id);
    } catch (error) {
      if (error.status !== 404) errors.show(error);
    }
    await read().catch((error) => errors.show(error));
  };
  await read().catch((error) => errors.show(error));
}
