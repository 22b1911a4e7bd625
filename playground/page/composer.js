/** Where the reader writes: plain text, or a command picked after "/" with a field for each option. */

import { matchingCommands, optionField, typedCommands } from "./commands.js";
import { el } from "./dom.js";
import { checkAll } from "./fields.js";
import { avatar } from "./pieces.js";

const PICKER_ID = "command-list";

/** The form at the foot of the page. */
export class Composer {
  #form;
  #world;
  #acts;
  #input;
  #picker;
  #line;
  #active = 0;
  #matches = [];
  #command = null; // the one whose fields are shown
  #fields = [];

  constructor(form, world, acts) {
    this.#form = form;
    this.#world = world;
    this.#acts = acts;
    this.#input = this.#textInput();
    this.#picker = el("ul", {
      id: PICKER_ID,
      role: "listbox",
      class: "picker",
      "aria-label": "Commands",
      hidden: true,
    });
    this.#line = el("div", { class: "line" });
    form.append(this.#picker, this.#line);
    form.addEventListener("submit", (event) => this.#submitted(event));
    this.#showText();
    world.watch(["commands"], () => this.#commandsChanged());
    world.watch(["channels"], () => this.#nameChannel());
  }

  // ---- Plain text

  #textInput() {
    return el("input", {
      id: "write",
      type: "text",
      role: "combobox",
      autocomplete: "off",
      spellcheck: "true",
      maxlength: 4000,
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      "aria-controls": PICKER_ID,
      oninput: () => this.#typed(),
      onkeydown: (event) => this.#key(event),
      onblur: () => this.#hidePicker(),
    });
  }

  #nameChannel() {
    const name = this.#world.channels.find(({ id }) => id === this.#world.channelId)?.name ?? "";
    this.#input.placeholder = `Message #${name} or type /`;
    this.#input.setAttribute("aria-label", `Message #${name}, or / for a command`);
  }

  #showText(text = "") {
    this.#command = null;
    this.#input.value = text;
    this.#line.replaceChildren(this.#input, sendButton());
    this.#form.classList.remove("filling");
  }

  #submitted(event) {
    event.preventDefault();
    if (this.#command) this.#sendCommand();
    else this.#sendText();
  }

  #sendText() {
    const text = this.#input.value.trim();
    if (text.startsWith("/")) this.#chooseMatch(text);
    else if (text !== "" && this.#acts.say(text)) this.#showText();
  }

  /** What looks like a command is never said aloud: it is a slip of the pen, or the bot is not ready yet. */
  #chooseMatch(text) {
    if (this.#matches.length > 0) this.#choose(this.#matches[this.#active]);
    else this.#world.tell("refused", `Not sent: the bot has no command ${text.split(" ")[0]}.`);
  }

  // ---- The picker

  #typed() {
    const text = this.#input.value.toLowerCase();
    const commands = typedCommands(this.#world.commands);
    const named = commands.find(
      ({ name }) => text === `/${name} ` && !commands.some((other) => other.name.startsWith(`${name} `)),
    );
    this.#active = 0;
    this.#matches = text.startsWith("/") ? matchingCommands(commands, text.slice(1).trim()) : [];
    if (named) this.#choose(named);
    else this.#showPicker();
  }

  #showPicker() {
    const isAsked = this.#input.value.startsWith("/") && !this.#command;
    const items = this.#matches.map((command, index) => this.#pickerItem(command, index));
    const nothing = el(
      "li",
      { class: "nothing", role: "option", "aria-disabled": "true", "aria-selected": "false" },
      this.#noMatchText(),
    );
    this.#picker.replaceChildren(...(items.length > 0 ? items : [nothing]));
    this.#picker.hidden = !isAsked;
    this.#input.setAttribute("aria-expanded", String(isAsked));
    this.#markActive();
  }

  #noMatchText() {
    return this.#world.commands.length > 0 ? "No command of that name." : "The bot has no commands yet. Is it running?";
  }

  #pickerItem({ name, description }, index) {
    return el(
      "li",
      {
        role: "option",
        id: `${PICKER_ID}-${index}`,
        "aria-selected": "false",
        onpointerdown: (event) => event.preventDefault(), // the input keeps the focus, so that the list stays until the click
        onclick: () => this.#choose(this.#matches[index]),
      },
      el("span", { class: "command-name" }, `/${name}`),
      el("span", { class: "command-about" }, description),
    );
  }

  #markActive() {
    [...this.#picker.children].forEach((item, index) => {
      item.setAttribute("aria-selected", String(index === this.#active && this.#matches.length > 0));
    });
    const active = this.#picker.hidden || this.#matches.length === 0 ? null : this.#picker.children[this.#active];
    if (active) this.#input.setAttribute("aria-activedescendant", active.id);
    else this.#input.removeAttribute("aria-activedescendant");
    active?.scrollIntoView({ block: "nearest" });
  }

  #hidePicker() {
    this.#picker.hidden = true;
    this.#input.setAttribute("aria-expanded", "false");
    this.#input.removeAttribute("aria-activedescendant");
  }

  #key(event) {
    const isOpen = !this.#picker.hidden && this.#matches.length > 0;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (isOpen && step) this.#active = (this.#active + step + this.#matches.length) % this.#matches.length;
    else if (isOpen && event.key === "Tab" && !event.shiftKey) this.#choose(this.#matches[this.#active]);
    else if (event.key === "Escape") this.#hidePicker();
    else return;
    event.preventDefault();
    this.#markActive();
  }

  // ---- A command's fields

  #choose(command) {
    this.#hidePicker();
    this.#command = command;
    this.#fields = command.options.map((option) => optionField(option, this.#world));
    const cancel = el(
      "button",
      { type: "button", class: "plain", "aria-label": `Leave /${command.name}`, onclick: () => this.#leave() },
      "✕",
    );
    const head = el(
      "div",
      { class: "command-head" },
      el("span", { class: "command-name" }, `/${command.name}`),
      el("span", { class: "command-about" }, command.description),
      cancel,
    );
    const send = sendButton();
    const fields = el(
      "div",
      {
        class: "command-fields",
        role: "group",
        "aria-label": `Options of /${command.name}`,
        onkeydown: (event) => this.#fieldKey(event),
      },
      this.#fields.map(({ node }) => node),
      send,
    );
    this.#line.replaceChildren(head, fields);
    this.#form.classList.add("filling");
    if (this.#fields.length > 0) this.#fields[0].focus();
    else send.focus();
  }

  #fieldKey(event) {
    if (event.key === "Escape") this.#leave();
    else if (event.key === "Enter" && event.target.matches("select")) this.#form.requestSubmit();
    else return;
    event.preventDefault();
  }

  #sendCommand() {
    if (!checkAll(this.#fields)) return;
    const filled = this.#fields.map((field) => [field.label, field.read()]).filter(([, value]) => value !== undefined);
    if (this.#acts.command(this.#command.name, Object.fromEntries(filled))) this.#leave();
  }

  #leave() {
    this.#showText();
    this.#input.focus();
  }

  /** Commands the bot registered anew are mostly the same ones: what is being filled in stays unless it really changed. */
  #commandsChanged() {
    if (this.#command) {
      const now = typedCommands(this.#world.commands).find(({ name }) => name === this.#command.name);
      const isSame = now && JSON.stringify(now) === JSON.stringify(this.#command);
      if (!isSame) this.#showText();
    } else if (!this.#picker.hidden) this.#typed();
  }
}

function sendButton() {
  return el("button", { type: "submit", class: "button primary send" }, "Send");
}

/** Show who the reader acts as, and let them change it. Arrow keys go from one person to the next. */
export function showPeople(group, world) {
  world.watch(["people"], () => {
    const buttons = world.users.map((user) => personRadio(user, world));
    const hadFocus = group.contains(document.activeElement);
    group.replaceChildren(el("legend", {}, "Act as"), ...buttons);
    if (hadFocus) group.querySelector("input:checked")?.focus();
  });
}

function personRadio({ id, name }, world) {
  const radio = el("input", {
    type: "radio",
    name: "acting",
    value: id,
    class: "visually-hidden",
    onchange: () => world.actAs(id),
  });
  radio.checked = id === world.actingAs;
  return el("label", { class: "person" }, radio, avatar(id, name), el("span", {}, name));
}
