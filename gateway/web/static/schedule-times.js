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

export function describeCron(cron) {
  if (cron === HOURLY) return t("schedule_hourly");
  const [, minute, hour, days] = AT_A_TIME.exec(cron) ?? [];
  const choice = Object.keys(DAYS).find((name) => DAYS[name] === days);
  return choice ? t(`schedule_${choice}_at`, { time: [hour, minute].map((number) => number.padStart(2, "0")).join(":") }) : cron;
}

export const ownZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

export const knownZones = () => Intl.supportedValuesOf?.("timeZone") ?? [];
