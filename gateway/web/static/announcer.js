// Announces to assistive technology. A streamed reply is announced once, when it is complete.

import { byId } from "/static/dom.js";

const MAX_SPOKEN_CHARS = 600;

function speak(region, text) {
  // The same words again are news too; an unchanged region would stay silent.
  region.textContent = "";
  setTimeout(() => { region.textContent = text.slice(0, MAX_SPOKEN_CHARS); }, 50);
}

export const announce = (text) => speak(byId("announcer"), text);
export const announceUrgently = (text) => speak(byId("announcer-urgent"), text);
