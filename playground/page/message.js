/** One message as an element: who, what, and what stands above and below it. */

import { readableText, renderComponents } from "./components.js";
import { el, outsideLink, safeUrl } from "./dom.js";
import { markdown } from "./markdown.js";
import { authorName, avatar, fileName, picture } from "./pieces.js";
import { failureInWords, isThinking } from "./world.js";

/**
 * Return the list item for `scene.message`. `isFirst` is false when the same author wrote just before: the head is
 * then for screen readers only. A message that breaks a rule of the protocol shows as one sentence, not as nothing.
 */
export function messageItem(scene, isFirst) {
  const { message } = scene;
  const classes = ["message", isFirst ? "first" : "next", message.visible_to && "ephemeral"];
  return el(
    "li",
    { class: classes.filter(Boolean).join(" "), tabindex: -1 },
    usedLine(message.used, scene.world),
    isFirst && avatar(message.author.id, authorName(message.author), isApp(message.author)),
    head(message, isFirst),
    el("div", { class: "body" }, bodyOrExcuse(scene)),
    failureLine(scene.world.failureOn(message.id)),
    message.visible_to && onlyYouLine(() => scene.acts.dismiss(message.id)),
  );
}

/** Return the list item for a command that has no message: it is on its way, or nothing came back. */
export function commandItem(interaction, world) {
  const hasFailed = interaction.state === "failed";
  const text = hasFailed ? failureInWords(interaction) : "Sending the command…";
  return el(
    "li",
    { class: `message first ephemeral ${hasFailed ? "" : "sending"}`, tabindex: -1 },
    usedLine({ user_id: interaction.user_id, name: interaction.name }, world),
    hasFailed ? failureLine(text) : el("p", { class: "note" }, dots(), text),
    hasFailed && onlyYouLine(() => world.dismissCommand(interaction.id)),
  );
}

/** Return the item that stands between the messages of two days. */
export function dayItem(timestamp) {
  const day = new Intl.DateTimeFormat(undefined, { dateStyle: "long" }).format(new Date(timestamp));
  return el("li", { class: "day" }, el("span", {}, day));
}

/** Return what a message says, in a line for announcements. */
export function messageInWords(message) {
  const name = authorName(message.author);
  if (isThinking(message)) return `${name} is thinking…`;
  const embeds = (message.embeds ?? []).flatMap(({ title, description }) => [title, description]);
  const text = [message.content, ...embeds, readableText(message.components ?? [])].filter(Boolean).join(", ");
  return `${name}: ${text}`;
}

function isApp(author) {
  return author.bot === true;
}

// ---- Around the body

function usedLine(used, world) {
  if (!used) return null;
  const name = world.nameOf(used.user_id) ?? "somebody";
  return el(
    "p",
    { class: "used" },
    avatar(used.user_id, name),
    el("strong", {}, name),
    " used ",
    el("span", { class: "command-name" }, `/${used.name}`),
  );
}

function head(message, isFirst) {
  const date = new Date(message.timestamp);
  const time = new Intl.DateTimeFormat(undefined, { timeStyle: "short" }).format(date);
  return el(
    "p",
    { class: isFirst ? "head" : "head visually-hidden" },
    el("strong", { class: "author" }, authorName(message.author)),
    isApp(message.author) && [" ", el("span", { class: "tag" }, "APP")],
    " ",
    el("time", { datetime: date.toISOString(), title: date.toLocaleString() }, time),
  );
}

function failureLine(text) {
  return text && el("p", { class: "failure" }, text);
}

function onlyYouLine(ondismiss) {
  return el(
    "p",
    { class: "only-you" },
    "Only you can see this · ",
    el("button", { type: "button", class: "as-link", "data-path": "dismiss", onclick: ondismiss }, "Dismiss message"),
  );
}

function dots() {
  return el("span", { class: "dots", "aria-hidden": "true" }, el("i"), el("i"), el("i"));
}

// ---- The body

function bodyOrExcuse(scene) {
  try {
    return body(scene);
  } catch (error) {
    console.error("A message could not be shown", scene.message, error);
    return el("p", { class: "unsupported" }, `This message could not be shown: ${error.message}`);
  }
}

function body(scene) {
  const { message, world } = scene;
  if (isThinking(message)) return el("p", { class: "note" }, dots(), `${authorName(message.author)} is thinking…`);
  return [
    message.content && el("div", { class: "text" }, markdown(message.content, world)),
    (message.embeds ?? []).map((one) => embed(one, world)),
    (message.attachments ?? []).map(attachment),
    renderComponents(message.components ?? [], scene),
    message.edited_timestamp && el("span", { class: "edited" }, "(edited)"),
  ].flat();
}

function attachment({ url, filename, description, content_type: type }) {
  if (type?.startsWith("image/"))
    return el("div", { class: "gallery gallery-1" }, picture(url, description ?? filename));
  return el("div", { class: "file" }, outsideLink(url, {}, filename) ?? fileName(filename));
}

function embed(one, world) {
  const box = el(
    "div",
    { class: "container embed" },
    one.author && el("p", { class: "embed-author" }, linkOrText(one.author.url, one.author.name)),
    one.title && el("p", { class: "embed-title" }, linkOrText(one.url, one.title)),
    one.description && el("div", { class: "text" }, markdown(one.description, world)),
    one.fields?.length > 0 &&
      el(
        "dl",
        { class: "embed-fields" },
        one.fields.map((field) => embedField(field, world)),
      ),
    (one.image ?? one.thumbnail) && picture((one.image ?? one.thumbnail).url, ""),
    one.footer && el("p", { class: "subtext" }, one.footer.text),
  );
  if (typeof one.color === "number") {
    box.classList.add("accented");
    box.style.setProperty("--accent", `#${one.color.toString(16).padStart(6, "0")}`);
  }
  return box;
}

function embedField({ name, value, inline }, world) {
  return el("div", { class: inline ? "inline" : null }, el("dt", {}, name), el("dd", {}, markdown(value, world)));
}

function linkOrText(url, text) {
  return safeUrl(url) ? outsideLink(url, {}, text) : text;
}
