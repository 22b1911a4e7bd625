/** A menu of things to do, beside a button or where the reader clicked with the other mouse button. */

import { placeBeside } from "./choice.js";
import { el } from "./dom.js";

let openMenu = null;

/**
 * Open a menu. `groups` are `{ title, items: [{ label, sign, isDanger, act }] }`, empty ones are left out; `anchor` is the
 * element it belongs to, `at` the point it opens at instead, and `refocus()` gives the focus back unless an item took it.
 */
export function openMenuFor({ anchor, at = null, label, groups, refocus }) {
  openMenu?.close(false);
  openMenu = new Menu({ anchor, at, label, groups, refocus });
}

/** Return true while the menu of this element is open. */
export function hasOpenMenu(anchor) {
  return openMenu?.anchor === anchor;
}

/** Close the menu that is open, if there is one, and leave the focus where it is. */
export function closeMenu() {
  openMenu?.close(false);
}

class Menu {
  anchor;
  #box;
  #items = [];
  #refocus;

  constructor({ anchor, at, label, groups, refocus }) {
    this.anchor = anchor;
    this.#refocus = refocus;
    const filled = groups.filter(({ items }) => items.length > 0);
    this.#box = el(
      "div",
      { class: "menu actions", popover: "manual", role: "menu", "aria-label": label, tabindex: -1 },
      filled.map((group) => this.#group(group)),
    );
    this.#box.addEventListener("keydown", (event) => this.#key(event));
    this.#box.addEventListener("contextmenu", (event) => event.preventDefault());
    markOpen(anchor, true);
    document.body.append(this.#box);
    this.#box.showPopover();
    placeBeside(this.#box, at ? pointAsAnchor(at) : anchor);
    document.addEventListener("pointerdown", this.#pressedElsewhere, true);
    window.addEventListener("resize", this.#gone);
    (this.#items[0] ?? this.#box).focus({ preventScroll: true });
  }

  #group({ title, items }) {
    const buttons = items.map((item) => this.#item(item));
    return el(
      "div",
      { role: "group", "aria-label": title },
      title && el("p", { class: "menu-title", "aria-hidden": "true" }, title),
      buttons,
    );
  }

  #item({ label, sign, isDanger, act }) {
    const choose = () => this.close(act() !== false);
    const button = el(
      "button",
      { type: "button", role: "menuitem", tabindex: -1, class: isDanger ? "danger-item" : null, onclick: choose },
      el("span", { class: "menu-sign", "aria-hidden": "true" }, sign ?? ""),
      el("span", {}, label),
    );
    button.addEventListener("pointermove", () => button.focus({ preventScroll: true }));
    this.#items.push(button);
    return button;
  }

  /** The focus goes back first: what the menu was opened from may be out of sight without a menu or the keyboard. */
  close(mayRefocus = true) {
    document.removeEventListener("pointerdown", this.#pressedElsewhere, true);
    window.removeEventListener("resize", this.#gone);
    openMenu = null;
    if (mayRefocus) this.#refocus?.();
    markOpen(this.anchor, false);
    this.#box.remove();
  }

  #key(event) {
    const act = this.#keys[event.key];
    if (act) act();
    else if (event.key.length === 1 && event.key !== " ") this.#goTo(event.key.toLowerCase());
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #keys = {
    ArrowDown: () => this.#step(1),
    ArrowUp: () => this.#step(-1),
    Home: () => this.#items[0]?.focus(),
    End: () => this.#items.at(-1)?.focus(),
    Escape: () => this.close(),
    Tab: () => this.close(),
  };

  #step(by) {
    const now = this.#items.indexOf(document.activeElement);
    this.#items[(now + by + this.#items.length) % this.#items.length]?.focus();
  }

  #goTo(letter) {
    const now = this.#items.indexOf(document.activeElement);
    const inTurn = [...this.#items.slice(now + 1), ...this.#items.slice(0, now + 1)];
    inTurn.find((item) => item.lastElementChild.textContent.toLowerCase().startsWith(letter))?.focus();
  }

  #pressedElsewhere = (event) => {
    if (!this.#box.contains(event.target)) this.close(false);
  };

  #gone = () => this.close(false);
}

/** Mark what a menu or a box was opened from; a message is no button and has nothing to say about it. */
export function markOpen(anchor, isOpen) {
  anchor.classList.toggle("has-menu", isOpen);
  if (anchor.matches("button")) anchor.setAttribute("aria-expanded", String(isOpen));
}

function pointAsAnchor({ x, y }) {
  return { getBoundingClientRect: () => new DOMRect(x, y - 4, 0, 0) };
}
