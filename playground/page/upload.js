/** Files on their way to the playground: chosen, sent at once, and named by an id from then on. */

import { el } from "./dom.js";
import { sizeInWords } from "./pieces.js";

const BYTES_MAX = 10 * 1024 * 1024;

/** Send one file; return what the playground knows it by, or throw an Error whose message is for people. */
async function upload(file) {
  if (file.size > BYTES_MAX) throw new Error(`${file.name} is larger than ${sizeInWords(BYTES_MAX)}.`);
  const token = document.querySelector("meta[name=playground-token]").content;
  const answer = await fetch(`/page/upload?name=${encodeURIComponent(file.name)}`, {
    method: "POST",
    headers: { "X-Playground-Token": token, "Content-Type": file.type || "application/octet-stream" },
    body: file,
  }).catch(() => null);
  if (!answer) throw new Error("There is no connection to the playground.");
  if (!answer.ok) throw new Error(await refusalOf(answer));
  return answer.json();
}

async function refusalOf(answer) {
  const said = await answer.json().catch(() => null);
  return said?.text ?? `The playground did not take the file (${answer.status}).`;
}

/** Up to `max` files: a button that opens the browser's own dialog, and the list of what was chosen. */
export class FileTray {
  #files = []; // { name, size, id, problem }
  #max;
  #changed;
  #list = el("ul", { class: "chosen-files", role: "list" });

  constructor({ max, button, changed = () => {} }) {
    this.#max = max;
    this.#changed = changed;
    this.picker = el("input", { type: "file", hidden: true, multiple: max > 1, "aria-label": "Choose files" });
    this.picker.addEventListener("change", () => this.#take([...this.picker.files]));
    this.button = button;
    button.addEventListener("click", () => this.picker.click());
    this.list = this.#list;
  }

  get ids() {
    return this.#files.filter(({ id }) => id).map(({ id }) => id);
  }

  get count() {
    return this.#files.length;
  }

  /** What keeps the files from being sent, in words, or null. */
  get problem() {
    const wrong = this.#files.find(({ problem }) => problem);
    if (wrong) return wrong.problem;
    if (this.#files.length > this.#max) return `Choose at most ${this.#max} ${this.#max === 1 ? "file" : "files"}.`;
    return this.#files.some(({ id }) => !id) ? "A file is still on its way. Try again in a moment." : null;
  }

  clear() {
    this.#files = [];
    this.#show();
  }

  /** Take files in, from the dialog or from the clipboard. */
  add(files) {
    this.#take(files);
  }

  #take(files) {
    this.picker.value = ""; // so that the same file can be chosen again after it was removed
    if (this.#max === 1) this.#files = [];
    for (const file of files) this.#send(file);
    this.#show();
  }

  async #send(file) {
    const entry = { name: file.name, size: file.size, id: null, problem: null };
    this.#files.push(entry);
    try {
      entry.id = (await upload(file)).id;
    } catch (error) {
      entry.problem = error.message;
    }
    this.#show();
  }

  #show() {
    this.#list.replaceChildren(...this.#files.map((entry) => this.#row(entry)));
    this.#list.hidden = this.#files.length === 0;
    this.#changed();
  }

  #row(entry) {
    const about = entry.problem ?? (entry.id ? sizeInWords(entry.size) : "on its way…");
    const remove = () => {
      this.#files = this.#files.filter((one) => one !== entry);
      this.#show();
      this.button.focus();
    };
    return el(
      "li",
      { class: entry.problem ? "chosen-file wrong" : "chosen-file" },
      el("span", { class: "chosen-name" }, entry.name),
      el("small", {}, about),
      el("button", { type: "button", class: "plain", "aria-label": `Remove ${entry.name}`, onclick: remove }, "✕"),
    );
  }
}
