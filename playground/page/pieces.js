/** Small things that messages, forms and the composer all show. */

import { el, outsideLink } from "./dom.js";

const AVATAR_COLOURS = 6;

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

/** Return an emoji as text: pictures of custom emoji live on another host, so they show as their name. */
export function emojiText(emoji) {
  if (!emoji?.name) return "";
  return emoji.id ? `:${emoji.name}:` : emoji.name;
}

/** Return what a select of the given component type offers: its own options, or people, roles and channels of the world. */
export function selectOptions(component, world) {
  const people = world.users.map(({ id, name, username }) => ({ value: id, label: name, description: username }));
  const roles = [{ value: world.guild.id, label: "@everyone" }];
  const channels = world.channels.map(({ id, name }) => ({ value: id, label: `#${name}` }));
  const offers = { 5: people, 6: roles, 7: [...people, ...roles], 8: channels };
  if (component.type in offers) return offers[component.type];
  return component.options.map((option) => ({ ...option, emoji: emojiText(option.emoji) }));
}

/** Return the values a select starts with. */
export function selectDefaults(component) {
  const own = (component.options ?? []).filter((option) => option.default).map((option) => option.value);
  return [...own, ...(component.default_values ?? []).map(({ id }) => id)];
}

/**
 * Return a picture, or a tile with a link when it lies on another host: the playground never reaches out, so that
 * it works with no internet and tells nobody what is tried here.
 */
export function picture(url, description) {
  const text = description || fileName(url);
  const isHere = /^data:image\//.test(url) || (URL.canParse(url) && new URL(url).origin === location.origin);
  if (!isHere) return pictureTile(url, text);
  const image = el("img", { src: url, alt: text });
  image.addEventListener("error", () => image.replaceWith(pictureTile(url, text)));
  return image;
}

function pictureTile(url, text) {
  const words = [
    el("span", { class: "tile-sign", "aria-hidden": "true" }, "▦"),
    el("span", { class: "tile-text" }, text),
  ];
  return outsideLink(url, { class: "picture-tile" }, ...words) ?? el("span", { class: "picture-tile" }, ...words);
}

/** Return the last part of a URL's path, for people to read. */
export function fileName(url) {
  const path = url.split(/[?#]/)[0].split("/");
  return path.at(-1) || url;
}
