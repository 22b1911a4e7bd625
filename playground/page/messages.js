/** The messages of the open channel, as the reader sees them. */

import { announce } from "./announce.js";
import { el } from "./dom.js";
import { focusPlace, isScrolledToEnd, keepPlace, placeOf, syncList } from "./list.js";
import { commandItem, dayItem, messageInWords, messageItem } from "./message.js";
import { channelTitle } from "./pieces.js";
import { compareIds, failureInWords, isThinking } from "./world.js";

const SHOWN_AT_ONCE = 200;
const TOGETHER_MS = 7 * 60 * 1000;

/** Show `world`'s messages in `scroller` from now on. */
export class MessageList {
  #scroller;
  #list;
  #earlier;
  #latest;
  #world;
  #acts;
  #isAtEnd = true;
  #channelId = null;
  #shown = SHOWN_AT_ONCE;
  #heard = new Map(); // message id → whether it was still "thinking" when the reader was told

  constructor(scroller, latest, world, acts) {
    this.#scroller = scroller;
    this.#latest = latest;
    this.#world = world;
    this.#acts = acts;
    this.#earlier = el(
      "button",
      { type: "button", class: "as-link earlier", onclick: () => this.#showEarlier() },
      "Show earlier messages",
    );
    this.#list = el("ol", { role: "list" });
    scroller.append(this.#earlier, this.#list);
    scroller.addEventListener("scroll", () => this.#scrolled());
    latest.addEventListener("click", () => this.#toEnd());
    new ResizeObserver(() => this.#holdEnd()).observe(scroller);
    new ResizeObserver(() => this.#holdEnd()).observe(this.#list);
    scroller.addEventListener("keydown", (event) => this.#key(event));
    world.on("sent", () => this.#toEnd());
    world.on("editLast", () => this.#editLast());
    world.on("outcome", (interaction) => this.#tellFailure(interaction));
    world.watch(["messages", "people", "roles", "channels"], () => this.#draw());
  }

  #draw() {
    const isOtherChannel = this.#channelId !== this.#world.channelId;
    if (isOtherChannel) this.#enterChannel();
    const messages = this.#world.visibleMessages();
    const entries = this.#entries(messages);
    keepPlace(this.#scroller, this.#isAtEnd, () => syncList(this.#list, entries));
    this.#earlier.hidden = messages.length <= this.#shown;
    this.#tellNews(messages, isOtherChannel);
  }

  #enterChannel() {
    this.#channelId = this.#world.channelId;
    this.#isAtEnd = true;
    this.#shown = SHOWN_AT_ONCE;
    this.#heard.clear();
  }

  // ---- What stands in the list

  #entries(all) {
    const messages = all.slice(-this.#shown);
    const entries = messages.flatMap((message, index) => this.#messageEntries(message, messages[index - 1]));
    for (const interaction of this.#world.openCommands())
      entries.splice(placeFor(interaction, entries), 0, this.#commandEntry(interaction));
    return all.length > this.#shown ? entries : [this.#welcomeEntry(), ...entries];
  }

  #messageEntries(message, previous) {
    const isNewDay = !previous || dayOf(previous) !== dayOf(message);
    const isFirst = isNewDay || !isSameBreath(previous, message);
    const entry = {
      key: `m${message.id}`,
      id: message.id,
      parts: [message, isFirst, ...this.#surroundings(message.id)],
      build: () => messageItem(this.#scene(message), isFirst),
    };
    const day = { key: `day-${message.id}`, parts: [dayOf(message)], build: () => dayItem(message.timestamp) };
    return isNewDay ? [day, entry] : [entry];
  }

  /** What else a message's look depends on: names in mentions, who reads, and what the reader did with it. */
  #surroundings(messageId) {
    const { users, guildRoles, channels, actingAs } = this.#world;
    return [users, guildRoles, channels, actingAs, this.#world.touches(messageId)];
  }

  #commandEntry(interaction) {
    return {
      key: `i${interaction.id}`,
      id: interaction.id,
      parts: [interaction],
      build: () => commandItem(interaction, this.#world),
    };
  }

  #welcomeEntry() {
    const { channel } = this.#world;
    const title = channelTitle(channel);
    const words = [
      el("strong", {}, channel?.type === 1 ? `You and ${title}` : `This is the beginning of ${title}.`),
      el("span", {}, "Type / below to use one of the bot's commands."),
    ];
    return { key: "welcome", parts: [title], build: () => el("li", { class: "welcome" }, title && words) };
  }

  #scene(message) {
    return {
      message,
      world: this.#world,
      acts: this.#acts,
      refocus: (control) => this.#refocus(control),
      startEdit: () => this.#world.startEdit(message),
    };
  }

  /** Arrow keys go from message to message, so that one without a control can be reached as well. */
  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const items = [...this.#list.querySelectorAll(".message")];
    const now = items.indexOf(event.target);
    const isBetween = event.target === this.#scroller || now >= 0;
    if (!step || !isBetween || items.length === 0) return;
    event.preventDefault();
    items[now < 0 ? items.length - 1 : Math.min(Math.max(now + step, 0), items.length - 1)].focus();
  }

  #editLast() {
    const mine = this.#world.visibleMessages().filter(({ author }) => author.id === this.#world.actingAs);
    if (mine.length > 0) this.#world.startEdit(mine.at(-1));
  }

  #refocus(control) {
    if (control.isConnected) control.focus({ preventScroll: true });
    else focusPlace(placeOf(control), this.#scroller);
  }

  // ---- Where the reader is in it

  #scrolled() {
    this.#isAtEnd = isScrolledToEnd(this.#scroller);
    if (this.#isAtEnd) this.#latest.hidden = true;
  }

  #holdEnd() {
    if (this.#isAtEnd) this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }

  #toEnd() {
    this.#isAtEnd = true;
    this.#latest.hidden = true;
    this.#holdEnd();
  }

  #showEarlier() {
    this.#shown += SHOWN_AT_ONCE;
    this.#isAtEnd = false;
    this.#draw();
  }

  // ---- News

  /** Say what is new to the reader. What was there when the channel was opened is no news. */
  #tellNews(messages, isOtherChannel) {
    for (const message of messages) {
      const wasThinking = this.#heard.get(message.id);
      const isNews = wasThinking === undefined || (wasThinking && !isThinking(message));
      this.#heard.set(message.id, isThinking(message));
      if (!isNews || isOtherChannel) continue;
      announce(messageInWords(message));
      this.#latest.hidden = this.#isAtEnd;
    }
  }

  #tellFailure(interaction) {
    if (interaction.state === "failed" && interaction.user_id === this.#world.actingAs)
      announce(failureInWords(interaction));
  }
}

function placeFor(interaction, entries) {
  const place = entries.findIndex(({ id }) => id && compareIds(id, interaction.id) > 0);
  return place < 0 ? entries.length : place;
}

function dayOf(message) {
  return new Date(message.timestamp).toDateString();
}

/** Return true when two messages read as one: same author, a short while apart, nothing to say above the second. */
function isSameBreath(previous, message) {
  const isSameAuthor = previous.author.id === message.author.id && previous.visible_to === message.visible_to;
  const isSoon = new Date(message.timestamp) - new Date(previous.timestamp) < TOGETHER_MS;
  return isSameAuthor && isSoon && !message.used;
}
