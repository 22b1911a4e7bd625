/** Where the reader writes: plain text with files, or a command picked after "/" with a field for each option. */

import { commandInText, matchingCommands, typedCommands } from "./commands.js";
import { el } from "./dom.js";
import { Filling } from "./filling.js";
import { channelTitle } from "./pieces.js";
import { FileTray } from "./upload.js";

const PICKER_ID = "command-list";
const FILES_MAX = 10;

/** The form at the foot of the page. */
export class Composer {
  #form;
  #world;
  #acts;
  #input;
  #picker;
  #items = [];
  #line;
  #tray;
  #active = 0;
  #matches = [];
  #filling = null; // the command whose fields are shown

  constructor(form, world, acts) {
    this.#form = form;
    this.#world = world;
    this.#acts = acts;
    this.#input = this.#textInput();
    this.#picker = el("div", {
      id: PICKER_ID,
      role: "listbox",
      class: "picker",
      "aria-label": "Commands",
      hidden: true,
    });
    this.#line = el("div", { class: "line" });
    this.#tray = new FileTray({ max: FILES_MAX, button: attachButton() });
    this.#tray.list.hidden = true;
    form.append(this.#picker, this.#tray.list, this.#line);
    form.addEventListener("submit", (event) => this.#submitted(event));
    this.#showText();
    world.watch(["commands", "usable", "people"], () => this.#commandsChanged());
    world.watch(["channels", "people"], () => this.#nameChannel());
    world.on("choices", (packet) => this.#filling?.offer(packet));
  }

  get #commands() {
    return typedCommands(this.#world.usableCommands(), this.#world.me);
  }

  // ---- Plain text

  #textInput() {
    return el("input", {
      id: "write",
      type: "text",
      role: "combobox",
      autocomplete: "off",
      spellcheck: "true",
      maxlength: 8000,
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      "aria-controls": PICKER_ID,
      oninput: () => this.#typed(),
      onkeydown: (event) => this.#key(event),
      onpaste: (event) => this.#pasted(event),
      onblur: () => this.#hidePicker(),
    });
  }

  #nameChannel() {
    const title = channelTitle(this.#world.channel);
    this.#input.placeholder = `Message ${title} or type /`;
    this.#input.setAttribute("aria-label", `Message ${title}, or / for a command`);
  }

  #showText(text = "") {
    this.#filling = null;
    this.#input.value = text;
    const send = el("button", { type: "submit", class: "button primary send" }, "Send");
    this.#line.replaceChildren(this.#tray.button, this.#tray.picker, this.#input, send);
    this.#form.classList.remove("filling");
  }

  #submitted(event) {
    event.preventDefault();
    if (this.#filling) this.#sendCommand();
    else this.#sendText();
  }

  #sendText() {
    const text = this.#input.value.trim();
    if (text.startsWith("/")) this.#chooseMatch(text);
    else if (this.#tray.problem) this.#world.tell("refused", `Not sent: ${this.#tray.problem}`);
    else if ((text !== "" || this.#tray.count > 0) && this.#acts.say(text, this.#tray.ids)) {
      this.#tray.clear();
      this.#input.value = "";
    }
  }

  #pasted(event) {
    const files = [...event.clipboardData.files];
    if (files.length === 0) return;
    event.preventDefault();
    this.#tray.add(files);
  }

  /** What looks like a command is never said aloud: it is a slip of the pen, or the bot is not ready yet. */
  #chooseMatch(text) {
    const match = this.#matches[this.#active];
    if (!match) this.#world.tell("refused", `Not sent: the bot has no command ${text.split(" ")[0]}.`);
    else if (match.options.length === 0 && text === `/${match.shown}`) this.#use(match, {});
    else this.#choose(match);
  }

  // ---- The picker

  #typed() {
    const text = this.#input.value;
    const commands = this.#commands;
    const begun = commandInText(commands, text);
    const isWhole = begun && !commands.some(({ name }) => name.startsWith(`${begun.command.name} `));
    this.#active = 0;
    this.#matches = text.startsWith("/")
      ? inGroups(matchingCommands(commands, text.slice(1).trim().toLowerCase()))
      : [];
    if (isWhole) this.#choose(begun.command, begun.rest);
    else this.#showPicker();
  }

  #showPicker() {
    const isAsked = this.#input.value.startsWith("/") && !this.#filling;
    this.#items = this.#matches.map((command, index) => this.#pickerItem(command, index));
    const nothing = el(
      "div",
      { class: "nothing", role: "option", "aria-disabled": "true", "aria-selected": "false" },
      this.#noMatchText(),
    );
    this.#picker.replaceChildren(...(this.#items.length > 0 ? this.#groups() : [nothing]));
    this.#picker.hidden = !isAsked;
    this.#input.setAttribute("aria-expanded", String(isAsked));
    this.#markActive();
  }

  /** Subcommands stand together under their command's name. */
  #groups() {
    const blocks = [];
    this.#matches.forEach(({ group }, index) => {
      const isSame = group && blocks.at(-1)?.dataset.group === group.name;
      if (!group) blocks.push(this.#items[index]);
      else if (isSame) blocks.at(-1).append(this.#items[index]);
      else blocks.push(pickerGroup(group, this.#items[index]));
    });
    return blocks;
  }

  #noMatchText() {
    if (this.#world.commands.length === 0) return "The bot has no commands yet. Is it running?";
    return this.#commands.length > 0 ? "No command of that name." : "There is no command that you may use here.";
  }

  #pickerItem({ shown, about, options }, index) {
    const names = options.map((option) => el("span", { class: option.required ? "needed" : null }, option.shown));
    return el(
      "div",
      {
        role: "option",
        id: `${PICKER_ID}-${index}`,
        "aria-selected": "false",
        onpointerdown: (event) => event.preventDefault(), // the input keeps the focus, so that the list stays until the click
        onclick: () => this.#choose(this.#matches[index]),
      },
      el("span", { class: "command-name" }, `/${shown}`),
      el("span", { class: "command-about" }, about),
      names.length > 0 && el("span", { class: "command-options", "aria-hidden": "true" }, names),
    );
  }

  #markActive() {
    this.#items.forEach((item, index) => item.setAttribute("aria-selected", String(index === this.#active)));
    const active = this.#picker.hidden ? null : this.#items[this.#active];
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
    else if (event.key === "ArrowUp" && this.#input.value === "") this.#world.tell("editLast");
    else return;
    event.preventDefault();
    this.#markActive();
  }

  // ---- A command's fields

  #choose(command, rest = "") {
    this.#hidePicker();
    this.#filling = new Filling(command, {
      world: this.#world,
      acts: this.#acts,
      onleave: () => this.#leave(),
      onenter: () => this.#form.requestSubmit(),
    });
    this.#line.replaceChildren(...this.#filling.node);
    this.#form.classList.add("filling");
    this.#filling.focus();
    const left = this.#filling.fill(rest);
    if (left) this.#world.tell("refused", `/${command.shown} has no options; “${left}” is left out.`);
  }

  #sendCommand() {
    const options = this.#filling.read();
    if (options) this.#use(this.#filling.command, options);
  }

  #use(command, options) {
    if (this.#acts.command(command.name, options)) this.#leave();
  }

  #leave() {
    this.#showText();
    this.#hidePicker();
    this.#input.focus();
  }

  /** Commands the bot registered anew are mostly the same ones: what is being filled in stays unless it really changed. */
  #commandsChanged() {
    if (this.#filling) {
      const { command } = this.#filling;
      const now = this.#commands.find(({ name }) => name === command.name);
      const isSame = now && JSON.stringify(now) === JSON.stringify(command);
      if (!isSame) this.#showText();
    } else if (!this.#picker.hidden) this.#typed();
  }
}

/** Return the commands with those of a group side by side, each group where its first command stood. */
function inGroups(commands) {
  const blocks = new Map();
  for (const command of commands) {
    const key = command.group?.name ?? `/${command.name}`;
    blocks.set(key, [...(blocks.get(key) ?? []), command]);
  }
  return [...blocks.values()].flat();
}

function pickerGroup({ name, shown, about }, ...items) {
  const title = el("div", { class: "picker-title", "aria-hidden": "true" }, `/${shown} · ${about}`);
  return el("div", { role: "group", "aria-label": shown, "data-group": name }, title, items);
}

function attachButton() {
  return el(
    "button",
    { type: "button", class: "plain attach", "aria-label": "Attach files", title: "Attach files" },
    "+",
  );
}
