/** The bot's slash commands as the composer needs them: one entry for each that can be sent, and fields for its options. */

import { PickField, SuggestField } from "./combo.js";
import { FileField, NumberField, numberOf, numberProblem, textProblem, TypedField } from "./fields.js";
import { channelOptions, peopleOptions, roleOptions } from "./pieces.js";

const CHAT_INPUT = 1;
const SUBCOMMAND = 1;
const SUBCOMMAND_GROUP = 2;

/**
 * Return `{ name, shown, about, group, options }` for each command a person can type; the words of a subcommand are one
 * name. `name` is what the server knows it by, `shown` what it is called in the person's language.
 */
export function typedCommands(commands, person) {
  return ofType(commands, CHAT_INPUT).flatMap((command) => expand(command, person, null));
}

/** Return the commands of a context menu as `{ name, shown }`: type 2 on people, type 3 on messages. */
export function menuCommands(commands, type, person) {
  return ofType(commands, type).map((one) => ({
    name: one.name,
    shown: inLanguage(one.name, one.name_localizations, person),
  }));
}

function ofType(commands, wanted) {
  return commands.filter(({ type }) => (type ?? CHAT_INPUT) === wanted);
}

function inLanguage(text, localizations, person) {
  return localizations?.[person?.locale] ?? text;
}

function expand(command, person, outer) {
  const { options = [] } = command;
  const shown = inLanguage(command.name, command.name_localizations, person);
  const about = inLanguage(command.description, command.description_localizations, person);
  const own = {
    name: outer ? `${outer.name} ${command.name}` : command.name,
    shown: outer ? `${outer.shown} ${shown}` : shown,
    about,
    group: outer?.group ?? null,
  };
  const inner = options.filter(({ type }) => type === SUBCOMMAND || type === SUBCOMMAND_GROUP);
  if (inner.length > 0) return inner.flatMap((option) => expand(option, person, { ...own, group: own.group ?? own }));
  return [{ ...own, options: options.map((option) => namedOption(option, person)) }];
}

function namedOption(option, person) {
  const shown = inLanguage(option.name, option.name_localizations, person);
  return { ...option, shown, about: inLanguage(option.description, option.description_localizations, person) };
}

/**
 * Return the command that a text begins with and the text after its name, or null: `/poll question: Tea?` is all that
 * people type. The longest name wins, and a name that others continue waits for its next word.
 */
export function commandInText(commands, text) {
  const fits = ({ name, shown }) =>
    [name, shown].find((one) => text.toLowerCase().startsWith(`/${one.toLowerCase()} `));
  const found = commands.filter(fits).sort((one, other) => other.name.length - one.name.length)[0];
  return found ? { command: found, rest: text.slice(fits(found).length + 2) } : null;
}

/**
 * Return what a text says for each option: `[[option or null, text], …]`. A name counts where a word begins and a colon
 * follows, for the options that are not filled in yet; what stands before the first name belongs to null.
 */
export function splitByNames(text, options) {
  const named = new Map(
    options.flatMap((option) => [option.name, option.shown].map((name) => [name.toLowerCase(), option])),
  );
  if (named.size === 0) return [[null, text]];
  const pattern = new RegExp(`(?<=^|\\s)(${[...named.keys()].map(escaped).join("|")}):\\s*`, "giu");
  const parts = [[null, ""]];
  const taken = new Set();
  let from = 0;
  for (const match of text.matchAll(pattern)) {
    const option = named.get(match[1].toLowerCase());
    if (taken.has(option)) continue; // the same word again is a word of the text
    taken.add(option);
    parts.at(-1)[1] = text.slice(from, match.index);
    parts.push([option, ""]);
    from = match.index + match[0].length;
  }
  parts.at(-1)[1] = text.slice(from);
  return parts;
}

function escaped(name) {
  return name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** Return the commands whose name begins with what was typed, then those that hold it anywhere. */
export function matchingCommands(commands, typed) {
  const begun = ({ name, shown }) => name.startsWith(typed) || shown.toLowerCase().startsWith(typed);
  const begins = commands.filter(begun);
  const holds = commands.filter(
    (one) => !begun(one) && `${one.name} ${one.shown} ${one.about}`.toLowerCase().includes(typed),
  );
  return [...begins, ...holds];
}

// ---- Fields

const TYPE = {
  STRING: 3,
  INTEGER: 4,
  BOOLEAN: 5,
  USER: 6,
  CHANNEL: 7,
  ROLE: 8,
  MENTIONABLE: 9,
  NUMBER: 10,
  ATTACHMENT: 11,
};

/** Return true for an option that is given by typing; a file is not. */
export function isTyped({ type }) {
  return type !== TYPE.ATTACHMENT;
}

const YES_OR_NO = [
  { label: "True", value: true },
  { label: "False", value: false },
];
const LONGEST_TEXT = 6000;

/** Return a field for a command's option. `suggest(request, text)` asks the bot what fits. */
export function optionField(option, world, suggest) {
  const common = { label: option.shown, description: option.about, isRequired: option.required === true };
  if (option.choices?.length > 0) return new PickField({ ...common, offers: () => choiceOffers(option, world) });
  if (option.autocomplete) return suggestField(common, option, suggest);
  const offers = entityOffers[option.type];
  if (offers) return new PickField({ ...common, offers: () => offers(world, option) });
  return (plainFields[option.type] ?? textOption)(common, option);
}

/** Return choices, or what the bot suggests, in the person's language. */
export function choiceOffers({ choices }, { me }) {
  return choices.map((choice) => ({
    label: inLanguage(choice.name, choice.name_localizations, me),
    value: choice.value,
  }));
}

function suggestField(common, option, ask) {
  if (option.type === TYPE.STRING) {
    const check = (text) => textProblem({ isRequired: false, ...lengths(option) }, text);
    return new SuggestField({ ...common, ask, convert: (text) => text, check });
  }
  const check = (value) => numberProblem(bounds(option), value);
  return new SuggestField({ ...common, ask, convert: numberOf, check, inputmode: "decimal" });
}

function textOption(common, option) {
  return new TypedField({ ...common, ...lengths(option) });
}

function numberOption(common, option) {
  return new NumberField({ ...common, ...bounds(option) });
}

function lengths({ min_length: minLength = 0, max_length: maxLength = LONGEST_TEXT }) {
  return { minLength, maxLength };
}

function bounds({ type, min_value: min, max_value: max }) {
  return { isWhole: type === TYPE.INTEGER, min, max };
}

const entityOffers = {
  [TYPE.BOOLEAN]: () => YES_OR_NO,
  [TYPE.USER]: peopleOptions,
  [TYPE.CHANNEL]: (world, option) => channelOptions(world, option.channel_types),
  [TYPE.ROLE]: roleOptions,
  [TYPE.MENTIONABLE]: (world) => [...peopleOptions(world), ...roleOptions(world)],
};
const plainFields = {
  [TYPE.INTEGER]: numberOption,
  [TYPE.NUMBER]: numberOption,
  [TYPE.ATTACHMENT]: (common) => new FileField(common),
};
