/** The page's one connection to the playground. It comes back by itself and says how it is. */

const RETRY_FIRST_MS = 250;
const RETRY_LONGEST_MS = 5000;
const CLOSED_BY_WRONG_TOKEN = 4001;

/**
 * Keep a WebSocket open. `received(packet)` gets every packet; `changed(state)` gets "connecting", "open", "lost"
 * (it is being tried again, ever more slowly) or "refused" (the token is of another playground: only a reload helps).
 */
export class Socket {
  #url;
  #token;
  #received;
  #changed;
  #socket = null;
  #isGreeted = false; // the server has answered with its state
  #retryMs = RETRY_FIRST_MS;
  #timer = 0;

  constructor(url, token, { received, changed }) {
    this.#url = url;
    this.#token = token;
    this.#received = received;
    this.#changed = changed;
  }

  /** Connect now. A connection that is already there, or a try that is under way, is given up. */
  connect() {
    clearTimeout(this.#timer);
    this.#isGreeted = false;
    const old = this.#socket;
    const socket = new WebSocket(this.#url);
    this.#socket = socket;
    old?.close();
    socket.addEventListener("open", () => socket.send(JSON.stringify({ do: "hello", token: this.#token })));
    socket.addEventListener("message", (event) => socket === this.#socket && this.#read(event.data));
    socket.addEventListener("close", (event) => socket === this.#socket && this.#closed(event.code));
  }

  /** Send a packet and return true, or return false while there is no connection: nothing is queued. */
  send(packet) {
    if (!this.#isGreeted || this.#socket.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(packet));
    return true;
  }

  #read(text) {
    const packet = JSON.parse(text);
    if (packet.type === "state") {
      this.#isGreeted = true;
      this.#retryMs = RETRY_FIRST_MS;
      this.#changed("open");
    }
    this.#received(packet);
  }

  #closed(code) {
    if (code === CLOSED_BY_WRONG_TOKEN) {
      this.#changed("refused");
      return;
    }
    this.#changed("lost");
    this.#timer = setTimeout(() => this.connect(), this.#retryMs);
    this.#retryMs = Math.min(this.#retryMs * 2, RETRY_LONGEST_MS);
  }
}
