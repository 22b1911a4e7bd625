"""From a form as a person fills it in to the interaction data that Discord sends."""

from __future__ import annotations

from typing import Any

from .shapes import (
    CHECKBOX,
    CHECKBOX_GROUP,
    FILE_UPLOAD,
    LABEL,
    RADIO_GROUP,
    ROW,
    SELECTS,
    STRING_SELECT,
    TEXT,
    TEXT_INPUT,
    Completion,
    Json,
)
from .world import World

TEXT_MAX = 4000


def filled(form: Json, values: Json, world: World) -> Json:
    """The `data` of the submit interaction. Raises ValueError for what Discord's client would not let a person send."""
    resolved: Json = {}
    left = dict(values)
    parts = Completion(form["components"], []).all(form["components"])
    components = [fill_outer(part, left, resolved, world) for part in parts]
    if left:
        raise ValueError(f"The form {form['title']!r} has no field {next(iter(left))!r}.")
    data: Json = {"custom_id": form["custom_id"], "components": components}
    return {**data, "resolved": resolved} if resolved else data


def fill_outer(part: Json, values: Json, resolved: Json, world: World) -> Json:
    made: Json = {"type": part["type"], "id": part["id"]}
    if part["type"] == LABEL:
        made["component"] = fill(part["component"], part["label"], values, resolved, world)
    elif part["type"] == ROW:
        made["components"] = [fill(one, one.get("label", ""), values, resolved, world) for one in part["components"]]
    else:
        assert part["type"] == TEXT
    return made


def fill(part: Json, label: str, values: Json, resolved: Json, world: World) -> Json:
    """One field with the value given under its custom id or label, or with its preset."""
    key = part["custom_id"] if part["custom_id"] in values else label
    given = values.pop(key, None)
    made: Json = {"type": part["type"], "id": part["id"], "custom_id": part["custom_id"]}
    is_required = part.get("required", True)
    if part["type"] == TEXT_INPUT:
        return made | {"value": text_value(part, label, given, is_required)}
    if part["type"] == CHECKBOX:
        return made | {"value": bool(part.get("default") if given is None else given)}
    chosen = chosen_values(part, label, given, is_required)
    if part["type"] == RADIO_GROUP:
        return made | {"value": chosen[0] if chosen else None}
    if chosen and (part["type"] in SELECTS and part["type"] != STRING_SELECT):
        for group, entries in world.resolved(chosen).items():
            resolved.setdefault(group, {}).update(entries)
    return made | {"values": chosen}


def text_value(part: Json, label: str, given: Any, is_required: bool) -> str:
    text = str(part.get("value", "") if given is None else given)
    if not text and not is_required:
        return text
    low, high = max(part.get("min_length", 0), 1 if is_required else 0), part.get("max_length", TEXT_MAX)
    if not low <= len(text) <= high:
        raise ValueError(f"{label} has {low} to {high} characters, not {len(text)}.")
    return text


def chosen_values(part: Json, label: str, given: Any, is_required: bool) -> list[str]:
    if part["type"] == FILE_UPLOAD and given:
        raise ValueError("The playground cannot upload files in forms.")
    options: list[Json] = part.get("options") or []
    if given is None:
        chosen = [option["value"] for option in options if option.get("default")]
    else:
        chosen = [str(value) for value in given] if isinstance(given, list | tuple) else [str(given)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    known = [option["value"] for option in options]
    for value in chosen:
        if known and value not in known:
            raise ValueError(f"{label} has no option {value!r}. There are: {', '.join(known)}.")
    least = part.get("min_values", 1) if is_required else 0
    most = part.get("max_values", len(known) if part["type"] == CHECKBOX_GROUP else 1)
    if (chosen or is_required) and not least <= len(chosen) <= most:
        raise ValueError(f"{label} takes {least} to {most} values, not {len(chosen)}.")
    return chosen
