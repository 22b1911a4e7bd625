/** Fields of forms and commands: each has a label, what it holds, and what is wrong with it in words. */

import { boundsInWords, choiceButton } from "./choice.js";
import { el, freshId } from "./dom.js";
import { FileTray } from "./upload.js";

/**
 * A field on the page. `node` is what to place, `read()` what the reader entered (undefined when nothing), `focus()`
 * takes the keyboard there, `check()` shows what is wrong and returns true when all is well.
 */
export class Field {
  constructor({ label, description, isRequired }) {
    this.label = label;
    this.isRequired = isRequired;
    this.labelId = freshId("label");
    this.hintId = description ? freshId("hint") : null;
    this.problemId = freshId("problem");
    this.description = description;
    this.problemNode = el("p", { class: "problem", id: this.problemId, hidden: true });
  }

  /** True for a field that cannot be left empty, so that it needs no mark. */
  isMarkless = false;

  /** What a form sends for an empty field: a text that was cleared is not the same as one that was never given. */
  get whenEmpty() {
    return undefined;
  }

  /** The ids of what describes the control: its description and its problem. */
  get describedBy() {
    return [this.hintId, this.problemId].filter(Boolean).join(" ");
  }

  /** Build `node` around a control. A control without an id is a group, which a caption names instead of a label. */
  place(control) {
    this.control = control;
    const text = [this.label, ...(this.isRequired && !this.isMarkless ? requiredMark() : [])];
    const caption = control.id
      ? el("label", { for: control.id }, text)
      : el("p", { class: "field-name", id: this.labelId }, text);
    this.node = el(
      "div",
      { class: "field" },
      caption,
      this.description && el("p", { class: "hint", id: this.hintId }, this.description),
      control,
      this.problemNode,
    );
    return this;
  }

  focus() {
    const target = this.control.matches("input, textarea, select, button")
      ? this.control
      : this.control.querySelector("input:checked, input");
    target?.focus();
  }

  check() {
    const problem = this.problem();
    this.problemNode.textContent = problem ?? "";
    this.problemNode.hidden = problem === null;
    if (this.control.id) this.control.setAttribute("aria-invalid", String(problem !== null));
    return problem === null;
  }
}

function requiredMark() {
  return [
    el("span", { class: "required", "aria-hidden": "true" }, "*"),
    el("span", { class: "visually-hidden" }, " (required)"),
  ];
}

/** Show every problem, take the keyboard to the first, and return true when there is none. */
export function checkAll(fields) {
  const wrong = fields.filter((field) => !field.check());
  wrong[0]?.focus();
  return wrong.length === 0;
}

// ---- Text and numbers

export class TextField extends Field {
  constructor({ isLong, value, placeholder, minLength = 0, maxLength, isCounted = false, ...rest }) {
    super(rest);
    Object.assign(this, { minLength, maxLength });
    const counterId = isCounted ? freshId("counter") : null;
    const attributes = {
      id: freshId("text"),
      placeholder,
      maxlength: maxLength,
      autocomplete: "off",
      "aria-required": String(this.isRequired),
      "aria-describedby": [this.describedBy, counterId].filter(Boolean).join(" "),
    };
    const control = isLong ? el("textarea", { ...attributes, rows: 4 }) : el("input", { ...attributes, type: "text" });
    control.value = value ?? "";
    this.place(control);
    if (isCounted) this.#count(counterId);
  }

  #count(id) {
    const counter = el("p", { class: "counter", id });
    const bounds = this.minLength > 0 ? `${this.minLength} to ${this.maxLength}` : `at most ${this.maxLength}`;
    const show = () => {
      const { length } = this.control.value;
      counter.replaceChildren(
        el("span", { class: "visually-hidden" }, `${length} of ${bounds} characters`),
        el("span", { "aria-hidden": "true" }, `${length} / ${this.maxLength}`),
      );
      counter.classList.toggle("short", length > 0 && length < this.minLength);
    };
    this.control.addEventListener("input", show);
    show();
    this.control.after(counter);
  }

  get text() {
    return this.control.value;
  }

  setText(text) {
    this.control.value = text;
  }

  read() {
    return this.control.value === "" ? undefined : this.control.value;
  }

  get whenEmpty() {
    return "";
  }

  problem() {
    return textProblem(this, this.control.value);
  }
}

/** Return what is wrong with a text, or null. */
export function textProblem({ isRequired, minLength, maxLength }, text) {
  const { length } = text;
  if (length === 0) return isRequired ? "Fill this in." : null;
  if (length < minLength) return `Write at least ${minLength} characters (now ${length}).`;
  return length > maxLength ? `Write at most ${maxLength} characters (now ${length}).` : null;
}

/** An option of a command: chats send it without the blanks around it. */
export class TypedField extends TextField {
  read() {
    return this.text.trim() === "" ? undefined : this.text.trim();
  }

  problem() {
    return textProblem(this, this.text.trim());
  }
}

export class NumberField extends Field {
  constructor({ isWhole, min, max, ...rest }) {
    super(rest);
    Object.assign(this, { isWhole, min, max });
    this.place(
      el("input", {
        id: freshId("number"),
        type: "text",
        inputmode: isWhole ? "numeric" : "decimal",
        autocomplete: "off",
        "aria-required": String(this.isRequired),
        "aria-describedby": this.describedBy,
      }),
    );
  }

  get text() {
    return this.control.value;
  }

  setText(text) {
    this.control.value = text;
  }

  read() {
    const text = this.text.trim();
    return text === "" ? undefined : numberOf(text);
  }

  problem() {
    const value = this.read();
    if (value === undefined) return this.isRequired ? "Fill this in." : null;
    return numberProblem(this, value);
  }
}

/** Return the number that was typed; a comma is a point to many people. NaN when it is none. */
export function numberOf(text) {
  return Number(text.replace(",", "."));
}

/** Return what is wrong with a number, or null. */
export function numberProblem({ isWhole, min, max }, value) {
  if (isWhole && !Number.isInteger(value)) return "Write a whole number.";
  if (!Number.isFinite(value)) return "Write a number.";
  if (min !== undefined && value < min) return `The least is ${min}.`;
  return max !== undefined && value > max ? `The most is ${max}.` : null;
}

// ---- Several of a few, as chats have it

export class ChoiceField extends Field {
  constructor({ options, selected, placeholder, min, max, ...rest }) {
    super(rest);
    Object.assign(this, { options, placeholder, min, max, values: selected });
    this.place(el("div", { class: "choice-place" }, this.#button()));
  }

  #button() {
    return choiceButton({
      label: this.label,
      labelledBy: this.labelId,
      placeholder: this.placeholder || "Make a selection",
      options: this.options,
      selected: this.values,
      min: this.min,
      max: this.max,
      attributes: { "aria-describedby": this.describedBy },
      onchoose: (values) => this.#choose(values),
      refocus: () => this.focus(),
    });
  }

  #choose(values) {
    this.values = values;
    this.control.replaceChildren(this.#button());
    this.focus();
  }

  focus() {
    this.control.firstElementChild.focus();
  }

  read() {
    return this.values;
  }

  problem() {
    if (this.values.length === 0 && !this.isRequired) return null;
    const isAllowed = this.values.length >= Math.max(this.min, 1) && this.values.length <= this.max;
    return isAllowed ? null : `${boundsInWords(Math.max(this.min, 1), this.max) || "Choose one"}.`;
  }
}

// ---- Radio buttons and boxes

function optionRow(type, name, option, attributes = {}) {
  const id = freshId(type);
  const hintId = option.description ? `${id}-hint` : null;
  const box = el("input", { type, id, name, value: option.value, "aria-describedby": hintId, ...attributes });
  box.checked = option.default === true;
  return el(
    "div",
    { class: "option-row" },
    box,
    el("label", { for: id }, option.label),
    hintId && el("p", { class: "hint", id: hintId }, option.description),
  );
}

export class RadioField extends Field {
  constructor({ options, ...rest }) {
    super(rest);
    const name = freshId("radios");
    const rows = options.map((option) => optionRow("radio", name, option));
    this.place(
      el(
        "div",
        {
          class: "options",
          role: "radiogroup",
          "aria-labelledby": this.labelId,
          "aria-describedby": this.describedBy,
          "aria-required": String(this.isRequired),
        },
        rows,
      ),
    );
  }

  read() {
    return this.control.querySelector("input:checked")?.value;
  }

  problem() {
    return this.isRequired && this.read() === undefined ? "Choose one." : null;
  }
}

export class BoxesField extends Field {
  constructor({ options, min, max, ...rest }) {
    super(rest);
    Object.assign(this, { min, max });
    const name = freshId("boxes");
    this.place(
      el(
        "div",
        { class: "options", role: "group", "aria-labelledby": this.labelId, "aria-describedby": this.describedBy },
        options.map((option) => optionRow("checkbox", name, option)),
      ),
    );
  }

  read() {
    return [...this.control.querySelectorAll("input:checked")].map(({ value }) => value);
  }

  problem() {
    const { length } = this.read();
    if (length === 0 && !this.isRequired) return null;
    const least = Math.max(this.min, this.isRequired ? 1 : 0);
    return length >= least && length <= this.max ? null : `${boundsInWords(least, this.max) || "Choose one"}.`;
  }
}

export class BoxField extends Field {
  isMarkless = true; // an empty box is an answer as well
  constructor({ isChecked, ...rest }) {
    super(rest);
    const box = el("input", { type: "checkbox", id: freshId("box"), "aria-describedby": this.describedBy });
    box.checked = isChecked;
    this.place(box);
    this.node.classList.add("field-box");
  }

  read() {
    return this.control.checked;
  }

  problem() {
    return null;
  }
}

// ---- Files

export class FilesField extends Field {
  constructor({ min, max, ...rest }) {
    super(rest);
    Object.assign(this, { min, max });
    const words = max === 1 ? "Choose a file" : `Choose up to ${max} files`;
    const button = el(
      "button",
      { type: "button", class: "button secondary", id: freshId("files"), "aria-describedby": this.describedBy },
      words,
    );
    this.tray = new FileTray({ max, button, changed: () => this.problemNode.hidden || this.check() });
    this.place(button);
    button.setAttribute("aria-labelledby", `${button.id}-name ${button.id}`);
    this.node.querySelector("label").id = `${button.id}-name`;
    this.tray.list.hidden = true;
    button.after(this.tray.picker, this.tray.list);
  }

  get text() {
    return "";
  }

  setText() {} // a file has no name that could be typed

  read() {
    return this.tray.ids;
  }

  problem() {
    const { count, problem } = this.tray;
    if (problem) return problem;
    if (count === 0) return this.isRequired ? "Choose a file." : null;
    return count < this.min ? `${boundsInWords(this.min, this.max)}.` : null;
  }
}

/** The one file of a command's option. */
export class FileField extends FilesField {
  constructor(rest) {
    super({ ...rest, min: 1, max: 1 });
  }

  read() {
    return this.tray.ids[0];
  }
}
