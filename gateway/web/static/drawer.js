// On a narrow screen the sidebar is a drawer over the page.

import { byId } from "/static/dom.js";

const narrow = matchMedia("(max-width: 800px)");

export class Drawer {
  #opener = byId("sidebar-open");
  #sidebar = byId("sidebar");

  constructor() {
    this.#opener.addEventListener("click", () => this.#set(true));
    byId("sidebar-close").addEventListener("click", () => this.close());
    byId("scrim").addEventListener("click", () => this.close());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && document.body.classList.contains("drawer-open")) this.close();
    });
    narrow.addEventListener("change", () => this.#set(false));
    this.#set(false);
  }

  close() {
    if (!document.body.classList.contains("drawer-open")) return;
    this.#set(false);
    this.#opener.focus();
  }

  #set(isOpen) {
    document.body.classList.toggle("drawer-open", isOpen);
    this.#opener.setAttribute("aria-expanded", String(isOpen));
    // Closed, it is out of sight; it must be out of the keyboard's way too.
    this.#sidebar.inert = narrow.matches && !isOpen;
    if (isOpen) byId("sidebar-close").focus();
  }
}
