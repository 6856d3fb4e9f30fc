// The form in which a person adds a schedule, or changes one.

import { el, setText } from "/static/dom.js";
import { ErrorLine } from "/static/error-line.js";
import { t } from "/static/i18n.js";
import { CHOICES, choiceOf, cronOf, hasTime, knownZones, ownZone } from "/static/schedule-times.js";
import { showHidden } from "/static/visible.js";

const MAX_NAME_CHARS = 200;
const MAX_MESSAGE_CHARS = 200_000;

const ZONES = "time-zones";

/** What all forms offer as time zones. */
export const zonesList = () => el("datalist", { id: ZONES }, knownZones().map((value) => el("option", { value })));

const field = (words, control) => el("label", { class: "field" }, el("span", {}, words), control);

const DAILY = "0 8 * * *";
const NEW = { name: "", message: "", cron: DAILY, conversation_id: null };
let forms = 0;

/**
 * `submit(body)` takes a body of `POST /schedules`, which is one of `PATCH` as well; `here`: `{id, title}` of the open conversation, or null.
 * `schedule` is changed if given; then `leave()` takes the form away.
 */
export function scheduleForm({ here, submit, schedule, leave }) {
  const given = schedule ?? { ...NEW, time_zone: ownZone() };
  const { choice: chosen, time: at } = choiceOf(given.cron);
  const own = given.problem?.code === "conversation_deleted" ? null : given.conversation_id;
  const means = `cron-means-${forms += 1}`;
  const name = el("input", { type: "text", required: true, maxlength: MAX_NAME_CHARS, autocomplete: "off", value: given.name, "data-testid": "schedule-name" });
  const message = el("textarea", { rows: 3, required: true, maxlength: MAX_MESSAGE_CHARS, "data-testid": "schedule-message" }, given.message);
  const choice = el("select", { "data-testid": "schedule-when" }, CHOICES.map((value) => el("option", { value, selected: value === chosen }, t(`schedule_${value}`))));
  const time = el("input", { type: "time", required: true, value: at ?? "08:00", "data-testid": "schedule-time" });
  const cron = el("input", { type: "text", maxlength: 200, autocomplete: "off", autocapitalize: "off", spellcheck: "false", value: given.cron, "aria-describedby": means, "data-testid": "schedule-cron" });
  const zone = el("input", { type: "text", required: true, list: ZONES, autocomplete: "off", autocapitalize: "off", spellcheck: "false", value: given.time_zone, "data-testid": "schedule-zone" });
  const place = el("select", { "data-testid": "schedule-place" },
    el("option", { value: "" }, t("schedule_place_new")),
    here && el("option", { value: here.id, selected: here.id === own }, t("schedule_place_here", { title: here.title })),
    own && own !== here?.id && el("option", { value: own, selected: true }, t("schedule_place_kept")));
  const timeField = field(t("schedule_time"), time);
  const cronField = el("div", { class: "schedule-own" }, field(t("schedule_cron"), cron), el("p", { class: "quiet", id: means }, t("schedule_cron_means")));
  const errors = el("div", {});
  const word = t(schedule ? "save" : "schedule_add");
  const save = el("button", { class: "button primary", type: "submit", "data-testid": schedule ? "schedule-save" : "schedule-add" }, word);
  const back = schedule && el("button", { class: "button", type: "button", "data-testid": "schedule-cancel", onclick: leave }, t("cancel"));

  function showChoice() {
    timeField.hidden = time.disabled = !hasTime(choice.value);
    cronField.hidden = cron.disabled = choice.value !== "own";
  }

  choice.addEventListener("change", showChoice);
  showChoice();
  const form = el("form", { class: "schedule-form", "data-testid": "schedule-form" },
    el("h3", {}, schedule ? t("schedule_change_of", { name: showHidden(schedule.name) }) : t("schedule_new")),
    field(t("schedule_name"), name), field(t("message"), message), field(t("schedule_place"), place),
    el("div", { class: "schedule-when" }, field(t("schedule_when"), choice), timeField, field(t("schedule_zone"), zone)), cronField,
    errors, el("div", { class: "dialog-actions" }, back, save));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (save.getAttribute("aria-disabled") === "true") return;
    // Not `disabled`, which would take the focus away.
    save.setAttribute("aria-disabled", "true");
    setText(save, t("saving"));
    errors.replaceChildren();
    const sent = new Map([name, message, place, choice, time, zone, cron].map((control) => [control, control.value]));
    try {
      await submit({
        name: sent.get(name), message: sent.get(message), time_zone: zone.value.trim(), conversation_id: place.value || null,
        cron: choice.value === "own" ? cron.value : cronOf(choice.value, time.value),
      });
      // Somebody may have written on, or begun the next one.
      const isAsSent = (control) => control.value === sent.get(control);
      if (!schedule) for (const control of [name, message].filter(isAsSent)) control.value = "";
      else if ([...sent.keys()].every(isAsSent)) leave();
    } catch (error) {
      new ErrorLine(errors).show(error);
    }
    save.setAttribute("aria-disabled", "false");
    setText(save, word);
  });
  return form;
}
