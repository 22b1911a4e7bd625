"""Section 4: what a message is made of, and Discord's limits, checked where the message is made."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import hikari
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot import (
    Button,
    ChannelSelect,
    ComponentContext,
    Container,
    File,
    Layout,
    LayoutError,
    LinkButton,
    MediaGallery,
    MentionableSelect,
    Option,
    Plain,
    PremiumButton,
    RecordId,
    RoleSelect,
    Row,
    Section,
    Select,
    Separator,
    TextDisplay,
    Thumbnail,
    UserSelect,
    View,
    check_message,
    check_plain,
    handler,
    lay_out,
    register,
    walk,
)
from playground import limits
from playground.errors import Refused
from tests import openapi
from tests.kit import check_says, variant

Make = Callable[[Any], Any]

ID = RecordId("panel", "AAAAAAAAAAA")
PICTURE = "https://example.org/a.png"


class Panel(View):
    """Shows whatever a test wants to see."""

    make: Make

    def render(self) -> Layout:
        return self.make(self)

    @handler
    async def press(self, ctx: ComponentContext) -> None: ...

    @handler
    async def one(self, ctx: ComponentContext, which: str) -> None: ...

    @handler
    async def choose(self, ctx: ComponentContext) -> None: ...

    async def unmarked(self, ctx: ComponentContext) -> None: ...


register(name="panel", version=1)(Panel)


def message(make: Make) -> list[dict[str, Any]]:
    """The JSON that Discord gets for the layout."""
    return [json.loads(json.dumps(part.build()[0])) for part in lay_out(Panel(make), ID)["components"]]


def refusal(make: Make) -> str:
    """The sentence that refuses the layout, which is what `python bot.py check` says of it too."""
    with pytest.raises(LayoutError) as refused:
        lay_out(Panel(make), ID)

    def example(cls: Any) -> View:
        return cls(make)

    says = check_says(variant(Panel, {"example": classmethod(example)}, name="panel"))
    assert says == str(refused.value)
    return says


def v2(payloads: list[Any]) -> dict[str, Any]:
    """The body of a request that sends these."""
    return {"flags": 1 << 15, "components": payloads}


def is_taken(check: Callable[[], object]) -> bool:
    try:
        check()
    except (LayoutError, Refused):
        return False
    return True


def name_id(method: Any, arguments: tuple[Any, ...]) -> str:
    """Let the strategy choose the custom ids."""
    return arguments[0]


# What Discord gets

TEXT = {"type": 10, "content": "a"}
PRESS = {"type": 2, "style": 1, "label": "P", "disabled": False, "custom_id": "panel:AAAAAAAAAAA:press"}
CHOOSE = {
    "type": 3,
    "custom_id": "panel:AAAAAAAAAAA:choose",
    "min_values": 1,
    "max_values": 1,
    "disabled": False,
    "options": [{"label": "red", "value": "red", "default": False}],
}


def in_row(**fields: Any) -> list[dict[str, Any]]:
    return [{"type": 1, "components": [PRESS | fields]}]


def entity_select(kind: int, **fields: Any) -> list[dict[str, Any]]:
    plain = {name: value for name, value in CHOOSE.items() if name != "options"}
    return [{"type": 1, "components": [plain | {"type": kind, **fields}]}]


DOCUMENTED: dict[str, tuple[Make, list[dict[str, Any]]]] = {
    "text": (lambda v: TextDisplay("a"), [TEXT]),
    "several at the top": (lambda v: [TextDisplay("a"), TextDisplay("a")], [TEXT, TEXT]),
    "container": (lambda v: Container(TextDisplay("a")), [{"type": 17, "components": [TEXT], "spoiler": False}]),
    "accent and spoiler": (
        lambda v: Container(TextDisplay("a"), accent=0xFFFFFF, spoiler=True),
        [{"type": 17, "components": [TEXT], "spoiler": True, "accent_color": 0xFFFFFF}],
    ),
    "black is a colour": (
        lambda v: Container(TextDisplay("a"), accent=0),
        [{"type": 17, "components": [TEXT], "spoiler": False, "accent_color": 0}],
    ),
    "separator": (lambda v: Separator(), [{"type": 14, "divider": True, "spacing": 1}]),
    "large gap": (lambda v: Separator(divider=False, large=True), [{"type": 14, "divider": False, "spacing": 2}]),
    "button": (lambda v: Row(Button(v.press, label="P")), in_row()),
    "secondary": (lambda v: Row(Button(v.press, label="P", style="secondary")), in_row(style=2)),
    "success": (lambda v: Row(Button(v.press, label="P", style="success")), in_row(style=3)),
    "danger": (lambda v: Row(Button(v.press, label="P", style="danger")), in_row(style=4)),
    "disabled": (lambda v: Row(Button(v.press, label="P", disabled=True)), in_row(disabled=True)),
    "emoji": (lambda v: Row(Button(v.press, label="P", emoji="👍🏽")), in_row(emoji={"name": "👍🏽"})),
    "own emoji": (
        lambda v: Row(Button(v.press, label="P", emoji="<a:wave:123456789012345678>")),
        in_row(emoji={"id": "123456789012345678", "name": "wave", "animated": True}),
    ),
    "an argument": (
        lambda v: Row(Button(v.one, 'a:"b', label="P")),
        in_row(custom_id='panel:AAAAAAAAAAA:one:"a:\\"b"'),
    ),
    "link": (
        lambda v: Row(LinkButton("https://example.org", label="L", emoji="🔗", disabled=True)),
        [
            {
                "type": 1,
                "components": [
                    {
                        "type": 2,
                        "style": 5,
                        "url": "https://example.org",
                        "label": "L",
                        "emoji": {"name": "🔗"},
                        "disabled": True,
                    }
                ],
            }
        ],
    ),
    "select": (lambda v: Row(Select(v.choose, options=["red"])), [{"type": 1, "components": [CHOOSE]}]),
    "select with everything": (
        lambda v: Row(
            Select(
                v.choose,
                options=[Option("Red", "r", "warm", "🔴", default=True), "blue"],
                placeholder="Colour",
                min_values=0,
                max_values=2,
                disabled=True,
            )
        ),
        [
            {
                "type": 1,
                "components": [
                    CHOOSE
                    | {
                        "placeholder": "Colour",
                        "min_values": 0,
                        "max_values": 2,
                        "disabled": True,
                        "options": [
                            {
                                "label": "Red",
                                "value": "r",
                                "description": "warm",
                                "emoji": {"name": "🔴"},
                                "default": True,
                            },
                            {"label": "blue", "value": "blue", "default": False},
                        ],
                    }
                ],
            }
        ],
    ),
    "premium": (
        lambda v: Row(PremiumButton(hikari.Snowflake(123456789012345678), disabled=True)),
        [{"type": 1, "components": [{"type": 2, "style": 6, "sku_id": "123456789012345678", "disabled": True}]}],
    ),
    "people": (
        lambda v: Row(UserSelect(v.choose, defaults=[1, hikari.Snowflake(2)], max_values=2)),
        entity_select(5, max_values=2, default_values=[{"id": "1", "type": "user"}, {"id": "2", "type": "user"}]),
    ),
    "roles": (
        lambda v: Row(RoleSelect(v.choose, defaults=["3"], placeholder="Who", min_values=0)),
        entity_select(6, min_values=0, placeholder="Who", default_values=[{"id": "3", "type": "role"}]),
    ),
    "people and roles": (
        lambda v: Row(MentionableSelect(v.choose, defaults=[4], disabled=True)),
        entity_select(7, disabled=True, default_values=[{"id": "4", "type": "user"}]),
    ),
    "channels": (
        lambda v: Row(ChannelSelect(v.choose, types=[hikari.ChannelType.GUILD_TEXT] * 2, defaults=[5])),
        entity_select(8, channel_types=[0], default_values=[{"id": "5", "type": "channel"}]),
    ),
    "a select with nothing": (lambda v: Row(UserSelect(v.choose)), entity_select(5)),
    "a file": (
        lambda v: File(hikari.Bytes(b"", "my notes.txt"), spoiler=True),
        [{"type": 13, "file": {"url": "attachment://my%20notes.txt"}, "spoiler": True}],
    ),
    "pictures that are sent along": (
        lambda v: [
            MediaGallery(hikari.Bytes(b"", "a.png"), Thumbnail(hikari.File("b.png"), description="d")),
            Section(TextDisplay("a"), accessory=Thumbnail(hikari.URL(PICTURE))),
        ],
        [
            {
                "type": 12,
                "items": [
                    {"media": {"url": "attachment://a.png"}, "spoiler": False},
                    {"media": {"url": "attachment://b.png"}, "description": "d", "spoiler": False},
                ],
            },
            {
                "type": 9,
                "components": [TEXT],
                "accessory": {"type": 11, "media": {"url": PICTURE}, "spoiler": False},
            },
        ],
    ),
    "section with a button": (
        lambda v: Section(TextDisplay("a"), TextDisplay("a"), accessory=Button(v.press, label="P")),
        [{"type": 9, "components": [TEXT, TEXT], "accessory": PRESS}],
    ),
    "section with a picture": (
        lambda v: Section(TextDisplay("a"), accessory=Thumbnail(PICTURE, description="d", spoiler=True)),
        [
            {
                "type": 9,
                "components": [TEXT],
                "accessory": {"type": 11, "media": {"url": PICTURE}, "description": "d", "spoiler": True},
            }
        ],
    ),
    "gallery": (
        lambda v: MediaGallery(PICTURE, Thumbnail(PICTURE, description="d", spoiler=True)),
        [
            {
                "type": 12,
                "items": [
                    {"media": {"url": PICTURE}, "spoiler": False},
                    {"media": {"url": PICTURE}, "description": "d", "spoiler": True},
                ],
            }
        ],
    ),
}


@pytest.mark.parametrize(("make", "payload"), DOCUMENTED.values(), ids=DOCUMENTED)
def test_a_component_is_the_json_that_discord_documents(make: Make, payload: list[dict[str, Any]]) -> None:
    assert message(make) == payload


@pytest.mark.parametrize("make", [make for make, _ in DOCUMENTED.values()], ids=DOCUMENTED)
def test_discord_takes_it(make: Make) -> None:
    limits.check_message(v2(message(make)), filenames=["a.png", "b.png", "my notes.txt"])


@pytest.mark.skipif(not openapi.IS_HERE, reason="Discord's OpenAPI file is not here")
@pytest.mark.parametrize("make", [make for make, _ in DOCUMENTED.values()], ids=DOCUMENTED)
def test_it_fits_the_published_schema(make: Make) -> None:
    body = v2(message(make))
    assert openapi.misfits("/components/schemas/MessageCreateRequest", body, "message") == []


def test_hikari_is_given_builders_that_may_be_sent_more_than_once() -> None:
    built = lay_out(Panel(lambda v: TextDisplay("a")), ID)["components"]
    assert all(isinstance(part, hikari.api.ComponentBuilder) for part in built)
    assert [dict(part.build()[0]) for part in built] == [dict(part.build()[0]) for part in built] == [TEXT]


# Discord's limits: as many are taken, one more is refused


class Limit(NamedTuple):
    """A layout with `n` of something: `most` of them are taken, one more is refused in a sentence with these words."""

    make: Callable[[Any, int], Any]
    most: int
    says: str


def options(count: int, **fields: Any) -> list[Option]:
    return [Option(str(number), **fields) for number in range(count)]


def option_with(v: Any, **fields: Any) -> Any:
    return Row(Select(v.choose, options=[Option(**{"label": "a", **fields})], placeholder="Colour"))


LIMITS: dict[str, Limit] = {
    "label": Limit(
        lambda v, n: Row(Button(v.press, label="x" * n)), 80, f'button "{"x" * 30}…": label has 81 characters'
    ),
    "label of a link": Limit(
        lambda v, n: Row(LinkButton(PICTURE, label="x" * n)), 80, f'button "{"x" * 30}…": label has 81 characters'
    ),
    "url of a link": Limit(
        lambda v, n: Row(LinkButton("https://example.org/".ljust(n, "x"), label="L")),
        512,
        'button "L": url has 513 characters',
    ),
    "placeholder": Limit(
        lambda v, n: Row(Select(v.choose, options=["a"], placeholder="x" * n)),
        150,
        f'select "{"x" * 30}…": placeholder has 151 characters',
    ),
    "options": Limit(
        lambda v, n: Row(Select(v.choose, options=options(n), placeholder="C")),
        25,
        'select "C": options has 26 entries',
    ),
    "label of an option": Limit(
        lambda v, n: option_with(v, label="x" * n, value="v"),
        100,
        f'select "Colour", option "{"x" * 30}": label has 101 characters',
    ),
    "value of an option": Limit(
        lambda v, n: option_with(v, value="x" * n), 100, 'select "Colour", option "a": value has 101 characters'
    ),
    "value of an option made from its label": Limit(
        lambda v, n: option_with(v, label="x" * n), 100, 'select "Colour", option "x'
    ),
    "description of an option": Limit(
        lambda v, n: option_with(v, description="x" * n),
        100,
        'select "Colour", option "a": description has 101 characters',
    ),
    "max_values": Limit(
        lambda v, n: Row(Select(v.choose, options=options(5), max_values=n, placeholder="C")),
        5,
        'select "C": min_values=1, max_values=6 do not fit 5 options',
    ),
    "min_values": Limit(
        lambda v, n: Row(Select(v.choose, options=options(5), min_values=n, max_values=3, placeholder="C")),
        3,
        'select "C": min_values=4, max_values=3 do not fit 5 options',
    ),
    "defaults": Limit(
        lambda v, n: Row(Select(v.choose, options=[*options(n, default=True), "x"], max_values=2, placeholder="C")),
        2,
        'select "C": more options are chosen by default than max_values=2',
    ),
    "buttons in a row": Limit(
        lambda v, n: Row(*[Button(v.one, str(k), label="B") for k in range(n)]), 5, "row: components has 6 entries"
    ),
    "selects in a row": Limit(
        lambda v, n: Row(*[Select(v.one, str(k), options=["a"]) for k in range(n)]),
        1,
        "row: a select needs a row of its own",
    ),
    "buttons beside a select": Limit(
        lambda v, n: Row(Select(v.choose, options=["a"]), *[Button(v.press, label="B")] * n),
        0,
        "row: a select needs a row of its own",
    ),
    "texts in a section": Limit(
        lambda v, n: Section(*[TextDisplay("a")] * n, accessory=Thumbnail(PICTURE)),
        3,
        "section: components has 4 entries",
    ),
    "pictures in a gallery": Limit(lambda v, n: MediaGallery(*[PICTURE] * n), 10, "gallery: items has 11 entries"),
    "description in a gallery": Limit(
        lambda v, n: MediaGallery(PICTURE, Thumbnail(PICTURE, description="x" * n)),
        1024,
        "gallery: description has 1025 characters",
    ),
    "url in a gallery": Limit(
        lambda v, n: MediaGallery(PICTURE.ljust(n, "x")), 2048, "gallery: url has 2049 characters"
    ),
    "description of a thumbnail": Limit(
        lambda v, n: Section(TextDisplay("a"), accessory=Thumbnail(PICTURE, description="x" * n)),
        1024,
        "thumbnail: description has 1025 characters",
    ),
    "url of a thumbnail": Limit(
        lambda v, n: Section(TextDisplay("a"), accessory=Thumbnail(PICTURE.ljust(n, "x"))),
        2048,
        "thumbnail: url has 2049 characters",
    ),
    "accent": Limit(lambda v, n: Container(TextDisplay("a"), accent=n), 0xFFFFFF, "container: its accent is no colour"),
    "components": Limit(
        lambda v, n: [TextDisplay("a")] * n, 40, "41 components, nested ones counted; Discord allows 40."
    ),
    "components in a container": Limit(
        lambda v, n: Container(*[TextDisplay("a")] * (n - 1)), 40, "41 components, nested ones counted"
    ),
    "components beside a section": Limit(
        lambda v, n: [
            *[Section(TextDisplay("a"), accessory=Thumbnail(PICTURE))] * 13,
            *[TextDisplay("a")] * (n - 39),
        ],
        40,
        "41 components, nested ones counted",
    ),
    "one text": Limit(lambda v, n: TextDisplay("x" * n), 4000, "4001 characters"),
    "all texts": Limit(
        lambda v, n: [
            TextDisplay("x" * 1500),
            Container(TextDisplay("x" * 1500), Section(TextDisplay("x" * (n - 3000)), accessory=Thumbnail(PICTURE))),
        ],
        4000,
        "its texts have 4001 characters together; Discord allows 4,000.",
    ),
    "people chosen beforehand": Limit(
        lambda v, n: Row(UserSelect(v.choose, defaults=range(n), max_values=25)),
        25,
        "select: default_values has 26 entries; Discord allows 0 to 25.",
    ),
    "roles chosen beforehand": Limit(
        lambda v, n: Row(RoleSelect(v.choose, defaults=range(n), max_values=2)),
        2,
        "select: more options are chosen by default than max_values=2.",
    ),
    "people that can be chosen": Limit(
        lambda v, n: Row(MentionableSelect(v.choose, max_values=n)),
        25,
        "select: min_values=1, max_values=26 do not fit the 25 that Discord allows.",
    ),
    "placeholder of channels": Limit(
        lambda v, n: Row(ChannelSelect(v.choose, placeholder="x" * n)), 150, "placeholder has 151 characters"
    ),
    "custom id": Limit(
        lambda v, n: Row(Button(v.one, "x" * (n - len('panel:AAAAAAAAAAA:one:""')), label="B")),
        100,
        "one: its arguments take 79 characters, 101 with their way back; a custom id has 100",
    ),
}


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_as_many_as_discord_allows_are_taken(limit: Limit) -> None:
    limits.check_message(v2(message(lambda v: limit.make(v, limit.most))))


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_one_more_is_refused_with_view_component_and_rule(limit: Limit) -> None:
    says = refusal(lambda v: limit.make(v, limit.most + 1))
    assert says.startswith("view panel")
    assert limit.says in says


def named(count: int) -> list[hikari.Bytes]:
    return [hikari.Bytes(b"a", f"{number}.png") for number in range(count)]


def embed(**fields: Any) -> hikari.Embed:
    return hikari.Embed(**{"title": "T", **fields})


PLAIN_LIMITS: dict[str, Limit] = {
    "files": Limit(
        lambda v, n: [MediaGallery(*named(n)[:10]), *map(File, named(n)[10:])], 10, "11 files; Discord allows 10."
    ),
    "content": Limit(lambda v, n: Plain("x" * n), 2000, "plain message: content has 2001 characters"),
    "rows": Limit(
        lambda v, n: Plain("a", *[Row(Button(v.one, f"{number}", label="B")) for number in range(n)]),
        5,
        "plain message: components has 6 entries; Discord allows 1 to 5.",
    ),
    "embeds": Limit(
        lambda v, n: Plain(embeds=[embed()] * n), 10, "Discord allows 10 embeds with 6,000 characters together."
    ),
    "text of embeds": Limit(
        lambda v, n: Plain(embeds=[embed(description="x" * 3999), embed(description="x" * (n - 4001))]),
        6000,
        "Discord allows 10 embeds with 6,000 characters together.",
    ),
    "title": Limit(lambda v, n: Plain(embeds=[embed(title="x" * n)]), 256, "embed: title has 257 characters"),
    "description": Limit(
        lambda v, n: Plain(embeds=[embed(description="x" * n)]), 4096, "embed: description has 4097 characters"
    ),
    "footer": Limit(lambda v, n: Plain(embeds=[embed().set_footer("x" * n)]), 2048, "embed: footer has 2049"),
    "author": Limit(lambda v, n: Plain(embeds=[embed().set_author(name="x" * n)]), 256, "embed: author has 257"),
    "fields": Limit(lambda v, n: Plain(embeds=[with_fields(n)]), 25, "embed: fields has 26 entries"),
    "field's name": Limit(
        lambda v, n: Plain(embeds=[embed().add_field("x" * n, "V")]), 256, f'embed, field "{"x" * 30}": name has 257'
    ),
    "field's value": Limit(
        lambda v, n: Plain(embeds=[embed().add_field("N", "x" * n)]), 1024, 'embed, field "N": value has 1025'
    ),
}


def with_fields(count: int) -> hikari.Embed:
    made = embed()
    for _ in range(count):
        made.add_field("N", "V")
    return made


@pytest.mark.parametrize("limit", PLAIN_LIMITS.values(), ids=PLAIN_LIMITS)
def test_what_belongs_to_the_whole_message_is_within_discords_limits(limit: Limit) -> None:
    body = lay_out(Panel(lambda v: limit.make(v, limit.most)), ID)
    limits.check_message(as_sent(body), filenames=names_in(body))
    says = refusal(lambda v: limit.make(v, limit.most + 1))
    assert says.startswith(f"view panel: {limit.says}")


def as_sent(body: dict[str, Any]) -> dict[str, Any]:
    """The message as hikari puts it into a request."""
    embeds = [ENTITIES.serialize_embed(each)[0] for each in body.get("embeds", ())]
    older = {"content": body["content"], "embeds": embeds} if "content" in body else {"flags": 1 << 15}
    return older | {
        "components": [part.build()[0] for part in body["components"]],
        "attachments": [{"id": number, "filename": name} for number, name in enumerate(names_in(body))],
    }


ENTITIES: Any = hikari.impl.EntityFactoryImpl(app=Any)  # type: ignore


def names_in(body: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(file.filename for part in body["components"] for file in part.build()[1]))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda v: Plain(), "view panel: there is nothing in it. Discord refuses an empty message."),
        (
            lambda v: Plain("a", TextDisplay("b")),
            'view panel: text "b" cannot stand in a plain message; put it into a Row.',
        ),
        (
            lambda v: Plain("a", Button(v.press, label="B")),
            'view panel: button "B" cannot stand in a plain message; put it into a Row.',
        ),
        (
            lambda v: Plain("a", Row(Button(v.press, label="B")), Row(Button(v.press, label="B"))),
            'view panel: button "B": another component calls the same handler with the same arguments.'
            " Give one of them an argument that tells them apart.",
        ),
        (
            lambda v: MediaGallery(hikari.Bytes(b"a", "x.png"), hikari.Bytes(b"b", "x.png")),
            "view panel: two files are called x.png. Give one of them another name.",
        ),
        (
            lambda v: [File(hikari.File("one/x.png")), Container(File(hikari.File("two/x.png")))],
            "view panel: two files are called x.png. Give one of them another name.",
        ),
        (
            lambda v: File(PICTURE),
            f"view panel: file: url {PICTURE!r} is no address. Give it a file such as hikari.File(…).",
        ),
    ],
)
def test_a_plain_message_and_files_have_rules_of_their_own(make: Make, sentence: str) -> None:
    assert refusal(make) == sentence


def test_the_same_file_may_be_shown_twice_and_is_sent_once() -> None:
    body = lay_out(Panel(lambda v: MediaGallery(hikari.Bytes(b"a", "x.png"), hikari.Bytes(b"a", "x.png"))), ID)
    assert names_in(body) == ["x.png"]


TOO_LITTLE: dict[str, tuple[Make, str]] = {
    "message": (lambda v: [], "view panel: there is no component in it. Discord refuses an empty message."),
    "container": (lambda v: Container(), "view panel: container: components has 0 entries; Discord allows 1 to 40."),
    "row": (lambda v: Row(), "view panel: row: components has 0 entries; Discord allows 1 to 5."),
    "section": (
        lambda v: Section(accessory=Thumbnail(PICTURE)),
        "view panel: section: components has 0 entries; Discord allows 1 to 3.",
    ),
    "gallery": (lambda v: MediaGallery(), "view panel: gallery: items has 0 entries; Discord allows 1 to 10."),
    "select": (
        lambda v: Row(Select(v.choose, options=[])),
        "view panel: select: options has 0 entries; Discord allows 1 to 25.",
    ),
    "text": (lambda v: TextDisplay(""), "view panel: text: content has 0 characters; Discord allows 1 to 4,000."),
    "button": (lambda v: Row(Button(v.press)), "view panel: button: a button needs a label or an emoji."),
    "link": (lambda v: Row(LinkButton(PICTURE)), "view panel: button: a button needs a label or an emoji."),
    "option": (
        lambda v: option_with(v, label=""),
        'view panel: select "Colour", option "": label has 0 characters; Discord allows 1 to 100.',
    ),
    "values": (
        lambda v: Row(Select(v.choose, options=["a"], min_values=0, max_values=0)),
        "view panel: select: min_values=0, max_values=0 do not fit 1 options.",
    ),
    "least values": (
        lambda v: Row(Select(v.choose, options=["a"], min_values=-1)),
        "view panel: select: min_values=-1, max_values=1 do not fit 1 options.",
    ),
    "accent": (
        lambda v: Container(TextDisplay("a"), accent=-1),
        "view panel: container: its accent is no colour. Write it as 0xRRGGBB.",
    ),
}


@pytest.mark.parametrize(("make", "sentence"), TOO_LITTLE.values(), ids=TOO_LITTLE)
def test_too_little_is_refused_too(make: Make, sentence: str) -> None:
    assert refusal(make) == sentence


TWICE: dict[str, tuple[Make, str]] = {
    "handler": (
        lambda v: Row(Button(v.press, label="A"), Button(v.press, label="B")),
        'view panel: button "B": another component calls the same handler with the same arguments.'
        " Give one of them an argument that tells them apart.",
    ),
    "handler with arguments, far apart": (
        lambda v: [
            Container(Section(TextDisplay("a"), accessory=Button(v.one, "1", label="A"))),
            Row(Select(v.one, "1", options=["a"], placeholder="C")),
        ],
        'view panel: select "C": another component calls the same handler with the same arguments.'
        " Give one of them an argument that tells them apart.",
    ),
    "value": (
        lambda v: Row(Select(v.choose, options=["a", Option("b", "a")], placeholder="C")),
        'view panel: select "C": two options have the same value.',
    ),
}


@pytest.mark.parametrize(("make", "sentence"), TWICE.values(), ids=TWICE)
def test_what_must_differ_may_not_be_the_same(make: Make, sentence: str) -> None:
    assert refusal(make) == sentence


def test_what_tells_components_apart_is_handler_and_arguments() -> None:
    assert message(
        lambda v: Row(Button(v.one, "1", label="A"), Button(v.one, "2", label="A"), Button(v.choose, label="A"))
    )
    assert message(lambda v: Row(LinkButton(PICTURE, label="A"), LinkButton(PICTURE, label="A")))


# What may stand where

PIECES: dict[str, Make] = {
    "text": lambda v: TextDisplay("a"),
    "container": lambda v: Container(TextDisplay("a")),
    "row": lambda v: Row(Button(v.press, label="B")),
    "button": lambda v: Button(v.press, label="B"),
    "link": lambda v: LinkButton(PICTURE, label="B"),
    "select": lambda v: Select(v.choose, options=["a"]),
    "section": lambda v: Section(TextDisplay("a"), accessory=Thumbnail(PICTURE)),
    "thumbnail": lambda v: Thumbnail(PICTURE),
    "gallery": lambda v: MediaGallery(PICTURE),
    "separator": lambda v: Separator(),
}
PLACES: dict[str, tuple[Callable[[Any], Any], set[str]]] = {
    "message": (lambda piece: piece, {"text", "container", "row", "section", "gallery", "separator"}),
    "container": (Container, {"text", "row", "section", "gallery", "separator"}),
    "row": (Row, {"button", "link", "select"}),
    "section": (lambda piece: Section(piece, accessory=Thumbnail(PICTURE)), {"text"}),
    "accessory": (lambda piece: Section(TextDisplay("a"), accessory=piece), {"button", "link", "thumbnail"}),
    "gallery": (MediaGallery, {"thumbnail"}),
}


@pytest.mark.parametrize(("place", "piece"), [*itertools.product(PLACES, PIECES)])
def test_a_component_stands_only_where_discord_allows_it(place: str, piece: str) -> None:
    put, allowed = PLACES[place]
    if piece in allowed:
        limits.check_message(v2(message(lambda v: put(PIECES[piece](v)))))
    else:
        says = refusal(lambda v: put(PIECES[piece](v)))
        assert says.startswith("view panel: ")
        assert piece.replace("link", "button") in says


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda v: Button(v.press, label="B"),
            'view panel: button "B" cannot stand alone; put it into a Row or a Section.',
        ),
        (lambda v: Container(Container(TextDisplay("a"))), "view panel: container cannot stand in a container."),
        (lambda v: Row(TextDisplay("a" * 31)), f'view panel: text "{"a" * 30}…" cannot stand in a row.'),
        (
            lambda v: Section(TextDisplay("a"), accessory=Select(v.choose, options=["a"], placeholder="C")),
            'view panel: select "C" cannot stand beside a section.',
        ),
    ],
)
def test_a_component_in_a_wrong_place_is_named_with_its_place(make: Make, sentence: str) -> None:
    assert refusal(make) == sentence


# What is no component, no handler, no address


def wrong(value: object) -> Any:
    """What a type checker would not let pass."""
    return value


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda v: "hello", "view panel: 'hello' is no component. Text goes into TextDisplay(…)."),
        (lambda v: ["hello"], "view panel: 'hello' is no component. Text goes into TextDisplay(…)."),
        (lambda v: Container(wrong("hello")), "view panel: 'hello' is no component. Text goes into TextDisplay(…)."),
        (lambda v: Row(wrong(5)), "view panel: 5 is no component. Text goes into TextDisplay(…)."),
        (lambda v: MediaGallery(wrong(5)), "view panel: 5 is neither an address nor a file such as hikari.File(…)."),
        (lambda v: Section(wrong(5), accessory=Thumbnail(PICTURE)), "view panel: 5 is no component. Text goes into"),
        (
            lambda v: Section(TextDisplay("a"), accessory=wrong(None)),
            "view panel: None is no component. Text goes into",
        ),
        (lambda v: None, "view panel: None is no component."),
        (lambda v: TextDisplay(wrong(5)), "view panel: text"),
        (lambda v: Row(Button(v.press, label=wrong(5))), "view panel: button"),
        (lambda v: Row(Button(v.press, label="B", style=wrong("blue"))), "view panel: button"),
        (lambda v: Row(Button(v.press, label="B", emoji="<:broken:>")), "view panel: button"),
        (lambda v: Row(Select(v.choose, options=[wrong(5)])), "view panel: "),
        (lambda v: Row(Select(v.choose, options=[Option(wrong(5))])), "view panel: "),
        (lambda v: Row(Select(v.choose, options=[Option("a", wrong(5))])), "view panel: select"),
        (lambda v: Row(Select(v.choose, options=["a"], max_values=wrong("1"))), "view panel: "),
        (lambda v: Container(TextDisplay("a"), accent=wrong("red")), "view panel: "),
        (lambda v: MediaGallery(Thumbnail(wrong(None))), "view panel: None is neither an address nor a file"),
    ],
)
def test_a_slip_of_the_pen_is_a_sentence_with_the_views_name(make: Make, sentence: str) -> None:
    assert refusal(make).startswith(sentence)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda v: Button(Panel.press, label="B"), "press"),
        (lambda v: Button(Panel(lambda _: []).press, label="B"), "press"),
        (lambda v: Button(wrong("Yes"), label="B"), "Yes"),
        (lambda v: Button(wrong(lambda: None), label="B"), "<lambda>"),
    ],
)
def test_only_a_handler_of_this_very_view_can_be_called(make: Make, named: str) -> None:
    says = refusal(lambda v: Row(make(v)))
    assert says == f"view panel: {named!r} is no @handler of this view. Pass self.method."


@pytest.mark.parametrize("name", ["unmarked", "render"])
def test_a_method_that_is_not_marked_cannot_be_called(name: str) -> None:
    says = refusal(lambda v: Row(Button(getattr(v, name), label="B")))
    assert says == f"view panel: {name} is not marked. Write @handler above it."


ADDRESSED: dict[str, Callable[[str], Any]] = {
    "button": lambda url: Row(LinkButton(url, label="L")),
    "gallery": MediaGallery,
    "thumbnail": lambda url: Section(TextDisplay("a"), accessory=Thumbnail(url)),
}


@pytest.mark.parametrize(
    "url", ["example.org", "ftp://example.org/a", "javascript:alert(1)", "https://", "//a.b/c", ""]
)
@pytest.mark.parametrize("where", ADDRESSED)
def test_what_is_no_address_is_refused_as_discord_does(where: str, url: str) -> None:
    says = refusal(lambda v: ADDRESSED[where](url))
    assert says.startswith(f"view panel: {where}")
    assert url in says
    assert not is_taken(lambda: limits.check_message(v2([ADDRESSED[where](url).build(name_id)])))


@pytest.mark.parametrize(("where", "is_fine"), [("button", True), ("gallery", False), ("thumbnail", False)])
def test_a_place_inside_the_client_is_for_buttons_alone(where: str, is_fine: bool) -> None:
    payloads = [ADDRESSED[where]("discord://-/store").build(name_id)]
    assert is_taken(lambda: limits.check_message(v2(payloads))) is is_fine
    assert is_taken(lambda: check_message(payloads)) is is_fine


def test_an_argument_that_json_cannot_hold_is_named() -> None:
    with pytest.raises((LayoutError, TypeError), match="a object cannot be kept"):
        lay_out(Panel(lambda v: Row(Button(v.press, object(), label="B"))), ID)


# The playground's validator was written by somebody else from the same pages: both must say the same


async def pressed(*_: Any) -> None: ...


# Discord's pages name this one, and its OpenAPI does not.
CHANNEL_TYPES = [each for each in hikari.ChannelType if each is not hikari.ChannelType.GUILD_MEDIA]


class Maker:
    """Draws layouts with all within Discord's limits but for one kind of thing, `odd`: at its limit or beyond."""

    ODD: ClassVar = {  # and the component that has such a thing
        **dict.fromkeys(("label", "face", "url", "buttons", "selects", "placeholder", "options", "defaults"), "row"),
        **dict.fromkeys(("min_values", "max_values", "option label", "option value", "option description"), "row"),
        **dict.fromkeys(("custom id", "same id", "components"), "row"),
        **dict.fromkeys(("texts in a section", "text", "all texts"), "section"),
        **dict.fromkeys(("pictures", "media description", "media address", "address"), "gallery"),
        **dict.fromkeys(("default_values", "channel_types", "sku"), "row"),
        "accent": "container",
        "place": "misplaced",
    }
    ADDRESSES = ("", "example.org", "ftp://a.b/c", "mailto:a@b.c", "discord://-/store", "https://", "http://a.b")

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.odd = draw(st.sampled_from([*self.ODD]))
        self.made = 0

    def one_of(self, *values: Any) -> Any:
        return self.draw(st.sampled_from(values))

    def count(self, what: str, most: int, usual: int = 2) -> int:
        return self.one_of(0, most, most + 1) if what == self.odd else self.one_of(*range(1, usual + 1))

    def words(self, what: str, most: int) -> str:
        return "x" * self.count(what, most)

    def address(self, what: str, most: int) -> str:
        if self.odd in (what, "address"):
            return self.one_of(*self.ADDRESSES, "https://a.b/".ljust(most, "x"), "https://a.b/".ljust(most + 1, "x"))
        return "https://example.org/a.png"

    def custom_id(self) -> str:
        self.made += 1
        if self.odd == "same id":
            return self.one_of("1", "2")
        return self.one_of("", "x" * 100, "x" * 101) if self.odd == "custom id" else str(self.made)

    def text(self) -> Any:
        return TextDisplay(self.words("text", 4000))

    def button(self) -> Any:
        look = {"label": self.words("label", 80), "emoji": self.one_of("", "👍", "<:wave:123456789012345678>")}
        if self.odd == "face":
            look["label"] = ""
        if self.odd == "sku" or self.one_of(False, False, True):
            return PremiumButton(self.one_of(-1, 0, 1) if self.odd == "sku" else 7)
        if self.one_of(True, False):
            return LinkButton(self.address("url", 512), **look)
        return Button(pressed, self.custom_id(), style=self.one_of("primary", "danger"), **look)

    def option(self, number: int) -> Option:
        value = self.words("option value", 100) if self.odd == "option value" else f"{number}"
        return Option(self.words("option label", 100), value, self.words("option description", 100))

    def select(self) -> Any:
        number = self.count("options", 25, usual=4)
        high = self.count("max_values", number, usual=number or 1)
        low = self.one_of(-1, high, high + 1) if self.odd == "min_values" else self.one_of(*range(high + 1))
        defaults = self.one_of(high, high + 1) if self.odd == "defaults" else 0
        chosen = [self.option(each)._replace(default=each < defaults) for each in range(number)]
        placeholder = self.words("placeholder", 150)
        return Select(
            pressed, self.custom_id(), options=chosen, placeholder=placeholder, min_values=low, max_values=high
        )

    def entity_select(self) -> Any:
        high = self.one_of(0, 1, 25, 26) if self.odd == "max_values" else 3
        low = self.one_of(-1, 0, high, high + 1) if self.odd == "min_values" else 1
        look: dict[str, Any] = {"placeholder": self.words("placeholder", 150), "min_values": low, "max_values": high}
        kind = self.one_of(UserSelect, RoleSelect, MentionableSelect, ChannelSelect)
        if self.odd == "default_values":
            look["defaults"] = range(self.one_of(0, 3, 4, 26))
        if self.odd == "channel_types":
            look["types"], kind = self.draw(st.lists(st.sampled_from(CHANNEL_TYPES), max_size=4)), ChannelSelect
        return kind(pressed, self.custom_id(), **look)

    def file(self) -> Any:
        return File(hikari.Bytes(b"", "a.png"), spoiler=self.one_of(True, False))

    def picture(self) -> Any:
        if self.one_of(False, False, True):
            return Thumbnail(hikari.Bytes(b"", "a.png"), description=self.words("media description", 1024))
        return Thumbnail(self.address("media address", 2048), description=self.words("media description", 1024))

    def row(self) -> Any:
        if self.odd == "selects" and self.one_of(True, False):
            return Row(self.select(), self.one_of(self.select, self.button)())
        if self.odd in ("default_values", "channel_types") or self.one_of(True, False, False):
            return Row(self.entity_select())
        if self.odd != "sku" and self.one_of(True, False):
            return Row(self.select())
        return Row(*[self.button() for _ in range(self.count("buttons", 5))])

    def section(self) -> Any:
        texts = [self.text() for _ in range(self.count("texts in a section", 3))]
        return Section(*texts, accessory=self.one_of(self.button, self.picture)())

    def gallery(self) -> Any:
        return MediaGallery(*[self.picture() for _ in range(self.count("pictures", 10))])

    def container(self) -> Any:
        accent = self.one_of(-1, 0, 0xFFFFFF, 0x1000000) if self.odd == "accent" else None
        return Container(*[self.piece() for _ in range(self.one_of(1, 2))], accent=accent)

    def misplaced(self) -> Any:
        """Any component in any place, which may be a wrong one."""
        kinds = (self.container, self.row, self.section, self.gallery, self.text, self.button, self.select)
        inside = self.one_of(*kinds, self.picture, Separator)()
        sections = (lambda it: Section(it, accessory=self.picture()), lambda it: Section(self.text(), accessory=it))
        return self.one_of(Row, Container, *sections, lambda it: it)(inside)

    def piece(self) -> Any:
        return self.one_of(self.row, self.section, self.gallery, self.text, self.file, Separator)()

    def layout(self) -> list[Any]:
        parts = [getattr(self, self.ODD[self.odd])()]
        parts += [self.one_of(self.piece, self.container)() for _ in range(self.one_of(0, 1, 2))]
        found = [each for part in parts for each in walk(part.build(name_id))]
        if self.odd == "components":
            parts += [TextDisplay("x")] * (self.one_of(39, 40, 41) - len(found))
        if self.odd == "all texts":
            words = sum(len(each["content"]) for each in found if each["type"] == 10)
            parts.append(TextDisplay("x" * (self.one_of(4000, 4001) - words)))
        return parts


LAYOUTS = st.composite(lambda draw: Maker(draw).layout())()


def test_bot_and_playground_refuse_the_same_layouts_and_what_they_take_fits_the_schema() -> None:
    taken = {True: 0, False: 0}

    @settings(max_examples=800, deadline=None, derandomize=True, database=None)
    @given(LAYOUTS)
    def compare(layout: list[Any]) -> None:
        payloads = [part.build(name_id) for part in layout]
        by_bot = is_taken(lambda: check_message(payloads))
        by_playground = is_taken(lambda: limits.check_message(v2(payloads), filenames=["a.png"]))
        assert by_bot == by_playground, payloads
        if by_bot and openapi.IS_HERE and not taken[True] % 10:  # it takes its time
            assert not openapi.misfits("/components/schemas/MessageCreateRequest", v2(payloads), "message")
        taken[by_bot] += 1

    compare()
    assert min(taken.values()) > 200, taken


class PlainMaker(Maker):
    """Draws messages of the older kind."""

    ODD: ClassVar = {
        **dict.fromkeys(("content", "rows", "row of a row", "embeds", "title", "description", "footer", "author"), ""),
        **dict.fromkeys(("fields", "name", "value", "all text", "nothing", "same id", "components"), ""),
    }

    def embed(self) -> hikari.Embed:
        made = hikari.Embed(title=self.words("title", 256), description=self.words("description", 4096))
        made.set_footer(self.words("footer", 2048)).set_author(name=self.words("author", 256))
        for _ in range(self.count("fields", 25)):
            made.add_field(self.words("name", 256), self.words("value", 1024))
        if self.odd == "all text":
            made.description = "x" * self.one_of(1, 3000 - made.total_length(), 3001 - made.total_length())
        return made

    def plain(self) -> Plain:
        if self.odd == "nothing":
            return Plain(self.one_of("", "x"))
        rows = [self.row() for _ in range(self.count("rows", 5, usual=1))]
        if self.odd == "row of a row":
            rows.append(self.misplaced())
        embeds = [self.embed() for _ in range(self.one_of(1, 10, 11) if self.odd == "embeds" else self.one_of(1, 2))]
        return Plain(self.words("content", 2000), *rows, embeds=embeds)


def test_bot_and_playground_refuse_the_same_plain_messages() -> None:
    taken = {True: 0, False: 0}

    @settings(max_examples=300, deadline=None, derandomize=True, database=None)
    @given(st.composite(lambda draw: PlainMaker(draw).plain())())
    def compare(plain: Plain) -> None:
        payloads = [part.build(name_id) for part in plain.rows]
        embeds = [ENTITIES.serialize_embed(each)[0] for each in plain.embeds]
        sent = {"content": plain.content, "embeds": embeds, "components": payloads}
        by_bot = is_taken(lambda: check_plain(plain, payloads))
        assert by_bot == is_taken(lambda: limits.check_message(sent, filenames=[]) or None), sent
        if by_bot and openapi.IS_HERE:
            assert not openapi.misfits("/components/schemas/MessageCreateRequest", sent, "message")
        taken[by_bot] += 1

    compare()
    assert min(taken.values()) > 80, taken
