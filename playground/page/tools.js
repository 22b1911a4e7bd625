/** What can be done with a message or a person: react, edit, delete, and the bot's own commands for them. */

import { menuCommands } from "./commands.js";
import { copyText, el } from "./dom.js";
import { closeMenu, hasOpenMenu, markOpen, openMenuFor } from "./menu.js";
import { placeBeside } from "./choice.js";
import { authorName, emojiText } from "./pieces.js";

const USER_MENU = 2;
const MESSAGE_MENU = 3;
const QUICK = ["👍", "👎", "❤️", "😂", "🎉", "😮", "😢", "🔥", "✅", "❌", "👀", "🙏", "1️⃣", "2️⃣", "3️⃣", "⭐"];

// ---- On a message

/** Return the small bar at a message's corner. It is shown for the message that the mouse or the keyboard is on. */
export function messageTools(scene) {
  const react = toolButton("Add reaction", "☺", () => openEmoji(react, scene));
  const more = toolButton("More", "⋯", () => openMessageMenu(scene, more));
  more.setAttribute("aria-haspopup", "menu");
  return el(
    "div",
    { class: "tools" },
    canReact(scene.message) && react,
    isOwn(scene) && toolButton("Edit", "✎", () => scene.startEdit()),
    more,
  );
}

function toolButton(label, sign, onclick) {
  return el(
    "button",
    { type: "button", class: "tool", "aria-label": label, title: label, "data-path": `tool.${label}`, onclick },
    el("span", { "aria-hidden": "true" }, sign),
  );
}

/** Open the menu of a message beside `anchor`, or at a point. */
export function openMessageMenu(scene, anchor, at = null) {
  if (hasOpenMenu(anchor)) {
    closeMenu();
    return;
  }
  const { message, world, acts } = scene;
  const commands = menuCommands(world.usableCommands(), MESSAGE_MENU, world.me);
  const apps = message.visible_to ? [] : commands.map((one) => appItem(one, message.id, acts));
  const person = personOf(message, world);
  openMenuFor({
    anchor,
    at,
    label: "Message",
    refocus: () => scene.refocus(anchor),
    groups: [
      { title: "", items: ownItems(scene, anchor) },
      { title: "Apps", items: apps },
      { title: `Apps for ${authorName(message.author)}`, items: person ? personApps(person.id, world, acts) : [] },
    ],
  });
}

function ownItems(scene, anchor) {
  const { message, world, acts } = scene;
  const mayDelete = isOwn(scene) || (world.mayManageMessages && !message.visible_to);
  return [
    canReact(message) && { label: "Add reaction", sign: "☺", act: () => openEmoji(anchor, scene) },
    isOwn(scene) && { label: "Edit message", sign: "✎", act: () => scene.startEdit() },
    { label: "Copy message id", sign: "#", act: () => copy(message.id, world) },
    message.visible_to && { label: "Dismiss message", sign: "✕", act: () => acts.dismiss(message.id) },
    mayDelete && { label: "Delete message", sign: "✕", isDanger: true, act: () => void acts.delete(message.id) },
  ].filter(Boolean);
}

/** A browser may forbid it; then the id is shown. */
function copy(id, world) {
  const show = () => world.tell("refused", `Not copied: the browser forbids it. The id is ${id}.`);
  copyText(id).then((isCopied) => isCopied || show());
}

/** Open the menu of a channel beside its button, or at a point. */
export function openChannelMenu({ id, name }, world, anchor, at, refocus) {
  const items = [{ label: "Copy channel id", sign: "#", act: () => copy(id, world) }];
  openMenuFor({ anchor, at, label: `Channel ${name}`, groups: [{ title: "", items }], refocus });
}

function appItem({ name, shown }, targetId, acts) {
  return { label: shown, sign: "◇", act: () => void acts.command(name, {}, targetId) };
}

function isOwn({ message, world }) {
  return message.author.id === world.actingAs;
}

/** Nobody but its reader knows of an ephemeral message, and nothing stands on one that is still being thought about. */
function canReact({ visible_to: reader }) {
  return !reader;
}

function personOf(message, world) {
  return [...world.users, world.botUser].find((one) => one?.id === message.author.id);
}

// ---- On a person

/** Open the menu of a person: the bot's user commands. */
export function openPersonMenu({ id, name }, { world, acts }, anchor, at = null, refocus = () => anchor.focus()) {
  if (hasOpenMenu(anchor)) {
    closeMenu();
    return;
  }
  const own = [
    id === world.botUser?.id && { label: "Direct message", sign: "@", act: () => void acts.openDirect() },
    id !== world.botUser?.id &&
      id !== world.actingAs && { label: `Act as ${name}`, sign: "☺", act: () => world.actAs(id) },
    { label: "Copy user id", sign: "#", act: () => copy(id, world) },
  ].filter(Boolean);
  openMenuFor({
    anchor,
    at,
    label: name,
    refocus,
    groups: [
      { title: "Apps", items: personApps(id, world, acts) },
      { title: "", items: own },
    ],
  });
}

function personApps(userId, world, acts) {
  return menuCommands(world.usableCommands(), USER_MENU, world.me).map((one) => appItem(one, userId, acts));
}

// ---- Reactions

/** Return the reactions under a message; a click adds one's own or takes it away. */
export function reactionRow(scene) {
  const { message, world, acts } = scene;
  const reactions = message.reactions ?? [];
  if (reactions.length === 0) return null;
  const buttons = reactions.map(({ emoji, count }) => {
    const key = emojiKey(emoji);
    const who = message.reactors?.[key] ?? message.reactors?.[emoji.name] ?? [];
    const isMine = who.includes(world.actingAs);
    const names = who.map((id) => world.nameOf(id) ?? "somebody").join(", ");
    return el(
      "button",
      {
        type: "button",
        class: "reaction",
        "aria-pressed": String(isMine),
        "aria-label": `${emojiText(emoji)} ${count}`,
        title: names,
        "data-path": `reaction.${key}`,
        onclick: () => (isMine ? acts.unreact(message.id, key) : acts.react(message.id, key)),
      },
      el("span", { class: "emoji", "aria-hidden": "true" }, emojiText(emoji)),
      el("span", { "aria-hidden": "true" }, String(count)),
    );
  });
  return el("div", { class: "reactions", role: "group", "aria-label": "Reactions" }, buttons);
}

function emojiKey({ id, name }) {
  return id ? `${name}:${id}` : name;
}

/** Open a small choice of emoji, with a field for any other; false for the menu, as the focus goes here. */
function openEmoji(anchor, { message, acts, refocus }) {
  const box = el("div", { class: "menu emoji-box", popover: "auto", role: "dialog", "aria-label": "Add reaction" });
  const close = () => box.hidePopover();
  const send = (emoji) => {
    if (emoji) acts.react(message.id, emoji);
    refocus(anchor);
    close();
  };
  const quick = QUICK.map((emoji) =>
    el("button", { type: "button", class: "quick", "aria-label": emoji, onclick: () => send(emoji) }, emoji),
  );
  const other = el("input", {
    type: "text",
    "aria-label": "Another emoji",
    placeholder: "Another emoji",
    maxlength: 60,
  });
  other.addEventListener("keydown", (event) => event.key === "Enter" && send(other.value.trim()));
  box.addEventListener("keydown", (event) => moveInGrid(event, quick));
  box.addEventListener("toggle", (event) => event.newState === "closed" && leave(box, anchor, refocus));
  box.append(el("div", { class: "quick-grid" }, quick), other);
  markOpen(anchor, true);
  document.body.append(box);
  box.showPopover();
  placeBeside(box, anchor);
  quick[0].focus();
  return false;
}

function leave(box, anchor, refocus) {
  if (box.contains(document.activeElement) || document.activeElement === document.body) refocus(anchor);
  markOpen(anchor, false);
  box.remove();
}

const GRID_STEPS = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 8, ArrowUp: -8 };

function moveInGrid(event, quick) {
  const now = quick.indexOf(document.activeElement);
  const step = GRID_STEPS[event.key];
  if (now < 0 || step === undefined) return;
  event.preventDefault();
  quick[Math.min(Math.max(now + step, 0), quick.length - 1)].focus();
}
