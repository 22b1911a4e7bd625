/** The channels that the reader sees, and the one that is open. */

import { announce } from "./announce.js";
import { el } from "./dom.js";
import { channelTitle } from "./pieces.js";
import { openChannelMenu } from "./tools.js";

const DIRECT = 1;

/** Show the channels in the page's parts; `part(id)` returns one. */
export function showChannels(part, world, acts) {
  const direct = directButton(world, acts);
  world.watch(["channels", "people", "typing"], () => {
    const { guild, channel } = world;
    part("guild").textContent = guild.name;
    const title = channelTitle(channel);
    document.title = title ? `${title} · ${guild.name}` : guild.name;
    part("channel-name").textContent = title.slice(1);
    part("channel-sign").textContent = title.slice(0, 1) || "#";
    part("typing").textContent = world.isBotTyping ? "The bot is typing…" : "";
    showList(part("channels"), world, direct);
  });
}

function showList(list, world, direct) {
  const hadFocus = list.contains(document.activeElement) ? document.activeElement.dataset.id : null;
  const seen = world.visibleChannels();
  const isOurs = (one) => one.guild_id === undefined || one.guild_id === world.guild.id;
  const ours = seen.filter((one) => isOurs(one) && one.type !== DIRECT);
  const elsewhere = seen.filter((one) => !isOurs(one) && one.type !== DIRECT);
  const hasDirect = seen.some((one) => one.type === DIRECT && one.context !== 2);
  const mayOpen = !hasDirect && world.botUser !== null;
  const privately = seen.filter((one) => one.type === DIRECT);
  list.replaceChildren(
    ...ours.map((one) => channelItem(one, world)),
    ...titled("Direct messages", [...privately.map((one) => channelItem(one, world)), mayOpen && direct]),
    ...titled(
      "Without the bot",
      elsewhere.map((one) => channelItem(one, world)),
    ),
  );
  if (hadFocus) list.querySelector(`[data-id="${CSS.escape(hadFocus)}"]`)?.focus();
}

function titled(title, items) {
  const shown = items.filter(Boolean);
  return shown.length === 0 ? [] : [el("li", { class: "channel-title" }, title), ...shown];
}

function directButton(world, acts) {
  const button = el("button", {
    type: "button",
    class: "channel",
    "data-id": "direct",
    onclick: () => acts.openDirect(),
  });
  world.watch(["people", "channels"], () => button.replaceChildren(sign("@"), world.botUser?.name ?? "The bot"));
  return el("li", {}, button);
}

function sign(text) {
  return el("span", { class: "hash", "aria-hidden": "true" }, text);
}

function channelItem(channel, world) {
  const { id } = channel;
  const title = channelTitle(channel);
  const isUnread = world.unread.has(id);
  const open = () => {
    world.openChannel(id);
    announce(`Channel ${title.slice(1)}`);
  };
  const openMenu = (event) => {
    event.preventDefault();
    const at = event.button === 2 ? { x: event.clientX, y: event.clientY } : null;
    // The list may be built anew while the menu is open.
    const again = () => document.querySelector(`#channels [data-id="${CSS.escape(id)}"]`)?.focus();
    openChannelMenu({ id, name: title }, world, event.currentTarget, at, again);
  };
  return el(
    "li",
    {},
    el(
      "button",
      {
        type: "button",
        class: `channel ${isUnread ? "unread" : ""}`,
        "data-id": id,
        "aria-current": id === world.channelId ? "true" : null,
        title: `Channel id ${id}`,
        onclick: open,
        oncontextmenu: openMenu,
      },
      sign(title.slice(0, 1)),
      title.slice(1),
      channel.guild_name && channel.guild_id !== world.guild.id && el("small", {}, channel.guild_name),
      isUnread && el("span", { class: "visually-hidden" }, " (new messages)"),
    ),
  );
}
