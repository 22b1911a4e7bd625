/**
 * The markdown of chat messages, as elements. Texts are hostile: what is not understood stays text, and only
 * http(s) becomes a link.
 */

import { el, outsideLink } from "./dom.js";

const NESTING_MAX = 8; // deeper markup is shown as typed, so that no text can exhaust the stack

/**
 * Return the nodes for a text. `world` gives the names behind mentions.
 *
 *     body.append(...markdown("## Tea?\n**Yes** or <@400>", world))
 */
export function markdown(text, world) {
  const lines = text.split("\n");
  const nodes = [];
  while (lines.length > 0) nodes.push(takeBlock(lines, world));
  return nodes.filter((node) => node !== null);
}

// ---- Blocks: each taker removes its lines from the front of the list

function takeBlock(lines, world) {
  const taker = blockTakers.find(([begins]) => begins.test(lines[0]));
  return taker ? taker[1](lines, world) : takeParagraph(lines, world);
}

function takeFence(lines, world) {
  const end = lines.findIndex((line, index) => index > 0 && line.trimEnd().endsWith("```"));
  if (end < 0) return takeParagraph(lines, world, 1);
  const taken = lines.splice(0, end + 1);
  taken[end] = taken[end].trimEnd().slice(0, -3);
  const inside = taken[end] === "" ? taken.slice(1, -1) : taken.slice(1);
  return el("pre", { tabindex: 0, "aria-label": "Code" }, el("code", {}, inside.join("\n")));
}

function takeHeading(lines, world) {
  const [, marks, text] = /^(#{1,3})\s+(.*)$/.exec(lines.shift());
  return el(`h${marks.length + 2}`, {}, ...inline(text, world)); // the page's own headings are h1 and h2
}

function takeSubtext(lines, world) {
  return el("p", { class: "subtext" }, ...inline(lines.shift().replace(/^-#\s+/, ""), world));
}

function takeLongQuote(lines, world) {
  const taken = lines.splice(0);
  taken[0] = taken[0].replace(/^>>>\s/, "");
  return el("blockquote", {}, ...markdownInQuote(taken, world));
}

function takeQuote(lines, world) {
  const taken = takeWhile(lines, /^>\s/).map((line) => line.replace(/^>\s/, ""));
  return el("blockquote", {}, ...markdownInQuote(taken, world));
}

/** A quote inside a quote stays text: it needs no second level, and a text of a thousand ">" must not nest a thousand deep. */
function markdownInQuote(lines, world) {
  return markdown(lines.map((line) => line.replace(/^>+\s/, "\u203a ")).join("\n"), world);
}

function takeBullets(lines, world) {
  const items = takeWhile(lines, /^\s*[-*]\s+\S/).map((line) => line.replace(/^\s*[-*]\s+/, ""));
  return el("ul", {}, ...items.map((item) => el("li", {}, ...inline(item, world))));
}

function takeNumbers(lines, world) {
  const start = Number.parseInt(lines[0], 10);
  const items = takeWhile(lines, /^\s*\d{1,9}\.\s+\S/).map((line) => line.replace(/^\s*\d+\.\s+/, ""));
  return el("ol", { start }, ...items.map((item) => el("li", {}, ...inline(item, world))));
}

function takeParagraph(lines, world, atLeast = 0) {
  const taken = lines.splice(0, atLeast);
  while (lines.length > 0 && !blockTakers.some(([begins]) => begins.test(lines[0]))) taken.push(lines.shift());
  const text = taken.join("\n");
  return text.trim() === "" ? null : el("p", {}, ...inline(text.replace(/^\n+|\n+$/g, ""), world));
}

function takeWhile(lines, pattern) {
  const end = lines.findIndex((line) => !pattern.test(line));
  return lines.splice(0, end < 0 ? lines.length : end);
}

const blockTakers = [
  [/^```/, takeFence],
  [/^#{1,3}\s+\S/, takeHeading],
  [/^-#\s+\S/, takeSubtext],
  [/^>>>\s/, takeLongQuote],
  [/^>\s/, takeQuote],
  [/^\s*[-*]\s+\S/, takeBullets],
  [/^\s*\d{1,9}\.\s+\S/, takeNumbers],
];

// ---- Inside a line

const wrapped = (tag) => (match, world, depth) => el(tag, {}, ...inline(match[1], world, depth + 1));

/** Tried in this order at each place. A rule may return a string or an element, or null when it does not hold after all. */
const inlineRules = [
  [/\\([^\w\s])/y, (match) => match[1]],
  [/```([\s\S]+?)```/y, (match) => el("code", {}, match[1].trim())],
  [/``([\s\S]+?)``(?!`)/y, (match) => el("code", {}, match[1].trim())],
  [/`([^`]+)`/y, (match) => el("code", {}, match[1])],
  [/<(https?:\/\/[^\s>]+)>/y, (match) => outsideLink(match[1], {}, match[1])],
  [
    /<@!?(\d{1,20})>/y,
    (match, world) => mention(world.nameOf(match[1]) ?? "unknown user", match[1] === world.actingAs),
  ],
  [/<@&(\d{1,20})>/y, (match, world) => mention(roleName(world, match[1]), false)],
  [/<#(\d{1,20})>/y, (match, world) => el("span", { class: "mention" }, `#${channelName(world, match[1])}`)],
  [/@everyone\b|@here\b/y, (match) => mention(match[0].slice(1), true)],
  [/<\/([^:>\n]{1,100}):\d{1,20}>/y, (match) => el("span", { class: "mention" }, `/${match[1]}`)],
  [/<a?(:\w{1,32}:)\d{1,20}>/y, (match) => match[1]],
  [/<t:(-?\d{1,12})(?::([tTdDfFR]))?>/y, (match) => timestamp(Number(match[1]), match[2] ?? "f")],
  [/\[([^\]\n]+)\]\(<?(https?:\/\/[^\s)>]+)>?(?:\s+"[^"\n]*")?\)/y, maskedLink],
  [/https?:\/\/[^\s<>]*[^\s<>.,:;!?)"'\]*_~|]/y, (match) => outsideLink(match[0], {}, match[0])],
  [/\*\*([\s\S]+?)\*\*(?!\*)/y, wrapped("strong")],
  [/__([\s\S]+?)__(?!_)/y, wrapped("u")],
  [/\*(?![\s*])([\s\S]*?[^\s*])\*(?!\*)/y, wrapped("em")],
  [/_(?![\s_])([\s\S]*?[^\s_])_(?!\w)/y, wrapped("em")],
  [/~~([\s\S]+?)~~/y, wrapped("s")],
  [/\|\|([\s\S]+?)\|\|/y, (match, world, depth) => spoiler(inline(match[1], world, depth + 1))],
];
const MAY_BEGIN_A_RULE = /[\\`<[*_~|h@]/;

function inline(text, world, depth = 0) {
  if (depth > NESTING_MAX) return [text];
  const nodes = [];
  let plain = "";
  for (let at = 0; at < text.length;) {
    const [node, length] = MAY_BEGIN_A_RULE.test(text[at]) ? applyRule(text, at, world, depth) : [text[at], 1];
    at += length;
    if (typeof node === "string") plain += node;
    else {
      nodes.push(plain, node);
      plain = "";
    }
  }
  return [...nodes, plain].filter((node) => node !== "");
}

function applyRule(text, at, world, depth) {
  const isInsideWord = text[at] === "_" && at > 0 && /\w/.test(text[at - 1]); // snake_case is no italics
  for (const [pattern, make] of isInsideWord ? [] : inlineRules) {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    const node = match && make(match, world, depth);
    if (node !== null) return [node, match[0].length];
  }
  return [text[at], 1];
}

function maskedLink(match, world, depth) {
  const words = inline(match[1], world, depth + 1).filter((node) => typeof node === "string" || node.tagName !== "A");
  return outsideLink(match[2], { title: match[2] }, ...(words.length > 0 ? words : [match[2]]));
}

function mention(name, isReader) {
  return el("span", { class: isReader ? "mention mention-me" : "mention" }, `@${name}`);
}

function roleName(world, id) {
  return world.guildRoles.find((role) => role.id === id)?.name.replace(/^@/, "") ?? "unknown role";
}

function channelName(world, id) {
  return world.channels.find((channel) => channel.id === id)?.name ?? "unknown";
}

function spoiler(nodes) {
  const hidden = el("span", { class: "masked" }, ...nodes);
  const cover = el("button", { type: "button", class: "spoiler-text", "aria-label": "Show spoiler" }, hidden);
  cover.addEventListener("click", () => cover.replaceWith(el("span", { class: "spoiler-shown" }, ...nodes)));
  return cover;
}

// ---- Times

const timeStyles = {
  t: { timeStyle: "short" },
  T: { timeStyle: "medium" },
  d: { dateStyle: "short" },
  D: { dateStyle: "long" },
  f: { dateStyle: "long", timeStyle: "short" },
  F: { dateStyle: "full", timeStyle: "short" },
};
const UNITS = [
  ["year", 31536000],
  ["month", 2592000],
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];

function timestamp(seconds, style) {
  const date = new Date(seconds * 1000);
  if (Number.isNaN(date.getTime())) return null;
  const full = new Intl.DateTimeFormat(undefined, timeStyles.F).format(date);
  const text = style === "R" ? relativeTime(seconds - Date.now() / 1000) : format(date, style);
  return el("time", { datetime: date.toISOString(), title: full, class: "mention" }, text);
}

function format(date, style) {
  return new Intl.DateTimeFormat(undefined, timeStyles[style]).format(date);
}

function relativeTime(seconds) {
  const [unit, size] = UNITS.find(([, unitSize]) => Math.abs(seconds) >= unitSize) ?? UNITS.at(-1);
  return new Intl.RelativeTimeFormat(undefined, { numeric: "auto" }).format(Math.round(seconds / size), unit);
}
