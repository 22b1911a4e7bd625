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
  #retryMs = RETRY_FIRST_MS;
  #timer = 0;

  constructor(url, token, { received, changed }) {
    this.#url = url;
    this.#token = token;
    this.#received = received;
    this.#changed = changed;
  }

  connect() {
    clearTimeout(this.#timer);
    const socket = new WebSocket(this.#url);
    this.#socket = socket;
    socket.addEventListener("open", () => this.send({ do: "hello", token: this.#token }));
    socket.addEventListener("message", (event) => this.#read(event.data));
    socket.addEventListener("close", (event) => this.#closed(event.code));
  }

  /** Send a packet and return true, or return false when there is no connection: nothing is queued. */
  send(packet) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(packet));
    return true;
  }

  #read(text) {
    const packet = JSON.parse(text);
    if (packet.type === "state") {
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
