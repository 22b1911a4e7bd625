/** Small things that messages, forms and the composer all show. */

import { el, outsideLink } from "./dom.js";

const AVATAR_COLOURS = 6;
const CHANNEL_SIGNS = { 0: "#", 1: "@", 3: "@" };

/** Return a round picture with the first letter of a name, in a colour that stays the same for an id. */
export function avatar(id, name, isBot = false) {
  const colour = [...String(id)].reduce((sum, digit) => sum + digit.charCodeAt(0), 0) % AVATAR_COLOURS;
  const letter = [...name.trim()][0] ?? "?";
  return el(
    "span",
    { class: `avatar avatar-${colour}${isBot ? " avatar-bot" : ""}`, "aria-hidden": "true" },
    letter.toUpperCase(),
  );
}

/** Return the name a message author goes by. */
export function authorName(author) {
  return author.global_name ?? author.username;
}

/** Return a channel's name as people read it: `#general`, or `@Bot` for a direct message. */
export function channelTitle(channel) {
  return channel ? `${CHANNEL_SIGNS[channel.type ?? 0] ?? "#"}${channel.name.replace(/^@/, "")}` : "";
}

/** Return an emoji as text: pictures of custom emoji live on another host, so they show as their name. */
export function emojiText(emoji) {
  if (!emoji?.name) return "";
  return emoji.id ? `:${emoji.name}:` : emoji.name;
}

/** Return an emoji as an element; the name beside it says it already when `isNamed`. */
export function emojiSign(emoji, isNamed = true) {
  const text = emojiText(emoji);
  return text && el("span", { class: emoji.id ? "emoji custom" : "emoji", "aria-hidden": isNamed && "true" }, text);
}

// ---- People, roles and channels to choose from

const USER_SELECT = 5;
const ROLE_SELECT = 6;
const MENTIONABLE_SELECT = 7;
const CHANNEL_SELECT = 8;

/** Return what a select of the given component type offers: its own options, or people, roles and channels of the world. */
export function selectOptions(component, world) {
  const make = entityOptions[component.type];
  if (make) return make(world, component.channel_types);
  return component.options.map((option) => ({ ...option, emoji: emojiText(option.emoji) }));
}

/** Return everybody, the bot included, as options. */
export function peopleOptions(world) {
  const everybody = world.botUser ? [...world.users, world.botUser] : world.users;
  return everybody.map(({ id, name, username }) => ({ value: id, label: name, description: username }));
}

/** Return the guild's roles as options. */
export function roleOptions(world) {
  return world.guildRoles.map(({ id, name }) => ({ value: id, label: name.startsWith("@") ? name : `@${name}` }));
}

/** Return the channels that can be chosen, as options; `types` are those that a bot asked for, or nothing for all. */
export function channelOptions(world, types) {
  const isWanted = ({ type = 0 }) => !types?.length || types.includes(type);
  const isHere = (one) => one.recipients === undefined || one.recipients.length === 0;
  return world.channels
    .filter((one) => isHere(one) && isWanted(one))
    .map((one) => ({ value: one.id, label: channelTitle(one) }));
}

const entityOptions = {
  [USER_SELECT]: peopleOptions,
  [ROLE_SELECT]: roleOptions,
  [MENTIONABLE_SELECT]: (world) => [...peopleOptions(world), ...roleOptions(world)],
  [CHANNEL_SELECT]: channelOptions,
};

/** Return the values a select starts with. */
export function selectDefaults(component) {
  const own = (component.options ?? []).filter((option) => option.default).map((option) => option.value);
  return [...own, ...(component.default_values ?? []).map(({ id }) => id)];
}

// ---- Pictures and files

/**
 * Return a picture, or a tile with a link when it lies on another host: the playground never reaches out, so that
 * it works with no internet and tells nobody what is tried here.
 */
export function picture(url, description) {
  const text = description || fileName(url);
  if (!isFromHere(url)) return pictureTile(url, text);
  const image = el("img", { src: url, alt: text });
  image.addEventListener("error", () => image.replaceWith(pictureTile(url, text)));
  return image;
}

function isFromHere(url) {
  return /^data:image\//.test(url) || (URL.canParse(url) && new URL(url).origin === location.origin);
}

function pictureTile(url, text) {
  const words = [
    el("span", { class: "tile-sign", "aria-hidden": "true" }, "▦"),
    el("span", { class: "tile-text" }, text),
  ];
  return outsideLink(url, { class: "picture-tile" }, ...words) ?? el("span", { class: "picture-tile" }, ...words);
}

/** Return a card for a file that is not shown as a picture: its kind, its name to download it by, and its size. */
export function fileCard({ url, name, size }) {
  const kind = /\.(\w{1,4})$/.exec(name)?.[1] ?? "file";
  return el(
    "div",
    { class: "file" },
    el("span", { class: "file-kind", "aria-hidden": "true" }, kind),
    el(
      "span",
      { class: "file-words" },
      outsideLink(url, { download: name }, name) ?? el("span", {}, name),
      Number.isFinite(size) && el("small", {}, sizeInWords(size)),
    ),
  );
}

const SIZE_UNITS = ["bytes", "KB", "MB", "GB"];

/** Return a size as people read it: `12 bytes`, `1.2 KB`. */
export function sizeInWords(bytes) {
  const power = Math.min(Math.floor(Math.log(Math.max(bytes, 1)) / Math.log(1024)), SIZE_UNITS.length - 1);
  const amount = bytes / 1024 ** power;
  return `${power === 0 || amount >= 10 ? Math.round(amount) : amount.toFixed(1)} ${SIZE_UNITS[power]}`;
}

/** Return the last part of a URL's path, for people to read. */
export function fileName(url) {
  const path = url.split(/[?#]/)[0].split("/");
  return decodedOrSame(path.at(-1)) || url;
}

function decodedOrSame(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a stray % is part of the name
  }
}
