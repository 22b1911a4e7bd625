/** One message as an element: who, what, and what stands above and below it. */

import { covered, galleryOf, readableText, renderComponents } from "./components.js";
import { el, outsideLink, safeUrl } from "./dom.js";
import { markdown } from "./markdown.js";
import { authorName, avatar, fileCard, picture } from "./pieces.js";
import { hasOpenMenu } from "./menu.js";
import { messageTools, openMessageMenu, openPersonMenu, reactionRow } from "./tools.js";
import { failureInWords, isThinking } from "./world.js";

const SUPPRESS_EMBEDS = 1 << 2;
const COMPONENTS_V2 = 1 << 15;
const SPOILER = 1 << 3; // of an attachment

/**
 * Return the list item for `scene.message`. `isFirst` is false when the same author wrote just before: the head is
 * then for screen readers only. A message that breaks a rule of the protocol shows as one sentence, not as nothing.
 */
export function messageItem(scene, isFirst) {
  const { message } = scene;
  const classes = ["message", isFirst ? "first" : "next", message.visible_to && "ephemeral"];
  const item = el(
    "li",
    { class: classes.filter(Boolean).join(" "), tabindex: -1 },
    usedLine(message.used, scene.world),
    replyLine(message),
    isFirst && avatar(message.author.id, authorName(message.author), isApp(message.author)),
    head(scene, isFirst),
    el("div", { class: "body" }, scene.world.editing?.id === message.id ? editor(scene) : bodyOrExcuse(scene)),
    reactionRow(scene),
    failureLine(scene.world.failureOn(message.id)),
    message.visible_to && onlyYouLine(() => scene.acts.dismiss(message.id)),
    messageTools(scene),
  );
  item.addEventListener("contextmenu", (event) => openAtPointer(event, scene, item));
  item.addEventListener("keydown", (event) => messageKey(event, scene, item));
  return item;
}

/** The browser's own menu stays where it can do more: on links, pictures, fields and marked text. */
function openAtPointer(event, scene, item) {
  if (event.target.closest("a, img, input, textarea, .author") || !getSelection().isCollapsed) return;
  event.preventDefault();
  if (!hasOpenMenu(item)) openMessageMenu(scene, item, { x: event.clientX, y: event.clientY });
}

function messageKey(event, scene, item) {
  const isMenuKey = event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey);
  const isOwn = scene.message.author.id === scene.world.actingAs;
  if (isMenuKey) openMessageMenu(scene, item, besideText(item));
  else if (event.target !== item || event.ctrlKey || event.metaKey || event.altKey) return;
  else if (event.key === "Enter") openMessageMenu(scene, item, besideText(item));
  else if (event.key === "e" && isOwn) scene.startEdit();
  else if (event.key === "Delete" && isOwn) scene.acts.delete(scene.message.id);
  else return;
  event.preventDefault();
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

function besideText(item) {
  const { left, top } = item.querySelector(".body").getBoundingClientRect();
  return { x: left, y: Math.max(top, 0) + 24 };
}

/** What a message answers, in a line above it. */
function replyLine({ referenced_message: answered }) {
  if (!answered) return null;
  const words = answered.content || "a message";
  return el(
    "p",
    { class: "used reply" },
    avatar(answered.author.id, authorName(answered.author)),
    el("strong", {}, authorName(answered.author)),
    " ",
    el("span", { class: "reply-text" }, words.slice(0, 120)),
  );
}

function head(scene, isFirst) {
  const { message } = scene;
  const date = new Date(message.timestamp);
  const time = new Intl.DateTimeFormat(undefined, { timeStyle: "short" }).format(date);
  return el(
    "p",
    { class: isFirst ? "head" : "head visually-hidden" },
    authorSign(scene),
    isApp(message.author) && [" ", el("span", { class: "tag" }, "APP")],
    " ",
    el("time", { datetime: date.toISOString(), title: date.toLocaleString() }, time),
    message.pinned === true && el("span", { class: "pinned" }, "pinned"),
  );
}

/** The author's name; a click or the other mouse button opens that person's menu, which the message's menu holds as well. */
function authorSign(scene) {
  const { message, refocus } = scene;
  const name = authorName(message.author);
  const button = el("button", { type: "button", class: "author", tabindex: -1, "data-path": "author" }, name);
  const open = (at) => openPersonMenu({ id: message.author.id, name }, scene, button, at, () => refocus(button));
  button.addEventListener("click", () => open(null));
  button.addEventListener("contextmenu", (event) => {
    event.preventDefault();
    open({ x: event.clientX, y: event.clientY });
  });
  return button;
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

// ---- A message being edited

/** Enter keeps what was written, Escape leaves it; what is typed outlives a message that is drawn anew. */
function editor({ message, world, acts }) {
  const { editing } = world;
  const area = el("textarea", {
    rows: Math.min(8, editing.text.split("\n").length + 1),
    maxlength: 2000,
    "aria-label": "Edit message",
    "data-path": "edit",
  });
  area.value = editing.text;
  const save = () => {
    const text = area.value.trim();
    if (text === "" || text === message.content || acts.edit(message.id, text)) world.stopEdit();
  };
  area.addEventListener("input", () => {
    editing.text = area.value;
  });
  area.addEventListener("keydown", (event) => {
    if (event.key === "Escape") world.stopEdit();
    else if (event.key === "Enter" && !event.shiftKey) save();
    else return;
    event.preventDefault();
  });
  if (!editing.hasFocus) requestAnimationFrame(() => area.focus());
  editing.hasFocus = true;
  return [
    area,
    el(
      "p",
      { class: "only-you" },
      "Escape to ",
      el("button", { type: "button", class: "as-link", onclick: () => world.stopEdit() }, "cancel"),
      ", Enter to ",
      el("button", { type: "button", class: "as-link", onclick: save }, "save"),
    ),
  ];
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
    (message.flags & SUPPRESS_EMBEDS) === 0 && (message.embeds ?? []).map((one) => embed(one, world)),
    attachments(scene),
    renderComponents(message.components ?? [], scene),
    message.edited_timestamp && el("span", { class: "edited" }, "(edited)"),
  ].flat();
}

/** Pictures side by side and other files as cards. Components show the files of their message themselves. */
function attachments(scene) {
  const { message } = scene;
  if ((message.flags & COMPONENTS_V2) !== 0) return [];
  const files = message.attachments ?? [];
  const pictures = files.filter(isPicture).map((one) => ({
    media: { url: one.url },
    description: one.description ?? one.filename,
    spoiler: isSpoiler(one),
  }));
  const cards = files.filter((one) => !isPicture(one)).map((one, index) => attachedFile(one, scene, `f.${index}`));
  return [pictures.length > 0 && galleryOf(pictures, scene, "p"), ...cards];
}

function isPicture({ content_type: type }) {
  return type?.startsWith("image/") === true;
}

function isSpoiler({ filename, flags = 0 }) {
  return filename.startsWith("SPOILER_") || (flags & SPOILER) !== 0;
}

function attachedFile(one, scene, path) {
  const card = fileCard({ url: one.url, name: one.filename, size: one.size });
  return isSpoiler(one) ? covered(card, scene, path) : card;
}

function embed(one, world) {
  const box = el(
    "div",
    { class: `container embed${one.thumbnail ? " with-thumbnail" : ""}` },
    one.thumbnail && el("div", { class: "thumbnail embed-thumbnail" }, picture(one.thumbnail.url, "")),
    one.author &&
      el("p", { class: "embed-author" }, smallPicture(one.author), linkOrText(one.author.url, one.author.name)),
    one.title && el("p", { class: "embed-title" }, linkOrText(one.url, one.title)),
    one.description && el("div", { class: "text" }, markdown(one.description, world)),
    one.fields?.length > 0 &&
      el(
        "dl",
        { class: "embed-fields" },
        one.fields.map((field) => embedField(field, world)),
      ),
    one.image && el("div", { class: "embed-image" }, picture(one.image.url, "")),
    (one.footer || one.timestamp) && embedFoot(one),
  );
  if (typeof one.color === "number") {
    box.classList.add("accented");
    box.style.setProperty("--accent", `#${one.color.toString(16).padStart(6, "0")}`);
  }
  return box;
}

function smallPicture({ icon_url: url }) {
  return url && el("span", { class: "embed-icon" }, picture(url, ""));
}

function embedFoot({ footer, timestamp }) {
  const when =
    timestamp &&
    new Intl.DateTimeFormat(undefined, { dateStyle: "short", timeStyle: "short" }).format(new Date(timestamp));
  return el(
    "p",
    { class: "subtext embed-foot" },
    footer && smallPicture(footer),
    [footer?.text, when].filter(Boolean).join(" • "),
  );
}

function embedField({ name, value, inline }, world) {
  return el("div", { class: inline ? "inline" : null }, el("dt", {}, name), el("dd", {}, markdown(value, world)));
}

function linkOrText(url, text) {
  return safeUrl(url) ? outsideLink(url, {}, text) : text;
}
