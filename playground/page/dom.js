/**
 * Elements, made one way only. Names and texts come from bots and people and are hostile until shown:
 * a child that is a string becomes a text node, and nothing in this page parses markup.
 */

/**
 * Return a new element. Attributes that are null, undefined or false are left out, true is written as "";
 * a function under `onclick` and the like becomes a listener; children that are null or false are left out.
 *
 *     el("button", { type: "button", disabled: busy, onclick: save }, "Save")
 *
 * Attribute names are always literals of this page. A URL goes through `safeUrl` first.
 */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) setAttribute(element, name, value);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (typeof value === "function") element.addEventListener(name.slice(2), value);
  else element.setAttribute(name, value === true ? "" : String(value));
}

/** Return the URL when a browser may follow it (http or https), else null: `javascript:` must never become a link. */
export function safeUrl(text) {
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  return url.protocol === "http:" || url.protocol === "https:" ? url.href : null;
}

/** Return a link that opens elsewhere and tells the other side nothing, or null when the URL is not safe. */
export function outsideLink(url, attributes, ...children) {
  const href = safeUrl(url);
  return href && el("a", { href, target: "_blank", rel: "noopener noreferrer", ...attributes }, ...children);
}

let lastId = 0;

/** Return an element id that no other element of this page has. */
export function freshId(prefix) {
  lastId += 1;
  return `${prefix}-${lastId}`;
}

/** Put a text on the clipboard; false when the browser forbids it. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // also where there is no clipboard at all
  }
}
