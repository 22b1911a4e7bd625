/** Forms (modals): a dialog over the page, filled in by the person who was asked. */

import { announce } from "./announce.js";
import { el } from "./dom.js";
import { BoxField, BoxesField, checkAll, ChoiceField, FilesField, RadioField, TextField } from "./fields.js";
import { focusPlace, placeOf } from "./list.js";
import { markdown } from "./markdown.js";
import { selectDefaults, selectOptions } from "./pieces.js";
import { failureInWords } from "./world.js";

const ROW = 1;
const TEXT_DISPLAY = 10;
const LABEL = 18;
const PARAGRAPH = 2;

/** Show each form to the user it is for, in the given `<dialog>`. It stays open until its submission was answered. */
export class Forms {
  #dialog;
  #world;
  #acts;
  #fields = [];
  #open = null; // { userId, interactionId }
  #isSent = false;
  #problem;
  #submit;
  #cameFrom = null;

  constructor(dialog, world, acts) {
    this.#dialog = dialog;
    this.#world = world;
    this.#acts = acts;
    dialog.addEventListener("close", () => this.#closed());
    world.on("form", () => this.#openNext());
    world.on("outcome", (interaction) => this.#heard(interaction));
    world.on("refused", (text) => this.#isSent && this.#showProblem(text));
  }

  #openNext() {
    const next = this.#world.forms.get(this.#world.actingAs);
    if (!next || next.interactionId === this.#open?.interactionId) return;
    this.#open = { userId: this.#world.actingAs, interactionId: next.interactionId };
    this.#isSent = false;
    if (!this.#dialog.open) this.#cameFrom = document.activeElement;
    this.#dialog.replaceChildren(this.#form(next.form));
    if (!this.#dialog.open) this.#dialog.showModal();
    this.#fields[0]?.focus();
  }

  #form({ title, components }) {
    this.#fields = [];
    this.#problem = el("p", { class: "failure", role: "alert", hidden: true });
    this.#submit = el("button", { type: "submit", class: "button primary" }, "Submit");
    const close = () => this.#dialog.close();
    return el(
      "form",
      { novalidate: true, onsubmit: (event) => this.#send(event) },
      el(
        "header",
        {},
        el("h2", { id: "form-title" }, title),
        el("button", { type: "button", class: "plain", "aria-label": "Close", onclick: close }, "✕"),
      ),
      el(
        "div",
        { class: "form-body" },
        components.map((component) => this.#part(component)),
      ),
      this.#problem,
      el(
        "footer",
        {},
        el("button", { type: "button", class: "button secondary", onclick: close }, "Cancel"),
        this.#submit,
      ),
    );
  }

  #part(component) {
    if (component.type === TEXT_DISPLAY) return el("div", { class: "text" }, markdown(component.content, this.#world));
    if (component.type === ROW) return component.components.map((one) => this.#place(one, { label: one.label }));
    if (component.type !== LABEL) return unsupported(component.type);
    return this.#place(component.component, component);
  }

  #place(component, { label, description }) {
    const make = fieldMakers[component.type];
    if (!make)
      return el("div", { class: "field" }, el("p", { class: "field-name" }, label), unsupported(component.type));
    const field = make(component, { label, description, isRequired: component.required !== false }, this.#world);
    field.customId = component.custom_id;
    this.#fields.push(field);
    return field.node;
  }

  #send(event) {
    event.preventDefault();
    if (this.#isSent || !checkAll(this.#fields)) return;
    const values = Object.fromEntries(this.#fields.map((field) => [field.customId, field.read() ?? field.whenEmpty]));
    this.#problem.hidden = true;
    this.#isSent = this.#acts.submit(this.#open.interactionId, values);
    this.#submit.setAttribute("aria-busy", String(this.#isSent));
    if (!this.#isSent) this.#showProblem("Not sent: there is no connection to the playground.");
  }

  /** The server names a submission's interaction by form and person; one dialog has one submission under way. */
  #heard(interaction) {
    const isOurs = this.#isSent && interaction.kind === "form" && interaction.user_id === this.#open?.userId;
    if (!isOurs || interaction.state === "pending") return;
    if (interaction.state === "failed")
      this.#showProblem(`${failureInWords(interaction).replace(/\.$/, "")}. Try again or cancel.`);
    else this.#dialog.close();
  }

  #showProblem(text) {
    this.#isSent = false;
    this.#submit.setAttribute("aria-busy", "false");
    this.#problem.textContent = text;
    this.#problem.hidden = false;
  }

  /** The message behind may have been redrawn meanwhile: the browser then has nowhere to give the focus back to. */
  #closed() {
    const { userId, interactionId } = this.#open;
    if (this.#world.forms.get(userId)?.interactionId === interactionId) this.#world.forms.delete(userId);
    if (this.#isSent) announce("The form was sent.");
    this.#open = null;
    this.#isSent = false;
    if (this.#cameFrom?.isConnected) this.#cameFrom.focus();
    else if (this.#cameFrom) focusPlace(placeOf(this.#cameFrom) ?? { key: "" }, document.getElementById("messages"));
    this.#openNext();
  }
}

function unsupported(type) {
  return el("p", { class: "unsupported" }, `A component of type ${type} cannot be filled in here.`);
}

// ---- One maker for each component type that holds a value

function textInput(component, common) {
  return new TextField({
    ...common,
    isLong: component.style === PARAGRAPH,
    value: component.value,
    placeholder: component.placeholder,
    minLength: component.min_length ?? 0,
    maxLength: component.max_length ?? 4000,
    isCounted: true,
  });
}

function selectMenu(component, common, world) {
  return new ChoiceField({
    ...common,
    options: selectOptions(component, world),
    selected: selectDefaults(component),
    placeholder: component.placeholder,
    min: component.min_values ?? 1,
    max: component.max_values ?? 1,
  });
}

function radioGroup(component, common) {
  return new RadioField({ ...common, options: component.options });
}

function checkboxGroup(component, common) {
  const max = component.max_values ?? component.options.length;
  return new BoxesField({ ...common, options: component.options, min: component.min_values ?? 1, max });
}

function fileUpload(component, common) {
  const max = component.max_values ?? 1;
  return new FilesField({ ...common, min: component.min_values ?? 1, max });
}

function checkbox(component, common) {
  return new BoxField({ ...common, isChecked: component.default === true });
}

const fieldMakers = {
  3: selectMenu,
  4: textInput,
  5: selectMenu,
  6: selectMenu,
  7: selectMenu,
  8: selectMenu,
  19: fileUpload,
  21: radioGroup,
  22: checkboxGroup,
  23: checkbox,
};
