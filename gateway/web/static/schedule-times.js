// Cron times: those of the form's choices, and in plain words where they are one of them.

import { t } from "/static/i18n.js";

// Behind minute and hour: the day of the month, the month, the day of the week.
const DAYS = { daily: "* * *", weekdays: "* * 1-5", weekly: "* * 1", monthly: "1 * *" };
const HOURLY = "0 * * * *";
const AT_A_TIME = /^(\d{1,2}) (\d{1,2}) (\S+ \S+ \S+)$/;

/** What the form offers; `own` is a cron expression. */
export const CHOICES = ["hourly", ...Object.keys(DAYS), "own"];

export const hasTime = (choice) => choice in DAYS;

/** The cron expression of a choice other than `own`; `time`: such as 08:30. */
export function cronOf(choice, time) {
  if (choice === "hourly") return HOURLY;
  const [hour, minute] = time.split(":").map(Number);
  return `${minute} ${hour} ${DAYS[choice]}`;
}

/** The choice of the form that a cron expression is, and its time if it has one. */
export function choiceOf(cron) {
  if (cron === HOURLY) return { choice: "hourly" };
  const [, minute, hour, days] = AT_A_TIME.exec(cron) ?? [];
  const choice = Object.keys(DAYS).find((name) => DAYS[name] === days) ?? "own";
  return choice === "own" ? { choice } : { choice, time: [hour, minute].map((number) => number.padStart(2, "0")).join(":") };
}

export function describeCron(cron) {
  const { choice, time } = choiceOf(cron);
  if (choice === "own") return cron;
  return time ? t(`schedule_${choice}_at`, { time }) : t("schedule_hourly");
}

export const ownZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

export const knownZones = () => Intl.supportedValuesOf?.("timeZone") ?? [];
