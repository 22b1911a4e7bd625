/** Fields of forms and commands: each has a label, what it holds, and what is wrong with it in words. */

import { boundsInWords, choiceButton } from "./choice.js";
import { el, freshId } from "./dom.js";

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
    const text = [this.label, !this.isRequired && el("span", { class: "optional" }, " (optional)")];
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

/** Show every problem, take the keyboard to the first, and return true when there is none. */
export function checkAll(fields) {
  const wrong = fields.filter((field) => !field.check());
  wrong[0]?.focus();
  return wrong.length === 0;
}

// ---- Text and numbers

export class TextField extends Field {
  constructor({ isLong, value, placeholder, minLength = 0, maxLength, ...rest }) {
    super(rest);
    this.minLength = minLength;
    const attributes = {
      id: freshId("text"),
      placeholder,
      maxlength: maxLength,
      autocomplete: "off",
      "aria-required": String(this.isRequired),
      "aria-describedby": this.describedBy,
    };
    const control = isLong ? el("textarea", { ...attributes, rows: 4 }) : el("input", { ...attributes, type: "text" });
    control.value = value ?? "";
    this.place(control);
  }

  read() {
    return this.control.value === "" ? undefined : this.control.value;
  }

  get whenEmpty() {
    return "";
  }

  problem() {
    const { length } = this.control.value;
    if (length === 0) return this.isRequired ? "Fill this in." : null;
    return length < this.minLength ? `Write at least ${this.minLength} characters (now ${length}).` : null;
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

  read() {
    const text = this.control.value.trim().replace(",", ".");
    return text === "" ? undefined : Number(text);
  }

  problem() {
    const value = this.read();
    if (value === undefined) return this.isRequired ? "Fill this in." : null;
    return this.#kindProblem(value) ?? this.#rangeProblem(value);
  }

  #kindProblem(value) {
    if (this.isWhole) return Number.isInteger(value) ? null : "Write a whole number.";
    return Number.isFinite(value) ? null : "Write a number.";
  }

  #rangeProblem(value) {
    if (this.min !== undefined && value < this.min) return `The least is ${this.min}.`;
    return this.max !== undefined && value > this.max ? `The most is ${this.max}.` : null;
  }
}

// ---- One of a few, as the browser has it

export class NativeSelectField extends Field {
  constructor({ options, ...rest }) {
    super(rest);
    this.options = options;
    const first = el("option", { value: "" }, this.isRequired ? "Choose…" : "—");
    const items = options.map(({ label }, index) => el("option", { value: index }, label));
    this.place(
      el(
        "select",
        { id: freshId("select"), "aria-required": String(this.isRequired), "aria-describedby": this.describedBy },
        first,
        items,
      ),
    );
  }

  read() {
    return this.options[this.control.value]?.value;
  }

  problem() {
    return this.isRequired && this.read() === undefined ? "Choose one." : null;
  }
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
  constructor({ isChecked, ...rest }) {
    super({ ...rest, isRequired: true });
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
