"""Section 4: forms. What is typed arrives as the types of the fields, over restarts, and nothing typed is lost."""

from __future__ import annotations

import asyncio
import enum
import types
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import hikari
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bot
from bot import (
    ChannelSelect,
    Checkbox,
    CheckboxGroup,
    ComponentContext,
    FileUpload,
    Form,
    FormError,
    InMessage,
    LayoutError,
    MentionableSelect,
    Option,
    RadioGroup,
    RoleSelect,
    Select,
    TextDisplay,
    TextInput,
    UserSelect,
    handler,
)
from playground import Discord, limits
from playground.errors import Refused
from playground.people import Used
from tests import openapi
from tests.kit import (
    Counting,
    Json,
    Play,
    check_says,
    playing,
    posting,
    rows,
    running,
    shown,
    start,
    until,
    view,
)

pytestmark = pytest.mark.both_modes

IN_BOTH = pytest.mark.parametrize("state", [bot.InStore(), InMessage()], ids=["InStore", "InMessage"])


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


def form_of(**fields: Any) -> type[Form]:
    """A form: each field is its type and its control, or a text between them."""
    body = {name: each[1] if isinstance(each, tuple) else each for name, each in fields.items()}
    hints = {name: each[0] for name, each in fields.items() if isinstance(each, tuple)}
    return types.new_class(
        "Asked", (Form,), {"title": "Tell us"}, lambda names: names.update(body, __annotations__=hints)
    )


class Rename(Form, title="Rename"):
    """The fields are called as Form's own words are, as in the docstring of Form."""

    name: str = TextInput("New name", min_length=2, max_length=20)
    title: str = TextInput("Title", required=False, long=True, placeholder="None", description="Sir, say")


Sent = list[Any]


def desk(form: type[Form], got: Sent, *, says: Callable[[Any], str] = lambda form: "", **registration: Any) -> Any:
    """A view whose button opens the form for a step of 3; what is sent is noted and counted, unless `says` objects."""
    filled: Json = registration.pop("filled", {})

    async def press(self: Any, ctx: ComponentContext) -> None:
        await ctx.open(form(**filled), 3, then=self.sent)

    async def sent(self: Any, ctx: ComponentContext, form: Any, step: int) -> None:
        got.append(form)
        if objection := says(form):
            raise FormError(objection)
        self.count += step
        await ctx.rerender()

    sent.__annotations__["form"] = form
    return view(handler(opens_form=True)(press), members={"sent": handler(sent)}, **registration)


async def opened(play: Play, name: str = "alice") -> Json:
    """Have somebody open the form, and return it as Discord got it."""
    used = await play.click(name)
    assert used.form, used
    return used.form


async def filled_in(play: Play, values: Json, name: str = "alice") -> Used:
    """Have somebody open the form and send it."""
    await opened(play, name)
    return await play.discord.user(name).submit(values)


def presets(form: Json) -> list[Any]:
    """What stands in the controls of a form before somebody touches them."""
    inner = [each["component"] for each in form["components"] if "component" in each]
    return [preset(each) for each in inner]


def preset(control: Json) -> Any:
    if "options" in control:
        return [each["value"] for each in control["options"] if each["default"]]
    if "default_values" in control:
        return [(each["id"], each["type"]) for each in control["default_values"]]
    return control.get("value", control.get("default"))


# What a person gives, and what the field holds. People, roles, channels and files are told by their names.

TYPED: dict[str, dict[str, Any]] = {
    "texts": {
        "text": (str, TextInput("A"), "hello ", "hello "),
        "whole": (int, TextInput("B"), " 5 ", 5),
        "number": (float, TextInput("C"), "2.5", 2.5),
        "truth": (bool, TextInput("D"), "true", True),
        "bounded": (Annotated[int, msgspec.Meta(ge=1, le=10)], TextInput("E"), "10", 10),
    },
    "texts of few values": {
        "word": (Literal["yes", "no"], TextInput("A"), "yes", "yes"),
        "digit": (Literal[1, 2], TextInput("B"), "2", 2),
        "colour": (Colour, TextInput("C"), "blue", Colour.BLUE),
        "either": (int | str, TextInput("D"), "x", "x"),
        "id": (hikari.Snowflake, TextInput("E"), "81384788765712384", hikari.Snowflake(81384788765712384)),
    },
    "nothing": {
        "text": (str, TextInput("A", required=False), "", ""),
        "maybe": (str | None, TextInput("B", required=False), "", None),
        "number": (int | None, TextInput("C", required=False), "", None),
        "radio": (str | None, RadioGroup("D", ["a", "b"], required=False), None, None),
        "boxes": (list[str], CheckboxGroup("E", ["a", "b"], required=False), [], []),
    },
    "nothing chosen": {
        "select": (str | None, Select("A", options=["a"], required=False), [], None),
        "selects": (list[int], Select("B", options=["1", "2"], min_values=0, max_values=2), [], []),
        "who": (hikari.User | None, UserSelect("C", required=False), [], None),
        "radio": (str, RadioGroup("D", ["a", "b"], required=False), None, ""),
        "file": (hikari.Attachment | None, FileUpload("E", required=False), (), None),
    },
    "choices": {
        "select": (str, Select("A", options=["a", Option("B", "b", "d", "🔴")]), "b", "b"),
        "colours": (list[Colour], Select("B", options=["red", "blue"], max_values=2), ["red", "blue"], [*Colour]),
        "radio": (Literal[1, 2], RadioGroup("C", ["1", "2"], description="One"), "2", 2),
        "boxes": (list[int], CheckboxGroup("D", ["1", "2", "3"], max_values=2), ["1", "3"], [1, 3]),
        "sure": (bool, Checkbox("E"), True, True),
    },
    "objects": {
        "who": (hikari.InteractionMember, UserSelect("A"), "bob", "bob"),
        "people": (list[hikari.User], UserSelect("B", max_values=3), ["bob", "carol"], ["bob", "carol"]),
        "role": (hikari.Role, RoleSelect("C"), "Staff", "Staff"),
        "both": (
            list[hikari.User | hikari.Role],
            MentionableSelect("D", max_values=3),
            ["bob", "Staff"],
            ["bob", "Staff"],
        ),
        "where": (
            hikari.InteractionChannel,
            ChannelSelect("E", types=[hikari.ChannelType.GUILD_TEXT]),
            "random",
            "random",
        ),
    },
    "ids": {
        "who": (int, UserSelect("A"), "bob", "bob"),
        "people": (list[int], UserSelect("B", max_values=3), ["bob", "carol"], ["bob", "carol"]),
        "role": (hikari.Snowflake, RoleSelect("C"), "Staff", "Staff"),
        "file": (int, FileUpload("D"), ("a.txt", b"a"), "a.txt"),
        "where": (int | None, ChannelSelect("E", required=False), "random", "random"),
    },
    "files": {
        "one": (hikari.Attachment, FileUpload("A", description="One"), ("a.txt", b"a"), "a.txt"),
        "some": (list[hikari.Attachment], FileUpload("B", max_values=10), [("b", b"b"), ("c", b"c")], ["b", "c"]),
        "intro": TextDisplay("What stands in a form and asks nothing."),
    },
}


def name_of(value: Any) -> Any:
    """What a test calls it: hikari's objects by their names."""
    if isinstance(value, list):
        return [name_of(each) for each in value]
    for attribute in ("username", "filename", "name"):
        if isinstance(value, hikari.Unique) and hasattr(value, attribute):
            return getattr(value, attribute)
    return value


@pytest.mark.parametrize("kind", TYPED)
async def test_what_a_person_gives_is_what_the_field_declares(kind: str) -> None:
    asked = {name: each for name, each in TYPED[kind].items() if isinstance(each, tuple)}
    texts = {name: each for name, each in TYPED[kind].items() if not isinstance(each, tuple)}
    form, got = form_of(**{name: each[:2] for name, each in asked.items()}, **texts), Sent()
    async with playing(desk(form, got)) as play:
        play.discord.role("Staff")
        for name in ("bob", "carol"):
            play.discord.user(name)
        used = await filled_in(play, {name: each[2] for name, each in asked.items()})
        assert not await play.failed()
        resolved = used.interaction["data"].get("resolved", {})
    (sent,) = got
    for name, (hint, control, _, wanted) in asked.items():
        value, is_id = getattr(sent, name), kind == "ids"
        assert (id_named(resolved, value) if is_id else name_of(value)) == wanted, (name, control.label)
        assert not is_id or all(isinstance(each, int) for each in (value if isinstance(value, list) else [value]))
        assert not isinstance(hint, type) or isinstance(value, hint)


def id_named(resolved: Json, value: Any) -> Any:
    """The name of what an id stands for."""
    if isinstance(value, list):
        return [id_named(resolved, each) for each in value]
    thing = next(each[str(value)] for kind, each in resolved.items() if kind != "members" and str(value) in each)
    return thing.get("username") or thing.get("filename") or thing.get("name")


# What Discord gets


class Everything(Form, title="Everything"):
    """Each kind of control with all its options; the rest of the kinds are in `MoreOfEverything`."""

    text: str = TextInput("Text", description="d", long=True, min_length=1, max_length=9, placeholder="p")
    colour: list[str] = Select(
        "Colour", options=["red", Option("B", "b", "d", "🔴", True)], max_values=2, placeholder="p"
    )
    who: list[int] = UserSelect("Who", min_values=2, max_values=3, required=False, description="d", defaults=[5])
    one: str | None = RadioGroup("One", ["a", "b"], description="d", required=False)
    some: list[str] = CheckboxGroup("Some", ["a", "b", "c"], description="d", min_values=1, max_values=2)


class MoreOfEverything(Form, title="More"):
    """The text between the controls counts as one of five."""

    note = TextDisplay("a")
    sure: bool = Checkbox("Sure", description="d")
    files: list[hikari.Attachment] = FileUpload("Files", description="d", min_values=0, max_values=10)
    where: list[int] = ChannelSelect("Where", types=[hikari.ChannelType.GUILD_TEXT], min_values=0, defaults=[6])
    both: list[int] = MentionableSelect("Both", defaults=[hikari.Snowflake(7)], max_values=2)


def labelled(label: str, control: Json, **about: Any) -> Json:
    return {"type": 18, "label": label, **about, "component": control}


D: Json = {"description": "d"}
DOCUMENTED: list[tuple[Form, list[Json]]] = [
    (
        Everything(),
        [
            labelled(
                "Text",
                {
                    "type": 4,
                    "custom_id": "text",
                    "style": 2,
                    "min_length": 1,
                    "max_length": 9,
                    "placeholder": "p",
                    "required": True,
                },
                **D,
            ),
            labelled(
                "Colour",
                {
                    "type": 3,
                    "custom_id": "colour",
                    "placeholder": "p",
                    "min_values": 1,
                    "max_values": 2,
                    "required": True,
                    "options": [
                        {"label": "red", "value": "red", "default": False},
                        {"label": "B", "value": "b", "default": True, "description": "d", "emoji": {"name": "🔴"}},
                    ],
                },
            ),
            labelled(
                "Who",
                {
                    "type": 5,
                    "custom_id": "who",
                    "min_values": 2,
                    "max_values": 3,
                    "required": False,
                    "default_values": [{"id": "5", "type": "user"}],
                },
                **D,
            ),
            labelled(
                "One",
                {
                    "type": 21,
                    "custom_id": "one",
                    "required": False,
                    "options": [{"label": each, "value": each, "default": False} for each in "ab"],
                },
                **D,
            ),
            labelled(
                "Some",
                {
                    "type": 22,
                    "custom_id": "some",
                    "min_values": 1,
                    "max_values": 2,
                    "required": True,
                    "options": [{"label": each, "value": each, "default": False} for each in "abc"],
                },
                **D,
            ),
        ],
    ),
    (
        MoreOfEverything(),
        [
            {"type": 10, "content": "a"},
            labelled("Sure", {"type": 23, "custom_id": "sure", "default": False}, **D),
            labelled(
                "Files", {"type": 19, "custom_id": "files", "min_values": 0, "max_values": 10, "required": False}, **D
            ),
            labelled(
                "Where",
                {
                    "type": 8,
                    "custom_id": "where",
                    "min_values": 0,
                    "max_values": 1,
                    "required": False,
                    "default_values": [{"id": "6", "type": "channel"}],
                    "channel_types": [0],
                },
            ),
            labelled(
                "Both",
                {
                    "type": 7,
                    "custom_id": "both",
                    "min_values": 1,
                    "max_values": 2,
                    "required": True,
                    "default_values": [{"id": "7", "type": "user"}],
                },
            ),
        ],
    ),
]


def modal(form: Form) -> Json:
    """The form as a request has it."""
    return {"title": form.form_title, "custom_id": "1", "components": [part.build()[0] for part in form.build()]}


@pytest.mark.parametrize(("form", "payload"), DOCUMENTED, ids=["first five", "the others"])
async def test_a_form_is_the_json_that_discord_documents_and_arrives_as_it_was_made(
    form: Form, payload: list[Json]
) -> None:
    assert modal(form)["components"] == payload
    limits.check_form(modal(form))
    async with playing(desk(type(form), [])) as play:
        assert (await opened(play))["components"] == payload  # hikari has dropped nothing


@pytest.mark.skipif(not openapi.IS_HERE, reason="Discord's OpenAPI file is not here")
@pytest.mark.parametrize("form", [form for form, _ in DOCUMENTED], ids=["first five", "the others"])
def test_a_form_fits_the_published_schema(form: Form) -> None:
    assert openapi.misfits("/components/schemas/ModalInteractionCallbackRequestData", modal(form), "form") == []


class Settings(Form, title="Settings"):
    """Whatever can be filled in before somebody sees it."""

    text: str = TextInput("Text")
    colour: Colour = Select("Colour", options=["red", "blue"])
    steps: list[int] = CheckboxGroup("Steps", ["1", "2", "3"])
    people: list[int] = UserSelect("People", max_values=2)
    sure: bool = Checkbox("Sure")


async def test_a_form_opens_with_the_values_it_was_given_and_sends_them_untouched() -> None:
    got = Sent()
    async with Discord() as discord:
        bob = int(discord.user("bob").id)
        filled = {"text": "old", "colour": Colour.BLUE, "steps": [1, 3], "people": [bob], "sure": True}
        cls = desk(Settings, got, filled=filled)
        async with running(discord, cls, posting(cls)) as app:
            used = await discord.user("alice").command("post")
            assert used.message
            play = Play(discord, app, discord.user("alice"), used.message)
            assert presets(await opened(play)) == ["old", ["blue"], ["1", "3"], [(str(bob), "user")], True]
            await play.alice.submit({})
            assert not await play.failed()
            assert {name: getattr(got[0], name) for name in filled} == filled


def test_a_form_has_the_fields_of_the_form_it_is_made_from() -> None:
    class Longer(Rename, title="Longer"):
        more: int = TextInput("More")

    assert [part["label"] for part in modal(Longer(title="x"))["components"]] == ["New name", "Title", "More"]
    assert list(Rename.fields()) == ["name", "title"]


def test_what_a_form_does_not_ask_for_cannot_be_filled_in() -> None:
    with pytest.raises(TypeError, match=r"Rename has no field nam\."):
        Rename(nam="x")


def test_a_field_cannot_have_the_name_of_what_a_form_does() -> None:
    with pytest.raises(TypeError, match=r"Asked: a field cannot be called build, submit\."):
        form_of(build=(str, TextInput("A")), submit=(str, TextInput("B")))


# `then` with arguments, forms that commands open, and what is left of a form that nobody sends


@IN_BOTH
async def test_what_is_sent_reaches_then_with_its_arguments_and_changes_the_view(state: Any) -> None:
    got = Sent()
    async with playing(desk(Rename, got, state=state)) as play:
        for count in (3, 6):
            used = await filled_in(play, {"New name": "Bert", "Title": ""})
            assert used.message and used.message["id"] == play.message["id"]
            await play.at_rest()
            assert play.shown == count
        assert [(form.name, form.title) for form in got] == [("Bert", "")] * 2
        assert not await play.failed()


class Feedback(Form, title="Feedback", name="feedback"):
    """A form that a command opens."""

    text: str = TextInput("What do you think?")
    stars: int = Select("How many stars?", options=["1", "2", "3", "4", "5"])

    async def submit(self, ctx: ComponentContext) -> None:
        if self.text == "spam":
            raise FormError("Say something else.")
        await ctx.respond(f"{ctx.user.username}: {self.text} {'*' * self.stars}")


@bot.command("feedback", "Tell us.")
async def feedback(ctx: bot.CommandContext, text: str = "") -> None:
    await ctx.open(Feedback(text=text))


async def test_a_form_that_a_command_opens_is_answered_by_its_submit() -> None:
    async with Discord() as discord, running(discord, feedback, Feedback) as app:
        alice = discord.user("alice")
        opened = await alice.command("feedback", text="Good")
        assert opened.form and presets(opened.form) == ["Good", []]
        used = await alice.submit({"How many stars?": "4"})
        assert discord.text(used.message) == "alice: Good ****"
        await alice.command("feedback", text="spam")
        refused = await alice.submit({"How many stars?": "2"})
        assert refused.message and "Say something else." in discord.text(refused.message)
        again = await alice.click("Try again")
        assert again.form and presets(again.form) == ["spam", ["2"]]
        used = await alice.submit({"What do you think?": "Bad"})
        assert discord.text(await newest(discord)) == "alice: Bad **"
        assert not await app.failed()


async def test_a_form_of_a_command_is_answered_by_the_next_process_too() -> None:
    async with Discord() as discord:
        alice = discord.user("alice")
        async with running(discord, feedback, Feedback):
            await alice.command("feedback", text="Good")
        async with running(discord, feedback, Feedback) as app:
            used = await alice.submit({"How many stars?": "1"})
            assert discord.text(used.message) == "alice: Good *"
            assert not await app.failed()


async def newest(discord: Discord) -> Json:
    """The newest message that everybody sees, when nothing is under way any more."""
    return [message for message in discord.messages() if not message["flags"] & 64][-1]


async def test_a_form_that_nobody_sends_leaves_nothing_behind() -> None:
    tables = {"inbox": "done_at IS NULL", "record": "TRUE", "timer": "TRUE", "failed": "TRUE"}
    async with playing(desk(Rename, [])) as play:
        for name in ("alice", "bob"):
            await opened(play, name)
        await play.at_rest()
        assert [await left(play, table, where) for table, where in tables.items()] == [0, 1, 0, 0]


async def left(play: Play, table: str, where: str) -> int:
    """How many rows of the store speak of something that is not over."""
    sql = f"SELECT count(*) FROM {table} WHERE bot=? AND {where}"
    return (await play.app.store._read(sql))[0][0]  # pyright: ignore


# What a form refuses is not typed again


class Wish(Form, title="Wish"):
    """Whatever can be kept while the person thinks again."""

    size: int = TextInput("Size")
    people: list[hikari.User] = UserSelect("People", max_values=3)
    both: list[hikari.User | hikari.Role] = MentionableSelect("Both", max_values=3)
    colour: list[str] = Select("Colour", options=["red", "blue"], max_values=2, min_values=0)
    sure: bool = Checkbox("Sure")


def objection(form: Any) -> str:
    return "Nine is the most." if form.size > 9 else ""


@IN_BOTH
@pytest.mark.parametrize(
    ("size", "sentence"), [("10", "Nine is the most."), ("ten", "“Size” is not what is asked for.")]
)
async def test_a_refused_form_is_opened_again_as_it_was_filled_in_and_then_changes_its_view(
    state: Any, size: str, sentence: str
) -> None:
    got = Sent()
    async with playing(desk(Wish, got, says=objection, state=state)) as play:
        staff = play.discord.role("Staff")["id"]
        bob, carol = (play.discord.user(name).id for name in ("bob", "carol"))
        wish = {"Size": size, "People": ["bob", "carol"], "Both": ["Staff", "bob"], "Colour": ["blue"], "Sure": True}
        for times in (1, 2):  # as often as it takes
            refused = await (play.alice.submit(wish) if times > 1 else filled_in(play, wish))
            assert refused.message and sentence in play.discord.text(refused.message)
            assert refused.message["flags"] & 64  # for this person alone
            again = await play.alice.click("Try again")
            assert again.form and again.form["title"] == "Wish"
            assert presets(again.form) == [
                size,
                [(bob, "user"), (carol, "user")],
                [(staff, "role"), (bob, "user")],
                ["blue"],
                True,
            ]
        await play.alice.submit({"Size": "9"})
        await play.at_rest()
        assert play.shown == 3
        assert (got[-1].size, name_of(got[-1].both), got[-1].colour) == (9, ["Staff", "bob"], ["blue"])
        await (await play.click("bob")).answered()
        await play.discord.user("bob").submit(wish | {"Size": "1"})
        await play.at_rest()
        assert play.shown == 6  # the message is still the view's own
        assert not await play.failed()


async def test_what_was_chosen_is_kept_and_what_was_taken_away_stays_away() -> None:
    form = form_of(
        text=(str, TextInput("Text", required=False)),
        colour=(list[str], Select("Colour", options=[Option("red", default=True), "blue"], min_values=0)),
        people=(list[int], UserSelect("People", defaults=[1], min_values=0)),
        boxes=(list[str], CheckboxGroup("Boxes", [Option("a", default=True), "b"], required=False)),
        one=(str, RadioGroup("One", ["a", "b"])),
    )
    async with playing(desk(form, [], says=lambda form: "No.")) as play:
        await filled_in(play, {"Text": "", "Colour": [], "People": [], "Boxes": ["b"], "One": "b"})
        again = await play.alice.click("Try again")
        assert again.form
        assert presets(again.form) == ["", [], [], ["b"], ["b"]]


async def test_a_refused_form_whose_file_was_chosen_wants_it_again() -> None:
    form = form_of(text=(str, TextInput("Text")), file=(hikari.Attachment, FileUpload("File")))
    got = Sent()
    async with playing(desk(form, got, says=lambda form: "No." if form.text == "no" else "")) as play:
        await filled_in(play, {"Text": "no", "File": ("a.txt", b"a")})
        again = await play.alice.click("Try again")
        assert again.form
        assert presets(again.form) == ["no", None]
        await play.alice.submit({"Text": "yes", "File": ("b.txt", b"b")})
        assert not await play.failed()
        assert [name_of(form.file) for form in got] == ["a.txt", "b.txt"]


BOUNDED = Annotated[int, msgspec.Meta(ge=1, le=10)]
WRONG: list[tuple[Any, Any, Any]] = [
    (int, TextInput("A"), "five"),
    (int, TextInput("A"), "2.5"),
    (BOUNDED, TextInput("A"), "11"),
    (list[BOUNDED], CheckboxGroup("A", ["1", "11"]), ["1", "11"]),
    (float, TextInput("A"), "nan"),
    (float, TextInput("A"), "1e999"),
    (bool, TextInput("A"), "perhaps"),
    (Literal["yes", "no"], TextInput("A"), "maybe"),
    (Colour, TextInput("A"), "green"),
    (int | None, TextInput("A", required=False), "x"),
]


@pytest.mark.parametrize(("hint", "control", "given_"), WRONG)
def test_what_is_no_value_of_the_fields_type_is_said_with_the_fields_label(
    hint: Any, control: Any, given_: Any
) -> None:
    with pytest.raises(FormError) as refused:
        form_of(a=(hint, control)).read({"a": given_}, {})
    assert str(refused.value) == "“A” is not what is asked for."


def test_a_text_that_is_the_id_of_something_else_in_the_form_stays_a_text() -> None:
    form = form_of(
        text=(str, TextInput("A")),
        chosen=(str, Select("B", options=["5"])),
        boxes=(list[int], CheckboxGroup("C", ["5", "6"])),
        role=(hikari.Role, RoleSelect("D")),
    )
    role: Any = object()
    sent: Any = form.read({"text": "5", "chosen": ["5"], "boxes": ["5", "6"], "role": ["5"]}, {"5": role})
    assert (sent.text, sent.chosen, sent.boxes, sent.role) == ("5", "5", [5, 6], role)


@pytest.mark.parametrize("typed", [{}, {"a": None}, {"a": ["x"]}, {"a": True}, {"a": {}}, {"a": [[]]}, {"b": "1"}])
@pytest.mark.parametrize(("hint", "control"), [(int, TextInput("A")), (list[int], UserSelect("A", max_values=2))])
def test_what_no_form_of_ours_sends_is_refused_and_breaks_nothing(hint: Any, control: Any, typed: Json) -> None:
    form = form_of(a=(hint, control))
    try:
        assert form.read(typed, {}).a in (None, [])  # type: ignore
    except FormError as error:
        assert str(error) == "“A” is not what is asked for."


# Restarts


@pytest.mark.parametrize("carried", [False, True], ids=["InStore", "InMessage"])
async def test_a_form_survives_kill_9_while_it_is_filled_in_and_while_it_is_filled_in_again(
    carried: bool, tmp_path: Path
) -> None:
    wish = {"Size": "10", "Who": ["bob"], "Both": ["Staff", "bob"], "Colour": "blue", "Sure": True}
    async with Discord() as discord:
        alice, bob, staff = discord.user("alice"), discord.user("bob").id, discord.role("Staff")["id"]
        process = await start(discord, "forms", tmp_path / "bot.db")

        async def die() -> None:
            process.kill()
            await process.wait()
            await process.start()
            await process.ready(30)

        message = (await alice.command("post", carried=carried)).message
        assert message
        assert (await alice.click("0")).form
        await die()
        refused = await alice.submit(wish)
        assert refused.message and "Nine is the most." in discord.text(refused.message)
        await die()
        again = await alice.click("Try again")
        assert again.form
        assert presets(again.form) == ["10", [(bob, "user")], [(staff, "role"), (bob, "user")], ["blue"], True]
        await die()
        await alice.submit({"Size": "5"})
        await until(lambda: shown(discord, message) == 105)
        await alice.click("+1")  # on the message itself, which the view has never left
        await until(lambda: shown(discord, message) == 106)
        left = "SELECT key FROM inbox WHERE done_at IS NULL UNION SELECT key FROM failed"
        await until(lambda: not rows(tmp_path / "bot.db", left))


@IN_BOTH
async def test_a_form_filled_in_again_after_its_notice_has_expired_never_moves_the_view(state: Any) -> None:
    async with playing(desk(Wish, [], says=objection, state=state)) as play:
        wish = {"Size": "10", "People": ["bob"], "Both": ["bob"], "Colour": [], "Sure": True}
        play.discord.user("bob")
        await filled_in(play, wish)
        assert (await play.alice.click("Try again")).form
        await play.app.store._write(bot.statements(("DELETE FROM record WHERE name='_form'", ())))  # pyright: ignore
        used = await play.alice.submit({"Size": "9"})
        await play.at_rest()
        if isinstance(state, InMessage):  # there is nothing that says which message it was about
            assert play.shown == 0
            assert used.message and "This has expired." in play.discord.text(used.message)
        else:
            assert play.shown == 3
        await play.click("bob")
        await play.discord.user("bob").submit(wish | {"Size": "1"})
        await play.at_rest()
        assert play.shown == (3 if isinstance(state, InMessage) else 6)


@IN_BOTH
async def test_a_refused_form_on_an_ephemeral_view_counts_and_the_next_click_shows_it(state: Any) -> None:
    cls = desk(Wish, [], says=objection, state=state)

    @bot.command("mine", "Post it for one.")
    async def mine(ctx: bot.CommandContext) -> None:
        await ctx.respond(cls(), ephemeral=True)

    async with Discord() as discord, running(discord, cls, mine) as app:
        alice, wish = discord.user("alice"), {"Size": "10", "People": ["alice"], "Both": ["alice"], "Colour": []}
        used = await alice.command("mine")
        assert used.message
        play = Play(discord, app, alice, used.message)
        await filled_in(play, wish)
        await until(lambda: len(discord.messages(seen_by="alice")) == 2)
        assert (await alice.click("Try again")).form
        done = await alice.submit({"Size": "9"})
        assert done.message and discord.text(done.message) == "Done."  # the notice, which Discord lets nobody else end
        await filled_in(play, wish | {"Size": "9"})
        await until(lambda: play.shown == 6)
        assert not await play.failed()


# When a form cannot be opened


def late_opener(*, opens_form: bool, before: Callable[[ComponentContext], Any]) -> Any:
    """A view whose button does something else before it opens the form."""

    async def press(self: Any, ctx: ComponentContext) -> None:
        await before(ctx)
        await ctx.open(Rename(), then=self.sent)

    async def sent(self: Any, ctx: ComponentContext, form: Rename) -> None: ...

    return view(handler(opens_form=opens_form)(press), members={"sent": handler(sent)})


async def wait(ctx: ComponentContext) -> None:
    await asyncio.sleep(0.5)


@pytest.mark.parametrize("opens_form", [True, False])
async def test_only_a_handler_that_says_so_is_left_the_time_to_open_a_form(
    opens_form: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bot, "AUTO_DEFER_AFTER_S", 0.1)
    async with playing(late_opener(opens_form=opens_form, before=wait)) as play:
        used = await play.click()
        failed = await play.failed()
        if opens_form:
            assert used.form and not failed
        else:
            (failure,) = [each.failure for each in failed]
            assert failure.text.startswith(
                "a form can only be the first answer, and there was one. Open it before all else"
            )


async def test_a_form_after_an_answer_is_one_sentence_on_the_failed_list() -> None:
    async def answer(ctx: ComponentContext) -> None:
        await ctx.respond("First this.")

    async with playing(late_opener(opens_form=True, before=answer)) as play:
        await play.click()
        (failure,) = [each.failure for each in await play.failed()]
        assert failure.type == "RuntimeError"
        assert failure.text.startswith(
            "a form can only be the first answer, and there was one. Open it before all else"
        )


async def test_a_form_that_comes_too_late_is_on_the_failed_list_and_a_retry_says_the_same() -> None:
    async def oversleep(ctx: ComponentContext) -> None:
        play.discord.clock.advance(4)
        await asyncio.sleep(0.05)  # over HTTP it is the end of the connection that tells

    async with playing(late_opener(opens_form=True, before=oversleep)) as play:
        assert (await play.click()).state == "failed"
        for _ in range(2):
            (failure,) = [each.failure for each in await play.failed()]
            assert failure.type == "ExpiredError"
            assert failure.text == "it was too late to open a form: Discord takes it within 3 s of the click alone"
            await play.app.retry_failed()
            await until(play.app.failed)


@IN_BOTH
async def test_a_form_of_somebody_who_may_not_use_the_view_is_refused_when_it_is_sent(state: Any) -> None:
    got, allowed = Sent(), {"alice", "bob"}

    async def check(self: Any, ctx: ComponentContext) -> bool:
        return ctx.user.username in allowed

    cls = desk(Rename, got, state=state)
    cls.check = check
    async with playing(cls) as play:
        await opened(play, "bob")
        allowed.remove("bob")
        used = await play.discord.user("bob").submit({"New name": "Bert"})
        assert used.message and play.discord.text(used.message) == "This is not for you."
        assert not got
        await filled_in(play, {"New name": "Bert"})
        assert len(got) == 1


@pytest.mark.parametrize("other", [Feedback, Rename])
async def test_a_form_that_its_handler_does_not_take_is_refused_before_it_is_opened(other: Any) -> None:
    async def press(self: Any, ctx: ComponentContext) -> None:
        await ctx.open(other(), *([] if other is Feedback else ["three"]), then=self.sent)

    async def sent(self: Any, ctx: ComponentContext, form: Rename, step: int) -> None: ...

    async with playing(view(handler(opens_form=True)(press), members={"sent": handler(sent)})) as play:
        used = await play.click()
        assert used.form is None
        (failure,) = [each.failure for each in await play.failed()]
        assert failure.type == "LayoutError"
        assert (
            failure.text
            == {
                Feedback: "sent takes no Feedback. Write: async def sent(self, ctx: ComponentContext, form: Feedback)",
                Rename: "Counter.sent cannot be called with ('three',): Expected `int`, got `str` - at `$[0]`.",
            }[other]
        )


# Mistakes are found where the form is listed, and named with the handler that takes it


def asked(control: Any, hint: Any = str) -> type[Form]:
    return form_of(answer=(hint, control))


def titled(title: str) -> type[Form]:
    return types.new_class("Asked", (Form,), {"title": title}, lambda names: names.update(a=TextDisplay("a")))


def fields_of(count: int) -> type[Form]:
    return form_of(**{f"field{number}": (str, TextInput("A")) for number in range(count)})


class Limit(NamedTuple):
    """A form with `n` of something: from `least` to `most` are taken, beyond is refused in a sentence."""

    make: Callable[[int], type[Form]]
    least: int
    most: int
    says: str


def counted(what: str, least: int, most: int, unit: str = "characters") -> str:
    return f"{what} has {{n}} {unit}; Discord allows {least} to {most:,}."


def numbered(count: int) -> list[str]:
    return [str(number) for number in range(count)]


LIMITS: dict[str, Limit] = {
    "title": Limit(lambda n: titled("x" * n), 1, 45, counted("form: title", 1, 45)),
    "fields": Limit(fields_of, 1, 5, "{n} fields; Discord allows 1 to 5."),
    "label": Limit(lambda n: asked(TextInput("x" * n)), 1, 45, counted("{label}: label", 1, 45)),
    "description": Limit(
        lambda n: asked(TextInput("A", description="x" * n)), 0, 100, counted('label "A": description', 1, 100)
    ),
    "placeholder": Limit(
        lambda n: asked(TextInput("A", placeholder="x" * n)), 0, 100, counted('label "A": placeholder', 1, 100)
    ),
    "placeholder of a select": Limit(
        lambda n: asked(Select("A", options=["a"], placeholder="x" * n)),
        0,
        150,
        counted('label "A": placeholder', 1, 150),
    ),
    "options": Limit(
        lambda n: asked(Select("A", options=numbered(n))), 1, 25, counted('label "A": options', 1, 25, "entries")
    ),
    "buttons": Limit(
        lambda n: asked(RadioGroup("A", numbered(n))), 2, 10, counted('label "A": options', 2, 10, "entries")
    ),
    "boxes": Limit(
        lambda n: asked(CheckboxGroup("A", numbered(n)), list[str]),
        1,
        10,
        counted('label "A": options', 1, 10, "entries"),
    ),
    "files": Limit(
        lambda n: asked(FileUpload("A", max_values=n), list[int]),
        1,
        10,
        'label "A": min_values=1, max_values={n} do not fit the 10 that Discord allows.',
    ),
    "people": Limit(
        lambda n: asked(UserSelect("A", max_values=n), list[int]),
        1,
        25,
        'label "A": min_values=1, max_values={n} do not fit the 25 that Discord allows.',
    ),
    "people chosen beforehand": Limit(
        lambda n: asked(UserSelect("A", defaults=range(n), max_values=3), list[int]),
        0,
        3,
        'label "A": more options are chosen by default than max_values=3.',
    ),
    "boxes that must be ticked": Limit(
        lambda n: asked(CheckboxGroup("A", ["1", "2"], min_values=n), list[str]),
        0,
        2,
        'label "A": min_values={n}, max_values=2 do not fit 2 options.',
    ),
    "most characters": Limit(
        lambda n: asked(TextInput("A", max_length=n)),
        1,
        4000,
        'label "A": min_length=0, max_length={n} do not fit the 4,000 that Discord allows.',
    ),
    "fewest characters": Limit(
        lambda n: asked(TextInput("A", min_length=n, max_length=7)),
        0,
        7,
        'label "A": min_length={n}, max_length=7 do not fit the 4,000 that Discord allows.',
    ),
    "text": Limit(
        lambda n: form_of(text=TextDisplay("x" * n), answer=(str, TextInput("A"))),
        1,
        4000,
        counted("{text}: content", 1, 4000),
    ),
}


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_as_much_as_discord_allows_is_taken_and_one_more_is_refused_where_the_form_is_listed(limit: Limit) -> None:
    for number in {limit.least, limit.most}:
        limits.check_form(modal(limit.make(number)()))
        assert check_says(desk(limit.make(number), [])) == ""
    for number in ({limit.least - 1} - {-1}) | {limit.most + 1}:
        dots = f' "{"x" * 30}…"' if number > 30 else ""
        sentence = limit.says.format(n=number, label=f"label{dots}", text=f"text{dots}")
        assert check_says(desk(limit.make(number), [])) == f"Counter.sent: form Asked: {sentence}"


WRONG_FIELDS: dict[str, tuple[Callable[[], type[Form]], str]] = {
    "no type": (
        lambda: types.new_class("Asked", (Form,), {"title": "T"}, lambda names: names.update(answer=TextInput("A"))),
        "answer needs a type such as str, int or list[str].",
    ),
    "a list of anything": (lambda: asked(TextInput("A"), list), "answer needs a type such as str, int or list[str]."),
    "a set": (
        lambda: asked(CheckboxGroup("A", ["a"]), set[str]),
        "answer needs a type such as str, int or list[str].",
    ),
    "a person that is typed": (
        lambda: asked(TextInput("A"), hikari.User),
        "answer is no User: a text input needs one such as str or int.",
    ),
    "a text that is chosen from people": (
        lambda: asked(UserSelect("A")),
        "answer is no str: a select needs int for ids, or hikari's class.",
    ),
    "a file as bytes": (
        lambda: asked(FileUpload("A"), bytes),
        "answer is no bytes: a file upload needs int for ids, or hikari's class.",
    ),
    "one where there may be several": (
        lambda: asked(CheckboxGroup("A", ["a", "b"])),
        "answer may get several values. Write answer: list[…]",
    ),
    "something where there may be nothing": (
        lambda: asked(TextInput("A", required=False), int),
        "answer may be left empty. Write answer: … | None",
    ),
    "someone where there may be nobody": (
        lambda: asked(UserSelect("A", min_values=0), int),
        "answer may be left empty. Write answer: … | None",
    ),
    "the same value twice": (
        lambda: asked(Select("A", options=["a", Option("b", "a")])),
        'label "A": two options have the same value.',
    ),
    "two radio buttons pressed": (
        lambda: asked(RadioGroup("A", [Option("a", default=True), Option("b", default=True)])),
        'label "A": more options are chosen by default than max_values=1.',
    ),
    "a row": (
        lambda: form_of(row=bot.Row(bot.LinkButton("https://example.org", label="L")), answer=(str, TextInput("A"))),
        "row cannot stand in a form.",
    ),
    "a button": (
        lambda: form_of(row=bot.Row(bot.Button(Counting.press, label="B")), answer=(str, TextInput("A"))),
        "a component that calls a handler must stand in a view's render().",
    ),
}


@pytest.mark.parametrize(("make", "sentence"), WRONG_FIELDS.values(), ids=WRONG_FIELDS)
def test_what_cannot_be_a_field_is_named_where_the_form_is_listed(
    make: Callable[[], type[Form]], sentence: str
) -> None:
    assert check_says(desk(make(), [])) == f"Counter.sent: form Asked: {sentence}"


def test_a_type_that_cannot_be_found_is_named_with_the_handler() -> None:
    says = check_says(desk(form_of(answer=("Nowhere", TextInput("A"))), []))
    assert says == f"Counter.sent: name 'Nowhere' is not defined. {bot.TYPES_MEANT}"


def test_a_form_of_a_command_is_listed_under_a_name_of_its_own() -> None:
    assert check_says(feedback, Feedback) == ""
    assert check_says(Feedback, view(name="feedback")) == "Counter: Feedback is registered as 'feedback' already."
    assert check_says(Rename) == "Rename: '' is no name. Use up to 32 of a-z, 0-9 and _, a letter first."


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: UserSelect("A", disabled=True), "a select in a form takes no disabled."),
        (lambda: UserSelect(Counting.press, required=False), "a select in a message takes no required."),
        (lambda: Select(Counting.press, options=["a"], labl="A"), "a select in a message takes no labl."),
    ],
)
def test_a_select_is_told_apart_by_its_label_or_handler(make: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(LayoutError) as refused:
        make()
    assert str(refused.value) == sentence


@pytest.mark.parametrize("control", [TextInput("A"), Select("A", options=["a"]), Checkbox("A")])
def test_a_control_of_a_form_does_not_stand_in_a_message(control: Any) -> None:
    with pytest.raises(LayoutError) as refused:
        bot.assemble(lambda: control, bot.no_handler, "edit")
    assert str(refused.value) == 'edit: "A" belongs into a form. In a message, a select begins with its handler.'


# The playground's validator was written by somebody else from the same pages: both must say the same of a form


# Discord's pages name this one, and its OpenAPI does not.
CHANNEL_TYPES = [each for each in hikari.ChannelType if each is not hikari.ChannelType.GUILD_MEDIA]


class FormMaker:
    """Draws forms with all within Discord's limits but for one kind of thing, `odd`: at its limit or beyond."""

    ODD: ClassVar = {  # and the control that has such a thing
        **dict.fromkeys(("title", "fields", "text", "place"), "field"),
        **dict.fromkeys(("label", "description", "placeholder", "min_length", "max_length", "value"), "text_input"),
        **dict.fromkeys(("default_values", "channel_types"), "entity_select"),
        **dict.fromkeys(("options", "option label", "option value", "same value", "defaults"), "options_of_a_kind"),
        **dict.fromkeys(("min_values", "max_values", "required"), "several"),
    }

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.odd = draw(st.sampled_from([*self.ODD]))

    def one_of(self, *values: Any) -> Any:
        return self.draw(st.sampled_from(values))

    def words(self, what: str, most: int, least: int = 1) -> str:
        return "x" * (self.one_of(0, most, most + 1) if what == self.odd else self.one_of(least, 3))

    def about(self) -> Json:
        return {"description": self.words("description", 100, 0)}

    def text_input(self) -> Any:
        low = self.one_of(-1, 0, 5, 4000, 4001) if self.odd == "min_length" else 0
        high = self.one_of(-1, 0, 1, 5, 4000, 4001) if self.odd == "max_length" else 4000
        hint = self.words("placeholder", 100, 0)
        return TextInput(
            self.words("label", 45),
            min_length=low,
            max_length=high,
            placeholder=hint,
            long=self.one_of(True, False),
            required=self.one_of(True, False),
            **self.about(),
        )

    def options(self, least: int, most: int) -> list[Option]:
        count = self.one_of(0, 1, 2, most, most + 1) if self.odd == "options" else self.one_of(least, least + 1)
        chosen = self.one_of(0, 1, 2, count) if self.odd == "defaults" else 0
        return [self.option(number)._replace(default=number < chosen) for number in range(count)]

    def option(self, number: int) -> Option:
        value = str(number)
        if self.odd in ("option value", "same value"):
            value = self.one_of("x" * 100, "x" * 101, value) if self.odd == "option value" else self.one_of("1", value)
        return Option(self.words("option label", 100), value, self.one_of("", "d"), self.one_of("", "👍"))

    def numbers(self, most: int) -> Json:
        """min_values, max_values and required."""
        high = self.one_of(0, 1, 2, most, most + 1) if self.odd == "max_values" else 1
        low = self.one_of(-1, 0, 1, high, high + 1) if self.odd == "min_values" else self.one_of(0, 1)
        required = {"required": self.one_of(True, False)} if self.odd == "required" else {}
        return {"max_values": high, "min_values": low, **required}

    def select(self) -> Any:
        options, hint = self.options(1, 25), self.words("placeholder", 150, 0)
        return Select(self.words("label", 45), options=options, placeholder=hint, **self.numbers(len(options)))

    def entity_select(self) -> Any:
        look: Json = {"placeholder": self.words("placeholder", 150, 0), **self.numbers(25)}
        kind = self.one_of(UserSelect, RoleSelect, MentionableSelect, ChannelSelect)
        if self.odd == "default_values":
            look["defaults"] = range(self.one_of(0, 1, 2, 25, 26))
        if self.odd == "channel_types":
            look["types"], kind = self.draw(st.lists(st.sampled_from(CHANNEL_TYPES), max_size=4)), ChannelSelect
        return kind(self.words("label", 45), **look)

    def radio_group(self) -> Any:
        return RadioGroup(self.words("label", 45), self.options(2, 10), required=self.one_of(True, False))

    def checkbox_group(self) -> Any:
        options = self.options(1, 10)
        numbers = self.one_of({"required": self.one_of(True, False)}, self.numbers(len(options)))
        return CheckboxGroup(self.words("label", 45), options, **numbers)

    def options_of_a_kind(self) -> Any:
        return self.one_of(self.select, self.radio_group, self.checkbox_group)()

    def several(self) -> Any:
        return self.one_of(self.select, self.entity_select, self.checkbox_group, self.upload)()

    def upload(self) -> Any:
        return FileUpload(self.words("label", 45), **self.numbers(10))

    def field(self) -> Any:
        if self.odd == "place" and self.one_of(True, False):
            return self.one_of(bot.Separator(), bot.Row(bot.LinkButton("https://a.b", label="L")))
        if self.one_of(True, False, False, False):
            return TextDisplay(self.words("text", 4000))
        box = Checkbox(self.words("label", 45), **self.about())
        return self.one_of(self.text_input, self.options_of_a_kind, self.several, lambda: box)()

    def form(self) -> Form:
        count = self.one_of(0, 5, 6) if self.odd == "fields" else self.one_of(1, 2, 3)
        fields = {f"field{number}": self.field() for number in range(1, count)}
        fields |= {"field0": getattr(self, self.ODD[self.odd])()} if count else {}
        title = {"title": self.words("title", 45)}
        form = types.new_class("Asked", (Form,), title, lambda names: names.update(fields))
        filled = self.odd == "value"
        texts = [name for name, each in form.fields().items() if each.fields["type"] == bot.TEXT_INPUT]
        return form(**{name: self.words("value", 4000, 0) for name in texts if filled})


def unchecked(form: Form) -> Json:
    """The form as a request would have it if nobody looked."""
    parts = [
        each.build_as(name, getattr(form, name)) if isinstance(each, bot.Field) else each.build(bot.no_handler)
        for name, each in form.controls.items()
    ]
    return {"title": form.form_title, "custom_id": "1", "components": parts}


def test_bot_and_playground_refuse_the_same_forms_and_what_they_take_fits_the_schema() -> None:
    taken = {True: 0, False: 0}

    @settings(max_examples=600, deadline=None, derandomize=True, database=None)
    @given(st.composite(lambda draw: FormMaker(draw).form())())
    def compare(form: Form) -> None:
        by_bot = is_taken(form.build)
        assert by_bot == is_taken(lambda: limits.check_form(unchecked(form))), unchecked(form)
        if by_bot and openapi.IS_HERE:
            assert not openapi.misfits("/components/schemas/ModalInteractionCallbackRequestData", modal(form), "form")
        taken[by_bot] += 1

    compare()
    assert min(taken.values()) > 150, taken


def is_taken(check: Callable[[], object]) -> bool:
    try:
        check()
    except (LayoutError, Refused):
        return False
    return True
