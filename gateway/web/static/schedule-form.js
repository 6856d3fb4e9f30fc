// The form in which a person adds a schedule.

import { el, setText } from "/static/dom.js";
import { ErrorLine } from "/static/error-line.js";
import { t } from "/static/i18n.js";
import { CHOICES, cronOf, hasTime, knownZones, ownZone } from "/static/schedule-times.js";

const MAX_NAME_CHARS = 200;
const MAX_MESSAGE_CHARS = 200_000;

const field = (words, control) => el("label", { class: "field" }, el("span", {}, words), control);

/** `add(body)` takes a body of `POST /schedules`; `here`: `{id, title}` of the open conversation, or null. */
export function scheduleForm({ here, add }) {
  const name = el("input", { type: "text", required: true, maxlength: MAX_NAME_CHARS, autocomplete: "off", "data-testid": "schedule-name" });
  const message = el("textarea", { rows: 3, required: true, maxlength: MAX_MESSAGE_CHARS, "data-testid": "schedule-message" });
  const choice = el("select", { "data-testid": "schedule-when" }, CHOICES.map((value) => el("option", { value, selected: value === "daily" }, t(`schedule_${value}`))));
  const time = el("input", { type: "time", required: true, value: "08:00", "data-testid": "schedule-time" });
  const cron = el("input", { type: "text", maxlength: 200, autocomplete: "off", autocapitalize: "off", spellcheck: "false", value: "0 8 * * *", "aria-describedby": "cron-means", "data-testid": "schedule-cron" });
  const zone = el("input", { type: "text", required: true, list: "time-zones", autocomplete: "off", autocapitalize: "off", spellcheck: "false", value: ownZone(), "data-testid": "schedule-zone" });
  const place = el("select", { "data-testid": "schedule-place" },
    el("option", { value: "" }, t("schedule_place_new")),
    here && el("option", { value: here.id }, t("schedule_place_here", { title: here.title })));
  const timeField = field(t("schedule_time"), time);
  const cronField = el("div", { class: "schedule-own" }, field(t("schedule_cron"), cron), el("p", { class: "quiet", id: "cron-means" }, t("schedule_cron_means")));
  const errors = el("div", {});
  const save = el("button", { class: "button primary", type: "submit", "data-testid": "schedule-add" }, t("schedule_add"));

  function showChoice() {
    timeField.hidden = time.disabled = !hasTime(choice.value);
    cronField.hidden = cron.disabled = choice.value !== "own";
  }

  choice.addEventListener("change", showChoice);
  showChoice();
  const form = el("form", { class: "schedule-form", "data-testid": "schedule-form" },
    el("h3", {}, t("schedule_new")),
    field(t("schedule_name"), name), field(t("message"), message), field(t("schedule_place"), place),
    el("div", { class: "schedule-when" }, field(t("schedule_when"), choice), timeField, field(t("schedule_zone"), zone)), cronField,
    el("datalist", { id: "time-zones" }, knownZones().map((value) => el("option", { value }))),
    errors, el("div", { class: "dialog-actions" }, save));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (save.getAttribute("aria-disabled") === "true") return;
    // Not `disabled`, which would take the focus away.
    save.setAttribute("aria-disabled", "true");
    setText(save, t("saving"));
    errors.replaceChildren();
    try {
      await add({
        name: name.value, message: message.value, time_zone: zone.value.trim(), conversation_id: place.value || null,
        cron: choice.value === "own" ? cron.value : cronOf(choice.value, time.value),
      });
      name.value = message.value = "";
    } catch (error) {
      new ErrorLine(errors).show(error);
    }
    save.setAttribute("aria-disabled", "false");
    setText(save, t("schedule_add"));
  });
  return form;
}
