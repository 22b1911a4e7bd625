/** The bot as a process: how it is, what can be done to it, and what it printed. */

import { announce } from "./announce.js";
import { el } from "./dom.js";
import { isScrolledToEnd } from "./list.js";

const LINES_KEPT = 2000;
const STATUS_WORDS = {
  starting: "starting",
  running: "running",
  stopped: "stopped",
  exited: "exited by itself",
  none: "",
};
const ALIVE = ["starting", "running"];
const CLOCK_STEPS = [
  ["+1 min", 60, "1 minute"],
  ["+10 min", 600, "10 minutes"],
  ["+1 h", 3600, "1 hour"],
  ["+1 day", 86400, "1 day"],
];

/** Show the bot's status and its buttons. A button that cannot be used stays in the tab order, so the focus is never lost. */
export function showBot(panel, world, acts) {
  const status = panel.querySelector(".bot-status");
  const actions = panel.querySelector(".bot-actions");
  const buttons = ["start", "stop", "kill", "restart"].map((action) => actionButton(action, acts));
  actions.append(...buttons);
  let told = null;
  world.watch(["bot"], () => {
    const words = statusWords(world.bot);
    status.replaceChildren(
      el("span", { class: `lamp ${world.bot.status}`, "aria-hidden": "true" }),
      el("strong", {}, world.bot.name || "No bot"),
      ` ${words}`,
    );
    for (const button of buttons)
      button.setAttribute("aria-disabled", String(!isPossible(button.dataset.action, world.bot)));
    if (told !== null && told !== words) announce(`${world.bot.name} ${words}`);
    told = world.bot.name ? words : null;
  });
}

function statusWords({ status, pid, exit_code: code }) {
  const details = [
    pid !== null && `pid ${pid}`,
    !ALIVE.includes(status) && code !== null && `exit code ${code}`,
  ].filter(Boolean);
  return [STATUS_WORDS[status] ?? status, ...details].join(" · ");
}

function actionButton(action, acts) {
  const name = action[0].toUpperCase() + action.slice(1);
  const button = el(
    "button",
    { type: "button", class: `button ${action === "kill" ? "danger" : "secondary"}`, "data-action": action },
    name,
  );
  button.addEventListener("click", () => {
    if (button.getAttribute("aria-disabled") !== "true") acts.bot(action);
  });
  return button;
}

function isPossible(action, bot) {
  if (bot.status === "none") return false;
  return ALIVE.includes(bot.status) ? action !== "start" : action === "start" || action === "restart";
}

const MODES = {
  gateway: { words: "Interactions: gateway", other: "rest", offer: "Use HTTP instead" },
  rest: { words: "Interactions: HTTP", other: "gateway", offer: "Use the gateway instead" },
};

/** Show how interactions come to the bot, and let the reader change it, which starts the bot anew. */
export function showMode(line, world, acts) {
  const words = el("span");
  const change = el("button", { type: "button", class: "as-link", onclick: () => acts.setMode(MODES[shown].other) });
  line.append(words, " ", change);
  let shown = null;
  world.watch(["bot"], () => {
    const { mode, has_web: hasWeb } = world.bot;
    line.hidden = !(mode in MODES);
    if (line.hidden || mode === shown) return;
    if (shown !== null) announce(MODES[mode].words);
    shown = mode;
    words.textContent = MODES[mode].words;
    change.textContent = MODES[mode].offer;
    change.title = "This restarts the bot.";
    change.hidden = !hasWeb;
  });
}

/** Show the buttons that move the playground's clock, for rules that take 3 s, 15 minutes or a week, and how far it went. */
export function showClock(group, offset, world, acts) {
  world.watch(["clock"], () => {
    offset.textContent = world.clockOffset > 0 ? `The clock is ${durationInWords(world.clockOffset)} ahead.` : "";
  });
  const move = (seconds, words) => acts.advance(seconds) && announce(`The clock went forward by ${words}.`);
  group.append(
    ...CLOCK_STEPS.map(([text, seconds, words]) =>
      el(
        "button",
        {
          type: "button",
          class: "button secondary",
          "aria-label": `Advance the clock by ${words}`,
          onclick: () => move(seconds, words),
        },
        text,
      ),
    ),
  );
}

const UNITS = [
  [86400, "day"],
  [3600, "hour"],
  [60, "minute"],
  [1, "second"],
];

/** Return a time span as people say it: `1 day 2 hours`. */
function durationInWords(seconds) {
  let left = Math.round(seconds);
  const words = [];
  for (const [size, unit] of UNITS) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count > 0) words.push(`${count} ${unit}${count === 1 ? "" : "s"}`);
  }
  return words.slice(0, 2).join(" ");
}

/** Show the bot's log in `box`. It follows its end until the reader scrolls up. */
export function showLog(box, world) {
  let waiting = [];
  let isFollowed = true;
  const holdEnd = () => {
    if (isFollowed) box.scrollTop = box.scrollHeight;
  };
  const flush = () => {
    box.append(...waiting.map((line) => el("div", { class: "log-line" }, withoutColours(line))));
    waiting = [];
    while (box.childElementCount > LINES_KEPT) box.firstElementChild.remove();
    holdEnd();
  };
  const add = (line) => {
    if (waiting.push(line) === 1) requestAnimationFrame(flush); // a traceback of fifty lines costs one layout
  };
  new ResizeObserver(holdEnd).observe(box); // while it is folded away it cannot scroll
  box.addEventListener("scroll", () => {
    isFollowed = isScrolledToEnd(box);
  });
  world.on("log", add);
  world.on("logReset", (lines) => {
    box.replaceChildren();
    waiting = [];
    lines.forEach(add);
  });
}

function withoutColours(line) {
  return line.replace(/\u001b\[[0-9;]*[A-Za-z]/g, "");
}
