"""From a command's options as a person gives them to the interaction data that Discord sends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .shapes import Json
from .uploads import Upload, as_upload
from .world import World

SUBCOMMAND, GROUP, STRING, INTEGER, BOOLEAN, USER, CHANNEL, ROLE, MENTIONABLE, NUMBER, ATTACHMENT = range(1, 12)
USER_MENU, MESSAGE_MENU = 2, 3
# The groups of resolved data that a value of each kind may be found in; a mentionable is a person or a role.
USERS, ROLES, CHANNELS = "users", "roles", "channels"
GROUPS_OF_OPTION: dict[int, tuple[str, ...]] = {
    USER: (USERS,),
    CHANNEL: (CHANNELS,),
    ROLE: (ROLES,),
    MENTIONABLE: (USERS, ROLES),
}
IN_WORDS = {USERS: "a person", ROLES: "a role", CHANNELS: "a channel"}


@dataclass
class Filling:
    """What is needed while a person fills in a command or a form, and what its values mean."""

    world: World
    channel: Json
    user_id: str
    resolved: Json = field(default_factory=dict[str, Any])

    def entity(self, label: str, given: Any, groups: tuple[str, ...], channel_types: list[int] | None = None) -> str:
        """The id of a person, role or channel given as an object, id or name; what it is goes into `resolved`."""
        id_ = self.id_of(given)
        found = self.world.resolved([id_], self.channel, self.user_id)
        if not found.keys() & set(groups):
            raise ValueError(f"{label} is {' or '.join(IN_WORDS[group] for group in groups)}, not {given!r}.")
        if CHANNELS in found and channel_types and found[CHANNELS][id_]["type"] not in channel_types:
            raise ValueError(
                f"{label} takes channels of the types {channel_types}, not #{found[CHANNELS][id_]['name']}."
            )
        for group, entries in found.items():
            self.resolved.setdefault(group, {}).update(entries)
        return id_

    def id_of(self, given: Any) -> str:
        if isinstance(given, str) and not given.isdecimal():
            return id_named(self.world, given)
        return id_of(given)

    def attachment(self, upload: Upload) -> str:
        """The id of a file that goes with the command or form."""
        stored = self.world.store(self.channel["id"], upload)
        self.resolved.setdefault("attachments", {})[stored["id"]] = {**stored, "ephemeral": True}
        return stored["id"]


def find_command(
    world: World, name: str, locale: str = "en-US", guild_id: str | None = None, type_: int | None = None
) -> tuple[Json, list[str]]:
    """The command with that full name, or whose first words it is; and the words left for subcommands.

    Of several with the name it is the one of the guild before the global one, and of the type before another.
    """
    words = name.split()

    def rank(command: Json) -> tuple[bool, int]:
        place = (guild_id, None).index(command.get("guild_id")) if command.get("guild_id") in (guild_id, None) else 2
        return (type_ is not None and command["type"] != type_, place)

    for command in sorted(world.commands.values(), key=rank):
        if name in names_of(command, locale):
            return command, []
        if words and words[0] in names_of(command, locale) and command["type"] == 1:
            return command, words[1:]
    known = ", ".join(sorted(command["name"] for command in world.commands.values())) or "none"
    raise LookupError(f"The bot has no command {name!r}. Registered: {known}.")


def type_for(world: World, target: Any) -> int:
    """The type of command that is used on this: on nothing, on a person, or on a message."""
    if target is None:
        return 1
    id_ = id_of(target)
    return USER_MENU if id_ in world.users or id_ in world.user_ids else MESSAGE_MENU


def names_of(thing: Json, locale: str) -> tuple[str, ...]:
    """What a command or option may be called by a person with that language."""
    localizations: Json = thing.get("name_localizations") or {}
    localized: str | None = localizations.get(locale)
    return (thing["name"], localized) if localized else (thing["name"],)


def is_registered(world: World, name: str, locale: str = "en-US") -> bool:
    try:
        find_command(world, name, locale)
    except LookupError:
        return False
    return True


def command_data(command: Json, path: list[str], given: Json, target: Any, filling: Filling) -> Json:
    """The `data` of the interaction. Raises ValueError for what Discord's client would not let a person send."""
    data = about(command)
    if command["type"] in (USER_MENU, MESSAGE_MENU):
        return data | target_of(command, target, filling)
    options = nested(filling, command, path, lambda options: leaves(filling, command["name"], options, given))
    if options:
        data["options"] = options
    return data | ({"resolved": filling.resolved} if filling.resolved else {})


def autocomplete_data(command: Json, path: list[str], given: Json, filling: Filling, *, typing: str, text: str) -> Json:
    """The `data` while a person types into the option `typing`; what else is filled in so far is taken as it is."""

    def partial(options: list[Json]) -> list[Json]:
        known = {option["name"]: option for option in options}
        if typing not in known:
            raise ValueError(f"/{command['name']} has no option {typing!r}.")
        if not known[typing].get("autocomplete"):
            raise ValueError(f"The option {typing!r} of /{command['name']} has no autocomplete.")
        made = [half_filled(filling, option, given[name]) for name, option in known.items() if name in given]
        focused = {"type": known[typing]["type"], "name": typing, "value": text, "focused": True}
        return [*(option for option in made if option["name"] != typing), focused]

    data = about(command) | {"options": nested(filling, command, path, partial)}
    return data | ({"resolved": filling.resolved} if filling.resolved else {})


def half_filled(filling: Filling, option: Json, value: Any) -> Json:
    """An option that the person may still change; Discord checks nothing yet."""
    made: Json = {"type": option["type"], "name": option["name"]}
    try:
        return made | {"value": converted(filling, option, value)}
    except ValueError:
        return made | {"value": str(value)}


def about(command: Json) -> Json:
    data: Json = {"id": command["id"], "type": command["type"], "name": command["name"]}
    return data | ({"guild_id": command["guild_id"]} if "guild_id" in command else {})


def target_of(command: Json, target: Any, filling: Filling) -> Json:
    """What a context menu was opened on: a person, or a message."""
    if target is None:
        what = "a person" if command["type"] == USER_MENU else "a message"
        raise ValueError(f"{command['name']!r} is used on {what}: give a target.")
    if command["type"] == USER_MENU:
        id_ = filling.entity(command["name"], target, (USERS,))
        return {"target_id": id_, "resolved": filling.resolved}
    id_ = id_of(target)
    kept = filling.world.find(id_)
    if kept is None or not kept.is_visible_to(filling.user_id):
        raise LookupError(f"There is no message {id_!r} to use this command on.")
    return {"target_id": id_, "resolved": {"messages": {id_: kept.message}}}


def nested(filling: Filling, holder: Json, path: list[str], fill: Callable[[list[Json]], list[Json]]) -> list[Json]:
    """The options, inside the subcommand that the path names."""
    options: list[Json] = holder.get("options") or []
    subcommands = [option for option in options if option["type"] in (SUBCOMMAND, GROUP)]
    if not subcommands:
        if path:
            raise LookupError(f"/{holder['name']} has no subcommand {path[0]!r}.")
        return fill(options)
    locale = filling.world.locale_of(filling.user_id)
    chosen = next((option for option in subcommands if path and path[0] in names_of(option, locale)), None)
    if chosen is None:
        names = ", ".join(option["name"] for option in subcommands)
        raise LookupError(f"/{holder['name']} needs one of its subcommands: {names}.")
    return [{"type": chosen["type"], "name": chosen["name"], "options": nested(filling, chosen, path[1:], fill)}]


def leaves(filling: Filling, name: str, options: list[Json], given: Json) -> list[Json]:
    unknown = given.keys() - {option["name"] for option in options}
    if unknown:
        raise ValueError(f"/{name} has no option {sorted(unknown)[0]!r}.")
    made: list[Json] = []
    for option in options:
        if given.get(option["name"]) is not None:
            value = converted(filling, option, given[option["name"]])
            made.append({"type": option["type"], "name": option["name"], "value": value})
        elif option.get("required"):
            raise ValueError(f"/{name} needs the option {option['name']!r}.")
    return made


def converted(filling: Filling, option: Json, value: Any) -> Any:
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
    elif kind in GROUPS_OF_OPTION:
        return filling.entity(option["name"], value, GROUPS_OF_OPTION[kind], option.get("channel_types"))
    else:
        return filling.attachment(as_upload(value, filling.world.uploads))
    choices = [choice["value"] for choice in option.get("choices") or ()]
    if choices and value not in choices:
        raise ValueError(f"{option['name']} is one of {choices}, not {value!r}.")
    return value


def number(option: Json, value: Any) -> int | float:
    try:
        made = int(value) if option["type"] == INTEGER else float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{option['name']} is a number, not {value!r}.") from None
    if abs(made) > 2**53:
        raise ValueError(f"{option['name']} is between -2^53 and 2^53, not {value}.")
    return made


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
    role = world.membership.role_named(name)
    return str(role["id"]) if role is not None else str(world.channel_of(name)["id"])
