// What the person prefers: language, theme, density, send key, notifications; webhooks; and signing out.

import { requestJson } from "/static/api.js";
import { openDialog } from "/static/dialog.js";
import { el, setText } from "/static/dom.js";
import { t } from "/static/i18n.js";
import { allowNotifications } from "/static/notification.js";
import { prefer, preferences } from "/static/preferences.js";
import { readSession } from "/static/routes.js";
import { currentToken, signOut } from "/static/session.js";
import { openWebhooks } from "/static/webhooks-dialog.js";

const CHOICES = {
  language: ["auto", "en", "zh-CN"],
  theme: ["auto", "light", "dark"],
  density: ["comfortable", "compact"],
  sendKey: ["enter", "command"],
};

function choice(name, changed) {
  const select = el("select", { id: `prefer-${name}`, "data-testid": `prefer-${name}` },
    CHOICES[name].map((value) => el("option", { value, selected: preferences[name] === value }, t(`prefer_${name}_${value}`))));
  const note = el("span", { class: "switch-means", role: "status" });
  select.addEventListener("change", () => {
    const isKept = prefer({ [name]: select.value });
    // A language that is not kept would be lost by the reload that shows it, and with it what the page alone holds.
    if (isKept || name !== "language") changed(name);
    else setText(note, t("prefer_language_not_kept"));
  });
  return el("label", { class: "setting", for: select.id }, el("span", {}, t(`prefer_${name}`)), select, note);
}

function notificationSwitch() {
  const means = el("span", { class: "switch-means", id: "notify-means", role: "status" }, t("prefer_notifications_mean"));
  const input = el("input", { class: "switch", type: "checkbox", role: "switch", checked: preferences.notifications, "aria-labelledby": "notify-name", "aria-describedby": "notify-means", "data-testid": "prefer-notifications" });
  input.addEventListener("change", async () => {
    const isOn = input.checked && await allowNotifications();
    if (input.checked && !isOn) setText(means, t("prefer_notifications_refused"));
    input.checked = isOn;
    prefer({ notifications: isOn });
  });
  return el("label", { class: "switch-row" },
    el("span", { class: "switch-words" }, el("span", { class: "switch-name", id: "notify-name" }, t("prefer_notifications")), means), input);
}

/** Shows who is signed in, and what ends the session of one who came through the provider. */
async function showPerson(place) {
  const { user, signed_in_by: way } = await readSession();
  if (way === "nothing") return;
  const leave = async () => {
    await requestJson("/auth/sign-out", { method: "POST" });
    signOut();
  };
  place.append(el("span", { "data-testid": "signed-in-as" }, t("signed_in_as", { user })));
  if (way === "session") place.append(el("button", { class: "button small", type: "button", "data-testid": "end-session", onclick: leave }, t("sign_out")));
  place.hidden = false;
}

/** `changed(name)` is called after each change; another language takes a reload, which keeps drafts. */
export function openSettings(changed = () => {}) {
  const tell = (name) => (name === "language" ? location.reload() : changed(name));
  const close = el("button", { class: "button primary", type: "button" }, t("close"));
  const out = currentToken() && el("button", { class: "button", type: "button", "data-testid": "sign-out", onclick: signOut }, t("sign_out"));
  const person = el("div", { class: "setting", hidden: true });
  showPerson(person).catch(() => {});
  const content = el("div", { class: "dialog-body", "data-testid": "settings" },
    el("h2", {}, t("settings")),
    person,
    Object.keys(CHOICES).map((name) => choice(name, tell)),
    notificationSwitch(),
    el("div", { class: "setting" }, el("span", {}, t("webhooks")), el("button", { class: "button small", type: "button", "aria-label": t("webhooks_open"), "aria-haspopup": "dialog", "data-testid": "open-webhooks", onclick: openWebhooks }, t("webhooks_manage"))),
    el("div", { class: "dialog-actions" }, out, close));
  const dialog = openDialog({ label: t("settings"), content });
  close.addEventListener("click", () => dialog.close());
}
