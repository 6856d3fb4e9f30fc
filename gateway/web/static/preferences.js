// What the person prefers on this page, kept in this browser.

const KEY = "candor.preferences";
const USUAL = Object.freeze({ language: "auto", theme: "auto", density: "comfortable", sendKey: "enter", notifications: false });

function read() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return Object.fromEntries(Object.entries(USUAL).map(([name, value]) => [name, typeof kept?.[name] === typeof value ? kept[name] : value]));
  } catch {
    return { ...USUAL };
  }
}

/** `language` auto|en|zh-CN, `theme` auto|light|dark, `density` comfortable|compact, `sendKey` enter|command, `notifications`. */
export const preferences = read();

/** Keep a change. False where the browser forbids storage: it counts until the page is left. */
export function prefer(change) {
  Object.assign(preferences, change);
  applyLooks();
  try {
    localStorage.setItem(KEY, JSON.stringify(preferences));
    return true;
  } catch {
    return false;
  }
}

/** Theme and density are attributes of the document's element; `tokens.css` knows them. */
export function applyLooks() {
  const { dataset } = document.documentElement;
  dataset.theme = preferences.theme;
  dataset.density = preferences.density;
}

addEventListener("storage", (event) => {
  if (event.key !== KEY) return;
  Object.assign(preferences, read());
  applyLooks();
});
