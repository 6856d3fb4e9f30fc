// Highlighted code. The library loads in a worker when code is shown for the first time.

// More than this would be more elements than a page scrolls well with.
const MAX_CHARS = 100_000;
const TIMEOUT_MS = 5000;

let worker = null;
let last = 0;
const waiting = new Map();

function settle(id, runs) {
  const { resolve, timer } = waiting.get(id) ?? {};
  clearTimeout(timer);
  waiting.delete(id);
  resolve?.(runs);
}

/** What is waited for stays plain; the next call starts a new worker. */
function giveUp() {
  worker?.terminate();
  worker = null;
  for (const id of [...waiting.keys()]) settle(id, null);
}

function runsOf(code, language) {
  if (!worker) {
    worker = new Worker(new URL("./highlight-worker.js", import.meta.url), { type: "module" });
    worker.addEventListener("message", ({ data }) => settle(data.id, data.runs));
    worker.addEventListener("error", (event) => {
      event.preventDefault();
      giveUp();
    });
  }
  return new Promise((resolve) => {
    const id = ++last;
    waiting.set(id, { resolve, timer: setTimeout(giveUp, TIMEOUT_MS) });
    worker.postMessage({ id, code, language });
  });
}

/**
 * The code as a fragment of text and `span.hl-…` (`styles/code.css`). The language is a name as in a fence, or a
 * file's name or path. Code in an unknown language, or too long, comes back as plain text; never rejects.
 */
export async function highlight(code, language) {
  const fragment = document.createDocumentFragment();
  const runs = language && code.length <= MAX_CHARS ? await runsOf(code, language) : null;
  for (const [scope, text] of runs ?? [[null, code]]) {
    if (!scope) {
      fragment.append(text);
      continue;
    }
    const span = document.createElement("span");
    span.className = `hl-${scope}`;
    span.textContent = text;
    fragment.append(span);
  }
  return fragment;
}
