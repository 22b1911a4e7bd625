/** A command being filled in: a field for each option in use, and what adds the optional ones. */

import { choiceOffers, isTyped, optionField, splitByNames } from "./commands.js";
import { el } from "./dom.js";
import { checkAll } from "./fields.js";

export class Filling {
  command;
  node;
  #world;
  #acts;
  #entries = []; // { option, field, node } of the options in use, in the command's order
  #places = el("div", { class: "command-fields" });
  #more = el("div", { class: "command-more", role: "group", "aria-label": "Options to add" });
  #send = el("button", { type: "submit", class: "button primary send" }, "Send");

  /** `onleave()` is called when the reader gives the command up. */
  constructor(command, { world, acts, onleave, onenter }) {
    this.command = command;
    this.#world = world;
    this.#acts = acts;
    const head = el(
      "div",
      { class: "command-head" },
      el("span", { class: "command-name" }, `/${command.shown}`),
      el("span", { class: "command-about" }, command.about),
      el("button", { type: "button", class: "plain", "aria-label": `Leave /${command.shown}`, onclick: onleave }, "✕"),
    );
    const foot = el("div", { class: "command-foot" }, this.#more, this.#send);
    const body = el("div", { role: "group", "aria-label": `Options of /${command.shown}` }, this.#places, foot);
    body.addEventListener("keydown", (event) => this.#key(event, onleave, onenter));
    body.addEventListener("input", (event) => this.#typed(event));
    body.addEventListener("taken", (event) => this.#goOn(event));
    this.node = [head, body];
    for (const option of command.options) if (option.required) this.#add(option);
    this.#showMore();
  }

  /** Where nothing must be given, Enter sends at once, as chats have it; typing begins the first option. */
  focus() {
    (this.#entries[0]?.field ?? this.#send).focus();
  }

  /** Take in what was typed after the command's name; return what is left over when it has no options. */
  fill(text) {
    if (text.trim() === "") return "";
    const first = this.#entries[0] ?? (this.command.options[0] && this.#add(this.command.options[0]));
    if (!first) return text.trim();
    this.#spread(first, text, true);
    return "";
  }

  /** Return the options with their values, or null after showing what is wrong with them. */
  read() {
    if (!checkAll(this.#entries.map(({ field }) => field))) return null;
    return this.#values();
  }

  /** An answer of the bot for one of the fields, which knows by the number whether it is its own. */
  offer({ request, choices, problem }) {
    const offers = choiceOffers({ choices }, this.#world);
    for (const { field } of this.#entries) field.offer?.({ request, choices: offers, problem });
  }

  #values(without = null) {
    const used = this.#entries.filter(({ option }) => option !== without);
    const pairs = used.map(({ option, field }) => [option.name, field.read()]);
    return Object.fromEntries(pairs.filter(([, value]) => value !== undefined && !Number.isNaN(value)));
  }

  // ---- Options come and go

  #add(option) {
    const suggest = (request, text) =>
      this.#acts.suggest(request, this.command.name, option.name, text, this.#values(option));
    const field = optionField(option, this.#world, suggest);
    const entry = { option, field, node: field.node };
    if (!option.required) field.node.append(this.#removeButton(entry));
    const after = this.#entries.find((one) => this.#order(one.option) > this.#order(option));
    this.#places.insertBefore(field.node, after?.node ?? null);
    this.#entries.push(entry);
    this.#entries.sort((one, other) => this.#order(one.option) - this.#order(other.option));
    this.#showMore();
    return entry;
  }

  #removeButton(entry) {
    return el(
      "button",
      {
        type: "button",
        class: "plain remove",
        "aria-label": `Remove ${entry.option.shown}`,
        onclick: () => this.#remove(entry),
      },
      "✕",
    );
  }

  #remove(entry) {
    const index = this.#entries.indexOf(entry);
    entry.node.remove();
    this.#entries.splice(index, 1);
    this.#showMore();
    const left = this.#entries[index - 1] ?? this.#entries[index];
    if (left) left.field.focus();
    else this.focus();
  }

  #order(option) {
    return this.command.options.indexOf(option);
  }

  #left() {
    const used = new Set(this.#entries.map(({ option }) => option));
    return this.command.options.filter((option) => !used.has(option));
  }

  #showMore() {
    this.#more.replaceChildren(...this.#left().map((option) => this.#addButton(option)));
    this.#places.hidden = this.#entries.length === 0;
  }

  #addButton(option) {
    return el(
      "button",
      {
        type: "button",
        class: "add-option",
        "data-option": option.name,
        title: option.about,
        "aria-label": `Add ${option.shown}: ${option.about}`,
        onclick: () => this.#add(option).field.focus(),
      },
      `+ ${option.shown}`,
    );
  }

  // ---- Typing

  #key(event, onleave, onenter) {
    if (event.key === "Escape") onleave();
    else if (event.key === "Enter" && event.target.matches("input:not([type=file])")) onenter();
    else if (event.key === "Backspace" && this.#isEmptyOptional(event.target))
      this.#remove(this.#entryOf(event.target)); // as chats have it: the way back takes the option away
    else {
      if (isText(event)) this.#begin(event.target);
      return; // what was typed goes into the field that has the focus now
    }
    event.preventDefault();
  }

  /** Typing on a button begins an option: the one that the button adds, or on Send the first that is left. */
  #begin(button) {
    const named = this.#left().find(({ name }) => name === button.dataset.option);
    const option = named ?? (button === this.#send ? this.#left().find(isTyped) : null);
    if (option && isTyped(option)) this.#add(option).field.focus();
  }

  #isEmptyOptional(control) {
    const entry = this.#entryOf(control);
    return entry && !entry.option.required && control.matches("input[type=text]") && control.value === "";
  }

  #entryOf(control) {
    return this.#entries.find(({ field }) => field.control === control);
  }

  /** Another option's name and a colon lead to that option, as chats have it. */
  #typed(event) {
    const entry = this.#entryOf(event.target);
    if (entry && /:\s*/.test(entry.field.text)) this.#spread(entry, entry.field.text);
  }

  /** In the middle of a text the field's own name is a word like others, unless the whole text came at once. */
  #spread(entry, text, isWhole = false) {
    const isOpen = (option) => !this.#entries.some((one) => one.option === option && one.field.text !== "");
    const [[, own], ...named] = splitByNames(
      text,
      this.command.options.filter((option) => option === entry.option || isOpen(option)),
    );
    const isOwn = ([option], index) => option === entry.option && (index > 0 || own.trim() !== "");
    if (named.length === 0 || (named.some(isOwn) && !isWhole)) {
      if (entry.field.text !== text) entry.field.setText(text.trimStart());
      return;
    }
    if (own.trim() !== "" || !named.some(([option]) => option === entry.option)) entry.field.setText(own.trim());
    for (const [option, words] of named) this.#put(option, words);
    this.#entries.find(({ option }) => option === named.at(-1)[0]).field.focus();
  }

  #put(option, words) {
    const { field } = this.#entries.find((one) => one.option === option) ?? this.#add(option);
    field.setText(words.trim());
    field.refresh?.();
  }

  /** After an option was taken from a list, the next one that still needs something is at hand. */
  #goOn(event) {
    const from = this.#entries.indexOf(this.#entryOf(event.target));
    const next = this.#entries.slice(from + 1).find(({ option, field }) => option.required && isEmpty(field));
    next?.field.focus();
  }
}

/** True for a key that writes something. A blank presses the button it is typed on. */
function isText({ key, ctrlKey, metaKey, altKey, isComposing }) {
  return [...key].length === 1 && key !== " " && !ctrlKey && !metaKey && !altKey && !isComposing;
}

function isEmpty(field) {
  const value = field.read();
  return value === undefined || value === "";
}
