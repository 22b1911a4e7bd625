/** What a reader can do, one method per packet the server takes. */

import { freshRequest } from "./world.js";

export class Acts {
  #send;
  #world;

  /** `send(packet)` returns false when there is no connection; the reader is told so, and nothing is kept for later. */
  constructor(send, world) {
    this.#send = send;
    this.#world = world;
  }

  click(messageId, customId) {
    if (this.#world.isBusy(messageId, customId)) return;
    const wasSent = this.#doAs({ do: "click", message_id: messageId, custom_id: customId });
    if (wasSent) this.#world.markSending(messageId, customId);
  }

  select(messageId, customId, values) {
    if (this.#world.isBusy(messageId, customId)) return;
    const wasSent = this.#doAs({ do: "select", message_id: messageId, custom_id: customId, values });
    if (!wasSent) return;
    this.#world.choose(messageId, customId, values);
    this.#world.markSending(messageId, customId);
  }

  /** Send a filled form and return true when it left. */
  submit(interactionId, values) {
    return this.#doAs({ do: "submit", interaction_id: interactionId, values });
  }

  dismiss(messageId) {
    this.#doAs({ do: "dismiss", message_id: messageId });
  }

  /** Use a command; `target` is the person or message a context menu was opened on. */
  command(name, options, target = undefined) {
    return this.#write({ do: "command", channel_id: this.#world.channelId, name, options, target });
  }

  /** Ask the bot for suggestions; they come as topic "choices" under this number. */
  suggest(request, name, option, text, options) {
    const channelId = this.#world.channelId;
    this.#ask({ do: "autocomplete", request, channel_id: channelId, name, option, text, options });
  }

  /** Ask which commands the reader may use in the open channel. */
  askUsable() {
    this.#world.usableRequest = freshRequest();
    this.#ask({ do: "usable", request: this.#world.usableRequest, channel_id: this.#world.channelId });
  }

  say(content, uploads = []) {
    const files = uploads.length > 0 ? { uploads } : {};
    return this.#write({ do: "say", channel_id: this.#world.channelId, content, ...files });
  }

  // ---- Messages

  edit(messageId, content) {
    return this.#doAs({ do: "edit", message_id: messageId, content });
  }

  delete(messageId) {
    return this.#doAs({ do: "delete", message_id: messageId });
  }

  react(messageId, emoji) {
    return this.#doAs({ do: "react", message_id: messageId, emoji });
  }

  unreact(messageId, emoji) {
    return this.#doAs({ do: "unreact", message_id: messageId, emoji });
  }

  // ---- People

  openDirect() {
    this.#world.isOpeningDirect = true;
    return this.#doAs({ do: "open_dm" });
  }

  setLocale(locale) {
    return this.#doAs({ do: "person", locale });
  }

  setRoles(roles) {
    return this.#doAs({ do: "roles", roles });
  }

  makeRole(name, permissions) {
    return this.#do({ do: "role", name, permissions });
  }

  // ---- The playground

  bot(action) {
    this.#do({ do: "bot", action });
  }

  /** Start the bot anew so that interactions come to it in the other mode, "gateway" or "rest". */
  setMode(mode) {
    this.#do({ do: "mode", mode });
  }

  /** Call a hook of the bot; what it answers comes as topic "hook" under this number. Return true when it left. */
  callHook(request, name, body) {
    return this.#do({ do: "hook", request, name, body });
  }

  /** Ask for the command that calls a hook; it comes as topic "curl" under this number. Return true when it left. */
  askCurl(request, name, body) {
    return this.#do({ do: "curl", request, name, body });
  }

  advance(seconds) {
    return this.#do({ do: "advance", seconds });
  }

  /** What one writes oneself, one wants to see: the list goes to its end. */
  #write(packet) {
    const wasSent = this.#doAs(packet);
    if (wasSent) this.#world.tell("sent");
    return wasSent;
  }

  #doAs(packet) {
    return this.#do({ ...packet, as: this.#world.actingAs });
  }

  /** A question that the page asks by itself: when it cannot be sent, the reader has nothing to be told. */
  #ask(packet) {
    this.#send({ ...packet, as: this.#world.actingAs });
  }

  #do(packet) {
    const wasSent = this.#send(packet);
    if (wasSent) this.#world.tell("acted");
    else this.#world.tell("refused", "Not sent: there is no connection to the playground.");
    return wasSent;
  }
}
