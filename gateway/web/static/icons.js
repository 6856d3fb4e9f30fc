// The page's line icons, drawn on a 24-unit grid in the color of the surrounding text.

const SHAPES = {
  alert: "M12 8v5M12 16.5v.01M10.4 3.9 2.6 17.4A1.9 1.9 0 0 0 4.2 20.2h15.6a1.9 1.9 0 0 0 1.6-2.8L13.6 3.9a1.9 1.9 0 0 0-3.2 0Z",
  book: "M12 6.5C10 5 7 4.5 4 4.8v13.4c3-.3 6 .2 8 1.7 2-1.5 5-2 8-1.7V4.8c-3-.3-6 .2-8 1.7Zm0 0v13.4",
  check: "M5 12.5 10 17.5 19.5 7",
  chevron: "m9 6 6 6-6 6",
  clock: "M12 7.5V12l3 2M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0Z",
  close: "M6 6l12 12M18 6 6 18",
  copy: "M9 9h10v11H9zM5 15V4h10",
  cross: "M7 7l10 10M17 7 7 17",
  down: "M12 5v14M6 13l6 6 6-6",
  download: "M12 4v11M7 10.5l5 5 5-5M5 20h14",
  file: "M13.5 3.5H6.5v17h11v-13zM13.5 3.5v4h4M9.5 12.5h5M9.5 16h5",
  info: "M12 11v5.5M12 7.6v.01M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0Z",
  menu: "M4 7h16M4 12h16M4 17h10",
  minus: "M6 12h12",
  pencil: "M4 20l1-4.5L16.5 4l3.5 3.5L8.5 19 4 20ZM14 6.5l3.5 3.5",
  plus: "M12 5v14M5 12h14",
  question: "M9.2 9.2a2.9 2.9 0 1 1 4.3 2.5c-1 .6-1.5 1.1-1.5 2.3M12 17.2v.01",
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
