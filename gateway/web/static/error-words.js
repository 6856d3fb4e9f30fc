// The gateway writes its errors in English, for programs; here they get the page's language by their code.

import { formatCount } from "/static/format.js";
import { language, t } from "/static/i18n.js";
import errorsZh from "/static/words/errors-zh.js";

const OTHER_ZH = "请求未能完成。（{message}）";

/** The words of an error of the gateway; undefined if it has none. */
export function errorWords({ code, message, details }) {
  if (code === "body_too_large" && details?.max_bytes) return t("over_limit", { limit: formatCount(details.max_bytes / 2 ** 20) });
  if (language !== "zh-CN" || !message) return message;
  return (errorsZh[code] ?? OTHER_ZH).replace("{message}", () => message);
}
