// The page's line icons, drawn on a 24-unit grid in the color of the surrounding text.

const SHAPES = {
  alert: "M12 8v5M12 16.5v.01M10.4 3.9 2.6 17.4A1.9 1.9 0 0 0 4.2 20.2h15.6a1.9 1.9 0 0 0 1.6-2.8L13.6 3.9a1.9 1.9 0 0 0-3.2 0Z",
  book: "M12 6.5C10 5 7 4.5 4 4.8v13.4c3-.3 6 .2 8 1.7 2-1.5 5-2 8-1.7V4.8c-3-.3-6 .2-8 1.7Zm0 0v13.4",
  bookmark: "M7 4h10v16l-5-3.8L7 20Z",
  branch: "M7 8v8M9 6a2 2 0 1 1-4 0 2 2 0 0 1 4 0ZM9 18a2 2 0 1 1-4 0 2 2 0 0 1 4 0ZM19 8a2 2 0 1 1-4 0 2 2 0 0 1 4 0ZM17 10c0 4-10 1.5-10 6",
  check: "M5 12.5 10 17.5 19.5 7",
  chevron: "m9 6 6 6-6 6",
  clock: "M12 7.5V12l3 2M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0Z",
  clip: "M19.5 11.5 12 19a4.6 4.6 0 0 1-6.5-6.5l7.8-7.8a3.1 3.1 0 0 1 4.4 4.4l-7.7 7.7a1.5 1.5 0 0 1-2.2-2.2l6.8-6.8",
  close: "M6 6l12 12M18 6 6 18",
  copy: "M9 9h10v11H9zM5 15V4h10",
  cross: "M7 7l10 10M17 7 7 17",
  down: "M12 5v14M6 13l6 6 6-6",
  download: "M12 4v11M7 10.5l5 5 5-5M5 20h14",
  file: "M13.5 3.5H6.5v17h11v-13zM13.5 3.5v4h4M9.5 12.5h5M9.5 16h5",
  folder: "M3.5 6.5h6l2 2.5h9v10h-17Z",
  gear: "M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6ZM12 3v2.2M12 18.8V21M3 12h2.2M18.8 12H21M5.6 5.6l1.6 1.6M16.8 16.8l1.6 1.6M5.6 18.4l1.6-1.6M16.8 7.2l1.6-1.6",
  gauge: "M4 18a9 9 0 1 1 16 0M12 14l4-5M12 14.5v.01",
  info: "M12 11v5.5M12 7.6v.01M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0Z",
  keyboard: "M3.5 6.5h17v11h-17zM7 10v.01M10.3 10v.01M13.7 10v.01M17 10v.01M7 13.8v.01M10 13.8h4M17 13.8v.01",
  menu: "M4 7h16M4 12h16M4 17h10",
  minus: "M6 12h12",
  pencil: "M4 20l1-4.5L16.5 4l3.5 3.5L8.5 19 4 20ZM14 6.5l3.5 3.5",
  plus: "M12 5v14M5 12h14",
  question: "M9.2 9.2a2.9 2.9 0 1 1 4.3 2.5c-1 .6-1.5 1.1-1.5 2.3M12 17.2v.01",
  pin: "M9 4h6l-.6 6.2 3.1 3.3H6.5l3.1-3.3L9 4ZM12 13.5V20",
  retry: "M19 6v4.5h-4.5M18.6 10.2A7 7 0 1 0 19 14",
  search: "M20 20l-4.2-4.2M17.5 11a6.5 6.5 0 1 1-13 0 6.5 6.5 0 0 1 13 0Z",
  shield: "M12 3.5 5 6v5.5c0 4.3 2.9 7.6 7 9 4.1-1.4 7-4.7 7-9V6l-7-2.5Z",
  spark: "M12 4v4M12 16v4M4 12h4M16 12h4M6.5 6.5 9 9M15 15l2.5 2.5M17.5 6.5 15 9M9 15l-2.5 2.5",
  stop: "M7.5 7.5h9v9h-9z",
  trash: "M5 7h14M10 7V4.5h4V7M7 7l.8 12.5h8.4L17 7M10.3 10.5v5.5M13.7 10.5v5.5",
  undo: "M8.5 5 4.5 9l4 4M4.5 9H14a5.5 5.5 0 0 1 0 11h-3",
  up: "M12 19V5M6 11l6-6 6 6",
};

const SVG = "http://www.w3.org/2000/svg";

/** A decorative icon; the control that holds it carries the name for assistive technology. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", `icon icon-${name}`);
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("focusable", "false");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", SHAPES[name]);
  svg.append(path);
  return svg;
}

/** Put the icons into the places of the static page that ask for one. */
export function drawIcons(root = document) {
  for (const node of root.querySelectorAll("[data-icon]")) node.prepend(icon(node.dataset.icon));
}
