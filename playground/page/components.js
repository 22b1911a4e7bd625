/** What a bot's message is made of: one renderer for each component type of Discord's Components V2. */

import { choiceButton } from "./choice.js";
import { el, outsideLink } from "./dom.js";
import { markdown } from "./markdown.js";
import { emojiSign, fileCard, fileName, picture, selectDefaults, selectOptions } from "./pieces.js";

const LINK = 5;
const PREMIUM = 6;
const buttonClasses = { 1: "primary", 2: "secondary", 3: "success", 4: "danger", 5: "link", 6: "premium" };

/**
 * Return the nodes for a message's components. `scene` is `{ message, world, acts, refocus }`; `path` says where they
 * stand in the message, so that a control is found again when its custom id has changed.
 */
export function renderComponents(components, scene, path = "c") {
  return components.map((component, index) => renderComponent(component, scene, `${path}.${index}`));
}

function renderComponent(component, scene, path) {
  const renderer = renderers[component.type];
  if (!renderer) return el("p", { class: "unsupported" }, `A component of type ${component.type} is not shown here.`);
  return renderer(component, scene, path);
}

/** Return the text a person reads in some components, for announcements. */
export function readableText(components) {
  const own = ({ content, label, placeholder }) => content ?? label ?? placeholder ?? "";
  const inside = (one) => readableText([...(one.components ?? []), ...(one.accessory ? [one.accessory] : [])]);
  return components
    .flatMap((one) => [own(one), inside(one)])
    .filter(Boolean)
    .join(", ");
}

// ---- Controls

function row(component, scene, path) {
  return el("div", { class: "row" }, renderComponents(component.components, scene, path));
}

function button(component, scene, path) {
  const face = buttonFace(component);
  const classes = `button ${buttonClasses[component.style] ?? "secondary"}`;
  if (component.style === LINK) return linkButton(component, face, classes, path);
  if (component.style === PREMIUM) return premiumButton(classes);
  const { message, acts } = scene;
  return el(
    "button",
    {
      type: "button",
      class: classes,
      disabled: component.disabled,
      ...controlMarks(component, scene, path),
      onclick: () => acts.click(message.id, component.custom_id),
    },
    face,
  );
}

function buttonFace({ label, emoji }) {
  return [emojiSign(emoji, Boolean(label)), label && el("span", { class: "label" }, label)].filter(Boolean);
}

/** Discord writes its own words and a price on it; nothing is sold here. */
function premiumButton(classes) {
  return el(
    "button",
    { type: "button", class: classes, disabled: true, title: "Nothing is sold in the playground." },
    el("span", { class: "emoji", "aria-hidden": "true" }, "◆"),
    "Premium",
  );
}

function linkButton({ url, disabled }, face, classes, path) {
  const sign = el("span", { class: "away", "aria-hidden": "true" });
  const link = disabled ? null : outsideLink(url, { class: classes, "data-path": path }, ...face, sign);
  return link ?? el("button", { type: "button", class: classes, disabled: true, title: url }, face, sign);
}

/** What finds a control again, and shows that the reader's click on it has no answer. Busy is no `disabled`: that would drop the focus. */
function controlMarks({ custom_id: customId }, { message, world }, path) {
  const isBusy = world.isBusy(message.id, customId);
  return {
    "data-custom-id": customId,
    "data-path": path,
    "aria-disabled": isBusy && "true",
    "aria-busy": isBusy && "true",
  };
}

function select(component, scene, path) {
  const { message, world, acts } = scene;
  const placeholder = component.placeholder || "Make a selection";
  return choiceButton({
    label: placeholder,
    placeholder,
    options: selectOptions(component, world),
    selected: world.chosen(message.id, component.custom_id) ?? selectDefaults(component),
    min: component.min_values ?? 1,
    max: component.max_values ?? 1,
    attributes: { disabled: component.disabled, ...controlMarks(component, scene, path) },
    onchoose: (values) => acts.select(message.id, component.custom_id, values),
    refocus: scene.refocus,
  });
}

// ---- Layout

function container(component, scene, path) {
  const box = el("div", { class: "container" }, renderComponents(component.components, scene, path));
  const accent = component.accent_color;
  if (typeof accent === "number") {
    box.classList.add("accented");
    box.style.setProperty("--accent", `#${accent.toString(16).padStart(6, "0")}`);
  }
  return component.spoiler ? covered(box, scene, path) : box;
}

function section(component, scene, path) {
  return el(
    "div",
    { class: "section" },
    el("div", { class: "section-text" }, renderComponents(component.components, scene, path)),
    component.accessory && el("div", { class: "accessory" }, renderComponent(component.accessory, scene, `${path}.a`)),
  );
}

function textDisplay(component, { world }) {
  return el("div", { class: "text" }, markdown(component.content, world));
}

function separator({ divider, spacing }) {
  const size = spacing === 2 ? "wide" : "narrow";
  return divider === false ? el("div", { class: `gap ${size}` }) : el("hr", { class: size });
}

// ---- Media

function thumbnail(component, scene, path) {
  const box = el("div", { class: "thumbnail" }, picture(component.media.url, component.description));
  return component.spoiler ? covered(box, scene, path) : box;
}

function gallery(component, scene, path) {
  return galleryOf(component.items, scene, path);
}

/** Return pictures side by side; each is `{ media: { url }, description, spoiler }`. */
export function galleryOf(items, scene, path) {
  const pictures = items.map((item, index) => thumbnail(item, scene, `${path}.${index}`));
  return el("div", { class: `gallery gallery-${pictures.length}` }, pictures);
}

function file({ file: { url }, name, size, spoiler }, scene, path) {
  const box = fileCard({ url, name: name ?? fileName(url), size });
  return spoiler ? covered(box, scene, path) : box;
}

/** Return the box under a cover that the reader takes off once. */
export function covered(box, { message, world }, path) {
  if (world.isRevealed(message.id, path)) return box;
  box.inert = true;
  const cover = el(
    "button",
    { type: "button", class: "cover", "data-path": `${path}.cover`, onclick: () => world.reveal(message.id, path) },
    "Show spoiler",
  );
  return el("div", { class: "covered" }, box, cover);
}

const renderers = {
  1: row,
  2: button,
  3: select,
  5: select,
  6: select,
  7: select,
  8: select,
  9: section,
  10: textDisplay,
  11: thumbnail,
  12: gallery,
  13: file,
  14: separator,
  17: container,
};
