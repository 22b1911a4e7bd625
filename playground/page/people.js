/** The people of the playground: who the reader acts as, with which language and rights, and who else is there. */

import { placeBeside } from "./choice.js";
import { el, freshId } from "./dom.js";
import { avatar } from "./pieces.js";
import { openPersonMenu } from "./tools.js";

const LOCALES = ["en-US", "en-GB", "de", "fr", "es-ES", "ja"];
const bit = (number) => 1n << BigInt(number);
// Kick, ban, manage the guild, manage messages, mention everyone, mute, move, manage roles, time out.
const MODERATING = [1, 2, 5, 13, 17, 22, 24, 28, 40].map(bit).reduce((all, one) => all | one);
const LEVELS = [
  { name: "Member", role: null },
  { name: "Moderator", role: { name: "Moderator", permissions: String(MODERATING) } },
  { name: "Administrator", role: { name: "Administrator", permissions: String(bit(3)) } },
];

// ---- Who the reader acts as

/** Show who the reader acts as, and let them change it. Arrow keys go from one person to the next. */
export function showPeople(group, world, acts) {
  const settings = settingsButton(world, acts);
  world.watch(["people", "roles"], () => {
    const buttons = world.users.map((user) => personRadio(user, world));
    const hadFocus = group.contains(document.activeElement) && document.activeElement !== settings;
    const radios = el("div", { class: "persons" }, buttons);
    group.querySelector(".persons")?.remove();
    if (!settings.isConnected) group.append(el("legend", {}, "Act as"), settings);
    settings.before(radios);
    describeSettings(settings, world);
    if (hadFocus) group.querySelector("input:checked")?.focus();
  });
}

function personRadio({ id, name }, world) {
  const radio = el("input", {
    type: "radio",
    name: "acting",
    value: id,
    class: "visually-hidden",
    onchange: () => world.actAs(id),
  });
  radio.checked = id === world.actingAs;
  return el("label", { class: "person" }, radio, avatar(id, name), el("span", {}, name));
}

// ---- Language and rights

function settingsButton(world, acts) {
  const button = el("button", { type: "button", class: "plain settings", "aria-haspopup": "dialog" });
  button.addEventListener("click", () => openSettings(button, world, acts));
  return button;
}

function describeSettings(button, world) {
  const { me } = world;
  button.hidden = !me;
  if (!me) return;
  const level = levelOf(me, world).name.toLowerCase();
  const locale = me.locale ?? LOCALES[0];
  button.setAttribute("aria-label", `Rights and language of ${me.name}: ${level}, ${locale}`);
  button.replaceChildren(`${level} · ${locale}`, el("span", { class: "more-sign", "aria-hidden": "true" }, "▾"));
}

/** Return what a person may do, as one of the three levels that a test of a bot needs. */
function levelOf({ roles = [] }, world) {
  const names = world.guildRoles.filter(({ id }) => roles.includes(id)).map(({ name }) => name);
  return LEVELS.findLast(({ role }) => role && names.includes(role.name)) ?? LEVELS[0];
}

function openSettings(button, world, acts) {
  const { me } = world;
  const box = el("div", { class: "menu settings-box", popover: "auto", role: "dialog", "aria-label": `${me.name} is` });
  const name = freshId("level");
  const now = levelOf(me, world);
  const levels = LEVELS.map((level) => {
    const radio = el("input", {
      type: "radio",
      name,
      id: freshId("level"),
      onchange: () => become(level, world, acts),
    });
    radio.checked = level === now;
    return el("div", { class: "option-row" }, radio, el("label", { for: radio.id }, level.name));
  });
  const language = localeSelect(me, world, acts);
  box.append(
    el("fieldset", {}, el("legend", {}, `What ${me.name} may do`), levels),
    el("div", { class: "field" }, el("label", { for: language.id }, "Language"), language),
  );
  box.addEventListener("toggle", (event) => {
    if (event.newState !== "closed") return;
    const hadFocus = box.contains(document.activeElement) || document.activeElement === document.body;
    box.remove();
    if (hadFocus) button.focus();
  });
  document.body.append(box);
  box.showPopover();
  placeBeside(box, button);
  box.querySelector("input:checked").focus();
}

function localeSelect(me, world, acts) {
  const codes = world.locales.length > 0 ? world.locales : LOCALES;
  const options = codes.map((code) => el("option", { value: code }, `${languageName(code)} (${code})`));
  const select = el("select", { id: freshId("locale"), onchange: () => acts.setLocale(select.value) }, options);
  select.value = me.locale ?? LOCALES[0];
  return select;
}

function languageName(code) {
  try {
    return new Intl.DisplayNames("en", { type: "language" }).of(code);
  } catch {
    return code; // a bot may be tried with a language that nobody speaks
  }
}

/** Give the person the level's role and take those of the other levels; the role is made when the guild has none. */
function become({ role }, world, acts) {
  const { me } = world;
  const ofLevels = new Set(LEVELS.map((one) => one.role?.name));
  const kept = world.guildRoles
    .filter(({ id, name }) => me.roles?.includes(id) && !ofLevels.has(name))
    .map(({ id }) => id);
  if (role === null) {
    acts.setRoles(kept);
    return;
  }
  const found = roleNamed(role.name, world);
  if (found) acts.setRoles([...kept, found.id]);
  else awaitRole(role, world, (made) => acts.setRoles([...kept, made.id]), acts);
}

function roleNamed(name, world) {
  return world.guildRoles.find((one) => one.name === name);
}

function awaitRole({ name, permissions }, world, use, acts) {
  let isWaiting = true;
  world.on("roles", () => {
    const made = roleNamed(name, world);
    if (!isWaiting || !made) return;
    isWaiting = false;
    use(made);
  });
  acts.makeRole(name, permissions);
}

// ---- Who is there

/** List everybody, each with a menu: the bot's user commands. */
export function showMembers(list, world, acts) {
  world.watch(["people", "roles", "bot"], () => {
    const everybody = world.botUser ? [...world.users, { ...world.botUser, isBot: true }] : world.users;
    const hadFocus = list.contains(document.activeElement) ? document.activeElement.dataset.id : null;
    list.replaceChildren(...everybody.map((one) => memberItem(one, world, acts)));
    if (hadFocus) list.querySelector(`[data-id="${CSS.escape(hadFocus)}"]`)?.focus();
  });
}

function memberItem(person, world, acts) {
  const { id, name, isBot } = person;
  const level = isBot ? null : levelOf(person, world);
  const button = el(
    "button",
    { type: "button", class: "member", "data-id": id, "aria-haspopup": "menu", "aria-expanded": "false" },
    avatar(id, name, isBot),
    el("span", { class: "member-name" }, name, level?.role && el("small", {}, level.name)),
    isBot && el("span", { class: "tag" }, "APP"),
  );
  const again = () =>
    list(button)
      ?.querySelector(`[data-id="${CSS.escape(id)}"]`)
      ?.focus();
  button.addEventListener("click", () => openPersonMenu(person, { world, acts }, button, null, again));
  button.addEventListener("contextmenu", (event) => {
    event.preventDefault();
    openPersonMenu(
      person,
      { world, acts },
      button,
      event.button === 2 ? { x: event.clientX, y: event.clientY } : null,
      again,
    );
  });
  return el("li", {}, button);
}

function list(button) {
  return button.isConnected ? button.closest("ul") : document.getElementById("members");
}
