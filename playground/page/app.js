/** The page: a world, the socket that fills it, and the parts that show it. */

import { Acts } from "./acts.js";
import { showBot, showClock, showLog, showMode } from "./bot.js";
import { showChannels } from "./channels.js";
import { Composer } from "./composer.js";
import { el } from "./dom.js";
import { Forms } from "./forms.js";
import { Hooks } from "./hooks.js";
import { MessageList } from "./messages.js";
import { showMembers, showPeople } from "./people.js";
import { Socket } from "./socket.js";
import { World } from "./world.js";

const ACTING_KEY = "acting-as"; // per tab, so that two windows can be two people

const part = (id) => document.getElementById(id);

function main() {
  const world = new World();
  const token = document.querySelector("meta[name=playground-token]").content;
  const socket = new Socket(`ws://${location.host}/page/socket`, token, {
    received: (packet) => world.apply(packet),
    changed: (state) => world.setConnection(state),
  });
  const acts = new Acts((packet) => socket.send(packet), world);
  rememberPerson(world);
  showConnection(part("connection"), world, socket);
  showChannels(part, world, acts);
  new MessageList(part("messages"), part("latest"), world, acts);
  showRefusals(part("refusal"), world);
  showPeople(part("people"), world, acts);
  showMembers(part("members"), world, acts);
  new Composer(part("composer"), world, acts);
  new Forms(part("form"), world, acts);
  showBot(part("bot"), world, acts);
  showMode(part("mode"), world, acts);
  new Hooks(part("hooks"), world, acts);
  showClock(part("clock"), part("clock-offset"), world, acts);
  showLog(part("log"), world);
  foldPanel(part("bot"), part("bot-fold"));
  askUsable(world, acts);
  socket.connect();
}

/** Which commands the reader may use depends on all of these; the server knows the rules. */
function askUsable(world, acts) {
  world.watch(["people", "roles", "channels", "commands"], () => world.channelId && acts.askUsable());
}

function rememberPerson(world) {
  world.actingAs = sessionStorage.getItem(ACTING_KEY);
  world.on("people", () => world.actingAs && sessionStorage.setItem(ACTING_KEY, world.actingAs));
}

// ---- Connection

function showConnection(bar, world, socket) {
  const retry = el("button", { type: "button", class: "as-link", onclick: () => socket.connect() }, "Try now");
  const reload = el(
    "button",
    { type: "button", class: "as-link", onclick: () => location.reload() },
    "Reload the page",
  );
  const texts = {
    connecting: ["Connecting to the playground…"],
    open: [],
    lost: ["No connection to the playground. Trying again… ", retry],
    refused: ["The playground was started anew and does not know this page. ", reload],
  };
  let shown = null;
  world.watch(["connection"], () => {
    if (shown === world.connection) return; // each failed attempt tells "lost" again, which must not be read out again
    shown = world.connection;
    bar.replaceChildren(...texts[shown]);
    bar.hidden = texts[shown].length === 0;
  });
}

/** Show why the playground refused what the reader last did, until they do something else or close it. */
function showRefusals(bar, world) {
  const hide = () => {
    bar.hidden = true;
  };
  const text = el("span", { role: "alert" });
  bar.append(text, el("button", { type: "button", class: "plain", "aria-label": "Close", onclick: hide }, "✕"));
  world.on("refused", (reason) => {
    text.textContent = reason;
    bar.hidden = false;
  });
  world.on("acted", hide);
}

// ---- Small screens

function foldPanel(panel, fold) {
  fold.addEventListener("click", () => {
    const isOpen = panel.classList.toggle("open");
    fold.setAttribute("aria-expanded", String(isOpen));
  });
}

main();
