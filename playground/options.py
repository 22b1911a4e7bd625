"""From a command's options as a person gives them to the interaction data that Discord sends."""

from __future__ import annotations

from typing import Any

from .shapes import Json
from .world import GUILD_ID, World

SUBCOMMAND, GROUP, STRING, INTEGER, BOOLEAN, USER, CHANNEL, ROLE, MENTIONABLE, NUMBER = range(1, 11)
ENTITIES = (USER, CHANNEL, ROLE, MENTIONABLE)
USER_MENU, MESSAGE_MENU = 2, 3


def find_command(world: World, name: str) -> tuple[Json, list[str]]:
    """The command with that full name, or whose first words it is; and the words left for subcommands."""
    words = name.split()
    for command in world.commands.values():
        if command["name"] == name:
            return command, []
        if words and command["name"] == words[0] and command["type"] == 1:
            return command, words[1:]
    known = ", ".join(sorted(command["name"] for command in world.commands.values())) or "none"
    raise LookupError(f"The bot has no command {name!r}. Registered: {known}.")


def is_registered(world: World, name: str) -> bool:
    try:
        find_command(world, name)
    except LookupError:
        return False
    return True


def command_data(world: World, command: Json, path: list[str], given: Json, target: Any) -> Json:
    """The `data` of the interaction. Raises ValueError for what Discord's client would not let a person send."""
    data: Json = {"id": command["id"], "type": command["type"], "name": command["name"]}
    if "guild_id" in command:
        data["guild_id"] = command["guild_id"]
    if command["type"] in (USER_MENU, MESSAGE_MENU):
        return data | target_of(world, command["type"], target)
    resolved: Json = {}
    options = nested(world, command, path, given, resolved)
    if options:
        data["options"] = options
    if resolved:
        data["resolved"] = resolved
    return data


def target_of(world: World, kind: int, target: Any) -> Json:
    """What a context menu was opened on: a person, or a message."""
    id_ = id_of(target)
    if kind == USER_MENU:
        return {"target_id": id_, "resolved": world.resolved([id_])}
    kept = world.find(id_)
    if kept is None:
        raise LookupError(f"There is no message {id_!r} to use this command on.")
    return {"target_id": id_, "resolved": {"messages": {id_: kept.message}}}


def nested(world: World, command: Json, path: list[str], given: Json, resolved: Json) -> list[Json]:
    """The options, inside the subcommand that the path names."""
    options: list[Json] = command.get("options") or []
    subcommands = [option for option in options if option["type"] in (SUBCOMMAND, GROUP)]
    if not subcommands:
        if path:
            raise LookupError(f"/{command['name']} has no subcommand {path[0]!r}.")
        return leaves(world, command["name"], options, given, resolved)
    chosen = next((option for option in subcommands if path and option["name"] == path[0]), None)
    if chosen is None:
        names = ", ".join(option["name"] for option in subcommands)
        raise LookupError(f"/{command['name']} needs one of its subcommands: {names}.")
    inner = nested(world, chosen, path[1:], given, resolved)
    return [{"type": chosen["type"], "name": chosen["name"], "options": inner}]


def leaves(world: World, name: str, options: list[Json], given: Json, resolved: Json) -> list[Json]:
    unknown = given.keys() - {option["name"] for option in options}
    if unknown:
        raise ValueError(f"/{name} has no option {sorted(unknown)[0]!r}.")
    made: list[Json] = []
    for option in options:
        if given.get(option["name"]) is not None:
            value = converted(world, option, given[option["name"]], resolved)
            made.append({"type": option["type"], "name": option["name"], "value": value})
        elif option.get("required"):
            raise ValueError(f"/{name} needs the option {option['name']!r}.")
    return made


def converted(world: World, option: Json, value: Any, resolved: Json) -> Any:
    """The value as Discord sends it, checked as Discord's client checks it."""
    kind = option["type"]
    if kind == STRING:
        value = str(value)
        check_range(option, len(value), "length", "characters")
    elif kind in (INTEGER, NUMBER):
        value = number(option, value)
        check_range(option, value, "value", "")
    elif kind == BOOLEAN:
        value = boolean(option, value)
    elif kind in ENTITIES:
        value = id_of(value) if not isinstance(value, str) or value.isdecimal() else id_named(world, value)
        for group, entries in world.resolved([value]).items():
            resolved.setdefault(group, {}).update(entries)
    else:
        raise ValueError(f"The playground cannot fill in option {option['name']!r} of type {kind}.")
    choices = [choice["value"] for choice in option.get("choices") or ()]
    if choices and value not in choices:
        raise ValueError(f"{option['name']} is one of {choices}, not {value!r}.")
    return value


def number(option: Json, value: Any) -> int | float:
    try:
        return int(value) if option["type"] == INTEGER else float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{option['name']} is a number, not {value!r}.") from None


def boolean(option: Json, value: Any) -> bool:
    if value in (True, "true", "True"):
        return True
    if value in (False, "false", "False"):
        return False
    raise ValueError(f"{option['name']} is true or false, not {value!r}.")


def check_range(option: Json, size: float, of: str, unit: str) -> None:
    low, high = option.get(f"min_{of}"), option.get(f"max_{of}")
    if (low is not None and size < low) or (high is not None and size > high):
        wanted = f"{low if low is not None else 'any'} to {high if high is not None else 'any'} {unit}".strip()
        raise ValueError(f"{option['name']} is {wanted}, not {size}.")


def id_of(thing: Any) -> str:
    """The id of a person, a Discord object or an id."""
    if isinstance(thing, dict):
        return str(thing["id"])  # pyright: ignore[reportUnknownArgumentType]
    return str(getattr(thing, "id", thing))


def id_named(world: World, name: str) -> str:
    if name in world.user_ids:
        return world.user_ids[name]
    if name == "@everyone":
        return GUILD_ID
    return str(world.channel_of(name)["id"])
