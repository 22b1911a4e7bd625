/** Words for people who hear the page. Spoken politely, after what is being read out. */

const KEPT = 5;

/** Have a screen reader say the text. */
export function announce(text) {
  const region = document.getElementById("announcements");
  const line = document.createElement("p");
  line.textContent = text;
  region.append(line);
  while (region.children.length > KEPT) region.firstElementChild.remove();
}
