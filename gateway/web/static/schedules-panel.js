// The person's schedules: what each sends and when, its next and its last run, and a form for a new one.

import { addressOf } from "/static/address.js";
import { request, requestJson } from "/static/api.js";
import { confirmDialog, openDialog } from "/static/dialog.js";
import { el, setText } from "/static/dom.js";
import { newKey } from "/static/drafts.js";
import { ErrorLine } from "/static/error-line.js";
import { formatFull } from "/static/format.js";
import { t, wordsFor } from "/static/i18n.js";
import { icon } from "/static/icons.js";
import { scheduleForm, zonesList } from "/static/schedule-form.js";
import { describeCron } from "/static/schedule-times.js";
import { showHidden } from "/static/visible.js";

const SHOWN_CHARS = 200;
const LOOK_AGAIN_MS = 2000;

const pathOf = ({ id }) => `/schedules/${encodeURIComponent(id)}`;
const PROBLEMS = new Set(["conversation_deleted", "still_running", "overloaded"]);

/** How the last run went; null where there was none. */
function lastRun(last) {
  if (!last) return null;
  const how = last.outcome ? wordsFor("outcome", last.outcome) : t(`schedule_state_${last.state ?? "gone"}`);
  const words = t("schedule_last", { time: formatFull(last.at), how });
  const address = addressOf(last.conversation_id, last.turn_id);
  return el("span", { "data-testid": "schedule-last" }, address ? el("a", { href: address }, words) : words, last.missed > 0 && ` · ${t("schedule_missed", { count: last.missed })}`);
}

class ScheduleRow {
  #panel;
  #schedule;
  /** Of a run that may have been taken though the answer did not come. */
  #key = null;
  /** While it is changed. */
  #form = null;
  /** The last look at how its run ends. */
  #looking = null;
  #isLeaving = false;
  /** The schedule as it is shown; null where the row shows something else. */
  #drawn = null;
  element = el("li", { class: "schedule", "data-testid": "schedule" });

  /** `panel`: here, tell(error), said(words), changed(), removed(row), gone(row, error). */
  constructor(schedule, panel) {
    this.#schedule = schedule;
    this.#panel = panel;
    this.#draw();
    this.#watch();
  }

  /** Show how the last run ends, while the panel is open. */
  #watch() {
    if (!["queued", "running"].includes(this.#schedule.last_run?.state)) return;
    setTimeout(() => {
      if (!this.element.isConnected || this.#isLeaving) return;
      this.#looking = this.#do(() => this.#read()).then(() => this.#watch());
    }, LOOK_AGAIN_MS);
  }

  async #read() {
    this.#schedule = await requestJson(pathOf(this.#schedule));
  }

  async #isGone() {
    try {
      await this.#read();
      return false;
    } catch (error) {
      return error.status === 404;
    }
  }

  #draw() {
    const version = JSON.stringify(this.#schedule);
    // A look that has found nothing new takes nothing away from under a press.
    if (!this.#form && version === this.#drawn) return;
    this.#drawn = this.#form ? null : version;
    if (this.#form) {
      if (this.element.firstChild !== this.#form) this.element.replaceChildren(this.#form);
      return;
    }
    const { name, cron, time_zone: zone, message, conversation_id: place, enabled, next_runs: next, last_run: last, problem } = this.#schedule;
    const shown = showHidden(name);
    const onOff = el("input", { class: "switch", type: "checkbox", role: "switch", checked: enabled, "aria-label": t("schedule_on", { name: shown }), "data-testid": "schedule-enabled" });
    onOff.addEventListener("change", () => this.#do(async () => { this.#schedule = await requestJson(pathOf(this.#schedule), { method: "PATCH", body: { enabled: onOff.checked } }); }));
    const button = (key, testId, press, className = "link-button") => el("button", { class: className, type: "button", "aria-label": [t(key), shown].join(t("colon")), "data-testid": testId, onclick: press }, t(key));
    const isGone = problem?.code === "conversation_deleted";
    const words = [describeCron(cron), zone, place ? null : t("schedule_place_new")].filter(Boolean).join(" · ");
    const isLong = message.length > SHOWN_CHARS;
    this.element.replaceChildren(
      el("div", { class: "schedule-head" }, el("strong", { dir: "auto" }, shown), onOff),
      el("span", { class: "schedule-words" }, showHidden(words), ...(place && !isGone ? [" · ", el("a", { href: addressOf(place) }, t("source_conversation"))] : [])),
      el("span", { class: "schedule-message", dir: "auto" }, showHidden(isLong ? `${message.slice(0, SHOWN_CHARS)}…` : message)),
      el("span", { "data-testid": "schedule-next" }, next.length ? t("schedule_next", { time: formatFull(next[0]) }) : t("schedule_off")),
      ...[lastRun(last), problem && el("span", { class: "schedule-problem", "data-testid": "schedule-problem" }, icon("alert"), PROBLEMS.has(problem.code) ? t(`schedule_${problem.code}`) : showHidden(problem.message))].filter(Boolean),
      el("div", { class: "schedule-actions" }, button("schedule_run", "schedule-run", () => this.#run()), button("schedule_change", "schedule-change", () => this.#change()), button("schedule_delete", "schedule-delete", () => this.#remove(), "link-button is-danger")));
  }

  /** What failed is told, and the row shows what there is. */
  async #do(work) {
    const had = this.element.contains(document.activeElement) && document.activeElement.dataset.testid;
    try {
      await work();
    } catch (error) {
      // Deleted elsewhere, and not what it writes to; what somebody is writing of it stays.
      if (error.status === 404 && await this.#isGone() && !this.#form) {
        this.#isLeaving = true;
        this.#panel.gone(this, error);
        return;
      }
      this.#drawn = null;
      this.#panel.tell(error);
    }
    this.#draw();
    if (had) this.element.querySelector(`[data-testid="${had}"]`)?.focus();
  }

  #run() {
    return this.#do(async () => {
      await requestJson(`${pathOf(this.#schedule)}/run`, { method: "POST", body: { idempotency_key: this.#key ??= newKey() } });
      this.#key = null;
      this.#panel.said(t("schedule_sent", { name: showHidden(this.#schedule.name) }));
      await this.#read();
      this.#panel.changed();
      this.#watch();
    });
  }

  #change() {
    const leave = () => {
      this.#form = null;
      this.#draw();
      this.element.querySelector('[data-testid="schedule-change"]').focus();
    };
    this.#form = scheduleForm({
      here: this.#panel.here, schedule: this.#schedule, leave,
      submit: async (body) => {
        // A project is for new conversations alone.
        const whole = body.conversation_id ? { ...body, project_id: null } : body;
        this.#schedule = await requestJson(pathOf(this.#schedule), { method: "PATCH", body: whole });
        this.#draw();
        this.#panel.said(t("schedule_changed", { name: showHidden(body.name) }));
      },
    });
    this.#draw();
    this.#form.querySelector("input").focus();
  }

  async #remove() {
    const name = showHidden(this.#schedule.name);
    if (!await confirmDialog({ title: t("schedule_delete_title"), body: t("schedule_delete_body", { name }), confirm: t("schedule_delete") })) return;
    // Nothing is asked of a schedule that is gone.
    this.#isLeaving = true;
    await this.#looking;
    try {
      await request(pathOf(this.#schedule), { method: "DELETE" });
    } catch (error) {
      if (error.status !== 404) {
        this.#isLeaving = false;
        this.#watch();
        this.#panel.tell(error);
        return;
      }
    }
    this.#panel.removed(this);
  }
}

// A new schedule's time and zone are soon chosen again, and stay when it is added; words are not, nor is what is changed of another one.
const WRITTEN = "textarea, [data-testid=schedule-name], .schedule input:not([type=checkbox])";

/** `here`: `{id, title}` of the open conversation, or null; `changed()` is called when a turn was begun. */
export function openSchedules({ here, changed }) {
  const errors = el("div", { class: "panel-errors" });
  const state = el("p", { class: "panel-state", role: "status" });
  const list = el("ul", { class: "schedules", "data-testid": "schedules" });
  const none = el("p", { class: "quiet" }, t("loading"));
  const close = el("button", { class: "icon-button", type: "button", "aria-label": t("close"), title: t("close") }, icon("close"));
  const heading = el("h2", { tabindex: "-1" }, t("schedules"));
  const panel = {
    here,
    tell: (error) => new ErrorLine(errors).show(error),
    said: (words) => setText(state, words),
    changed,
    removed(row) {
      row.element.remove();
      tellNone();
      heading.focus();
    },
    gone(row, error) {
      if (row.element.contains(document.activeElement)) heading.focus();
      row.element.remove();
      tellNone();
      panel.tell(error);
    },
  };
  const append = (schedule) => list.append(new ScheduleRow(schedule, panel).element);

  function tellNone() {
    setText(none, t("schedules_none"));
    none.hidden = list.childElementCount > 0;
  }

  async function read() {
    try {
      for (const schedule of (await requestJson("/schedules")).schedules) append(schedule);
      tellNone();
    } catch (error) {
      none.hidden = true;
      new ErrorLine(errors).show(error, read);
    }
  }

  async function add(body) {
    append(await requestJson("/schedules", { method: "POST", body }));
    tellNone();
    panel.said(t("schedule_added", { name: showHidden(body.name) }));
  }

  const body = el("div", { class: "panel-body" }, none, list, scheduleForm({ here, submit: add }), zonesList());
  const content = el("div", { class: "panel", "data-testid": "schedules-panel" }, el("header", { class: "panel-head" }, heading, close), errors, state, body);
  const dialog = openDialog({ label: t("schedules"), className: "panel-dialog", content, mayLeave: () => [...content.querySelectorAll(WRITTEN)].every((field) => field.value === field.defaultValue) });
  close.addEventListener("click", () => dialog.close());
  list.addEventListener("click", (event) => { if (event.target.closest("a")) dialog.close(); });
  read();
}
