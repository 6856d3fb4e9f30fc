// The gateway writes its errors in English; here they get the page's language by their code.

import { language } from "/static/i18n.js";
import errorsZh from "/static/words/errors-zh.js";

const OTHER_ZH = "请求未能完成。（{message}）";

/** The words of an error of the gateway; undefined if it has none. */
export function errorWords({ code, message }) {
  if (language !== "zh-CN" || !message) return message;
  return (errorsZh[code] ?? OTHER_ZH).replace("{message}", () => message);
}
