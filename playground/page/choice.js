/**
 * A select as chats have it: a button that opens a list of options with emoji and descriptions, for one or several.
 * The native element would send an interaction at each arrow key.
 */

import { el, freshId } from "./dom.js";

/**
 * Return the button. `options` are `{ value, label, description, emoji }`, `selected` values, `onchoose(values)` is called
 * once when the reader is done; Escape calls nothing. `refocus(button)` gives the focus back when the list closes:
 * the button may have been redrawn meanwhile.
 */
export function choiceButton({
  label,
  labelledBy,
  placeholder,
  options,
  selected,
  min,
  max,
  attributes,
  onchoose,
  refocus,
}) {
  const chosen = options.filter((option) => selected.includes(option.value));
  const text = chosen.length > 0 ? chosen.map((option) => option.label).join(", ") : placeholder;
  const id = freshId("choice");
  const name = labelledBy ? { "aria-labelledby": `${labelledBy} ${id}` } : { "aria-label": nameOf(label, chosen) };
  const button = el(
    "button",
    {
      type: "button",
      id,
      class: "choice",
      "aria-haspopup": "listbox",
      "aria-expanded": "false",
      ...name,
      ...attributes,
    },
    el("span", { class: chosen.length > 0 ? "choice-text" : "choice-text empty" }, text),
  );
  button.addEventListener("click", () => {
    if (button.getAttribute("aria-disabled") === "true") return;
    if (openMenu?.belongsTo(button)) openMenu.close();
    else new ChoiceMenu(button, { label: label ?? placeholder, options, selected, min, max, onchoose, refocus }).open();
  });
  return button;
}

function nameOf(label, chosen) {
  return chosen.length > 0 ? `${label}: ${chosen.map((option) => option.label).join(", ")}` : label;
}

/** Return how many may be chosen, in words, or "" for exactly one. */
export function boundsInWords(min, max) {
  if (max === 1) return min === 0 ? "Choose one or none" : "";
  if (min === max) return `Choose ${max}`;
  return min === 0 ? `Choose up to ${max}` : `Choose ${min} to ${max}`;
}

/** Place a shown popover under its anchor, or above it where there is more room or `prefersAbove`, and inside the window. */
export function placeBeside(menu, anchor, prefersAbove = false) {
  const place = anchor.getBoundingClientRect();
  menu.style.minWidth = `${Math.min(place.width, window.innerWidth - 16)}px`;
  const { width, height } = menu.getBoundingClientRect();
  const fitsBelow = place.bottom + height + 8 <= window.innerHeight;
  const fitsAbove = place.top >= height + 8;
  const isBelow = !fitsAbove || (fitsBelow && !prefersAbove);
  const top = isBelow ? Math.min(place.bottom + 4, window.innerHeight - height - 8) : place.top - height - 4;
  menu.style.left = `${Math.max(8, Math.min(place.left, window.innerWidth - width - 8))}px`;
  menu.style.top = `${Math.max(8, top)}px`;
}

let openMenu = null;

class ChoiceMenu {
  #button;
  #choice;
  #values;
  #active;
  #items;
  #list;
  #menu;
  #done = null;
  #typed = "";
  #typedAt = 0;

  constructor(button, choice) {
    this.#button = button;
    this.#choice = choice;
    this.#values = new Set(choice.selected);
    this.#active = Math.max(
      0,
      choice.options.findIndex((option) => this.#values.has(option.value)),
    );
    this.#items = choice.options.map((option, index) => this.#item(option, index));
    this.#list = el(
      "ul",
      {
        role: "listbox",
        tabindex: 0,
        "aria-label": choice.label,
        "aria-multiselectable": this.#isMultiple ? "true" : null,
        onkeydown: (event) => this.#key(event),
      },
      this.#items,
    );
    this.#menu = el("div", { class: "menu", popover: "manual" }, this.#list, this.#isMultiple && this.#footer());
  }

  get #isMultiple() {
    return this.#choice.max > 1;
  }

  belongsTo(button) {
    return this.#button === button;
  }

  open() {
    openMenu?.close(false);
    openMenu = this;
    this.#button.setAttribute("aria-expanded", "true");
    (this.#button.closest("dialog") ?? document.body).append(this.#menu); // outside an open dialog it would be inert
    this.#menu.showPopover();
    placeBeside(this.#menu, this.#button);
    this.#show();
    this.#list.focus();
    document.addEventListener("pointerdown", this.#pressedElsewhere, true);
    window.addEventListener("resize", this.#resized);
  }

  /** Take the list away; the focus goes back to the button unless the reader has already gone elsewhere. */
  close(mayRefocus = true) {
    document.removeEventListener("pointerdown", this.#pressedElsewhere, true);
    window.removeEventListener("resize", this.#resized);
    this.#button.setAttribute("aria-expanded", "false");
    this.#menu.remove();
    openMenu = null;
    if (mayRefocus) this.#choice.refocus(this.#button);
  }

  #item({ label, description, emoji, value }, index) {
    return el(
      "li",
      {
        role: "option",
        id: freshId("option"),
        "aria-selected": String(this.#values.has(value)),
        onclick: () => this.#pick(index),
        onpointermove: () => this.#activate(index),
      },
      emoji && el("span", { class: "emoji", "aria-hidden": "true" }, emoji),
      el("span", { class: "option-text" }, label, description && el("small", {}, description)),
    );
  }

  #footer() {
    this.#done = el("button", { type: "button", class: "button primary", onclick: () => this.#finish() }, "Done");
    this.#done.addEventListener("keydown", (event) => this.#leaveWithEscape(event));
    const { min, max, options } = this.#choice;
    return el(
      "div",
      { class: "menu-foot" },
      el("span", {}, boundsInWords(min, Math.min(max, options.length))),
      this.#done,
    );
  }

  #show() {
    this.#items.forEach((item, index) => {
      item.setAttribute("aria-selected", String(this.#values.has(this.#choice.options[index].value)));
      item.classList.toggle("active", index === this.#active);
    });
    const active = this.#items[this.#active];
    if (active) this.#list.setAttribute("aria-activedescendant", active.id);
    active?.scrollIntoView({ block: "nearest" });
    this.#done?.toggleAttribute("disabled", !this.#isAllowed);
  }

  get #isAllowed() {
    return this.#values.size >= this.#choice.min && this.#values.size <= this.#choice.max;
  }

  #activate(index) {
    if (index === this.#active || index < 0 || index >= this.#items.length) return;
    this.#active = index;
    this.#show();
  }

  #pick(index) {
    const { value } = this.#choice.options[index] ?? {};
    if (value === undefined) return;
    this.#active = index;
    const isChosen = this.#values.has(value);
    if (!this.#isMultiple) this.#values.clear();
    if (!isChosen && this.#values.size < this.#choice.max) this.#values.add(value);
    else if (this.#isMultiple || this.#choice.min === 0) this.#values.delete(value);
    else this.#values.add(value);
    if (this.#isMultiple) this.#show();
    else this.#finish();
  }

  #finish() {
    if (!this.#isAllowed) return;
    this.close();
    const inOrder = this.#choice.options.map(({ value }) => value).filter((value) => this.#values.has(value));
    this.#choice.onchoose(inOrder);
  }

  #key(event) {
    const act = this.#keys[event.key];
    if (act) {
      event.preventDefault(); // Escape must close the list, not the form around it
      act();
    } else if (event.key === "Tab" && !this.#isMultiple) {
      event.preventDefault();
      this.close();
    } else if (event.key.length === 1) this.#typeAhead(event.key.toLowerCase());
  }

  #keys = {
    ArrowDown: () => this.#activate(this.#active + 1),
    ArrowUp: () => this.#activate(this.#active - 1),
    Home: () => this.#activate(0),
    End: () => this.#activate(this.#items.length - 1),
    " ": () => this.#pick(this.#active),
    Enter: () => (this.#isMultiple ? this.#finish() : this.#pick(this.#active)),
    Escape: () => this.close(),
  };

  #leaveWithEscape(event) {
    if (event.key !== "Escape") return;
    event.preventDefault();
    this.close();
  }

  #typeAhead(letter) {
    const now = performance.now();
    this.#typed = now - this.#typedAt > 700 ? letter : this.#typed + letter;
    this.#typedAt = now;
    this.#activate(this.#choice.options.findIndex(({ label }) => label.toLowerCase().startsWith(this.#typed)));
  }

  #pressedElsewhere = (event) => {
    if (this.#menu.contains(event.target) || this.#button.contains(event.target)) return;
    if (this.#isMultiple && this.#isAllowed && this.#isChanged) this.#finish();
    else this.close(false);
  };

  get #isChanged() {
    const before = this.#choice.selected;
    return before.length !== this.#values.size || before.some((value) => !this.#values.has(value));
  }

  #resized = () => this.close();
}
