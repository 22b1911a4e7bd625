"""Discord's limits: what is just allowed, what is just too much, and where the error stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from playground import limits
from playground.errors import Refused

Json = dict[str, Any]
V2 = 1 << 15


def text(content: str = "x", **more: Any) -> Json:
    return {"type": 10, "content": content, **more}


def button(custom_id: str = "b", **more: Any) -> Json:
    return {"type": 2, "style": 1, "custom_id": custom_id, "label": "L", **more}


def row(*parts: Json) -> Json:
    return {"type": 1, "components": list(parts)}


def buttons(count: int) -> list[Json]:
    return [button(str(number)) for number in range(count)]


def options(count: int) -> list[Json]:
    return [{"label": str(number), "value": str(number)} for number in range(count)]


def select(count: int = 2, **more: Any) -> Json:
    return {"type": 3, "custom_id": "s", "options": options(count), **more}


def container(*parts: Json, **more: Any) -> Json:
    return {"type": 17, "components": list(parts), **more}


def section(*parts: Json, **more: Any) -> Json:
    return {"type": 9, "components": list(parts), "accessory": button(), **more}


def gallery(count: int = 1, **more: Any) -> Json:
    return {"type": 12, "items": [{"media": {"url": "https://a.b/c.png"}, **more}] * count}


def v2(*parts: Json, **more: Any) -> Json:
    return {"flags": V2, "components": list(parts), **more}


def legacy(*rows: Json, **more: Any) -> Json:
    return {"content": "x", "components": list(rows), **more}


def link(**more: Any) -> Json:
    return {"type": 2, "style": 5, "label": "L", "url": "https://x.y", **more}


def label(component: Json | None = None, **more: Any) -> Json:
    return {"type": 18, "label": "L", "component": component or field(), **more}


def field(custom_id: str = "t", **more: Any) -> Json:
    return {"type": 4, "custom_id": custom_id, "style": 1, **more}


def form(*parts: Json, **more: Any) -> Json:
    return {"custom_id": "m", "title": "T", "components": list(parts), **more}


def group(kind: int, count: int, **more: Any) -> Json:
    return {"type": kind, "custom_id": "g", "options": options(count), **more}


def command(**more: Any) -> Json:
    return {"name": "poll", "description": "Ask.", **more}


def option(name: str = "a", kind: int = 3, **more: Any) -> Json:
    return {"type": kind, "name": name, "description": "d", **more}


def problems(errors: Json, at: str = "") -> list[str]:
    """ "place CODE" for every problem in the nested error JSON."""
    found = [f"{at} {problem['code']}".strip() for problem in errors.get("_errors", [])]
    for key, inner in errors.items():
        if key != "_errors":
            found += problems(inner, f"{at}.{key}".strip("."))
    return found


def refusal(check: Any, *args: Any, **more: Any) -> list[str]:
    """What is wrong, and nothing when it is allowed."""
    try:
        check(*args, **more)
    except Refused as refused:
        return problems(refused.body["errors"]) if "errors" in refused.body else [str(refused.code)]
    return []


NESTED = [container(*[text()] * 38, row(button()))]  # 1 + 38 + 2 = 41 components, counted with what is inside

MESSAGES: list[tuple[str, Json, list[str]]] = [
    ("a V2 message", v2(container(text(), {"type": 14}, row(button()))), []),
    ("40 components", v2(*[text()] * 40), []),
    ("41 components", v2(*[text()] * 41), ["components COMPONENT_MAX_TOTAL_COMPONENTS_EXCEEDED"]),
    ("40 nested", v2(container(*[text()] * 37, row(button()))), []),
    ("41 nested", v2(*NESTED), ["components COMPONENT_MAX_TOTAL_COMPONENTS_EXCEEDED"]),
    ("text 4000", v2(text("x" * 4000)), []),
    ("text 4001", v2(text("x" * 4001)), ["components.0.content BASE_TYPE_BAD_LENGTH"]),
    ("text empty", v2(text("")), ["components.0.content BASE_TYPE_BAD_LENGTH"]),
    ("text missing", v2({"type": 10}), ["components.0.content BASE_TYPE_REQUIRED"]),
    ("texts 4000 in all", v2(text("x" * 3000), container(text("y" * 1000))), []),
    (
        "texts 4001 in all",
        v2(text("x" * 3000), container(text("y" * 1001))),
        ["components COMPONENT_DISPLAYABLE_TEXT_SIZE_EXCEEDED"],
    ),
    ("content with V2", v2(text(), content="a"), ["content MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2"]),
    ("no content with V2", v2(text(), content=None, embeds=[]), []),
    (
        "embeds with V2",
        v2(text(), embeds=[{"title": "a"}]),
        ["embeds MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2"],
    ),
    (
        "stickers with V2",
        v2(text(), sticker_ids=["1"]),
        ["sticker_ids MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2"],
    ),
    ("a poll with V2", v2(text(), poll={"x": 1}), ["poll MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2"]),
    ("V2 parts without the flag", {"components": [text()]}, ["components.0 UNION_TYPE_CHOICES"]),
    ("content 2000", {"content": "x" * 2000}, []),
    ("content 2001", {"content": "x" * 2001}, ["content BASE_TYPE_MAX_LENGTH"]),
    ("empty", {}, ["50006"]),
    ("empty V2", v2(), ["50006"]),
    ("nonce 25", {"content": "x", "nonce": "n" * 25}, []),
    ("nonce 26", {"content": "x", "nonce": "n" * 26}, ["nonce BASE_TYPE_MAX_LENGTH"]),
    ("nonce as a number", {"content": "x", "nonce": 5}, []),
    ("custom id 100", legacy(row(button("x" * 100))), []),
    ("custom id 101", legacy(row(button("x" * 101))), ["components.0.components.0.custom_id BASE_TYPE_BAD_LENGTH"]),
    ("custom id empty", legacy(row(button(""))), ["components.0.components.0.custom_id BASE_TYPE_BAD_LENGTH"]),
    (
        "custom id twice",
        legacy(row(button()), row(button())),
        ["components.1.components.0.custom_id COMPONENT_CUSTOM_ID_DUPLICATED"],
    ),
    (
        "custom id twice with an accessory",
        v2(section(text()), row(button())),
        ["components.1.components.0.custom_id COMPONENT_CUSTOM_ID_DUPLICATED"],
    ),
    ("component id twice", v2(text(id=5), text(id=5)), ["components.1.id COMPONENT_ID_DUPLICATED"]),
    ("component id 0 twice", v2(text(id=0), text(id=0)), []),
    ("component id below 0", v2(text(id=-1)), ["components.0.id NUMBER_TYPE_MIN"]),
    ("component id 2^31", v2(text(id=2**31)), ["components.0.id NUMBER_TYPE_MAX"]),
    ("label 80", legacy(row(button(label="x" * 80))), []),
    ("label 81", legacy(row(button(label="x" * 81))), ["components.0.components.0.label BASE_TYPE_MAX_LENGTH"]),
    ("only an emoji", legacy(row(button(label=None, emoji={"name": "🍵"}))), []),
    (
        "neither label nor emoji",
        legacy(row(button(label=None))),
        ["components.0.components.0 BUTTON_COMPONENT_LABEL_OR_EMOJI_REQUIRED"],
    ),
    ("style 7", legacy(row(button(style=7))), ["components.0.components.0.style BASE_TYPE_CHOICES"]),
    (
        "no custom id",
        legacy(row({"type": 2, "style": 1, "label": "L"})),
        ["components.0.components.0.custom_id BUTTON_COMPONENT_CUSTOM_ID_REQUIRED"],
    ),
    (
        "a url on a plain button",
        legacy(row(button(url="https://x.y"))),
        ["components.0.components.0.url BUTTON_COMPONENT_INVALID_FIELD"],
    ),
    ("a link", legacy(row(link())), []),
    (
        "a link without url",
        legacy(row(link(url=None))),
        ["components.0.components.0.url BUTTON_COMPONENT_URL_REQUIRED"],
    ),
    (
        "a link with custom id",
        legacy(row(link(custom_id="a"))),
        ["components.0.components.0.custom_id BUTTON_COMPONENT_INVALID_FIELD"],
    ),
    ("link url 512", legacy(row(link(url="https://x.y/" + "a" * 500))), []),
    (
        "link url 513",
        legacy(row(link(url="https://x.y/" + "a" * 501))),
        ["components.0.components.0.url BASE_TYPE_MAX_LENGTH"],
    ),
    (
        "link of a bad scheme",
        legacy(row(link(url="ftp://x.y"))),
        ["components.0.components.0.url URL_TYPE_INVALID_SCHEME"],
    ),
    ("link to nothing", legacy(row(link(url="nothing"))), ["components.0.components.0.url URL_TYPE_INVALID_URL"]),
    ("a premium button", legacy(row({"type": 2, "style": 6, "sku_id": "1"})), []),
    (
        "a premium button with label",
        legacy(row({"type": 2, "style": 6, "sku_id": "1", "label": "x"})),
        ["components.0.components.0.label BUTTON_COMPONENT_INVALID_FIELD"],
    ),
    ("5 buttons in a row", legacy(row(*buttons(5))), []),
    (
        "6 buttons in a row",
        legacy(row(*buttons(6))),
        ["components.0.components BASE_TYPE_BAD_LENGTH"],
    ),
    ("an empty row", legacy(row()), ["components.0.components BASE_TYPE_BAD_LENGTH"]),
    (
        "a button beside a select",
        legacy(row(button(), select())),
        ["components.0.components COMPONENT_LAYOUT_WIDTH_EXCEEDED"],
    ),
    ("two selects", legacy(row(select(), select())), ["components.0.components COMPONENT_LAYOUT_WIDTH_EXCEEDED"]),
    ("5 rows", legacy(*[row(one) for one in buttons(5)]), []),
    ("6 rows", legacy(*[row(one) for one in buttons(6)]), ["components BASE_TYPE_BAD_LENGTH"]),
    ("6 rows in V2", v2(*[row(one) for one in buttons(6)]), []),
    ("a bare button", v2(button()), ["components.0 UNION_TYPE_CHOICES"]),
    ("1 option", legacy(row(select(1))), []),
    ("25 options", legacy(row(select(25))), []),
    ("0 options", legacy(row(select(0))), ["components.0.components.0.options BASE_TYPE_BAD_LENGTH"]),
    ("26 options", legacy(row(select(26))), ["components.0.components.0.options BASE_TYPE_BAD_LENGTH"]),
    (
        "an option value twice",
        legacy(row(select(options=[*options(1), *options(1)]))),
        ["components.0.components.0.options.1.value SELECT_COMPONENT_OPTION_VALUE_DUPLICATED"],
    ),
    (
        "option label 101",
        legacy(row(select(options=[{"label": "x" * 101, "value": "1"}]))),
        ["components.0.components.0.options.0.label BASE_TYPE_BAD_LENGTH"],
    ),
    (
        "option description 101",
        legacy(row(select(options=[{"label": "x", "value": "1", "description": "x" * 101}]))),
        ["components.0.components.0.options.0.description BASE_TYPE_MAX_LENGTH"],
    ),
    ("placeholder 150", legacy(row(select(placeholder="x" * 150))), []),
    (
        "placeholder 151",
        legacy(row(select(placeholder="x" * 151))),
        ["components.0.components.0.placeholder BASE_TYPE_MAX_LENGTH"],
    ),
    ("max values as many as options", legacy(row(select(2, max_values=2))), []),
    (
        "max values over the options",
        legacy(row(select(2, max_values=3))),
        ["components.0.components.0.max_values SELECT_COMPONENT_MAX_VALUES_EXCEEDED"],
    ),
    ("min values 0", legacy(row(select(min_values=0))), []),
    (
        "min values over max",
        legacy(row(select(3, min_values=2))),
        ["components.0.components.0.min_values SELECT_COMPONENT_MIN_VALUES_EXCEEDED"],
    ),
    ("max values 0", legacy(row(select(max_values=0))), ["components.0.components.0.max_values NUMBER_TYPE_MIN"]),
    ("max values 26", legacy(row(select(max_values=26))), ["components.0.components.0.max_values NUMBER_TYPE_MAX"]),
    ("a user select", legacy(row({"type": 5, "custom_id": "u", "max_values": 25})), []),
    (
        "26 default values",
        legacy(
            row({"type": 5, "custom_id": "u", "default_values": [{"id": "1", "type": "user"}] * 26, "max_values": 25})
        ),
        ["components.0.components.0.default_values BASE_TYPE_BAD_LENGTH"],
    ),
    (
        "more defaults than max values",
        legacy(row({"type": 5, "custom_id": "u", "default_values": [{"id": "1", "type": "user"}] * 2})),
        ["components.0.components.0.default_values SELECT_COMPONENT_MAX_DEFAULTS_EXCEEDED"],
    ),
    ("a section of 3 texts", v2(section(text(), text(), text())), []),
    ("a section of 4 texts", v2(section(*[text()] * 4)), ["components.0.components BASE_TYPE_BAD_LENGTH"]),
    ("a section of none", v2(section()), ["components.0.components BASE_TYPE_BAD_LENGTH"]),
    ("a section without accessory", v2(section(text(), accessory=None)), ["components.0.accessory BASE_TYPE_REQUIRED"]),
    (
        "a section with a select",
        v2(section(text(), accessory=select())),
        ["components.0.accessory UNION_TYPE_CHOICES"],
    ),
    ("a thumbnail", v2(section(text(), accessory={"type": 11, "media": {"url": "https://a.b"}})), []),
    ("a container in a container", v2(container(container(text()))), ["components.0.components.0 UNION_TYPE_CHOICES"]),
    ("a button in a container", v2(container(button())), ["components.0.components.0 UNION_TYPE_CHOICES"]),
    ("a label in a container", v2(container(label())), ["components.0.components.0 UNION_TYPE_CHOICES"]),
    ("an empty container", v2(container()), ["components.0.components BASE_TYPE_BAD_LENGTH"]),
    ("accent 0xFFFFFF", v2(container(text(), accent_color=0xFFFFFF)), []),
    ("accent 2^24", v2(container(text(), accent_color=1 << 24)), ["components.0.accent_color NUMBER_TYPE_MAX"]),
    ("accent -1", v2(container(text(), accent_color=-1)), ["components.0.accent_color NUMBER_TYPE_MIN"]),
    ("10 pictures", v2(gallery(10)), []),
    ("11 pictures", v2(gallery(11)), ["components.0.items BASE_TYPE_BAD_LENGTH"]),
    ("no picture", v2(gallery(0)), ["components.0.items BASE_TYPE_BAD_LENGTH"]),
    (
        "picture description 1025",
        v2(gallery(description="x" * 1025)),
        ["components.0.items.0.description BASE_TYPE_BAD_LENGTH"],
    ),
    (
        "picture url 2049",
        v2(gallery(media={"url": "https://" + "x" * 2041})),
        ["components.0.items.0.media.url BASE_TYPE_MAX_LENGTH"],
    ),
    (
        "a picture that was not sent along",
        v2(gallery(media={"url": "attachment://a.png"})),
        ["components.0.items.0.media.url UNFURLED_MEDIA_ITEM_REFERENCED_ATTACHMENT_NOT_FOUND"],
    ),
    (
        "a file from the web",
        v2({"type": 13, "file": {"url": "https://a.b"}}),
        ["components.0.file.url URL_TYPE_INVALID_SCHEME"],
    ),
    ("spacing 2", v2({"type": 14, "spacing": 2, "divider": False}, text()), []),
    ("spacing 3", v2({"type": 14, "spacing": 3}), ["components.0.spacing BASE_TYPE_CHOICES"]),
    ("divider as text", v2({"type": 14, "divider": "no"}), ["components.0.divider BOOLEAN_TYPE_CONVERT"]),
    ("a text input", legacy(row(field())), ["components.0.components.0 UNION_TYPE_CHOICES"]),
    ("a label", v2(label()), ["components.0 UNION_TYPE_CHOICES"]),
    ("an unknown type", v2({"type": 99}), ["components.0 UNION_TYPE_CHOICES"]),
    ("no type", v2({}), ["components.0 UNION_TYPE_CHOICES"]),
    ("a component that is text", v2("x"), ["components.0 DICT_TYPE_CONVERT"]),  # type: ignore[arg-type]
    ("components as an object", {"flags": V2, "components": {"0": {}}}, ["components LIST_TYPE_CONVERT"]),
    ("10 embeds", {"embeds": [{"title": "x"}] * 10}, []),
    ("11 embeds", {"embeds": [{"title": "x"}] * 11}, ["embeds BASE_TYPE_BAD_LENGTH"]),
    ("embeds of 6000", {"embeds": [{"description": "x" * 3000}] * 2}, []),
    (
        "embeds of 6001",
        {"embeds": [{"description": "x" * 3000, "title": "y"}, {"description": "x" * 3000}]},
        ["embeds MAX_EMBED_SIZE_EXCEEDED"],
    ),
    ("a field nobody knows", {"content": "x", "bogus": 1}, []),
    (
        "two problems at once",
        v2(text(""), row(button(""))),
        ["components.0.content BASE_TYPE_BAD_LENGTH", "components.1.components.0.custom_id BASE_TYPE_BAD_LENGTH"],
    ),
]


@pytest.mark.parametrize(("body", "wrong"), [case[1:] for case in MESSAGES], ids=[case[0] for case in MESSAGES])
def test_a_message(body: Json, wrong: list[str]) -> None:
    assert refusal(limits.check_message, body) == wrong


def test_the_place_starts_at_data_for_a_callback() -> None:
    assert refusal(limits.check_message, {"content": "x" * 2001}, at=("data",)) == ["data.content BASE_TYPE_MAX_LENGTH"]


def test_a_file_makes_a_message_and_may_be_named() -> None:
    assert refusal(limits.check_message, {}, filenames=["a.png"]) == []
    assert refusal(limits.check_message, v2(gallery(media={"url": "attachment://a.png"})), filenames=["a.png"]) == []


EMBED_PARTS: list[tuple[Json, str]] = [
    ({"url": "attachment://a.png"}, "url URL_TYPE_INVALID_SCHEME"),
    ({"timestamp": "yesterday"}, "timestamp DATE_TIME_TYPE_PARSE"),
    ({"image": {"url": "x"}}, "image.url URL_TYPE_INVALID_URL"),
    ({"thumbnail": {}}, "thumbnail.url BASE_TYPE_REQUIRED"),
    ({"author": {"name": "a", "icon_url": "ftp://x.y/z"}}, "author.icon_url URL_TYPE_INVALID_SCHEME"),
    ({"footer": {"text": "f" * 2049}}, "footer.text BASE_TYPE_BAD_LENGTH"),
    ({"fields": [{"name": "n", "value": "v"}] * 26}, "fields BASE_TYPE_BAD_LENGTH"),
]


@pytest.mark.parametrize(("part", "wrong"), EMBED_PARTS)
def test_a_part_of_an_embed(part: Json, wrong: str) -> None:
    assert refusal(limits.check_message, {"embeds": [{"title": "t", **part}]}) == [f"embeds.0.{wrong}"]


@pytest.mark.parametrize(
    ("kind", "default"), [(5, "role"), (6, "user"), (7, "channel"), (8, "user"), (5, "channel"), (6, "channel")]
)
def test_a_select_is_preset_only_with_what_it_is_for(kind: int, default: str) -> None:
    part = {"type": kind, "custom_id": "s", "default_values": [{"id": "1", "type": default}]}
    wrong = "components.0.components.0.default_values.0.type BASE_TYPE_CHOICES"
    assert refusal(limits.check_message, legacy(row(part))) == [wrong]


def test_a_channel_type_stands_once() -> None:
    part = {"type": 8, "custom_id": "s", "channel_types": [0, 0]}
    wrong = "components.0.components.0.channel_types SET_TYPE_ALREADY_CONTAINS_VALUE"
    assert refusal(limits.check_message, legacy(row(part))) == [wrong]


OLD: Json = {"flags": 0, "content": "old", "embeds": [], "components": [], "attachments": []}
OLD_V2: Json = {**OLD, "flags": V2, "content": "", "components": [text()]}
V2_ONLY = "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2"

EDITS: list[tuple[str, Json, Json, list[str]]] = [
    ("nothing", OLD, {}, []),
    ("all content taken away", OLD, {"content": ""}, ["50006"]),
    ("components beside content", OLD, {"components": [row(button())]}, []),
    ("V2 while content stays", OLD, v2(text()), [f"content {V2_ONLY}"]),
    ("V2 and content taken away", OLD, v2(text(), content=None), []),
    ("V2 while embeds stay", {**OLD, "embeds": [{}]}, v2(text(), content=None), [f"embeds {V2_ONLY}"]),
    ("V2 and embeds taken away", {**OLD, "embeds": [{}]}, v2(text(), content=None, embeds=[]), []),
    ("V2 components without the flag again", OLD_V2, {"components": [text()]}, []),
    ("content into V2", OLD_V2, {"content": "x"}, [f"content {V2_ONLY}"]),
    ("content into V2 with the flag left out", OLD_V2, {"content": "x", "flags": 0}, [f"content {V2_ONLY}"]),
    ("V2 emptied", OLD_V2, {"components": []}, ["50006"]),
]


@pytest.mark.parametrize(("now", "body", "wrong"), [case[1:] for case in EDITS], ids=[case[0] for case in EDITS])
def test_an_edit(now: Json, body: Json, wrong: list[str]) -> None:
    assert refusal(limits.check_message, body, now=now) == wrong


FORMS: list[tuple[str, Json, list[str]]] = [
    ("a form", form(label()), []),
    ("a legacy form", form(row(field(label="L"))), []),
    ("a legacy field without label", form(row(field())), ["data.components.0.components.0.label BASE_TYPE_REQUIRED"]),
    ("title 45", form(label(), title="T" * 45), []),
    ("title 46", form(label(), title="T" * 46), ["data.title BASE_TYPE_BAD_LENGTH"]),
    ("no title", form(label(), title=None), ["data.title BASE_TYPE_REQUIRED"]),
    ("custom id 101", form(label(), custom_id="x" * 101), ["data.custom_id BASE_TYPE_BAD_LENGTH"]),
    ("5 parts", form(*[label(field(str(number))) for number in range(5)]), []),
    ("6 parts", form(*[label(field(str(number))) for number in range(6)]), ["data.components BASE_TYPE_BAD_LENGTH"]),
    ("no part", form(), ["data.components BASE_TYPE_BAD_LENGTH"]),
    ("label 45", form(label(label="L" * 45)), []),
    ("label 46", form(label(label="L" * 46)), ["data.components.0.label BASE_TYPE_BAD_LENGTH"]),
    ("description 101", form(label(description="x" * 101)), ["data.components.0.description BASE_TYPE_BAD_LENGTH"]),
    ("an empty label", form({"type": 18, "label": "L"}), ["data.components.0.component BASE_TYPE_REQUIRED"]),
    (
        "a custom id twice",
        form(label(), label()),
        ["data.components.1.component.custom_id COMPONENT_CUSTOM_ID_DUPLICATED"],
    ),
    ("a button", form(row(button())), ["data.components.0.components.0 UNION_TYPE_CHOICES"]),
    ("a bare field", form(field()), ["data.components.0 UNION_TYPE_CHOICES"]),
    ("a text", form(text(), label()), []),
    ("a select", form(label(select())), []),
    ("a user select", form(label({"type": 5, "custom_id": "u"})), []),
    ("value 4001", form(label(field(value="x" * 4001))), ["data.components.0.component.value BASE_TYPE_MAX_LENGTH"]),
    (
        "placeholder 101",
        form(label(field(placeholder="x" * 101))),
        ["data.components.0.component.placeholder BASE_TYPE_MAX_LENGTH"],
    ),
    ("max length 0", form(label(field(max_length=0))), ["data.components.0.component.max_length NUMBER_TYPE_MIN"]),
    (
        "max length 4001",
        form(label(field(max_length=4001))),
        ["data.components.0.component.max_length NUMBER_TYPE_MAX"],
    ),
    (
        "min length over max",
        form(label(field(min_length=5, max_length=4))),
        ["data.components.0.component.min_length NUMBER_TYPE_MAX"],
    ),
    ("1 radio", form(label(group(21, 1))), ["data.components.0.component.options BASE_TYPE_BAD_LENGTH"]),
    ("2 radios", form(label(group(21, 2))), []),
    ("11 radios", form(label(group(21, 11))), ["data.components.0.component.options BASE_TYPE_BAD_LENGTH"]),
    ("1 box", form(label(group(22, 1))), []),
    ("11 boxes", form(label(group(22, 11))), ["data.components.0.component.options BASE_TYPE_BAD_LENGTH"]),
    ("a checkbox", form(label({"type": 23, "custom_id": "c"})), []),
    ("10 files", form(label({"type": 19, "custom_id": "f", "max_values": 10})), []),
    (
        "11 files",
        form(label({"type": 19, "custom_id": "f", "max_values": 11})),
        ["data.components.0.component.max_values NUMBER_TYPE_MAX"],
    ),
    (
        "at least more files than at most",
        form(label({"type": 19, "custom_id": "f", "min_values": 3, "max_values": 2})),
        ["data.components.0.component.min_values SELECT_COMPONENT_MIN_VALUES_EXCEEDED"],
    ),
    (
        "two radios preset",
        form(label({**group(21, 2), "options": [{**each, "default": True} for each in options(2)]})),
        ["data.components.0.component.options SELECT_COMPONENT_MAX_DEFAULTS_EXCEEDED"],
    ),
    (
        "more boxes preset than may be chosen",
        form(label({**group(22, 2, max_values=1), "options": [{**each, "default": True} for each in options(2)]})),
        ["data.components.0.component.options SELECT_COMPONENT_MAX_DEFAULTS_EXCEEDED"],
    ),
    ("all boxes are needed", form(label(group(22, 3, min_values=3))), []),
    (
        "more boxes are needed than there are",
        form(label(group(22, 3, min_values=4))),
        ["data.components.0.component.min_values SELECT_COMPONENT_MIN_VALUES_EXCEEDED"],
    ),
    (
        "no box is needed but one is",
        form(label(group(22, 3, min_values=0))),
        ["data.components.0.component.required COMPONENT_REQUIRED_INVALID"],
    ),
    ("no box is needed", form(label(group(22, 3, min_values=0, required=False))), []),
    (
        "a user is no default of a role select",
        form(label({"type": 6, "custom_id": "r", "default_values": [{"id": "1", "type": "user"}]})),
        ["data.components.0.component.default_values.0.type BASE_TYPE_CHOICES"],
    ),
]


@pytest.mark.parametrize(("data", "wrong"), [case[1:] for case in FORMS], ids=[case[0] for case in FORMS])
def test_a_form(data: Json, wrong: list[str]) -> None:
    assert refusal(limits.check_form, data) == wrong


LONG = [option(f"o{number}", description="d" * 100, choices=[]) for number in range(25)]
CHOICES = [{"name": "n" * 100, "value": "v" * 100}] * 20

COMMANDS: list[tuple[str, list[Json], list[str]]] = [
    ("a command", [command()], []),
    ("none", [], []),
    ("upper case", [command(name="Poll")], ["0.name STRING_TYPE_REGEX"]),
    ("a space", [command(name="po ll")], ["0.name STRING_TYPE_REGEX"]),
    ("another script", [command(name="опрос")], []),
    ("name 32", [command(name="p" * 32)], []),
    ("name 33", [command(name="p" * 33)], ["0.name BASE_TYPE_BAD_LENGTH"]),
    ("description 100", [command(description="d" * 100)], []),
    ("description 101", [command(description="d" * 101)], ["0.description BASE_TYPE_BAD_LENGTH"]),
    ("no description", [{"name": "p", "type": 1}], ["0.description BASE_TYPE_REQUIRED"]),
    ("a name twice", [command(), command()], ["1.name APPLICATION_COMMANDS_DUPLICATE_NAME"]),
    ("a name twice with another type", [command(), {"name": "poll", "type": 2}], []),
    ("a context menu", [{"name": "Report This", "type": 3}], []),
    (
        "a context menu with description",
        [{"name": "Report", "type": 3, "description": "d"}],
        ["0.description APPLICATION_COMMAND_INVALID_DESCRIPTION"],
    ),
    ("type 9", [command(type=9)], ["0.type BASE_TYPE_CHOICES"]),
    ("25 options", [command(options=[option(f"o{number}") for number in range(25)])], []),
    (
        "26 options",
        [command(options=[option(f"o{number}") for number in range(26)])],
        ["0.options BASE_TYPE_BAD_LENGTH"],
    ),
    (
        "an option name twice",
        [command(options=[option(), option()])],
        ["0.options.1 APPLICATION_COMMAND_OPTIONS_NAME_ALREADY_EXISTS"],
    ),
    (
        "required after optional",
        [command(options=[option("a"), option("b", required=True)])],
        ["0.options.1 APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID"],
    ),
    ("required first", [command(options=[option("a", required=True), option("b")])], []),
    ("an option in upper case", [command(options=[option("A")])], ["0.options.0.name STRING_TYPE_REGEX"]),
    ("25 choices", [command(options=[option(choices=[{"name": "n", "value": "v"}] * 25)])], []),
    (
        "26 choices",
        [command(options=[option(choices=[{"name": "n", "value": "v"}] * 26)])],
        ["0.options.0.choices BASE_TYPE_BAD_LENGTH"],
    ),
    (
        "a number choice for text",
        [command(options=[option(choices=[{"name": "n", "value": 5}])])],
        ["0.options.0.choices.0.value STRING_TYPE_CONVERT"],
    ),
    (
        "a text choice for a number",
        [command(options=[option(kind=4, choices=[{"name": "n", "value": "5"}])])],
        ["0.options.0.choices.0.value NUMBER_TYPE_COERCE"],
    ),
    (
        "choices and autocomplete",
        [command(options=[option(autocomplete=True, choices=[{"name": "n", "value": "v"}])])],
        ["0.options.0 APPLICATION_COMMAND_OPTIONS_CHOICES_INVALID"],
    ),
    ("a subcommand in a group", [command(options=[option(kind=2, options=[option(kind=1, options=[option()])])])], []),
    (
        "a group in a group",
        [command(options=[option(kind=2, options=[option(kind=2)])])],
        ["0.options.0.options.0.type APPLICATION_COMMAND_OPTIONS_TYPE_INVALID"],
    ),
    (
        "options of an option",
        [command(options=[option(options=[option()])])],
        ["0.options.0.options APPLICATION_COMMAND_OPTIONS_TYPE_INVALID"],
    ),
    (
        "8000 characters passed",
        [command(options=[option("a", choices=CHOICES), option("b", choices=CHOICES), option("c"), *LONG[:20]])],
        ["0 APPLICATION_COMMAND_TOO_LARGE"],
    ),
    (
        "a subcommand beside an option",
        [command(options=[option("a", 1), option("b")])],
        ["0.options APPLICATION_COMMAND_OPTIONS_TYPE_INVALID"],
    ),
    ("a name in German", [command(name_localizations={"de": "umfrage"})], []),
    (
        "a name in German with a capital",
        [command(name_localizations={"de": "U"})],
        ["0.name_localizations.de STRING_TYPE_REGEX"],
    ),
    ("a name in no language", [command(name_localizations={"xx": "u"})], ["0.name_localizations.xx BASE_TYPE_CHOICES"]),
    ("a menu in German", [{"name": "Wave", "type": 2, "name_localizations": {"de": "Winken Sie"}}], []),
    ("a menu with options", [{"name": "Wave", "type": 2, "options": [option()]}], ["0.options BASE_TYPE_BAD_LENGTH"]),
    ("permissions", [command(default_member_permissions="8")], []),
    (
        "permissions in words",
        [command(default_member_permissions="kick")],
        ["0.default_member_permissions NUMBER_TYPE_COERCE"],
    ),
    ("no context", [command(contexts=[])], ["0.contexts BASE_TYPE_BAD_LENGTH"]),
    ("a context twice", [command(contexts=[0, 0])], ["0.contexts SET_TYPE_ALREADY_CONTAINS_VALUE"]),
    ("an install that is none", [command(integration_types=[2])], ["0.integration_types.0 BASE_TYPE_CHOICES"]),
    ("channel types", [command(options=[option(kind=7, channel_types=[0, 5])])], []),
    (
        "a channel type that is none",
        [command(options=[option(kind=7, channel_types=[9])])],
        ["0.options.0.channel_types.0 BASE_TYPE_CHOICES"],
    ),
    (
        "a least above the most",
        [command(options=[option(kind=4, min_value=5, max_value=4)])],
        ["0.options.0.min_value NUMBER_TYPE_MAX"],
    ),
    (
        "a fraction for whole numbers",
        [command(options=[option(kind=4, min_value=0.5)])],
        ["0.options.0.min_value NUMBER_TYPE_COERCE"],
    ),
    ("a fraction for numbers", [command(options=[option(kind=10, min_value=0.5)])], []),
    (
        "8000 characters passed by a translation",
        [
            command(
                options=[option("a", choices=CHOICES), option("b", choices=[{**CHOICES[0], "name": "n"}] * 20)]
                + [
                    option(f"c{number}", description="d", description_localizations={"de": "d" * 100})
                    for number in range(20)
                ],
            )
        ],
        ["0 APPLICATION_COMMAND_TOO_LARGE"],
    ),
    ("100 commands", [command(name=f"c{number}") for number in range(100)], []),
    ("101 commands", [command(name=f"c{number}") for number in range(101)], ["30032"]),
    ("16 user menus", [{"name": f"c{number}", "type": 2} for number in range(16)], ["30032"]),
]


@pytest.mark.parametrize(("bodies", "wrong"), [case[1:] for case in COMMANDS], ids=[case[0] for case in COMMANDS])
def test_commands(bodies: list[Json], wrong: list[str]) -> None:
    assert refusal(limits.check_commands, bodies) == wrong


def test_a_single_commands_places_have_no_number() -> None:
    assert refusal(limits.check_command, command(name="X")) == ["name STRING_TYPE_REGEX"]


def test_suggestions_are_at_most_25() -> None:
    choice = {"name": "n", "value": "v"}
    assert refusal(limits.check_suggestions, {"choices": [choice] * 25}) == []
    assert refusal(limits.check_suggestions, {"choices": [choice] * 26}) == ["data.choices BASE_TYPE_BAD_LENGTH"]
    assert refusal(limits.check_suggestions, {}) == ["data.choices BASE_TYPE_REQUIRED"]


def test_the_error_is_nested_as_discord_nests_it_and_every_wording_is_filled_in() -> None:
    body = legacy(row(button("a"), button("a")))
    with pytest.raises(Refused) as refused:
        limits.check_message(body, at=("data",))
    problem = {"code": "COMPONENT_CUSTOM_ID_DUPLICATED", "message": "Component custom id cannot be duplicated"}
    nested = {"data": {"components": {"0": {"components": {"1": {"custom_id": {"_errors": [problem]}}}}}}}
    assert refused.value.body == {"message": "Invalid Form Body", "code": 50035, "errors": nested}


def test_every_problem_in_the_table_can_be_reported_and_no_placeholder_stays_open() -> None:
    values = {"low": 1, "high": 2, "choices": (1,), "value": "v", "kind": "int", "field": "f"}
    for name in limits.PROBLEMS:
        report = limits.Report()
        report.add((), name, **values)
        assert "{" not in report.errors["_errors"][0]["message"], name


def test_every_problem_in_the_table_is_used() -> None:
    files = Path(limits.__file__).parent.glob("*.py")
    source = "".join(file.read_text(encoding="utf-8") for file in files)
    assert [name for name in limits.PROBLEMS if f', "{name}"' not in source and f'("{name}"' not in source] == []
