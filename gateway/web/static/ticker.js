// One timer for everything that shows passing time; it runs only when needed.

const INTERVAL_MS = 500;
const listeners = new Map();
let timer = null;

function tick() {
  for (const [node, listener] of listeners) {
    if (node.isConnected) listener();
    else listeners.delete(node);
  }
  if (listeners.size === 0) {
    clearInterval(timer);
    timer = null;
  }
}

/** Call `listener` now and twice a second, as long as `node` is in the page. */
export function startTicking(node, listener) {
  listeners.set(node, listener);
  listener();
  timer ??= setInterval(tick, INTERVAL_MS);
}

export function stopTicking(node) {
  listeners.delete(node);
}
