/**
 * What the page knows: the newest state the server sent, and who and where the reader is.
 * Nothing here touches the document; the parts that do watch the topics they show.
 *
 * Topics: connection, people, roles, channels, commands, usable, messages, bot, hooks, form, clock, typing; and, each with
 * a value: log, logReset, refused, outcome (an interaction whose state changed), choices (a bot's suggestions), hook (what a
 * hook answered), curl (the command that calls it); acted, sent, editLast (the reader did or wrote something, or wants to).
 */

const THINKING = 1 << 7;
const TYPING_MS = 10_000;
const MANAGE_MESSAGES = 1n << 13n;

/** Return a number that tells which of two snowflakes is older; they are too long for a JavaScript number. */
export function compareIds(one, other) {
  return one.length - other.length || (one < other ? -1 : Number(one > other));
}

/** Return true while a bot has promised this message but not yet written it. */
export function isThinking(message) {
  return (message.flags & THINKING) !== 0;
}

let lastRequest = Math.floor(Math.random() * 2 ** 40); // answers go to every open page: each begins somewhere else

/** Return a number for a question, which the answer to it repeats. */
export function freshRequest() {
  lastRequest += 1;
  return lastRequest;
}

/** Return what a person reads about an interaction that failed. */
export function failureInWords({ kind, text }) {
  if (kind === "command") return text ?? "The application did not respond";
  return !text || text.startsWith("This interaction failed")
    ? (text ?? "This interaction failed")
    : `This interaction failed. ${text}`;
}

export class World {
  connection = "connecting";
  users = [];
  botUser = null;
  guild = { id: "", name: "Playground" };
  guildRoles = [];
  locales = [];
  channels = [];
  commands = [];
  usable = null; // ids of the commands the reader may use in the open channel; null until the server has said
  usableRequest = freshRequest(); // the number of the newest question for them
  isOpeningDirect = false; // the reader waits for a direct message to be opened
  clockOffset = 0; // seconds
  editing = null; // { id, text, hasFocus } of the message that the reader writes anew
  messages = new Map();
  interactions = new Map(); // pending or failed ones; what is answered shows in its message
  forms = new Map(); // by user id: what waits to be filled in
  bot = { name: "", status: "none", pid: null, exit_code: null };
  hooks = null; // { name, scheme } of each hook of the bot; null until it has told of them
  unread = new Set(); // channel ids
  actingAs = null; // user id
  channelId = null;

  #sending = new Set(); // clicks whose interaction the server has not announced yet
  #chosen = new Map(); // what a person chose in a message's select, until the message changes
  #revealed = new Set(); // spoilers a reader has opened
  #typing = new Map(); // channel id → until when, on performance's clock
  #touched = new Map(); // message id → how often something beside the message itself changed how it looks
  #listeners = new Map();

  /** Call `react(value)` at once whenever the topic is told. */
  on(topic, react) {
    if (!this.#listeners.has(topic)) this.#listeners.set(topic, []);
    this.#listeners.get(topic).push(react);
  }

  /** Call `react()` now, and once per frame in which any of the topics was told: a thousand updates cost one. */
  watch(topics, react) {
    let isDue = false;
    const runInFrame = () => {
      if (isDue) return;
      isDue = true;
      requestAnimationFrame(() => {
        isDue = false;
        react();
      });
    };
    for (const topic of topics) this.on(topic, runInFrame);
    react();
  }

  tell(topic, value) {
    for (const react of this.#listeners.get(topic) ?? []) react(value);
  }

  /** Take in one packet of the server. Types this page does not know are left alone, so a newer server can talk to it. */
  apply(packet) {
    this.#readers[packet.type]?.(packet);
  }

  #readers = {
    state: (packet) => this.#replaceAll(packet),
    message: (packet) => this.#putMessage(packet.message),
    message_gone: (packet) => this.#dropMessage(packet.id),
    commands: (packet) => this.#put("commands", packet.commands),
    users: (packet) => this.#putUsers(packet.users),
    roles: (packet) => this.#put("guildRoles", packet.roles, "roles"),
    channels: (packet) => this.#putChannels(packet.channels),
    opened: (packet) => this.#openFor(packet),
    usable: (packet) => this.#putUsable(packet),
    choices: (packet) => this.tell("choices", packet),
    clock: (packet) => this.#put("clockOffset", packet.offset ?? 0, "clock"),
    typing: (packet) => this.#noteTyping(packet),
    bot: (packet) => this.#put("bot", packet.bot),
    hooks: (packet) => this.#put("hooks", packet.hooks),
    hook: (packet) => this.tell("hook", packet),
    curl: (packet) => this.tell("curl", packet),
    log: (packet) => this.tell("log", packet.line),
    interaction: (packet) => this.#putInteraction(packet.interaction),
    form: (packet) => this.#putForm(packet),
    error: (packet) => this.#refuse(packet.text),
  };

  #put(field, value, topic = field) {
    this[field] = value;
    this.tell(topic);
  }

  #replaceAll(state) {
    const { users, guild, commands, bot, roles, locales, offset } = state;
    Object.assign(this, { users, guild, commands, bot });
    this.botUser = state.bot_user ? { ...state.bot_user, name: state.bot_user.name ?? state.bot_user.username } : null;
    this.guildRoles = roles ?? [{ id: guild.id, name: "@everyone" }];
    this.locales = locales ?? [];
    this.hooks = state.hooks ?? null;
    this.clockOffset = offset ?? 0;
    this.channels = state.channels.map((one) => this.#named(one));
    this.messages = new Map(state.messages.map((message) => [message.id, message]));
    const failed = [...this.interactions.values()].filter(({ state: outcome }) => outcome === "failed");
    this.interactions = new Map([...failed, ...state.interactions].map((one) => [one.id, one]));
    this.#sending.clear();
    this.#settlePlace();
    for (const topic of ["people", "roles", "channels", "commands", "messages", "bot", "hooks", "clock"]) this.tell(topic);
    this.tell("logReset", state.log);
  }

  /** Who the reader acted as may have left, and the channel may be gone or closed to that person. */
  #settlePlace() {
    if (!this.users.some(({ id }) => id === this.actingAs)) this.actingAs = this.users[0]?.id ?? null;
    const seen = this.visibleChannels();
    if (!seen.some(({ id }) => id === this.channelId)) this.channelId = seen[0]?.id ?? null;
  }

  /** A direct message goes by the name of the other side, and on this page that is always the bot. */
  #named(channel) {
    return channel.context === 1 && this.botUser ? { ...channel, name: this.botUser.name } : channel;
  }

  #putUsers(users) {
    this.users = users;
    this.#settlePlace();
    for (const topic of ["people", "channels", "messages"]) this.tell(topic);
  }

  #putChannels(channels) {
    this.channels = channels.map((one) => this.#named(one));
    const left = new Set(channels.map(({ id }) => id));
    for (const message of this.messages.values()) if (!left.has(message.channel_id)) this.messages.delete(message.id);
    this.#settlePlace();
    this.tell("channels");
    this.tell("messages");
  }

  /** Another window may act as the same person: only the one that asked goes there. */
  #openFor({ channel_id: channelId, user_id: userId }) {
    if (userId === this.actingAs && this.isOpeningDirect) this.openChannel(channelId);
    this.isOpeningDirect = false;
  }

  /** Only the newest question counts: the reader may be somebody else by now. */
  #putUsable({ request, commands }) {
    if (request !== this.usableRequest) return;
    this.usable = new Set(commands);
    this.tell("usable");
  }

  #noteTyping({ channel_id: channelId }) {
    this.#typing.set(channelId, performance.now() + TYPING_MS);
    this.tell("typing");
    setTimeout(() => this.tell("typing"), TYPING_MS);
  }

  #stopTyping({ channel_id: channelId, author }) {
    if (author.bot && this.#typing.delete(channelId)) this.tell("typing");
  }

  /** Return true while the bot writes in the open channel. */
  get isBotTyping() {
    return performance.now() < (this.#typing.get(this.channelId) ?? 0);
  }

  #putMessage(message) {
    if (!this.messages.has(message.id)) {
      this.#noteNews(message);
      this.#stopTyping(message);
    }
    this.messages.set(message.id, message);
    this.interactions.delete(message.interaction_metadata?.id); // its message says what became of a command
    for (const key of this.#chosen.keys()) if (key.startsWith(`${message.id}/`)) this.#chosen.delete(key);
    this.tell("messages");
  }

  #noteNews(message) {
    if (message.channel_id === this.channelId || !this.isVisible(message)) return;
    this.unread.add(message.channel_id);
    this.tell("channels");
  }

  #dropMessage(id) {
    this.messages.delete(id);
    this.tell("messages");
  }

  #putInteraction(interaction) {
    if (interaction.state === "pending") this.#forgetEarlierFailure(interaction);
    if (interaction.state === "pending" || interaction.state === "failed")
      this.interactions.set(interaction.id, interaction);
    else this.interactions.delete(interaction.id);
    if (interaction.message_id) {
      this.#sending.delete(`${interaction.message_id}/${interaction.custom_id}/${interaction.user_id}`);
      this.#touch(interaction.message_id);
    }
    this.tell("outcome", interaction);
    this.tell("messages");
  }

  #forgetEarlierFailure({ user_id: userId, message_id: messageId }) {
    for (const one of this.interactions.values()) {
      const isSamePlace = messageId && one.message_id === messageId && one.user_id === userId;
      if (isSamePlace && one.state === "failed") this.interactions.delete(one.id);
    }
  }

  #putForm({ interaction_id: interactionId, user_id: userId, form }) {
    this.forms.set(userId, { interactionId, form });
    this.tell("form");
  }

  #refuse(text) {
    for (const key of this.#sending) this.#touch(key.split("/")[0]);
    this.#sending.clear();
    this.tell("refused", text);
    this.tell("messages");
  }

  #touch(messageId) {
    this.#touched.set(messageId, this.touches(messageId) + 1);
  }

  setConnection(connection) {
    this.connection = connection;
    this.tell("connection");
  }

  actAs(userId) {
    this.actingAs = userId;
    this.stopEdit();
    this.#settlePlace();
    for (const topic of ["people", "channels", "messages", "form"]) this.tell(topic);
  }

  openChannel(channelId) {
    this.channelId = channelId;
    this.unread.delete(channelId);
    this.tell("channels");
    this.tell("messages");
  }

  isVisible(message) {
    return message.visible_to === null || message.visible_to === undefined || message.visible_to === this.actingAs;
  }

  /** Return the messages the reader sees in the open channel, oldest first. */
  visibleMessages() {
    return [...this.messages.values()].filter((one) => one.channel_id === this.channelId && this.isVisible(one));
  }

  /** Return the reader's commands in the open channel that have no message to show what became of them. */
  openCommands() {
    const isMine = (one) => one.user_id === this.actingAs && one.channel_id === this.channelId;
    return [...this.interactions.values()].filter((one) => one.kind === "command" && isMine(one));
  }

  nameOf(userId) {
    if (this.botUser?.id === userId) return this.botUser.name;
    return this.users.find(({ id }) => id === userId)?.name ?? null;
  }

  /** The person the reader acts as. */
  get me() {
    return this.users.find(({ id }) => id === this.actingAs) ?? null;
  }

  get channel() {
    return this.channels.find(({ id }) => id === this.channelId) ?? null;
  }

  /** Return the channels that the reader sees: a server that says who may see one lists them in it. */
  visibleChannels() {
    return this.channels.filter(({ permissions }) => permissions === undefined || this.actingAs in permissions);
  }

  /** Return the commands that the reader may use here. */
  usableCommands() {
    return this.commands.filter(({ id }) => this.usable === null || id === undefined || this.usable.has(id));
  }

  /** Return true when the reader may delete other people's messages in the open channel. */
  get mayManageMessages() {
    const bits = BigInt(this.channel?.permissions?.[this.actingAs] ?? 0);
    return (bits & MANAGE_MESSAGES) !== 0n;
  }

  /** A click was sent: its control is busy from now on, so a double click counts once. */
  markSending(messageId, customId) {
    this.#sending.add(`${messageId}/${customId}/${this.actingAs}`);
    this.#touch(messageId);
    this.tell("messages");
  }

  /** Return true while the reader's own click on this control has no answer. */
  isBusy(messageId, customId) {
    if (this.#sending.has(`${messageId}/${customId}/${this.actingAs}`)) return true;
    const isThis = (one) => one.message_id === messageId && one.custom_id === customId && one.user_id === this.actingAs;
    return [...this.interactions.values()].some((one) => one.state === "pending" && isThis(one));
  }

  /** Return what to say under a message about the reader's last click on it, or null when there is nothing to say. */
  failureOn(messageId) {
    const isMine = (one) => one.message_id === messageId && one.user_id === this.actingAs;
    const failed = [...this.interactions.values()].find((one) => one.state === "failed" && isMine(one));
    return failed ? failureInWords(failed) : null;
  }

  /** Forget a failed command: it exists in this page alone, so the server is not asked. */
  dismissCommand(interactionId) {
    this.interactions.delete(interactionId);
    this.tell("messages");
  }

  choose(messageId, customId, values) {
    this.#chosen.set(`${messageId}/${customId}/${this.actingAs}`, values);
    this.#touch(messageId);
  }

  chosen(messageId, customId) {
    return this.#chosen.get(`${messageId}/${customId}/${this.actingAs}`) ?? null;
  }

  /** The reader writes one of their own messages anew. */
  startEdit({ id, content }) {
    this.stopEdit();
    this.editing = { id, text: content, hasFocus: false };
    this.#touch(id);
    this.tell("messages");
  }

  stopEdit() {
    if (this.editing) this.#touch(this.editing.id);
    this.editing = null;
    this.tell("messages");
  }

  reveal(messageId, path) {
    this.#revealed.add(`${messageId}/${path}`);
    this.#touch(messageId);
    this.tell("messages");
  }

  isRevealed(messageId, path) {
    return this.#revealed.has(`${messageId}/${path}`);
  }

  touches(messageId) {
    return this.#touched.get(messageId) ?? 0;
  }
}
