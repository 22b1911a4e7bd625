"""Discord's limits on messages, forms and commands, and its nested error JSON.

One table per kind of object says which fields it has and what they may hold; a few functions below say what
a table of fields cannot. The first thing to look at is `MESSAGE_PARTS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from .errors import Refused
from .shapes import (
    BUTTON,
    CHANNEL_SELECT,
    CHECKBOX,
    CHECKBOX_GROUP,
    CONTAINER,
    FILE,
    FILE_UPLOAD,
    GALLERY,
    IS_COMPONENTS_V2,
    LABEL,
    LOCALES,
    MENTIONABLE_SELECT,
    RADIO_GROUP,
    ROLE_SELECT,
    ROW,
    SECTION,
    SELECTS,
    SEPARATOR,
    STRING_SELECT,
    TEXT,
    TEXT_INPUT,
    THUMBNAIL,
    USER_SELECT,
    Json,
    attached_name,
    walk,
)

Path = tuple[str, ...]

COMPONENTS_MAX = 40
DISPLAYED_TEXT_MAX = 4000
EMBED_TEXT_MAX = 6000
COMMAND_TEXT_MAX = 8000
COMMANDS_MAX = {1: 100, 2: 15, 3: 15, 4: 1}

# Code and wording of each problem. Quoted by public code, not verified against Discord: change them here.
PROBLEMS: dict[str, tuple[str, str]] = {
    "required": ("BASE_TYPE_REQUIRED", "This field is required"),
    "length": ("BASE_TYPE_BAD_LENGTH", "Must be between {low} and {high} in length."),
    "too long": ("BASE_TYPE_MAX_LENGTH", "Must be {high} or fewer in length."),
    "choice": ("BASE_TYPE_CHOICES", "Value must be one of {choices}."),
    "text": ("STRING_TYPE_CONVERT", "Could not interpret the value as string."),
    "pattern": ("STRING_TYPE_REGEX", "String value did not match validation regex."),
    "number": ("NUMBER_TYPE_COERCE", 'Value "{value}" is not {kind}.'),
    "too small": ("NUMBER_TYPE_MIN", "Value should be greater than or equal to {low}."),
    "too large": ("NUMBER_TYPE_MAX", "Value should be less than or equal to {high}."),
    "boolean": ("BOOLEAN_TYPE_CONVERT", "Must be either true or false."),
    "unique": ("SET_TYPE_ALREADY_CONTAINS_VALUE", "The set already contains this value"),
    "list": ("LIST_TYPE_CONVERT", "Only iterables may be used in a ListType"),
    "object": ("DICT_TYPE_CONVERT", "Only dictionaries may be used in a DictType"),
    "part": ("UNION_TYPE_CHOICES", 'Value of field "type" must be one of {choices}.'),
    "moment": ("DATE_TIME_TYPE_PARSE", "Could not parse {value}. Should be ISO8601."),
    "url": ("URL_TYPE_INVALID_URL", "Not a well formed URL."),
    "scheme": ("URL_TYPE_INVALID_SCHEME", "Scheme is not supported. Scheme must be one of {choices}."),
    "legacy field": (
        "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2",
        "The '{field}' field cannot be used when using MessageFlags.IS_COMPONENTS_V2",
    ),
    "components": ("COMPONENT_MAX_TOTAL_COMPONENTS_EXCEEDED", "Cannot have more than {high} total components"),
    "displayed text": (
        "COMPONENT_DISPLAYABLE_TEXT_SIZE_EXCEEDED",
        "Components displayable text size exceeds maximum size of {high}",
    ),
    "custom id": ("COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated"),
    "component id": ("COMPONENT_ID_DUPLICATED", "Component id cannot be duplicated"),
    "width": ("COMPONENT_LAYOUT_WIDTH_EXCEEDED", "The specified component exceeds the maximum width"),
    "button custom id": ("BUTTON_COMPONENT_CUSTOM_ID_REQUIRED", "A custom id is required"),
    "button url": ("BUTTON_COMPONENT_URL_REQUIRED", "A url is required"),
    "button sku": ("BUTTON_COMPONENT_SKU_ID_REQUIRED", "A sku id is required"),
    "button field": ("BUTTON_COMPONENT_INVALID_FIELD", "A button of this style cannot have a {field}"),
    "button face": ("BUTTON_COMPONENT_LABEL_OR_EMOJI_REQUIRED", "A label or an emoji is required"),
    "option value": ("SELECT_COMPONENT_OPTION_VALUE_DUPLICATED", "The specified option value is already used"),
    "max values": ("SELECT_COMPONENT_MAX_VALUES_EXCEEDED", "Cannot select more values than there are options"),
    "min values": ("SELECT_COMPONENT_MIN_VALUES_EXCEEDED", "The minimum exceeds the maximum"),
    "defaults": ("SELECT_COMPONENT_MAX_DEFAULTS_EXCEEDED", "Cannot have more default values than max_values"),
    "required without minimum": ("COMPONENT_REQUIRED_INVALID", "Must be false when min_values is 0"),
    "embeds": ("MAX_EMBED_SIZE_EXCEEDED", "Embed size exceeds maximum size of {high}"),
    "deferred flags": ("MESSAGE_FLAGS_INVALID", "Only the EPHEMERAL flag may be set"),
    "attachment": ("UNFURLED_MEDIA_ITEM_REFERENCED_ATTACHMENT_NOT_FOUND", "Referenced attachment was not found"),
    "command name": ("APPLICATION_COMMANDS_DUPLICATE_NAME", "Application command names must be unique"),
    "command size": ("APPLICATION_COMMAND_TOO_LARGE", "Command exceeds maximum size ({high})"),
    "option name": ("APPLICATION_COMMAND_OPTIONS_NAME_ALREADY_EXISTS", "Option name already exists"),
    "option order": (
        "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID",
        "Required options must be placed before non-required options",
    ),
    "option type": ("APPLICATION_COMMAND_OPTIONS_TYPE_INVALID", "Sub-commands cannot be placed here"),
    "mixed options": (
        "APPLICATION_COMMAND_OPTIONS_TYPE_INVALID",
        "Sub-command and sub-command group option types are mutually exclusive to all other types",
    ),
    "options here": ("APPLICATION_COMMAND_OPTIONS_TYPE_INVALID", "Only sub-commands have options"),
    "choices and autocomplete": ("APPLICATION_COMMAND_OPTIONS_CHOICES_INVALID", "Cannot have choices and autocomplete"),
    "timeout": ("DATE_TIME_MAX", "Cannot be more than {high} days in the future."),
    "parent": ("CHANNEL_PARENT_INVALID", "Category does not exist"),
    "no description here": (
        "APPLICATION_COMMAND_INVALID_DESCRIPTION",
        "Context menu commands cannot have description",
    ),
}


# What a field may hold


@dataclass(frozen=True)
class Rule:
    required: bool = False


@dataclass(frozen=True)
class Words(Rule):
    """A string of `low` to `high` characters."""

    low: int = 0
    high: int = 2**31
    pattern: re.Pattern[str] | None = None
    or_number: bool = False


@dataclass(frozen=True)
class Whole(Rule):
    """A whole number, or any number when `fraction` is true."""

    low: int = -(2**53)
    high: int = 2**53
    fraction: bool = False


@dataclass(frozen=True)
class Flag(Rule):
    """true or false."""


@dataclass(frozen=True)
class Id(Rule):
    """A snowflake, as a string of digits or a number."""


@dataclass(frozen=True)
class Moment(Rule):
    """A point in time, as ISO 8601 has it."""


@dataclass(frozen=True)
class Link(Rule):
    """An address with one of the given schemes."""

    high: int = 2048
    schemes: tuple[str, ...] = ("http", "https", "attachment")


@dataclass(frozen=True)
class OneOf(Rule):
    choices: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Group(Rule):
    """An object with these fields."""

    fields: Fields | None = None


@dataclass(frozen=True)
class Many(Rule):
    """A list of `low` to `high` values that each follow a rule."""

    of: Rule = Rule()
    low: int = 0
    high: int = 2**31
    unique: bool = False


@dataclass(frozen=True)
class ByLocale(Rule):
    """An object from languages to values."""

    of: Rule = Rule()


@dataclass(frozen=True)
class Part(Rule):
    """A component of one of these types."""

    types: tuple[int, ...] = ()
    in_form: bool = False


Fields = dict[str, Rule]


# The tables

CUSTOM_ID = Words(low=1, high=100, required=True)
COMPONENT_ID = Whole(low=0, high=2**31 - 1)
EMOJI = Group(fields={"id": Id(), "name": Words(high=32), "animated": Flag()})
MEDIA = Group(required=True, fields={"url": Link(required=True)})
OPTION = Group(
    fields={
        "label": Words(low=1, high=100, required=True),
        "value": Words(low=1, high=100, required=True),
        "description": Words(high=100),
        "emoji": EMOJI,
        "default": Flag(),
    }
)
CHANNEL_TYPES = Many(of=OneOf(choices=tuple(range(6)) + tuple(range(10, 17))), unique=True)

SELECT_FIELDS: Fields = {
    "id": COMPONENT_ID,
    "custom_id": CUSTOM_ID,
    "placeholder": Words(high=150),
    "min_values": Whole(low=0, high=25),
    "max_values": Whole(low=1, high=25),
    "disabled": Flag(),
    "required": Flag(),
}
STRING_SELECT_FIELDS = SELECT_FIELDS | {"options": Many(of=OPTION, low=1, high=25, required=True)}


def defaults_of(*types: str) -> Fields:
    """The field of a select that shows what is chosen before anybody has chosen."""
    value = Group(fields={"id": Id(required=True), "type": OneOf(choices=types, required=True)})
    return {"default_values": Many(of=value, high=25)}


SELECT_TABLE: dict[int, Fields] = {
    STRING_SELECT: STRING_SELECT_FIELDS,
    USER_SELECT: SELECT_FIELDS | defaults_of("user"),
    ROLE_SELECT: SELECT_FIELDS | defaults_of("role"),
    MENTIONABLE_SELECT: SELECT_FIELDS | defaults_of("user", "role"),
    CHANNEL_SELECT: SELECT_FIELDS | defaults_of("channel") | {"channel_types": CHANNEL_TYPES},
}
TEXT_DISPLAY_FIELDS: Fields = {"id": COMPONENT_ID, "content": Words(low=1, high=4000, required=True)}
IN_CONTAINER = (ROW, SECTION, TEXT, GALLERY, FILE, SEPARATOR)
LEGACY_TOP = (ROW,)
V2_TOP = (ROW, SECTION, TEXT, GALLERY, FILE, SEPARATOR, CONTAINER)

MESSAGE_PARTS: dict[int, Fields] = {
    **SELECT_TABLE,
    ROW: {"id": COMPONENT_ID, "components": Many(of=Part(types=(BUTTON, *SELECTS)), low=1, high=5, required=True)},
    BUTTON: {
        "id": COMPONENT_ID,
        "style": OneOf(choices=(1, 2, 3, 4, 5, 6), required=True),
        "label": Words(high=80),
        "emoji": EMOJI,
        "custom_id": Words(low=1, high=100),
        "url": Link(high=512, schemes=("http", "https", "discord")),
        "sku_id": Id(),
        "disabled": Flag(),
    },
    SECTION: {
        "id": COMPONENT_ID,
        "components": Many(of=Part(types=(TEXT,)), low=1, high=3, required=True),
        "accessory": Part(types=(BUTTON, THUMBNAIL), required=True),
    },
    TEXT: TEXT_DISPLAY_FIELDS,
    THUMBNAIL: {"id": COMPONENT_ID, "media": MEDIA, "description": Words(low=1, high=1024), "spoiler": Flag()},
    GALLERY: {
        "id": COMPONENT_ID,
        "items": Many(
            of=Group(fields={"media": MEDIA, "description": Words(low=1, high=1024), "spoiler": Flag()}),
            low=1,
            high=10,
            required=True,
        ),
    },
    FILE: {
        "id": COMPONENT_ID,
        "file": Group(required=True, fields={"url": Link(schemes=("attachment",), required=True)}),
        "spoiler": Flag(),
    },
    SEPARATOR: {"id": COMPONENT_ID, "divider": Flag(), "spacing": OneOf(choices=(1, 2))},
    CONTAINER: {
        "id": COMPONENT_ID,
        "components": Many(of=Part(types=IN_CONTAINER), low=1, high=40, required=True),
        "accent_color": Whole(low=0, high=0xFFFFFF),
        "spoiler": Flag(),
    },
}

GROUP_OPTION = Group(
    fields={
        "label": Words(low=1, high=100, required=True),
        "value": Words(low=1, high=100, required=True),
        "description": Words(high=100),
        "default": Flag(),
    }
)
TEXT_INPUT_FIELDS: Fields = {
    "id": COMPONENT_ID,
    "custom_id": CUSTOM_ID,
    "style": OneOf(choices=(1, 2), required=True),
    "label": Words(low=1, high=45),
    "min_length": Whole(low=0, high=4000),
    "max_length": Whole(low=1, high=4000),
    "required": Flag(),
    "value": Words(high=4000),
    "placeholder": Words(high=100),
}
IN_LABEL = (*SELECTS, TEXT_INPUT, FILE_UPLOAD, RADIO_GROUP, CHECKBOX_GROUP, CHECKBOX)

FORM_PARTS: dict[int, Fields] = {
    **SELECT_TABLE,
    ROW: {
        "id": COMPONENT_ID,
        "components": Many(of=Part(types=(TEXT_INPUT,), in_form=True), low=1, high=1, required=True),
    },
    TEXT: TEXT_DISPLAY_FIELDS,
    LABEL: {
        "id": COMPONENT_ID,
        "label": Words(low=1, high=45, required=True),
        "description": Words(low=1, high=100),
        "component": Part(types=IN_LABEL, in_form=True, required=True),
    },
    TEXT_INPUT: TEXT_INPUT_FIELDS,
    FILE_UPLOAD: {
        "id": COMPONENT_ID,
        "custom_id": CUSTOM_ID,
        "min_values": Whole(low=0, high=10),
        "max_values": Whole(low=1, high=10),
        "required": Flag(),
    },
    RADIO_GROUP: {
        "id": COMPONENT_ID,
        "custom_id": CUSTOM_ID,
        "options": Many(of=GROUP_OPTION, low=2, high=10, required=True),
        "required": Flag(),
    },
    CHECKBOX_GROUP: {
        "id": COMPONENT_ID,
        "custom_id": CUSTOM_ID,
        "options": Many(of=GROUP_OPTION, low=1, high=10, required=True),
        "min_values": Whole(low=0, high=10),
        "max_values": Whole(low=1, high=10),
        "required": Flag(),
    },
    CHECKBOX: {"id": COMPONENT_ID, "custom_id": CUSTOM_ID, "default": Flag()},
}

FORM: Fields = {
    "custom_id": CUSTOM_ID,
    "title": Words(low=1, high=45, required=True),
    "components": Many(of=Part(types=(ROW, TEXT, LABEL), in_form=True), low=1, high=5, required=True),
}

EMBED = Group(
    fields={
        "title": Words(high=256),
        "description": Words(high=4096),
        "url": Link(schemes=("http", "https")),
        "color": Whole(low=0, high=0xFFFFFF),
        "timestamp": Moment(),
        "footer": Group(fields={"text": Words(low=1, high=2048, required=True), "icon_url": Link()}),
        "author": Group(
            fields={
                "name": Words(low=1, high=256, required=True),
                "url": Link(schemes=("http", "https")),
                "icon_url": Link(),
            }
        ),
        "image": Group(fields={"url": Link(required=True)}),
        "thumbnail": Group(fields={"url": Link(required=True)}),
        "fields": Many(
            of=Group(
                fields={
                    "name": Words(low=1, high=256, required=True),
                    "value": Words(low=1, high=1024, required=True),
                    "inline": Flag(),
                }
            ),
            high=25,
        ),
    }
)
ATTACHMENT = Group(
    fields={"id": Id(required=True), "filename": Words(low=1, high=1024), "description": Words(high=1024)}
)
MESSAGE: Fields = {
    "content": Words(high=2000),
    "embeds": Many(of=EMBED, high=10),
    "flags": Whole(low=0),
    "tts": Flag(),
    "nonce": Words(high=25, or_number=True),
    "enforce_nonce": Flag(),
    "allowed_mentions": Group(fields={}),
    "message_reference": Group(fields={"message_id": Id(), "channel_id": Id(), "fail_if_not_exists": Flag()}),
    "attachments": Many(of=ATTACHMENT, high=10),
    "sticker_ids": Many(of=Id(), high=3),
}
LEGACY_COMPONENTS = Many(of=Part(types=LEGACY_TOP), high=5)
V2_COMPONENTS = Many(of=Part(types=V2_TOP))  # their number is counted with everything inside, below

COMMAND_NAME = re.compile(r"[-_'\w\u0900-\u097f\u0e00-\u0e7f]+")
NAMES_BY_LOCALE = ByLocale(of=Words(low=1, high=32, pattern=COMMAND_NAME))
DESCRIPTIONS_BY_LOCALE = ByLocale(of=Words(low=1, high=100))
CHOICE = Group(
    fields={"name": Words(low=1, high=100, required=True), "name_localizations": ByLocale(of=Words(low=1, high=100))}
)
NAMED: Fields = {
    "name": Words(low=1, high=32, pattern=COMMAND_NAME, required=True),
    "name_localizations": NAMES_BY_LOCALE,
    "description": Words(low=1, high=100, required=True),
    "description_localizations": DESCRIPTIONS_BY_LOCALE,
}
COMMAND_OPTION_FIELDS: Fields = NAMED | {
    "type": OneOf(choices=tuple(range(1, 12)), required=True),
    "required": Flag(),
    "choices": Many(of=CHOICE, high=25),
    "options": Many(of=Group(fields={}), high=25),
    "channel_types": CHANNEL_TYPES,
    "min_value": Whole(fraction=True),
    "max_value": Whole(fraction=True),
    "min_length": Whole(low=0, high=6000),
    "max_length": Whole(low=1, high=6000),
    "autocomplete": Flag(),
}
CHAT_COMMAND: Fields = NAMED | {
    "options": Many(of=Group(fields={}), high=25),
    "default_member_permissions": Id(),
    "nsfw": Flag(),
    "contexts": Many(of=OneOf(choices=(0, 1, 2)), low=1, unique=True),
    "integration_types": Many(of=OneOf(choices=(0, 1)), low=1, unique=True),
}
MENU_COMMAND: Fields = CHAT_COMMAND | {
    "name": Words(low=1, high=32, required=True),
    "name_localizations": ByLocale(of=Words(low=1, high=32)),
    "description": Rule(),
    "options": Many(high=0),
}
COMMAND_TYPE = OneOf(choices=(1, 2, 3, 4))

MEMBER: Fields = {
    "nick": Words(high=32),
    "roles": Many(of=Id()),
    "communication_disabled_until": Moment(),
    "mute": Flag(),
    "deaf": Flag(),
}
BAN: Fields = {
    "delete_message_seconds": Whole(low=0, high=604_800),
    "delete_message_days": Whole(low=0, high=7),
}
ROLE: Fields = {
    "name": Words(high=100),
    "permissions": Id(),
    "color": Whole(low=0, high=0xFFFFFF),
    "hoist": Flag(),
    "mentionable": Flag(),
}
OVERWRITE: Fields = {"type": OneOf(choices=(0, 1), required=True), "allow": Id(), "deny": Id()}
GUILD_CHANNEL: Fields = {
    "name": Words(low=1, high=100),
    "type": OneOf(choices=(0, 2, 4, 5)),
    "topic": Words(high=4096),
    "nsfw": Flag(),
    "rate_limit_per_user": Whole(low=0, high=21_600),
    "parent_id": Id(),
    "position": Whole(low=0),
    "bitrate": Whole(low=8000),
    "user_limit": Whole(low=0),
    "permission_overwrites": Many(of=Group(fields=OVERWRITE | {"id": Id(required=True)}), high=100),
}
NEW_CHANNEL: Fields = GUILD_CHANNEL | {"name": Words(low=1, high=100, required=True)}

DELETION: Fields = {"messages": Many(of=Id(), required=True)}
AUTOCOMPLETE: Fields = {"choices": Many(of=CHOICE, high=25, required=True)}


class Report:
    """Collects problems by place and raises them as Discord's Invalid Form Body."""

    def __init__(self, at: Path = ()) -> None:
        self.errors: Json = {}
        self.count = 0
        self._at = at

    def add(self, at: Path, problem: str, **values: Any) -> None:
        self.count += 1
        place = self.errors
        for key in (*self._at, *at):
            place = place.setdefault(key, {})
        code, wording = PROBLEMS[problem]
        place.setdefault("_errors", []).append({"code": code, "message": wording.format(**values)})

    def raise_if_any(self) -> None:
        if self.errors:
            raise Refused(50035, self.errors)


# Values against rules


def check_fields(value: Json, fields: Fields, at: Path, report: Report) -> None:
    for name, rule in fields.items():
        given = value.get(name)
        if given is not None:
            check(given, rule, (*at, name), report)
        elif rule.required:
            report.add((*at, name), "required")


def check(value: Any, rule: Rule, at: Path, report: Report) -> None:
    """Report what is wrong with one value, in the place where it stands."""
    checker = CHECKERS.get(type(rule))
    if checker is not None:
        checker(value, rule, at, report)


def check_words(value: Any, rule: Words, at: Path, report: Report) -> None:
    if rule.or_number and isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        report.add(at, "text")
    elif rule.low and not rule.low <= len(value) <= rule.high:
        report.add(at, "length", low=rule.low, high=rule.high)
    elif len(value) > rule.high:
        report.add(at, "too long", high=rule.high)
    elif rule.pattern and (not rule.pattern.fullmatch(value) or value != value.lower()):
        report.add(at, "pattern")


def check_whole(value: Any, rule: Whole, at: Path, report: Report) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float if rule.fraction else int):
        report.add(at, "number", value=value, kind="float" if rule.fraction else "int")
    elif value < rule.low:
        report.add(at, "too small", low=rule.low)
    elif value > rule.high:
        report.add(at, "too large", high=rule.high)


def check_flag(value: Any, rule: Flag, at: Path, report: Report) -> None:
    if not isinstance(value, bool):
        report.add(at, "boolean")


def check_id(value: Any, rule: Id, at: Path, report: Report) -> None:
    if not str(value).isdecimal():
        report.add(at, "number", value=value, kind="snowflake")


def check_moment(value: Any, rule: Moment, at: Path, report: Report) -> None:
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        report.add(at, "moment", value=value)


def check_link(value: Any, rule: Link, at: Path, report: Report) -> None:
    scheme, colon, rest = value.partition("://") if isinstance(value, str) else ("", "", "")
    if not colon or not rest:
        report.add(at, "url")
    elif scheme not in rule.schemes:
        report.add(at, "scheme", choices=rule.schemes)
    elif len(value) > rule.high:
        report.add(at, "too long", high=rule.high)


def check_one_of(value: Any, rule: OneOf, at: Path, report: Report) -> None:
    if isinstance(value, bool) or value not in rule.choices:
        report.add(at, "choice", choices=rule.choices)


def check_group(value: Any, rule: Group, at: Path, report: Report) -> None:
    if not isinstance(value, dict):
        report.add(at, "object")
    else:
        check_fields(cast(Json, value), rule.fields or {}, at, report)


def check_many(value: Any, rule: Many, at: Path, report: Report) -> None:
    if not isinstance(value, list):
        report.add(at, "list")
        return
    items = cast(list[Any], value)
    if not rule.low <= len(items) <= rule.high:
        report.add(at, "length", low=rule.low, high=rule.high)
    if rule.unique and any(item in items[:number] for number, item in enumerate(items)):
        report.add(at, "unique")
    for number, item in enumerate(items):
        check(item, rule.of, (*at, str(number)), report)


def check_by_locale(value: Any, rule: ByLocale, at: Path, report: Report) -> None:
    if not isinstance(value, dict):
        report.add(at, "object")
        return
    for locale, text in cast(Json, value).items():
        if locale not in LOCALES:
            report.add((*at, locale), "choice", choices=LOCALES)
        elif text is not None:
            check(text, rule.of, (*at, locale), report)


def check_part(value: Any, rule: Part, at: Path, report: Report) -> None:
    if not isinstance(value, dict):
        report.add(at, "object")
        return
    part = cast(Json, value)
    if isinstance(part.get("type"), bool) or part.get("type") not in rule.types:
        report.add(at, "part", choices=rule.types)
        return
    before = report.count
    check_fields(part, (FORM_PARTS if rule.in_form else MESSAGE_PARTS)[part["type"]], at, report)
    special = SPECIAL.get(part["type"])
    if special is not None and report.count == before:
        special(part, at, report)


CHECKERS: dict[type[Rule], Callable[[Any, Any, Path, Report], None]] = {
    Words: check_words,
    Whole: check_whole,
    Flag: check_flag,
    Id: check_id,
    Moment: check_moment,
    Link: check_link,
    OneOf: check_one_of,
    Group: check_group,
    Many: check_many,
    ByLocale: check_by_locale,
    Part: check_part,
}


# What a table of fields cannot say: the fields themselves have been found sound before these run

BUTTON_NEEDS = {
    **dict.fromkeys((1, 2, 3, 4), ("custom_id", "button custom id", ("url", "sku_id"))),
    5: ("url", "button url", ("custom_id", "sku_id")),
    6: ("sku_id", "button sku", ("custom_id", "url", "label", "emoji")),
}


def check_button(part: Json, at: Path, report: Report) -> None:
    needed, problem, refused = BUTTON_NEEDS[part["style"]]
    if part.get(needed) is None:
        report.add((*at, needed), problem)
    for field in refused:
        if part.get(field) is not None:
            report.add((*at, field), "button field", field=field)
    if part["style"] != 6 and not part.get("label") and not part.get("emoji"):
        report.add(at, "button face")


def check_row(part: Json, at: Path, report: Report) -> None:
    """A row is five wide: a button takes one, anything else takes all of it."""
    width = sum(1 if child["type"] == BUTTON else 5 for child in part["components"])
    if width > 5:
        report.add((*at, "components"), "width")


def check_options(part: Json, at: Path, report: Report) -> None:
    seen: set[str] = set()
    for number, option in enumerate(part["options"]):
        if option["value"] in seen:
            report.add((*at, "options", str(number), "value"), "option value")
        seen.add(option["value"])


def check_counts(part: Json, at: Path, report: Report) -> None:
    least, most = part.get("min_values"), part.get("max_values")
    highest = 1 if most is None else most
    if least is not None and least > highest:
        report.add((*at, "min_values"), "min values")
    if most is not None and "options" in part and most > len(part["options"]):
        report.add((*at, "max_values"), "max values")


def check_string_select(part: Json, at: Path, report: Report) -> None:
    check_options(part, at, report)
    check_counts(part, at, report)
    if sum(bool(option.get("default")) for option in part["options"]) > (part.get("max_values") or 1):
        report.add((*at, "options"), "defaults")


def check_entity_select(part: Json, at: Path, report: Report) -> None:
    check_counts(part, at, report)
    if len(part.get("default_values") or ()) > (part.get("max_values") or 1):
        report.add((*at, "default_values"), "defaults")


def check_radio_group(part: Json, at: Path, report: Report) -> None:
    check_options(part, at, report)
    if sum(bool(option.get("default")) for option in part["options"]) > 1:
        report.add((*at, "options"), "defaults")


def check_checkbox_group(part: Json, at: Path, report: Report) -> None:
    """Without max_values all may be chosen; none may be when nothing has to be."""
    check_options(part, at, report)
    most = len(part["options"]) if part.get("max_values") is None else part["max_values"]
    check_counts({**part, "max_values": most}, at, report)
    if part.get("min_values") == 0 and part.get("required") is not False:
        report.add((*at, "required"), "required without minimum")
    if sum(bool(option.get("default")) for option in part["options"]) > most:
        report.add((*at, "options"), "defaults")


def check_text_input(part: Json, at: Path, report: Report) -> None:
    if (part.get("min_length") or 0) > (part.get("max_length") or 4000):
        report.add((*at, "min_length"), "too large", high=part["max_length"])


def check_form_row(part: Json, at: Path, report: Report) -> None:
    for number, child in enumerate(part["components"]):
        if child["type"] == TEXT_INPUT and not child.get("label"):
            report.add((*at, "components", str(number), "label"), "required")


def check_any_row(part: Json, at: Path, report: Report) -> None:
    check_row(part, at, report)
    check_form_row(part, at, report)


SPECIAL: dict[int, Callable[[Json, Path, Report], None]] = {
    ROW: check_any_row,
    BUTTON: check_button,
    STRING_SELECT: check_string_select,
    **dict.fromkeys((USER_SELECT, ROLE_SELECT, MENTIONABLE_SELECT, CHANNEL_SELECT), check_entity_select),
    TEXT_INPUT: check_text_input,
    FILE_UPLOAD: check_counts,
    RADIO_GROUP: check_radio_group,
    CHECKBOX_GROUP: check_checkbox_group,
}


def check_no_duplicates(components: list[Json], report: Report) -> None:
    """A custom id or a component id may stand in a message or form once."""
    custom_ids: set[str] = set()
    ids: set[int] = set()
    for part, at in walk_with_place(components, ("components",)):
        custom_id, id_ = part.get("custom_id"), part.get("id")
        if custom_id is not None and custom_id in custom_ids:
            report.add((*at, "custom_id"), "custom id")
        if id_ and id_ in ids:
            report.add((*at, "id"), "component id")
        if custom_id is not None:
            custom_ids.add(custom_id)
        if id_:
            ids.add(id_)


def walk_with_place(components: list[Json], at: Path) -> Iterable[tuple[Json, Path]]:
    for number, part in enumerate(components):
        place = (*at, str(number))
        yield part, place
        yield from walk_with_place(part.get("components") or [], (*place, "components"))
        for child in ("component", "accessory"):
            if part.get(child):
                yield part[child], (*place, child)


def check_totals(components: list[Json], is_v2: bool, report: Report) -> None:
    parts = list(walk(components))
    if is_v2 and len(parts) > COMPONENTS_MAX:
        report.add(("components",), "components", high=COMPONENTS_MAX)
    if sum(len(part["content"]) for part in parts if part["type"] == TEXT) > DISPLAYED_TEXT_MAX:
        report.add(("components",), "displayed text", high=DISPLAYED_TEXT_MAX)
    check_no_duplicates(components, report)


def check_attachments(components: list[Json], filenames: set[str], report: Report) -> None:
    """What `attachment://` names must be sent along or be on the message already."""
    for part, at in walk_with_place(components, ("components",)):
        holders = [(part, at)]
        holders += [(item, (*at, "items", str(n))) for n, item in enumerate(part.get("items") or [])]
        for holder, place in holders:
            for key in ("media", "file"):
                media: Json = holder.get(key) or {}
                url: str = media.get("url", "")
                if url.startswith("attachment://") and attached_name(url) not in filenames:
                    report.add((*place, key, "url"), "attachment")


# What is sent


def check_message(
    body: Json, *, at: Path = (), filenames: Iterable[str] = (), now: Json | None = None, may_be_empty: bool = False
) -> None:
    """Raise Refused unless Discord would take this message, or this edit of the message `now`."""
    report = Report(at)
    was_v2 = bool(now and now["flags"] & IS_COMPONENTS_V2)
    check_fields(body, MESSAGE, (), report)
    report.raise_if_any()
    is_v2 = was_v2 or bool(int(body.get("flags") or 0) & IS_COMPONENTS_V2)
    components: list[Json] = body.get("components") or []
    check(components, V2_COMPONENTS if is_v2 else LEGACY_COMPONENTS, ("components",), report)
    report.raise_if_any()
    if is_v2:
        check_no_legacy_fields(body, now, report)
    check_totals(components, is_v2, report)
    check_attachments(components, {*filenames, *(item["filename"] for item in attachments_left(body, now))}, report)
    if sum(embed_length(embed) for embed in body.get("embeds") or ()) > EMBED_TEXT_MAX:
        report.add(("embeds",), "embeds", high=EMBED_TEXT_MAX)
    report.raise_if_any()
    if not may_be_empty and is_empty({**(now or {}), **body}, bool(list(filenames))):
        raise Refused(50006)


def attachments_left(body: Json, now: Json | None) -> list[Json]:
    """Those of the message that an edit keeps."""
    old: list[Json] = now["attachments"] if now else []
    if body.get("attachments") is None:
        return old
    named = {str(item["id"]) for item in body["attachments"]}
    return [item for item in old if item["id"] in named]


def check_no_legacy_fields(body: Json, now: Json | None, report: Report) -> None:
    """Neither the request nor, when the flag is first set by an edit, the message may hold them."""
    for field in ("content", "embeds", "sticker_ids", "poll", "shared_client_theme"):
        left = (now or {}).get(field) if field not in body else body[field]
        if left:
            report.add((field,), "legacy field", field=field)


def embed_length(embed: Json) -> int:
    footer: Json = embed.get("footer") or {}
    author: Json = embed.get("author") or {}
    texts = [embed.get("title"), embed.get("description"), footer.get("text"), author.get("name")]
    for field in embed.get("fields") or ():
        texts += [field["name"], field["value"]]
    return sum(len(text) for text in texts if text)


def is_empty(body: Json, has_files: bool) -> bool:
    shown = ("content", "embeds", "components", "sticker_ids", "poll", "attachments")
    return not has_files and not any(body.get(field) for field in shown)


def check_form(data: Json, at: Path = ("data",)) -> None:
    """Raise Refused unless Discord would open this form (modal)."""
    report = Report(at)
    check_fields(data, FORM, (), report)
    report.raise_if_any()
    check_no_duplicates(data["components"], report)
    report.raise_if_any()


def check_suggestions(data: Json, option_type: int = 3) -> None:
    """Raise Refused unless these are choices for an autocompleted option of that type."""
    report = Report(("data",))
    check_fields(data, AUTOCOMPLETE, (), report)
    report.raise_if_any()
    for number, choice in enumerate(data["choices"]):
        check_choice(choice, option_type, ("choices", str(number)), report)
    report.raise_if_any()


def check_choice(choice: Json, option_type: int, at: Path, report: Report) -> None:
    """A choice's value is of its option's type."""
    rule = Words(high=100, required=True) if option_type == 3 else Whole(fraction=option_type == 10, required=True)
    check_fields(choice, {"value": rule}, at, report)


def check_body(body: Json, fields: Fields) -> None:
    report = Report()
    check_fields(body, fields, (), report)
    report.raise_if_any()


def check_member(body: Json) -> None:
    """Raise Refused unless a member can be changed to this."""
    check_body(body, MEMBER)


def check_ban(body: Json) -> None:
    """Raise Refused unless somebody can be banned like this."""
    check_body(body, BAN)


def check_role(body: Json) -> None:
    """Raise Refused unless a role can be this."""
    check_body(body, ROLE)


def check_overwrite(body: Json) -> None:
    """Raise Refused unless a channel can allow and deny this."""
    check_body(body, OVERWRITE)


def check_channel(body: Json, *, is_new: bool) -> None:
    """Raise Refused unless a channel of the guild can be this."""
    check_body(body, NEW_CHANNEL if is_new else GUILD_CHANNEL)


def check_deletion(body: Json) -> list[str]:
    """The ids of the messages to delete at once."""
    check_body(body, DELETION)
    if not 2 <= len(body["messages"]) <= 100:
        raise Refused(50016)
    return [str(id_) for id_ in body["messages"]]


def check_command(body: Any, at: Path = (), report: Report | None = None) -> None:
    """Raise Refused unless Discord would register this command."""
    mine = report or Report()
    if not isinstance(body, dict):
        mine.add(at, "object")
    else:
        _check_command(cast(Json, body), at, mine)
    if report is None:
        mine.raise_if_any()


def _check_command(body: Json, at: Path, report: Report) -> None:
    kind = body.get("type") or 1
    before = report.count
    check(kind, COMMAND_TYPE, (*at, "type"), report)
    check_fields(body, MENU_COMMAND if kind in (2, 3) else CHAT_COMMAND, at, report)
    if kind in (2, 3) and body.get("description"):
        report.add((*at, "description"), "no description here")
    if report.count == before:
        check_command_options(body.get("options") or [], (*at, "options"), report, depth=0)
    if report.count == before and command_length(body) > COMMAND_TEXT_MAX:
        report.add(at, "command size", high=COMMAND_TEXT_MAX)


def check_command_options(options: list[Json], at: Path, report: Report, *, depth: int) -> None:
    names: set[str] = set()
    optional_seen = False
    for number, option in enumerate(options):
        place = (*at, str(number))
        before = report.count
        check_fields(option, COMMAND_OPTION_FIELDS, place, report)
        if report.count > before:
            continue
        if option["name"] in names:
            report.add(place, "option name")
        if option.get("required") and optional_seen:
            report.add(place, "option order")
        optional_seen = optional_seen or not option.get("required")
        names.add(option["name"])
        check_command_option(option, place, report, depth)
    if len({option.get("type") in (1, 2) for option in options}) > 1:
        report.add(at, "mixed options")


def check_command_option(option: Json, at: Path, report: Report, depth: int) -> None:
    kind = option["type"]
    if (kind == 2 and depth > 0) or (kind == 1 and depth > 1):
        report.add((*at, "type"), "option type")
    elif kind in (1, 2):
        check_command_options(option.get("options") or [], (*at, "options"), report, depth=depth + 1)
    elif option.get("options"):
        report.add((*at, "options"), "options here")
    if option.get("choices") and option.get("autocomplete"):
        report.add(at, "choices and autocomplete")
    if kind in (4, 10):
        bound = Whole(fraction=kind == 10)
        check_fields(option, {"min_value": bound, "max_value": bound}, at, report)
    for low, high in (("min_value", "max_value"), ("min_length", "max_length")):
        if option.get(low) is not None and option.get(high) is not None and option[low] > option[high]:
            report.add((*at, low), "too large", high=option[high])
    for number, choice in enumerate(option.get("choices") or ()):
        check_choice(choice, kind, (*at, "choices", str(number)), report)


def command_length(body: Json) -> int:
    """Characters that count toward a command's 8000: names, descriptions and choice values, at any depth."""
    own = longest(body, "name") + longest(body, "description")
    own += sum(longest(choice, "name") + len(str(choice["value"])) for choice in body.get("choices") or ())
    return own + sum(command_length(option) for option in body.get("options") or ())


def longest(body: Json, field: str) -> int:
    """Of a text and its translations only the longest one counts."""
    translations: Json = body.get(f"{field}_localizations") or {}
    return max(len(text or "") for text in (body.get(field), *translations.values()))


def check_commands(bodies: Any) -> None:
    """Raise Refused unless Discord would take all of these as the whole set."""
    report = Report()
    check_many(bodies, Many(of=Group(fields={})), (), report)
    report.raise_if_any()
    commands = cast(list[Json], bodies)
    for number, body in enumerate(commands):
        check_command(body, (str(number),), report)
    report.raise_if_any()
    counts: dict[int, list[str]] = {}
    for number, body in enumerate(commands):
        names = counts.setdefault(body.get("type") or 1, [])
        if body["name"] in names:
            report.add((str(number), "name"), "command name")
        names.append(body["name"])
    report.raise_if_any()
    if any(len(names) > COMMANDS_MAX[kind] for kind, names in counts.items()):
        raise Refused(30032)


def check_room(commands: list[Json], body: Json) -> None:
    """Raise Refused when there are too many commands of a kind for another one; one of that name is replaced."""
    kind = body.get("type") or 1
    others = [each for each in commands if each["type"] == kind and each["name"] != body["name"]]
    if len(others) >= COMMANDS_MAX[kind]:
        raise Refused(30032)


def check_name_is_free(others: list[Json], body: Json) -> None:
    """Raise Refused when a command that is changed would be called as another one."""
    report = Report()
    if any(each["name"] == body["name"] and each["type"] == body["type"] for each in others):
        report.add(("name",), "command name")
    report.raise_if_any()
