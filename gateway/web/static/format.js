// Formats durations, times and counts.

import { language, t } from "/static/i18n.js";

export function formatDuration(duration_ms) {
  if (!Number.isFinite(duration_ms) || duration_ms < 0) return "";
  if (duration_ms < 1000) return `${Math.round(duration_ms)} ms`;
  if (duration_ms < 60_000) return `${(duration_ms / 1000).toFixed(1)} s`;
  return `${Math.floor(duration_ms / 60_000)} min ${Math.floor((duration_ms % 60_000) / 1000)} s`;
}

/** A duration that is still running: tenths would only flicker. */
export function formatElapsed(elapsed_ms) {
  return elapsed_ms < 60_000 ? `${Math.max(0, Math.floor(elapsed_ms / 1000))} s` : formatDuration(elapsed_ms);
}

export function formatCountdown(left_ms) {
  const left_s = Math.max(0, Math.ceil(left_ms / 1000));
  return `${Math.floor(left_s / 60)}:${String(left_s % 60).padStart(2, "0")}`;
}

const short = new Intl.NumberFormat(language, { notation: "compact", maximumFractionDigits: 1 });

/** Such as 12.4K. */
export const formatShortCount = (count) => short.format(count);

export const formatCount = (count) => new Intl.NumberFormat(language).format(count);

const UNITS = ["B", "kB", "MB", "GB"];

/** A size in the largest unit of which there is at least one. */
export function formatSize(size_bytes) {
  const step = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log10(size_bytes || 1) / 3)));
  const amount = size_bytes / 1000 ** step;
  return `${new Intl.NumberFormat(language, { maximumFractionDigits: step && amount < 100 ? 1 : 0 }).format(amount)} ${UNITS[step]}`;
}

const clock = new Intl.DateTimeFormat(language, { hour: "numeric", minute: "2-digit" });
const calendar = new Intl.DateTimeFormat(language, { month: "short", day: "numeric" });
const full = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" });

const daysAgo = (moment) => Math.round((new Date().setHours(0, 0, 0, 0) - new Date(moment).setHours(0, 0, 0, 0)) / 86_400_000);

const isMoment = (text) => Boolean(text) && !Number.isNaN(Date.parse(text));

export function formatMoment(text) {
  if (!isMoment(text)) return "";
  return daysAgo(text) <= 0 ? clock.format(new Date(text)) : calendar.format(new Date(text));
}

export const formatFull = (text) => (isMoment(text) ? full.format(new Date(text)) : "");

/** The heading under which a conversation stands in the list. */
export function dayGroup(text) {
  if (!isMoment(text)) return t("earlier");
  const days = daysAgo(text);
  if (days <= 0) return t("today");
  if (days === 1) return t("yesterday");
  return days < 7 ? t("last_week") : t("earlier");
}
