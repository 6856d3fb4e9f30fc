// Tokens, cost and context in a person's words.

import { formatCount, formatShortCount } from "/static/format.js";
import { t } from "/static/i18n.js";

export const formatCost = (cost_usd) => (cost_usd ? `$${cost_usd.toFixed(cost_usd < 1 ? 4 : 2)}` : "");

/** What a turn has used: short, and in full. */
export function turnUsage({ usage, cost_usd: cost_usd }) {
  const read = (usage?.input_tokens ?? 0) + (usage?.cache_read_input_tokens ?? 0) + (usage?.cache_creation_input_tokens ?? 0);
  const written = usage?.output_tokens ?? 0;
  if (read + written === 0) return null;
  return {
    short: [t("tokens_short", { count: formatShortCount(read + written) }), formatCost(cost_usd)].filter(Boolean).join(" · "),
    whole: t("usage", { input: formatCount(read), output: formatCount(written) }),
  };
}

export const contextPercent = ({ tokens, window }) => Math.min(100, Math.round((100 * tokens) / window));

export const contextWords = (context) => t("context_used", { tokens: formatCount(context.tokens), window: formatCount(context.window), percent: contextPercent(context) });
