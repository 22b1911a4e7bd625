/** The bot's slash commands as the composer needs them: one entry for each that can be sent, and fields for its options. */

import { NativeSelectField, NumberField, TextField } from "./fields.js";

const CHAT_INPUT = 1;
const SUBCOMMAND = 1;
const SUBCOMMAND_GROUP = 2;

/** Return `{ name, description, options }` for each command a person can type; the words of a subcommand are one name. */
export function typedCommands(commands) {
  return commands
    .filter((command) => (command.type ?? CHAT_INPUT) === CHAT_INPUT)
    .flatMap((command) => expand(command, command.name));
}

function expand({ description, options = [] }, name) {
  const inner = options.filter(({ type }) => type === SUBCOMMAND || type === SUBCOMMAND_GROUP);
  if (inner.length === 0) return [{ name, description, options }];
  return inner.flatMap((option) => expand(option, `${name} ${option.name}`));
}

/** Return the commands whose name begins with what was typed, then those that hold it anywhere. */
export function matchingCommands(commands, typed) {
  const begins = commands.filter(({ name }) => name.startsWith(typed));
  const holds = commands.filter(
    ({ name, description }) => !name.startsWith(typed) && `${name} ${description}`.toLowerCase().includes(typed),
  );
  return [...begins, ...holds];
}

/** Return a field for a command's option. */
export function optionField(option, world) {
  const common = { label: option.name, description: option.description, isRequired: option.required === true };
  if (option.choices?.length > 0)
    return selectField(
      common,
      option.choices.map(({ name, value }) => [name, value]),
    );
  return (optionFields[option.type] ?? textOption)(common, option, world);
}

function selectField(common, pairs) {
  return new NativeSelectField({ ...common, options: pairs.map(([label, value]) => ({ label, value })) });
}

function textOption(common, option) {
  return new TextField({ ...common, minLength: option.min_length ?? 0, maxLength: option.max_length ?? 6000 });
}

function numberOption(common, option) {
  return new NumberField({ ...common, isWhole: option.type === 4, min: option.min_value, max: option.max_value });
}

function yesOrNo(common) {
  return selectField(common, [
    ["True", true],
    ["False", false],
  ]);
}

function people(common, option, world) {
  return selectField(
    common,
    world.users.map(({ id, name }) => [name, id]),
  );
}

function channels(common, option, world) {
  return selectField(
    common,
    world.channels.map(({ id, name }) => [`#${name}`, id]),
  );
}

function roles(common, option, world) {
  return selectField(common, [["@everyone", world.guild.id]]);
}

const optionFields = {
  3: textOption,
  4: numberOption,
  5: yesOrNo,
  6: people,
  7: channels,
  8: roles,
  9: people,
  10: numberOption,
};
