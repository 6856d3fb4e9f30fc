// Formats durations, times and counts.

import { language, t } from "/static/i18n.js";

export function formatDuration(duration_ms) {
  if (!Number.isFinite(duration_ms) || duration_ms < 0) return "";
  if (duration_ms < 1000) return `${Math.round(duration_ms)} ms`;
  if (duration_ms < 60_000) return `${(duration_ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(duration_ms / 60_000);
  if (minutes < 60) return t("minutes", { minutes, seconds: Math.floor((duration_ms % 60_000) / 1000) });
  return t("hours", { hours: Math.floor(minutes / 60), minutes: minutes % 60 });
}

/** A duration that is still running: tenths would only flicker. */
export function formatElapsed(elapsed_ms) {
  return elapsed_ms < 60_000 ? `${Math.max(0, Math.floor(elapsed_ms / 1000))} s` : formatDuration(elapsed_ms);
}

export function formatCountdown(left_ms) {
  const left_s = Math.max(0, Math.ceil(left_ms / 1000));
  return `${Math.floor(left_s / 60)}:${String(left_s % 60).padStart(2, "0")}`;
}

// A formatter takes milliseconds to make, and the page starts without any.
const made = new Map();

function formatter(Kind, options = {}) {
  const name = JSON.stringify([Kind.name, options]);
  if (!made.has(name)) made.set(name, new Kind(language, options));
  return made.get(name);
}

const number = (options) => formatter(Intl.NumberFormat, options);
const date = (options, moment) => formatter(Intl.DateTimeFormat, options).format(new Date(moment));

/** Such as 12.4K. */
export const formatShortCount = (count) => number({ notation: "compact", maximumFractionDigits: 1 }).format(count);

export const formatCount = (count) => number().format(count);

const UNITS = ["B", "kB", "MB", "GB"];

/** A size in the largest unit of which there is at least one. */
export function formatSize(size_bytes) {
  const step = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log10(size_bytes || 1) / 3)));
  const amount = size_bytes / 1000 ** step;
  return `${number({ maximumFractionDigits: step && amount < 100 ? 1 : 0 }).format(amount)} ${UNITS[step]}`;
}

const daysAgo = (moment) => Math.round((new Date().setHours(0, 0, 0, 0) - new Date(moment).setHours(0, 0, 0, 0)) / 86_400_000);

const isMoment = (text) => Boolean(text) && !Number.isNaN(Date.parse(text));

export function formatMoment(text) {
  if (!isMoment(text)) return "";
  return daysAgo(text) <= 0 ? date({ hour: "numeric", minute: "2-digit" }, text) : date({ month: "short", day: "numeric" }, text);
}

export const formatFull = (text) => (isMoment(text) ? date({ dateStyle: "medium", timeStyle: "short" }, text) : "");

/** The heading under which a conversation stands in the list. */
export function dayGroup(text) {
  if (!isMoment(text)) return t("earlier");
  const days = daysAgo(text);
  if (days <= 0) return t("today");
  if (days === 1) return t("yesterday");
  return days < 7 ? t("last_week") : t("earlier");
}
