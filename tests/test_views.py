"""Section 5: records and views, the registry, the custom ids that lead back to them, and states of other versions."""

from __future__ import annotations

import contextlib
import datetime
import enum
import json
import string
import uuid
from decimal import Decimal
from typing import Any, Literal

import hikari
import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import bot
from bot import (
    AutoDefer,
    ComponentContext,
    EventKey,
    InStore,
    Layout,
    LayoutError,
    MemoryStore,
    OperatorError,
    RecordId,
    Saved,
    StateUnreadableError,
    TextDisplay,
    Texts,
    View,
    Views,
    decode_id,
    decode_state,
    encode_id,
    encode_state,
    field,
    handler,
    lay_out,
    new_key,
    register,
    unsaved_fields,
)
from tests import kit

KEY = "AAAAAAAAAAA"
ID = RecordId("panel", KEY)


def saved(view: View, **changes: Any) -> Saved:
    """The record of a view as its class saves it."""
    name, version, *_ = view.registration
    return Saved(RecordId(name, KEY), 1, version, encode_state(view), 1, None, None)._replace(**changes)


def registry(*classes: Any) -> Views:
    views = Views()
    for cls in classes:
        views.add(cls)
    return views


# Custom ids

ARGUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)
KEYS = st.text(string.ascii_letters + string.digits + "_-", min_size=11, max_size=11)


@settings(deadline=None, max_examples=400)
@given(KEYS, st.lists(ARGUMENTS, max_size=4).map(tuple))
@example(KEY, ("a:b", ":", '"', "\\", "],[", "\n\x00", "√🎈"))
@example(KEY, (True, False, None, 0, [], [[]], ""))
def test_a_custom_id_leads_back_to_record_handler_and_arguments(key: str, arguments: tuple[Any, ...]) -> None:
    id = RecordId("panel", key)
    try:
        custom_id = encode_id(id, "press", arguments)
    except LayoutError:
        assert len(f"panel:{key}:press:") + len(json.dumps(arguments, ensure_ascii=False)) > 100
        return
    assert len(custom_id) <= 100
    found = decode_id(custom_id)
    assert found
    assert found[:2] == (id, "press")
    assert tuple(json.loads(found[2])) == arguments


def test_the_longest_custom_id_has_a_hundred_characters() -> None:
    room = 100 - len(f'panel:{KEY}:press:""')
    assert len(encode_id(ID, "press", ("ü" * room,))) == 100
    with pytest.raises(LayoutError) as refused:
        encode_id(ID, "press", ("ü" * (room + 1),))
    assert str(refused.value).endswith(
        f"press: its arguments take {room + 3} characters, 101 with their way back; a custom id has 100."
        " Keep long values in the state and pass a number."
    )


PARTS = st.sampled_from(["panel", KEY, "press", "", ":", "::", "[", "]", '"', "1", "null", "ä", "\x00", "\n"])
HOSTILE = (
    st.text(max_size=100)
    | st.lists(PARTS | st.text(max_size=3)).map(":".join)
    | st.text(max_size=60).map(f"panel:{KEY}:press:".__add__)
    | st.lists(PARTS).map("".join).map(f"panel:{KEY}:".__add__)
)


class Panel(View):
    @handler
    async def press(self, ctx: ComponentContext, number: int, text: str) -> None: ...


@settings(deadline=None, max_examples=500)
@given(HOSTILE)
@example("")
@example(f"panel:{KEY}")
@example(f"panel:{KEY}:")
@example(f"panel:{KEY}:press:1],[2")
@example("panel:" + "A" * 10 + "é:press")
@example("\ud800:\ud800:\ud800")
@example(f"panel:{KEY}:press:" + "[" * 80)
def test_a_custom_id_of_somebody_else_is_none_or_fails_as_data_does(custom_id: str) -> None:
    route = registry(register(name="panel")(Panel)).route("panel", "press")
    assert route
    if found := decode_id(custom_id):
        assert found[0].name
        assert len(found[0].key) == 11
        with contextlib.suppress(msgspec.DecodeError, UnicodeEncodeError):
            number, text = route.arguments.decode(found[2])
            assert isinstance(number, int)
            assert isinstance(text, str)


@pytest.mark.parametrize(
    "custom_id",
    ["", "poll", "poll:", f"poll:{KEY}", f"Poll:{KEY}:vote", f":{KEY}:vote", f"poll:{KEY}A:vote", "poll:short:vote"],
)
def test_what_this_bot_never_wrote_is_not_taken_for_its_own(custom_id: str) -> None:
    assert decode_id(custom_id) is None


class Colour(enum.Enum):
    RED = "red"


def handler_of(kind: Any) -> Any:
    """A handler with one argument of that type."""

    async def press(self: Any, ctx: Any, which: Any) -> None: ...

    press.__annotations__["which"] = kind
    return press


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (bool, True),
        (int, -5),
        (str, 'a:b,"'),
        (list[int], [1, 2]),
        (int | None, None),
        (Colour, Colour.RED),
        (hikari.Snowflake, hikari.Snowflake(7)),
        (tuple[int, str], (1, "a")),
        (datetime.date, datetime.date(2026, 1, 2)),
    ],
)
def test_an_argument_reaches_the_handler_as_the_type_it_declares(kind: Any, value: Any) -> None:
    route = registry(kit.view(handler_of(kind))).route("counter", "press")
    found = decode_id(encode_id(RecordId("counter", KEY), "press", (value,)))
    assert route
    assert found
    (argument,) = route.arguments.decode(found[2])
    assert argument == value
    assert type(argument) is type(value)


@pytest.mark.parametrize("raw", ['["5"]', "[5.5]", "[null]", "[]", "[1,2]", "[true]"])
def test_an_argument_of_another_type_is_refused(raw: str) -> None:
    route = registry(kit.view(handler_of(int))).route("counter", "press")
    assert route
    with pytest.raises(msgspec.ValidationError):
        route.arguments.decode(raw)


@pytest.mark.parametrize(
    ("given_", "why"),
    [
        ((), "Expected `array` of length 1"),
        ((1, 2), "Expected `array` of length 1"),
        (("1",), "Expected `int`, got `str` - at `$[0]`"),
    ],
)
def test_a_button_that_its_handler_could_not_take_is_refused_where_it_is_built(given_: Any, why: str) -> None:
    def render(self: Any) -> Layout:
        return bot.Row(bot.Button(self.press, *given_, label="B"))

    cls = kit.view(handler_of(int), members={"render": render})
    registry(cls)
    with pytest.raises(LayoutError) as refused:
        lay_out(cls(), RecordId("counter", KEY))
    assert str(refused.value) == f"view counter: press cannot be called with {given_}: {why}."


# Keys


def test_the_same_event_makes_the_same_keys_when_it_runs_again() -> None:
    first, second = EventKey("interaction:1"), EventKey("interaction:2")
    keys = [new_key(event, count) for event in (first, second) for count in (1, 2, 3)]
    assert len(set(keys)) == 6
    assert keys == [new_key(event, count) for event in (first, second) for count in (1, 2, 3)]


def test_keys_without_an_event_are_never_the_same() -> None:
    assert len({new_key() for _ in range(1000)}) == 1000


@pytest.mark.parametrize("key", [new_key(), new_key(EventKey("interaction:1"), 1)], ids=["at random", "of an event"])
def test_a_key_fits_a_custom_id(key: str) -> None:
    id = RecordId("panel", key)
    assert decode_id(encode_id(id, "press", ())) == (id, "press", "[]")


# The registry


def view_named(name: Any) -> type[View]:
    return kit.view(name=name)


def why_refused(*things: Any) -> str:
    """The sentence with which a bot refuses to take these."""
    app = bot.App(bot.Config())
    with pytest.raises(OperatorError) as refused:
        app.add(*things)
    return str(refused.value)


class Unregistered(View): ...


class Child(kit.view(name="parent")): ...


class NoView: ...


UNMARKED = (
    "is neither a view nor a command. Mark it with @register, @command, @listen, @every, @daily, @hook or @handler."
)


@pytest.mark.parametrize(
    ("thing", "sentence"),
    [
        (Unregistered, "Unregistered is not registered. Write @register(name=…, version=1) above it."),
        (Child, "Child is not registered. Write @register(name=…, version=1) above it."),
        (
            NoView,
            f"{NoView!r} {UNMARKED}",
        ),
        (
            5,
            f"5 {UNMARKED}",
        ),
        (
            None,
            f"None {UNMARKED}",
        ),
    ],
)
def test_what_is_not_marked_cannot_be_added(thing: Any, sentence: str) -> None:
    assert why_refused(thing) == sentence


@pytest.mark.parametrize("name", ["", "Poll", "9lives", "a b", "a:b", "a-b", "ä", "a\n", "_a", "x" * 33])
def test_a_views_name_must_fit_custom_ids_for_ever(name: str) -> None:
    assert why_refused(view_named(name)) == (
        f"Counter: {name!r} is no name. Use up to 32 of a-z, 0-9 and _, a letter first."
    )


@pytest.mark.parametrize("name", ["a", "a9_", "x" * 32])
def test_a_name_of_letters_digits_and_underscores_is_taken(name: str) -> None:
    assert list(registry(view_named(name)).classes) == [name]


def test_two_views_cannot_share_a_name() -> None:
    assert why_refused(kit.view(), kit.view()) == "Counter: Counter is registered as 'counter' already."


def test_adding_the_same_view_again_changes_nothing() -> None:
    cls = kit.view()
    assert registry(cls, cls).classes == {"counter": cls}


async def no_context(self: Any) -> None: ...


def no_coroutine(self: Any, ctx: Any) -> None: ...


async def untyped(self: Any, ctx: Any, which, more) -> None: ...


WRITE_IT = "Counter.press cannot be a handler. Write: async def press(self, ctx: ComponentContext) -> None"


@pytest.mark.parametrize(
    ("press", "sentence"),
    [
        (no_context, WRITE_IT),
        (no_coroutine, WRITE_IT),
        (untyped, "Counter.press: the argument which has no type. Write for example which: int"),
        (
            handler_of("Nowhere"),
            "Counter.press: name 'Nowhere' is not defined. Use types such as int or str, imported where bot.py sees them.",  # noqa: E501
        ),
    ],
)
def test_a_handler_that_no_click_could_call_is_refused(press: Any, sentence: str) -> None:
    assert why_refused(kit.view(press)) == sentence


@pytest.mark.parametrize("kind", ["hikari.Nowhere", "1+", int | hikari.User | hikari.Guild])
def test_an_annotation_that_cannot_be_read_is_one_sentence(kind: Any) -> None:
    assert why_refused(kit.view(handler_of(kind))).startswith("Counter.press: ")


async def with_default(self: Any, ctx: Any, which: int = 1) -> None: ...


async def with_star(self: Any, ctx: Any, *which: int) -> None: ...


async def by_keyword(self: Any, ctx: Any, *, which: int) -> None: ...


@pytest.mark.parametrize("press", [with_default, with_star, by_keyword])
async def test_a_parameter_that_is_not_plain_is_refused_or_works(press: Any) -> None:
    try:
        route = registry(kit.view(press)).route("counter", "press")
    except OperatorError as refused:
        assert str(refused).startswith("Counter.press: the argument which ")
        return
    assert route
    for raw in ("[]", "[1]", "[1,2]")[press is by_keyword : 3 if press is with_star else 2]:
        await route.function(None, None, *route.arguments.decode(raw))


def test_only_marked_methods_are_handlers() -> None:
    class Mixed(View):
        @handler
        async def marked(self, ctx: ComponentContext) -> None: ...
        async def unmarked(self, ctx: ComponentContext) -> None: ...

    views = registry(register(name="mixed")(Mixed))
    assert views.route("mixed", "marked")
    assert not any(views.route("mixed", name) for name in ("unmarked", "render", "check", "__init__", ""))
    assert views.route("other", "marked") is None


def without_wraps(function: Any) -> Any:
    """A decorator as people write it: what it returns has another name."""

    async def wrapper(self: Any, ctx: Any) -> None:
        await function(self, ctx)

    return wrapper


@register(name="renamed")
class Renamed(View):
    def render(self) -> Layout:
        return bot.Row(bot.Button(self.press, label="B"))

    @handler
    @without_wraps
    async def press(self, ctx: ComponentContext) -> None: ...


def test_a_handler_under_another_name_is_refused_where_it_is_built() -> None:
    """Its custom ids would lead nowhere."""
    with pytest.raises(LayoutError) as refused:
        lay_out(Renamed(), RecordId("renamed", KEY))
    assert str(refused.value) == (
        "view renamed: wrapper is not the name of its method. Put functools.wraps on its decorator."
    )


class Kid(kit.Counting): ...


def test_handlers_are_inherited() -> None:
    route = registry(register(name="child")(Kid)).route("child", "press")
    assert route
    assert (route.view, route.place) == (Kid, "Kid.press")


@pytest.mark.parametrize("of_handler", [None, *AutoDefer])
@pytest.mark.parametrize("of_view", list(AutoDefer))
def test_the_handlers_auto_defer_goes_before_the_views(of_view: AutoDefer, of_handler: AutoDefer | None) -> None:
    async def press(self: Any, ctx: Any) -> None: ...

    cls = kit.view(press, auto_defer=of_view)
    if of_handler:
        cls.press = handler(auto_defer=of_handler)(press)
    route = registry(cls).route("counter", "press")
    assert route
    assert route.auto_defer is (of_handler or of_view)


class Renderless(View): ...


def test_a_view_without_render_says_so() -> None:
    with pytest.raises(NotImplementedError, match=r"^Renderless has no render\(self\)\.$"):
        lay_out(register(name="plain")(Renderless)(), ID)


def test_a_registration_keeps_what_was_said() -> None:
    @register(name="said", version=7, state=InStore(ttl=60), auto_defer=AutoDefer.OFF)
    class Said(View): ...

    assert Said.registration == ("said", 7, InStore(60), AutoDefer.OFF)
    assert register(name="plain")(Said).registration == ("plain", 1, InStore(None), AutoDefer.UPDATE)


# States


class Inner(msgspec.Struct):
    when: datetime.datetime
    tags: set[str] = field(default_factory=set[str])
    deeper: Inner | None = None


class Number(enum.IntEnum):
    ONE = 1


@register(name="everything", version=3)
class Everything(View):
    """A field of every kind that a state may hold."""

    owner: hikari.Snowflake
    ids: list[hikari.Snowflake]
    by_id: dict[hikari.Snowflake, int]
    voters: set[hikari.Snowflake]
    nobody: hikari.Snowflake | None
    by_number: dict[int, str]
    inner: Inner
    colour: Colour
    number: Number
    choice: Literal["a", "b"]
    pair: tuple[int, str]
    price: Decimal
    key: uuid.UUID
    raw: bytes
    day: datetime.date
    wait: datetime.timedelta
    share: float
    text: str
    anything: Any = None

    def render(self) -> Layout:
        return TextDisplay("x")


IDS = st.integers(1, 2**63 - 1).map(hikari.Snowflake)
INNERS = st.recursive(
    st.builds(Inner, st.datetimes(timezones=st.just(datetime.UTC)), st.sets(st.text(max_size=3), max_size=4)),
    lambda inner: st.builds(Inner, st.datetimes(timezones=st.just(datetime.UTC)), deeper=inner),
    max_leaves=3,
)
STATES = st.builds(
    Everything,
    owner=IDS,
    ids=st.lists(IDS, max_size=4),
    by_id=st.dictionaries(IDS, st.integers(0, 9), max_size=4),
    voters=st.sets(IDS, max_size=6),
    nobody=IDS | st.none(),
    by_number=st.dictionaries(st.integers(-(2**63), 2**63), st.text(), max_size=3),
    inner=INNERS,
    colour=st.sampled_from(Colour),
    number=st.sampled_from(Number),
    choice=st.sampled_from(["a", "b"]),
    pair=st.tuples(st.integers(0, 2**64 - 1), st.text()),
    price=st.decimals(allow_nan=False, allow_infinity=False),
    key=st.uuids(),
    raw=st.binary(),
    day=st.dates(),
    wait=st.timedeltas(),
    share=st.floats(allow_nan=False, allow_infinity=False),
    text=st.text(),
    anything=st.none() | st.booleans() | st.lists(st.text()) | st.dictionaries(st.text(), st.integers(0, 5)),
)


@settings(deadline=None)
@given(STATES)
def test_a_state_is_read_as_it_was_saved(view: Everything) -> None:
    read = decode_state(Everything, saved(view))
    assert read == view
    assert unsaved_fields(view, saved(view)) == ""
    ids = [read.owner, *read.ids, *read.voters, *read.by_id, *([read.nobody] if read.nobody else [])]
    assert {type(each) for each in ids} == {hikari.Snowflake}


@register(name="poll", version=3)
class Poll(View):
    question: str
    yes: int = 0
    voters: set[int] = field(default_factory=set[int])

    def render(self) -> Layout:
        return TextDisplay(self.question)

    @classmethod
    def migrate(cls, version: int, state: dict[str, Any]) -> dict[str, Any]:
        if version == 1:
            state = {"question": state["title"], "yes": state["votes"]}
        return state | {"voters": state.get("voters") or []}


OLD = Saved(RecordId("poll", KEY), 9, 1, b'{"title":"Tea?","votes":2}', 9, None, None)


@pytest.mark.parametrize(
    ("model", "data", "poll"),
    [
        (1, b'{"title":"Tea?","votes":2}', Poll("Tea?", 2)),
        (2, b'{"question":"Tea?","voters":[1,1]}', Poll("Tea?", 0, {1})),
        (3, b'{"question":"Tea?","yes":5,"voters":[1]}', Poll("Tea?", 5, {1})),
        (3, b'{"question":"Tea?","dropped":true}', Poll("Tea?")),
    ],
)
def test_a_state_of_an_older_version_is_migrated(model: int, data: bytes, poll: Poll) -> None:
    assert decode_state(Poll, OLD._replace(model=model, data=data)) == poll


@register(name="plain", version=2)
class Plain(View):
    count: int


REMEDY = ". Give new fields a default, or raise version= and write migrate"


@pytest.mark.parametrize(
    ("cls", "model", "data", "sentence"),
    [
        (Poll, 4, b'{"question":"Tea?"}', f"poll {KEY} was saved by the newer version 4."),
        (Poll, 3, b'{"question":5}', f"poll {KEY}: Expected `str`, got `int` - at `$.question`{REMEDY}"),
        (Poll, 3, b"{}", f"poll {KEY}: Object missing required field `question`{REMEDY}"),
        (Poll, 3, b"", f"poll {KEY}: Input data was truncated"),
        (Poll, 3, b"\xff\x00", f"poll {KEY}: JSON is malformed: invalid character (byte 0)"),
        (Poll, 3, b"null", f"poll {KEY}: Expected `object`, got `null`{REMEDY}"),
        (Poll, 2, b"{", f"poll {KEY}: Input data was truncated"),
        (Poll, 2, b'{"question":5}', f"poll {KEY}: Expected `str`, got `int` - at `$.question`"),
        (Poll, 1, b"{}", f"poll {KEY}: 'title'"),
        (Plain, 1, b'{"count":1}', "plain AAAAAAAAAAA: plain: no migrate() from version 1."),
    ],
)
def test_a_state_that_cannot_be_read_says_why(cls: Any, model: int, data: bytes, sentence: str) -> None:
    name = cls.registration.name
    with pytest.raises(StateUnreadableError) as unreadable:
        decode_state(cls, Saved(RecordId(name, KEY), 1, model, data, 1, None, None))
    assert str(unreadable.value) == sentence


@register(name="odd")
class Odd(View):
    anything: Any


@pytest.mark.parametrize("value", [object(), print, {"deep": [object()]}])
def test_a_value_that_json_cannot_hold_is_refused_before_it_is_saved(value: Any) -> None:
    with pytest.raises(TypeError, match=r"cannot be kept; use numbers, text, lists, dicts or msgspec\.Struct$"):
        encode_state(Odd(value))


def test_a_field_of_a_type_that_cannot_be_kept_is_named_when_it_is_read() -> None:
    @register(name="wrong")
    class Wrong(View):
        who: hikari.User

    with pytest.raises(StateUnreadableError, match=r"class 'hikari.users.User'> cannot be kept in a state - at"):
        decode_state(Wrong, Saved(RecordId("wrong", KEY), 1, 1, b'{"who":1}', 1, None, None))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda poll: None, ""),
        (lambda poll: setattr(poll, "yes", 1), "yes"),
        (lambda poll: poll.voters.add(5), "voters"),
        (lambda poll: (setattr(poll, "yes", 1), setattr(poll, "question", "")), "question, yes"),
        (lambda poll: setattr(poll, "yes", 0), ""),
        (lambda poll: setattr(poll, "voters", {9, 1}), ""),
    ],
)
def test_what_a_handler_changed_and_did_not_save_is_named(change: Any, named: str) -> None:
    poll = Poll("Tea?", 0, {1, 9})
    record = saved(poll)
    change(poll)
    assert unsaved_fields(poll, record) == named


def test_a_set_in_another_order_is_no_change() -> None:
    """Equal sets may be written in another order: what was added and removed before decides."""
    wide = set(range(0, 4096, 64))
    narrow = set(wide) | set(range(100_000))
    narrow -= set(range(100_000)) - wide
    poll, record = Poll("Tea?", 0, wide), saved(Poll("Tea?", 0, narrow))
    assert poll.voters == narrow
    assert encode_state(poll) != record.data, "this Python writes both alike; find another pair"
    assert unsaved_fields(poll, record) == ""


async def test_a_view_saved_again_by_the_same_event_is_the_one_of_the_first_run() -> None:
    store = MemoryStore(bot.BotId(1))
    await store.open()
    try:
        first, one = await bot.create_record(store, Poll("first"), KEY, 0)
        second, two = await bot.create_record(store, Poll("second"), KEY, 0)
    finally:
        await store.close()
    assert (first, second) == (Poll("first"), Poll("first"))
    assert (one.id, one.version, one.shown) == (two.id, two.version, 1) == (RecordId("poll", KEY), 1, 1)


# Views made up for `check`


@pytest.mark.parametrize(
    "kind",
    [
        *(str, bool, int, float, list, dict, set, list[int], dict[str, int], set[str]),
        *(Poll | None, int | None, hikari.Snowflake, list[hikari.Snowflake], hikari.Snowflake | None),
        *(dict[int, str], list[Poll], dict[str, list[int]], tuple[int, str], tuple[int, ...], frozenset[str], tuple),
    ],
)
def test_an_example_fits_the_type_it_is_made_for(kind: Any) -> None:
    msgspec.convert(bot.made_up(kind), kind, dec_hook=bot.read_id)


class Nested(msgspec.Struct):
    text: str
    count: int = 7


@register(name="made")
class Made(View):
    who: hikari.Snowflake
    nested: Nested
    names: list[str]
    count: int = 5


def test_an_example_has_the_defaults_and_made_up_values_for_the_rest() -> None:
    made = Made.example()
    assert isinstance(made, Made)
    assert (made.count, made.nested.count, type(made.who), type(made.nested.text)) == (5, 7, hikari.Snowflake, str)
    assert made == decode_state(Made, saved(made))


def test_an_example_of_a_collection_has_something_in_it() -> None:
    kinds = (list[int], set[str], dict[int, str], dict[str, list[int]], tuple[int, str])
    assert [bot.made_up(kind) for kind in kinds] == [[1], ["example"], {1: "example"}, {"example": [1]}, [1, "example"]]


def test_a_type_without_an_example_is_named() -> None:
    with pytest.raises(TypeError, match=r"^there is no example for <class 'datetime.datetime'>$"):
        bot.made_up(datetime.datetime)


# What people are told


async def nobody(self: Any, ctx: Any) -> bool:
    return False


GERMAN = Texts(expired="Abgelaufen.", failed="Kaputt.", not_for_you="Nicht für dich.")


@pytest.mark.parametrize(
    ("locale", "said"),
    [("en-US", ["Abgelaufen.", "Nicht für dich."]), ("de", ["This has expired.", "This is not for you."])],
)
async def test_the_bots_own_words_are_those_for_the_persons_language(locale: str, said: list[str]) -> None:
    """The playground's people have en-US."""
    async with kit.playing(kit.view(members={"check": nobody})) as play:
        play.app.texts[locale] = GERMAN
        forbidden = await play.click()
        del play.app.views.classes["counter"]
        play.app.views._routes.clear()
        expired = await play.click()
        assert [play.discord.text(used.message) for used in (expired, forbidden)] == said


async def test_a_person_whose_click_failed_is_told() -> None:
    async def press(self: Any, ctx: Any) -> None:
        raise RuntimeError("broken")

    async with kit.playing(press) as play:
        play.app.texts[""] = GERMAN
        used = await play.click()
        assert play.discord.text(used.message) == "Kaputt."
        assert [each.failure.text for each in await play.failed()] == ["broken"]


# Who hears of a message


async def test_who_is_named_in_a_message_hears_of_it_and_no_text_calls_everybody() -> None:
    @bot.command("call", "Call.")
    async def call(ctx: bot.CommandContext) -> None:
        await ctx.respond("@everyone")
        await ctx.respond(bot.TextDisplay("@here"), ephemeral=True)
        await ctx.send(ctx.channel_id, bot.TextDisplay("<@&1>"))
        await ctx.send(ctx.channel_id, posted())

    posted = kit.view()
    async with kit.playing(posted, call) as play:
        await play.click()
        await (await play.alice.command("call")).settled()
        await kit.until(lambda: len(play.discord.messages()) == 5)
        await play.at_rest()
        bodies = [each.data["body"] for each in play.discord.journal.of("rest") if each.data["method"] != "GET"]
    sent = [body.get("data", body) for body in bodies if isinstance(body, dict)]
    called = [body["allowed_mentions"]["parse"] for body in sent if "components" in body or "content" in body]
    assert called == [["users"]] * 6
