/** The bot's hooks: call one with a body of one's own, and see what it answers. */

import { copyText, el, freshId } from "./dom.js";
import { freshRequest } from "./world.js";

const FIRST_BODY = "{}";

export class Hooks {
  #world;
  #acts;
  #bodies = new Map(); // hook name → what the reader wrote for it
  #request = null; // the number of the call that has not been answered
  #select = el("select", { id: freshId("hook"), onchange: () => this.#showBody() });
  #body = el("textarea", {
    id: freshId("body"),
    class: "json",
    rows: 3,
    spellcheck: "false",
    autocomplete: "off",
    "aria-keyshortcuts": "Control+Enter",
  });
  #problem = el("p", { class: "problem", id: freshId("problem"), hidden: true });
  #send = el("button", { type: "submit", class: "button primary" }, "Send");
  #curl = el("button", { type: "button", class: "button secondary", onclick: () => this.#askCurl() }, "Copy as curl");
  #status = el("p", { class: "hook-status", role: "status" });
  #answer = el("pre", { class: "hook-answer", tabindex: "0", role: "region", "aria-label": "Answer", hidden: true });
  #form;
  #empty = el("p", { class: "hint" });
  #summary = el("summary", {}, "Hooks");

  constructor(details, world, acts) {
    this.#world = world;
    this.#acts = acts;
    this.#form = el(
      "form",
      { novalidate: true },
      el("div", { class: "field" }, el("label", { for: this.#select.id }, "Hook"), this.#select),
      el("div", { class: "field" }, el("label", { for: this.#body.id }, "Body, as JSON"), this.#body, this.#problem),
      el("div", { class: "hook-buttons" }, this.#send, this.#curl),
      this.#status,
      this.#answer,
    );
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#call();
    });
    this.#body.setAttribute("aria-describedby", this.#problem.id);
    this.#body.addEventListener("input", () => {
      this.#bodies.set(this.#select.value, this.#body.value);
      if (!this.#problem.hidden) this.#check();
    });
    this.#body.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.#form.requestSubmit();
    });
    details.addEventListener("toggle", () => details.open && details.scrollIntoView({ block: "nearest" }));
    details.append(this.#summary, el("div", { class: "hooks-body" }, this.#empty, this.#form));
    world.watch(["hooks", "bot"], () => this.#show());
    world.on("hook", (packet) => packet.request === this.#request && this.#showAnswer(packet));
    world.on("curl", (packet) => packet.request === this.#request && this.#showCurl(packet));
    world.on("connection", () => world.connection !== "open" && this.#end());
  }

  /** What is chosen and written stays while the bot tells of the same hook. */
  #show() {
    const hooks = this.#world.hooks ?? [];
    this.#empty.hidden = hooks.length > 0;
    this.#form.hidden = hooks.length === 0;
    this.#empty.replaceChildren(...this.#whyEmpty());
    this.#summary.textContent = hooks.length > 0 ? `Hooks (${hooks.length})` : "Hooks";
    const listed = JSON.stringify(hooks);
    if (this.#select.dataset.listed === listed) return;
    const chosen = this.#select.value;
    this.#select.dataset.listed = listed;
    this.#select.replaceChildren(
      ...hooks.map(({ name, scheme }) => el("option", { value: name }, `${name} · signed: ${scheme}`)),
    );
    if (hooks.some(({ name }) => name === chosen)) this.#select.value = chosen;
    else this.#showBody();
  }

  #whyEmpty() {
    const { hooks, bot } = this.#world;
    if (bot.status === "none") return ["No bot runs here."];
    if (bot.has_web === false) return ["This bot was started without a port for HTTP, so it has no hooks."];
    if (hooks === null) return ["The bot's hooks are listed here when it runs."];
    return [
      "This bot has no hooks. A hook is an address that other services call: write a function under ",
      el("code", {}, '@hook("deploy")'),
      " and add it in ",
      el("code", {}, "your_bot"),
      ".",
    ];
  }

  #showBody() {
    this.#body.value = this.#bodies.get(this.#select.value) ?? FIRST_BODY;
    this.#problem.hidden = true;
    this.#body.removeAttribute("aria-invalid");
  }

  #check() {
    let problem = null;
    try {
      JSON.parse(this.#body.value);
    } catch (error) {
      problem = `This is no JSON: ${error.message}`;
    }
    this.#problem.textContent = problem ?? "";
    this.#problem.hidden = problem === null;
    this.#body.setAttribute("aria-invalid", String(problem !== null));
    return problem === null;
  }

  #call() {
    this.#ask(this.#send, (...what) => this.#acts.callHook(...what));
  }

  #askCurl() {
    this.#ask(this.#curl, (...what) => this.#acts.askCurl(...what));
  }

  /** One question at a time; `button` is busy until it is answered. */
  #ask(button, act) {
    if (this.#request !== null) return;
    this.#clearAnswer();
    if (!this.#check()) {
      this.#body.focus();
      return;
    }
    const request = freshRequest();
    if (!act(request, this.#select.value, this.#body.value)) return;
    this.#request = request;
    button.setAttribute("aria-busy", "true");
  }

  /** Also when nothing could be sent: the answer to another body is no answer to this one. */
  #clearAnswer() {
    this.#status.textContent = "";
    this.#answer.hidden = true;
  }

  #showAnswer({ status, text, body }) {
    this.#end();
    this.#tell(status === null ? text : `${status} ${text}`, status === null || status >= 400, "Answer", body);
  }

  /** The command is shown as well: a browser may forbid copying. */
  async #showCurl({ command, text }) {
    this.#end();
    const where = command !== null && (await copyText(command)) ? "Copied." : "Copy it from here.";
    this.#tell(command === null ? text : `${where} It can be sent once.`, command === null, "Command", command);
  }

  #tell(words, isFailure, label, body) {
    this.#status.classList.toggle("failure", isFailure);
    this.#status.textContent = words;
    this.#answer.setAttribute("aria-label", label);
    this.#answer.hidden = body === null || body === undefined;
    this.#answer.textContent = typeof body === "string" ? body : JSON.stringify(body, null, 2);
    (this.#answer.hidden ? this.#status : this.#answer).scrollIntoView({ block: "nearest" });
  }

  #end() {
    this.#request = null;
    for (const button of [this.#send, this.#curl]) button.removeAttribute("aria-busy");
  }
}
