/**
 * A list that is redrawn without the reader noticing: what did not change stays the same element, the keyboard stays
 * on the control it was on, and what is being read does not move.
 *
 * An item carries `data-key`. Inside it a control carries `data-path` (where it stands) and, when it has one,
 * `data-custom-id`: these find it again in an item that was built anew.
 */

const AT_END_PX = 8;
const partsOf = new WeakMap();

/**
 * Make the children of `list` those that `entries` say: `{ key, parts, build }`, in order. An item is built anew only
 * when one of its parts is no longer the same object or value.
 */
export function syncList(list, entries) {
  const wanted = new Set(entries.map(({ key }) => key));
  const old = new Map([...list.children].map((item) => [item.dataset.key, item]));
  for (const [key, item] of old) if (!wanted.has(key)) item.remove();
  let next = list.firstElementChild;
  for (const entry of entries) {
    const before = old.get(entry.key);
    const item = currentItem(before, entry);
    if (before !== undefined && before === next) next = before.nextElementSibling;
    else list.insertBefore(before ?? item, next);
    if (before !== undefined && before !== item) before.replaceWith(item);
  }
}

function currentItem(item, { key, parts, build }) {
  const known = item && partsOf.get(item);
  if (known && known.length === parts.length && known.every((part, index) => part === parts[index])) return item;
  const built = build();
  built.dataset.key = key;
  partsOf.set(built, parts);
  return built;
}

/** Run `change` on the list inside `scroller` and leave focus and place where they were; `isAtEnd` keeps the end in view. */
export function keepPlace(scroller, isAtEnd, change) {
  const place = scroller.contains(document.activeElement) ? placeOf(document.activeElement) : null;
  const anchor = isAtEnd ? null : readingAnchor(scroller);
  change();
  if (place && document.activeElement === document.body) focusPlace(place, scroller);
  if (isAtEnd) scroller.scrollTop = scroller.scrollHeight;
  else if (anchor) holdAnchor(scroller, anchor);
}

/** Return true when the reader sees the end of the list. */
export function isScrolledToEnd(scroller) {
  return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < AT_END_PX;
}

// ---- Focus

/** Return where a control stands, for `focusPlace`; null when it is in no item. It may have been taken out already. */
export function placeOf(control) {
  const item = control.closest("[data-key]");
  return item && { key: item.dataset.key, customId: control.dataset.customId, path: control.dataset.path };
}

/** Focus the same control again: the one with its custom id, else the one at its place, else its message, else the list. */
export function focusPlace(place, scroller) {
  const item = scroller.querySelector(`[data-key="${CSS.escape(place.key)}"]`);
  const target = (item && findControl(item, place)) ?? item ?? scroller;
  // A message shows its tools only while the keyboard is in it.
  if (target !== item) item?.focus({ preventScroll: true });
  target.focus({ preventScroll: true });
}

function findControl(item, { customId, path }) {
  const byId =
    customId !== undefined && item.querySelector(`[data-custom-id="${CSS.escape(customId)}"]:not(:disabled)`);
  if (byId) return byId;
  return path === undefined ? null : item.querySelector(`[data-path="${CSS.escape(path)}"]:not(:disabled)`);
}

// ---- Place

/** The item that must not move: the one the keyboard is in, else the first that begins inside the visible part. */
function readingAnchor(scroller) {
  const items = [...scroller.querySelectorAll("[data-key]")];
  const { top } = scroller.getBoundingClientRect();
  const focused = items.find((item) => item.contains(document.activeElement));
  const item = focused ?? items.find((one) => one.getBoundingClientRect().top >= top) ?? items.at(-1);
  return item && { key: item.dataset.key, top: item.getBoundingClientRect().top };
}

function holdAnchor(scroller, { key, top }) {
  const item = scroller.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (item) scroller.scrollTop += item.getBoundingClientRect().top - top;
}
