"""From a form as a person fills it in to the interaction data that Discord sends."""

from __future__ import annotations

from typing import Any

from .options import CHANNELS, ROLES, USERS, Filling
from .shapes import (
    CHANNEL_SELECT,
    CHECKBOX,
    CHECKBOX_GROUP,
    FILE_UPLOAD,
    LABEL,
    MENTIONABLE_SELECT,
    RADIO_GROUP,
    ROLE_SELECT,
    ROW,
    TEXT,
    TEXT_INPUT,
    USER_SELECT,
    Completion,
    Json,
)
from .uploads import as_uploads

TEXT_MAX = 4000
GROUPS_OF_SELECT: dict[int, tuple[str, ...]] = {
    USER_SELECT: (USERS,),
    ROLE_SELECT: (ROLES,),
    MENTIONABLE_SELECT: (USERS, ROLES),
    CHANNEL_SELECT: (CHANNELS,),
}


def filled(form: Json, values: Json, filling: Filling) -> Json:
    """The `data` of the submit interaction. Raises ValueError for what Discord's client would not let a person send."""
    left = dict(values)
    parts = Completion(form["components"], []).all(form["components"])
    components = [fill_outer(part, left, filling) for part in parts]
    if left:
        raise ValueError(f"The form {form['title']!r} has no field {next(iter(left))!r}.")
    data: Json = {"custom_id": form["custom_id"], "components": components}
    return {**data, "resolved": filling.resolved} if filling.resolved else data


def fill_outer(part: Json, values: Json, filling: Filling) -> Json:
    made: Json = {"type": part["type"], "id": part["id"]}
    if part["type"] == LABEL:
        made["component"] = fill(part["component"], part["label"], values, filling)
    elif part["type"] == ROW:
        made["components"] = [fill(one, one.get("label", ""), values, filling) for one in part["components"]]
    else:
        assert part["type"] == TEXT
    return made


def fill(part: Json, label: str, values: Json, filling: Filling) -> Json:
    """One field with the value given under its custom id or label, or with its preset."""
    key = part["custom_id"] if part["custom_id"] in values else label
    given = values.pop(key, None)
    made: Json = {"type": part["type"], "id": part["id"], "custom_id": part["custom_id"]}
    is_required = part.get("required", True)
    if part["type"] == TEXT_INPUT:
        return made | {"value": text_value(part, label, given, is_required)}
    if part["type"] == CHECKBOX:
        return made | {"value": bool(part.get("default") if given is None else given)}
    if part["type"] == FILE_UPLOAD:
        uploads = as_uploads(() if given is None else given, filling.world.uploads)
        check_count(part, label, len(uploads), is_required, 1)
        return made | {"values": [filling.attachment(upload) for upload in uploads]}
    chosen = chosen_values(part, label, given, is_required, filling)
    if part["type"] == RADIO_GROUP:
        return made | {"value": chosen[0] if chosen else None}
    return made | {"values": chosen}


def text_value(part: Json, label: str, given: Any, is_required: bool) -> str:
    text = str(part.get("value", "") if given is None else given)
    if not text and not is_required:
        return text
    low, high = max(part.get("min_length", 0), 1 if is_required else 0), part.get("max_length", TEXT_MAX)
    if not low <= len(text) <= high:
        raise ValueError(f"{label} has {low} to {high} characters, not {len(text)}.")
    return text


def chosen_values(part: Json, label: str, given: Any, is_required: bool, filling: Filling) -> list[str]:
    options: list[Json] = part.get("options") or []
    known = [option["value"] for option in options]
    chosen = entities(part, label, preset(part) if given is None else as_list(given), filling)
    for value in chosen:
        if known and value not in known:
            raise ValueError(f"{label} has no option {value!r}. There are: {', '.join(known)}.")
    check_count(part, label, len(chosen), is_required, len(known) if part["type"] == CHECKBOX_GROUP else 1)
    return chosen


def preset(part: Json) -> list[Any]:
    """What is chosen before a person has touched it."""
    chosen = [option["value"] for option in part.get("options") or () if option.get("default")]
    return chosen or [value["id"] for value in part.get("default_values") or ()]


def entities(part: Json, label: str, values: list[Any], filling: Filling) -> list[str]:
    """The values of a select of people, roles or channels as ids; other values as strings."""
    groups = GROUPS_OF_SELECT.get(part["type"])
    if groups is None:
        return [str(value) for value in values]
    ids = [filling.entity(label, value, groups, part.get("channel_types")) for value in values]
    return list(dict.fromkeys(ids))


def as_list(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple | set) else [given]  # pyright: ignore[reportUnknownArgumentType]


def check_count(part: Json, label: str, count: int, is_required: bool, most_by_itself: int) -> None:
    """Raise ValueError unless so many may be chosen; none always may be when the field is not required."""
    least, most = part.get("min_values", 1), part.get("max_values", most_by_itself)
    if (count or is_required) and not least <= count <= most:
        raise ValueError(f"{label} takes {least} to {most} values, not {count}.")
