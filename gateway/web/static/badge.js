// The number of calls that wait for the person, in the window's title and on its icon.

const icon = document.querySelector('link[rel="icon"]');
const plainIcon = icon.href;
const DOT = '<circle cx="48" cy="48" r="16" fill="#ab3429" stroke="#fff" stroke-width="4"/>';
let title = document.title;
let waiting = 0;
let markedIcon = null;

function draw() {
  document.title = waiting ? `(${waiting}) ${title}` : title;
}

export function setPageTitle(text) {
  title = text;
  draw();
}

/** The page's own icon with a dot, as a data address. */
async function withDot() {
  const drawing = await (await fetch(plainIcon)).text();
  return `data:image/svg+xml,${encodeURIComponent(drawing.replace("</svg>", `${DOT}</svg>`))}`;
}

export async function setWaiting(count) {
  if (count === waiting) return;
  waiting = count;
  draw();
  if (count) markedIcon ??= await withDot().catch(() => null);
  icon.href = (waiting && markedIcon) || plainIcon;
}
