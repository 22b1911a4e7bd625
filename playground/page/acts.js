/** What a reader can do, one method per packet the server takes. */

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

  command(name, options) {
    return this.#write({ do: "command", channel_id: this.#world.channelId, name, options });
  }

  say(content) {
    return this.#write({ do: "say", channel_id: this.#world.channelId, content });
  }

  bot(action) {
    this.#do({ do: "bot", action });
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

  #do(packet) {
    const wasSent = this.#send(packet);
    if (wasSent) this.#world.tell("acted");
    else this.#world.tell("refused", "Not sent: there is no connection to the playground.");
    return wasSent;
  }
}
