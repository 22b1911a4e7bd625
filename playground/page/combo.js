/**
 * A field to type into that offers what fits: the choices of an option, people, roles, channels, or what the bot suggests
 * for what was typed so far.
 */

import { placeBeside } from "./choice.js";
import { el, freshId } from "./dom.js";
import { Field } from "./fields.js";
import { freshRequest } from "./world.js";

const ASK_AFTER_MS = 200;
const SHOWN_MOST = 25;

/** Return a text as it is compared: `@Alice` is also found as `alice`. */
function plain(text) {
  return text.trim().toLowerCase().replace(/^[@#]/, "");
}

/** What both kinds share: a text input, the list over it, and the keys. */
class ComboField extends Field {
  offers = []; // { value, label, description }
  chosen = null; // the offer that was taken, until the text changes
  #active = -1;
  #list;
  #menu;

  constructor({ placeholder, inputmode, ...rest }) {
    super(rest);
    const listId = freshId("offers");
    this.#list = el("ul", { id: listId, role: "listbox", "aria-label": this.label });
    this.#menu = el("div", { class: "menu offers", popover: "manual" }, this.#list);
    const input = el("input", {
      id: freshId("combo"),
      type: "text",
      role: "combobox",
      autocomplete: "off",
      inputmode,
      placeholder,
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      "aria-controls": listId,
      "aria-required": String(this.isRequired),
      "aria-describedby": this.describedBy,
      oninput: () => this.#typed(),
      onfocus: () => this.refresh(),
      onclick: () => this.refresh(),
      onblur: () => this.hide(),
      onkeydown: (event) => this.#key(event),
    });
    this.place(input);
    this.node.append(this.#menu);
  }

  get text() {
    return this.control.value;
  }

  setText(text) {
    this.control.value = text;
    this.chosen = null;
  }

  #typed() {
    this.chosen = null;
    this.refresh();
  }

  // ---- The list

  /** Show these offers; the one at `active` is taken by Enter, -1 for none until an arrow key goes to one. */
  show(offers, active, note = null) {
    this.offers = offers.slice(0, SHOWN_MOST);
    this.#active = this.offers.length > 0 ? active : -1;
    const items = this.offers.map((offer, index) => this.#item(offer, index));
    const nothing = el(
      "li",
      { class: "nothing", role: "option", "aria-disabled": "true", "aria-selected": "false" },
      note,
    );
    this.#list.replaceChildren(...(items.length > 0 ? items : [nothing]));
    const isShown =
      (items.length > 0 || note !== null) && this.control.isConnected && document.activeElement === this.control;
    if (!isShown) {
      this.hide();
      return;
    }
    if (!this.isOpen) this.#menu.showPopover();
    this.control.setAttribute("aria-expanded", "true");
    placeBeside(this.#menu, this.control, true); // what comes next in the form stays in reach
    this.#mark();
  }

  get isOpen() {
    return this.#menu.matches(":popover-open");
  }

  hide() {
    if (this.isOpen) this.#menu.hidePopover();
    this.control.setAttribute("aria-expanded", "false");
    this.control.removeAttribute("aria-activedescendant");
    this.hidden?.();
  }

  #item({ label, description }, index) {
    return el(
      "li",
      {
        role: "option",
        id: freshId("offer"),
        "aria-selected": "false",
        onpointerdown: (event) => event.preventDefault(), // the input keeps the focus, so that the list stays until the click
        onclick: () => this.#take(index),
      },
      el("span", { class: "option-text" }, label, description && el("small", {}, description)),
    );
  }

  #mark() {
    [...this.#list.children].forEach((item, index) => {
      item.classList.toggle("active", index === this.#active);
      item.setAttribute("aria-selected", String(index === this.#active));
    });
    const active = this.#list.children[this.#active];
    if (active && this.#active >= 0) this.control.setAttribute("aria-activedescendant", active.id);
    else this.control.removeAttribute("aria-activedescendant");
    active?.scrollIntoView({ block: "nearest" });
  }

  #take(index) {
    this.chosen = this.offers[index];
    this.control.value = this.chosen.label;
    this.hide();
    this.control.dispatchEvent(new CustomEvent("taken", { bubbles: true }));
  }

  // ---- Keys

  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.isOpen && this.offers.length > 0) this.#move(step);
    else if (step && !this.isOpen) this.refresh();
    else if (event.key === "Enter" && this.isOpen && this.#active >= 0 && !this.isComplete) this.#take(this.#active);
    else if (event.key === "Escape" && this.isOpen) this.hide();
    else {
      const isLeft = event.key === "Tab" && this.isOpen && this.#active >= 0 && this.text !== "";
      if (isLeft && !this.isComplete) this.#take(this.#active);
      return;
    }
    event.preventDefault();
    event.stopPropagation(); // Enter and Escape are about the list, not yet about the command
  }

  #move(step) {
    const { length } = this.offers;
    this.#active = this.#active < 0 ? (step > 0 ? 0 : length - 1) : (this.#active + step + length) % length;
    this.#mark();
  }
}

/** One of a list and nothing else. `offers()` returns the options as they are now. */
export class PickField extends ComboField {
  #all;

  constructor({ offers, ...rest }) {
    super({ placeholder: "Choose…", ...rest });
    this.#all = offers;
  }

  refresh() {
    const typed = plain(this.text);
    const begins = this.#all().filter(({ label }) => plain(label).startsWith(typed));
    const holds = this.#all().filter(
      ({ label, description = "" }) =>
        !plain(label).startsWith(typed) && `${label} ${description}`.toLowerCase().includes(typed),
    );
    const offers = this.chosen ? this.#all() : [...begins, ...holds];
    this.show(offers, 0, "Nothing of that name.");
  }

  get isComplete() {
    return this.#found !== undefined;
  }

  get #found() {
    if (this.chosen) return this.chosen;
    const typed = plain(this.text);
    const fitting = typed === "" ? [] : this.#all().filter((one) => isCalled(one, typed));
    return fitting[0];
  }

  read() {
    return this.#found?.value;
  }

  problem() {
    if (this.text.trim() === "") return this.isRequired ? "Choose one." : null;
    return this.#found ? null : `There is no ${this.text.trim()} to choose.`;
  }
}

function isCalled({ label, value, description }, typed) {
  return plain(label) === typed || String(value).toLowerCase() === typed || description?.toLowerCase() === typed;
}

/**
 * Anything, with the bot's suggestions. `ask(request, text)` asks the bot; `offer(answer)` takes what it suggests, unless the
 * reader has typed on meanwhile. `convert(text)` makes the value of what was typed, `check(value, text)` says what is wrong.
 */
export class SuggestField extends ComboField {
  #ask;
  #convert;
  #check;
  #timer = 0;
  #request = 0;

  constructor({ ask, convert, check, ...rest }) {
    super(rest);
    this.#ask = ask;
    this.#convert = convert;
    this.#check = check;
  }

  refresh() {
    clearTimeout(this.#timer);
    if (this.chosen) return;
    this.#timer = setTimeout(() => {
      this.#request = freshRequest();
      this.#ask(this.#request, this.text);
    }, ASK_AFTER_MS);
  }

  /** The question is withdrawn: a late answer must not open the list over something else. */
  hidden() {
    clearTimeout(this.#timer);
    this.#request = 0;
  }

  offer({ request, choices, problem }) {
    if (request !== this.#request) return;
    this.show(choices, -1, problem ?? "The bot suggests nothing here.");
  }

  /** What was typed may be sent as it is. */
  get isComplete() {
    return false;
  }

  read() {
    if (this.chosen) return this.chosen.value;
    return this.text.trim() === "" ? undefined : this.#convert(this.text.trim());
  }

  problem() {
    const value = this.read();
    if (value === undefined) return this.isRequired ? "Fill this in." : null;
    return this.#check(value);
  }
}
