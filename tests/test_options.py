"""Section 6: each type of option, from the function to Discord's list and from a person back to the function."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, NamedTuple, Optional

import hikari
import pytest

import bot
from bot import Autocomplete, AutocompleteContext, CommandContext, Localized, Range
from playground import Discord
from tests import kit, openapi
from tests.kit import Json
from tests.test_commands import command, why_refused, with_option

pytestmark = pytest.mark.both_modes

REQUEST = "/paths/~1applications~1{application_id}~1commands/put/requestBody/content/application~1json/schema"


class Colour(enum.Enum):
    RED = "r"
    DARK_BLUE = "db"


class Weight(enum.IntEnum):
    LIGHT = 1
    HEAVY = 20


class Share(enum.Enum):
    HALF = 0.5
    ALL = 1.0


async def nothing(ctx: AutocompleteContext, typed: str) -> list[str]:
    return []


class Case(NamedTuple):
    """An option as it is declared, what of it is registered, what a person gives, and what the function then has."""

    hint: Any
    registered: Json
    given: Any
    gets: Callable[[Any], Any]


def is_value(value: Any) -> Callable[[Any], Any]:
    return lambda got: (type(got), got) == (type(value), value)


def is_named(kind: type, name: str) -> Callable[[Any], Any]:
    """Whether it is one of hikari's objects with that name."""
    return lambda got: isinstance(got, kind) and name in (getattr(got, "username", ""), getattr(got, "name", ""))


async def has_bytes(got: Any) -> bool:
    return isinstance(got, hikari.Attachment) and await got.read() == b"hello"


AUTO = Autocomplete(nothing)
FEW = [{"name": "a", "value": "a"}, {"name": "b c", "value": "b c"}]
TYPES = (hikari.ChannelType.GUILD_TEXT, hikari.ChannelType.GUILD_NEWS)
CASES: dict[str, Case] = {
    "text": Case(str, {"type": 3}, "x", is_value("x")),
    "a text of a length": Case(Annotated[str, Range(2, 5)], {"min_length": 2, "max_length": 5}, "abc", is_value("abc")),
    "a text of a least length": Case(Annotated[str, Range(3)], {"min_length": 3}, "abc", is_value("abc")),
    "a text with suggestions": Case(Annotated[str, AUTO], {"type": 3, "autocomplete": True}, "own", is_value("own")),
    "whole number": Case(int, {"type": 4}, -(2**53), is_value(-(2**53))),
    "within": Case(Annotated[int, Range(0, 10)], {"min_value": 0, "max_value": 10}, 0, is_value(0)),
    "at most": Case(Annotated[int, "Most", Range(high=0)], {"max_value": 0, "description": "Most"}, 0, is_value(0)),
    "number": Case(float, {"type": 10}, 2.5, is_value(2.5)),
    "a number without a fraction": Case(float, {"type": 10}, 3, is_value(3.0)),
    "a number within": Case(Annotated[float, Range(-0.5, 1)], {"min_value": -0.5, "max_value": 1}, 1, is_value(1.0)),
    "yes": Case(bool, {"type": 5}, True, is_value(True)),
    "no": Case(bool, {"type": 5}, False, is_value(False)),
    "user": Case(hikari.User, {"type": 6}, "bob", is_named(hikari.User, "bob")),
    "member": Case(hikari.InteractionMember, {"type": 6}, "bob", is_named(hikari.InteractionMember, "bob")),
    "role": Case(hikari.Role, {"type": 8}, "Moderator", is_named(hikari.Role, "Moderator")),
    "channel": Case(hikari.InteractionChannel, {"type": 7}, "random", is_named(hikari.InteractionChannel, "random")),
    "channel of two types": Case(
        Annotated[hikari.InteractionChannel, *TYPES], {"channel_types": [0, 5]}, "random",
        is_named(hikari.InteractionChannel, "random"),
    ),
    "mentionable person": Case(hikari.User | hikari.Role, {"type": 9}, "bob", is_named(hikari.User, "bob")),
    "mentionable role": Case(hikari.Role | hikari.User, {"type": 9}, "Moderator", is_named(hikari.Role, "Moderator")),
    "file": Case(hikari.Attachment, {"type": 11}, ("a.txt", b"hello"), has_bytes),
    "one of texts": Case(Literal["a", "b c"], {"type": 3, "choices": FEW}, "b c", is_value("b c")),
    "one of numbers": Case(
        Literal[1, 7], {"type": 4, "choices": [{"name": "1", "value": 1}, {"name": "7", "value": 7}]}, 7, is_value(7)
    ),
    "enum of texts": Case(
        Colour, {"type": 3, "choices": [{"name": "RED", "value": "r"}, {"name": "DARK BLUE", "value": "db"}]}, "db",
        is_value(Colour.DARK_BLUE),
    ),
    "enum of whole numbers": Case(
        Weight, {"type": 4, "choices": [{"name": "LIGHT", "value": 1}, {"name": "HEAVY", "value": 20}]}, 20,
        is_value(Weight.HEAVY),
    ),
    "enum of numbers": Case(
        Share, {"type": 10, "choices": [{"name": "HALF", "value": 0.5}, {"name": "ALL", "value": 1.0}]}, 1,
        is_value(Share.ALL),
    ),
    "localized": Case(
        Annotated[str, "Where", Localized({"de": "wo"}, {"de": "Wo"})],
        {"description": "Where", "name_localizations": {"de": "wo"}, "description_localizations": {"de": "Wo"}},
        "x", is_value("x"),
    ),
    "one that may be None": Case(int | None, {"type": 4, "required": True}, 5, is_value(5)),
    "Annotated inside of Optional": Case(
        Optional[Annotated[int, "Inner", Range(1, 6)]],  # noqa: UP045
        {"type": 4, "min_value": 1, "max_value": 6, "description": "Inner"}, 6, is_value(6),
    ),
    "Optional in Annotated": Case(Annotated[Colour | None, "C"], {"description": "C"}, "r", is_value(Colour.RED)),
    "a mentionable that may be None": Case(
        hikari.User | hikari.Role | None, {"type": 9}, "Moderator", is_named(hikari.Role, "Moderator")
    ),
}  # fmt: skip


def taking(hint: Any, got: list[Any], name: str = "pick", **default: Any) -> Any:
    """The command /pick with one option of that annotation, which notes what it gets; without any it gets a default."""

    async def pick(ctx: CommandContext, which: Any) -> None:
        got.append(which)
        await ctx.respond("taken")

    pick.__annotations__["which"] = hint
    pick.__defaults__ = tuple(default.values()) or None
    return command(pick, name)


def options_of(discord: Discord, name: str = "pick") -> list[Json]:
    """The options of the command as Discord lists it."""
    [found] = [each for each in discord.world.commands_in(None) if each["name"] == name]
    return found.get("options") or []


async def test_each_type_of_option_is_registered_as_discord_wants_it_and_reaches_the_function_as_its_type() -> None:
    got: list[Any] = []
    commands = [taking(case.hint, got, f"c{number}") for number, case in enumerate(CASES.values())]
    async with Discord(check=openapi.CHECK) as discord, kit.running(discord, *commands):
        alice, wrong = discord.user("alice"), list[str]()
        for number, (name, case) in enumerate(CASES.items()):
            await alice.command(f"c{number}", which=case.given)
            await kit.until(lambda sofar=number: len(got) > sofar)
            fits = case.gets(got[-1])
            if not (await fits if isinstance(fits, Awaitable) else fits):
                wrong.append(f"{name}: the function got {got[-1]!r}")
            [there] = options_of(discord, f"c{number}")
            for choice in there.get("choices") or ():
                assert choice.pop("name_localizations") == {}
            expected = {"name": "which", "required": True, "description": "which"} | case.registered
            if {key: there.get(key) for key in expected} != expected:
                wrong.append(f"{name}: registered as {there}")
        assert not wrong, "\n".join(wrong)
        [body] = [each.data["body"] for each in discord.journal.of("rest") if each.data["method"] == "PUT"]
        assert not openapi.IS_HERE or openapi.misfits(REQUEST, body, "PUT commands") == []


@pytest.mark.parametrize(
    ("hint", "beyond"),
    [
        (Annotated[str, Range(2, 5)], "abcdef"),
        (Annotated[int, Range(0, 10)], -1),
        (Annotated[float, Range(high=1)], 1.5),
        (Literal["a", "b"], "c"),
        (Annotated[hikari.InteractionChannel, hikari.ChannelType.GUILD_VOICE], "random"),
        (hikari.Role, "bob"),
    ],
)
async def test_discord_holds_people_to_what_was_registered(hint: Any, beyond: Any) -> None:
    got: list[Any] = []
    async with Discord() as discord, kit.running(discord, taking(hint, got)):
        with pytest.raises(ValueError, match="which"):
            await discord.user("alice").command("pick", which=beyond)
    assert got == []


@pytest.mark.parametrize("hint", [int, Colour, hikari.User, hikari.User | hikari.Role | None, hikari.Attachment])
async def test_an_option_with_a_default_may_be_left_out(hint: Any) -> None:
    got: list[Any] = []
    async with Discord() as discord, kit.running(discord, taking(hint, got, default="left out")):
        await discord.user("alice").command("pick")
        assert (got, options_of(discord)[0]["required"]) == (["left out"], False)


async def test_in_a_private_message_a_user_is_a_user_and_nobody_is_a_member() -> None:
    got: list[Any] = []
    commands = taking(hikari.User, got, "user"), taking(hikari.InteractionMember, got, "member")
    async with Discord() as discord, kit.running(discord, *commands) as app:
        alice = discord.user("alice")
        await alice.command("user", which="bob", channel="dm")
        assert [isinstance(each, hikari.User) and not isinstance(each, hikari.Member) for each in got] == [True]
        used = await alice.command("member", which="bob", channel="dm")
        assert discord.text(used.message) == bot.Texts().server_only
        assert await app.failed() == []


# What an older list of commands still lets people send


async def used_as(discord: Discord, app: bot.App, **data: Any) -> tuple[str, list[bot.FailedEvent]]:
    """What alice is told, and the failed list, when she uses /pick and her Discord sends this for it."""
    alice, begin = discord.user("alice"), discord.interactions.begin
    command = next(iter(discord.world.commands_in(None)))
    channel = discord.world.channel_of(None)
    made = begin(
        "command", alice.user, channel["id"], {"id": command["id"], "type": 1, "name": "pick"} | data, command=command
    )
    await kit.until(lambda: made.is_acknowledged)
    return discord.text(made.original.message if made.original else None), await app.failed()


@pytest.mark.parametrize(
    ("hint", "option", "problem"),
    [
        (Colour, {"type": 3, "value": "gone"}, "ValueError: option which: 'gone' is not a valid Colour"),
        (Literal["a", "b"], {"type": 3, "value": "gone"}, "ValueError: option which: Invalid enum value 'gone'"),
        (int, {"type": 3, "value": "5"}, "ValueError: option which: Expected `int`, got `str`"),
        (hikari.User, {"type": 6, "value": "77"}, "ValueError: option which: 77 is no User that is known here"),
        (hikari.Role, {"type": 6, "value": "77"}, "ValueError: option which: 77 is no Role that is known here"),
        (int, None, "TypeError: missing 1 required positional argument: 'which'"),
    ],
)
async def test_a_value_that_does_not_fit_any_more_ends_on_the_failed_list_and_the_person_is_told(
    hint: Any, option: Json | None, problem: str
) -> None:
    got: list[Any] = []
    async with Discord() as discord, kit.running(discord, taking(hint, got)) as app:
        await kit.until(lambda: discord.world.commands_in(None))
        options = [{"name": "which", **option}] if option else []
        told, [failed] = await used_as(discord, app, options=options)
        assert told == bot.Texts().failed
        assert problem in f"{failed.failure.type}: {failed.failure.text.replace('taking.<locals>.pick() ', '')}"
        assert got == []


async def test_an_id_of_another_kind_than_the_option_asks_for_is_refused() -> None:
    got: list[Any] = []
    async with Discord() as discord, kit.running(discord, taking(hikari.Role, got)) as app:
        await kit.until(lambda: discord.world.commands_in(None))
        bob = discord.user("bob").user
        option = {"name": "which", "type": 6, "value": bob["id"]}
        _, failed = await used_as(discord, app, options=[option], resolved={"users": {bob["id"]: bob}})
        assert (got, len(failed)) == ([], 1)


async def test_an_option_that_the_bot_no_longer_has_is_left_out() -> None:
    got: list[Any] = []
    async with Discord() as discord, kit.running(discord, taking(int, got)) as app:
        await kit.until(lambda: discord.world.commands_in(None))
        options = [{"name": "which", "type": 4, "value": 5}, {"name": "gone", "type": 6, "value": "77"}]
        assert await used_as(discord, app, options=options) == ("taken", [])
        assert got == [5]


# What cannot be an option names function and parameter


async def no_list(ctx: AutocompleteContext, typed: str) -> list[str]:
    return []


def not_async(ctx: AutocompleteContext, typed: str) -> list[str]:
    return []


class Mixed(enum.Enum):
    A = 1
    B = "b"


class Many(enum.Enum):
    A = (1, 2)


WHOLE, RANGE = "which has a Range that is not of whole numbers.", "which has a Range and is neither text nor number."
LENGTHS = "which has a Range that is not 0 to 6,000 or within, low first."
NUMBERS = "which has a Range that is not -9,007,199,254,740,992 to 9,007,199,254,740,992 or within, low first."
CHOICES = "the choices of which must be all texts or all numbers."
SIZES = "each choice of which must have 1 to 100 characters."
SUGGESTED = "which has Autocomplete and is neither text nor number."


@pytest.mark.parametrize(
    ("hint", "problem"),
    [
        (Annotated[int, Range(5, 4)], NUMBERS),
        (Annotated[int, Range(high=2**53 + 1)], NUMBERS),
        (Annotated[float, Range(float("nan"))], NUMBERS),
        (Annotated[float, Range(high=float("inf"))], NUMBERS),
        (Annotated[str, Range(-1)], LENGTHS),
        (Annotated[str, Range(1, 6001)], LENGTHS),
        (Annotated[int, Range(0.5)], WHOLE),
        (Annotated[str, Range(1, 2.5)], WHOLE),
        (Annotated[bool, Range(0, 1)], RANGE),
        (Annotated[hikari.User, Range(0, 1)], RANGE),
        (Annotated[Literal[1, 2], Range(0, 1)], RANGE),
        (Mixed, CHOICES),
        (Literal[1, "a"], CHOICES),
        (Literal[True, False], CHOICES),
        (Many, CHOICES),
        (enum.Enum("Big", {f"N{number}": number for number in range(26)}), "which has 26 choices; Discord allows 25."),
        (Literal["x" * 101], SIZES),
        (Literal["", "a"], SIZES),
        (enum.Enum("Long", {"A": "x" * 101}), SIZES),
        (Annotated[bool, AUTO], SUGGESTED),
        (Annotated[Literal["a"], AUTO], SUGGESTED),
        (Annotated[str, Autocomplete(not_async)], "what suggests which is no coroutine."),  # pyright: ignore
        (Annotated[int, hikari.ChannelType.GUILD_TEXT], "which has channel types and is no InteractionChannel."),
        (Annotated[str, Localized({"xx": "wo"})], "which: Discord has no language xx. Write de, fr or en-GB, say."),
        (Annotated[str, Localized({"de": "Wo ist"})], "which: Wo ist cannot be its name."),
        (
            Annotated[str, Localized({}, {"de": "x" * 101})],
            f"which: a description has 1 to 100 characters, and a menu has none: {'x' * 50}",
        ),
    ],
)
def test_what_no_option_can_be_names_function_and_parameter(hint: Any, problem: str) -> None:
    assert why_refused(command(with_option(hint))) == f"/ask (pick): {problem}"


@pytest.mark.parametrize("hint", [{}, [int], int | None | str, Optional[list[int]], "hikari.User | hikari.User | str"])  # noqa: UP045
def test_an_annotation_that_is_no_type_of_an_option_is_refused(hint: Any) -> None:
    assert why_refused(command(with_option(hint, hikari=hikari))).startswith("/ask (pick): the parameter which must be")


@pytest.mark.parametrize("hint", ["int", "Annotated[int, Range(1, 6)]", "hikari.User | None", "Literal['a']"])
def test_annotations_may_be_texts(hint: str) -> None:
    [option] = bot.read_command(command(with_option(hint, **globals()))).options
    assert option.name == "which"


@pytest.mark.parametrize("parameters", ["*ctx", "**ctx", "*, ctx"])
def test_a_function_that_takes_no_context_in_the_first_place_is_refused(parameters: str) -> None:
    namespace: Json = {}
    exec(f"async def pick({parameters}): ...", namespace)
    assert why_refused(command(namespace["pick"])) == (
        "/ask (pick) takes no ctx. Write: async def pick(ctx: CommandContext) -> None"
    )
