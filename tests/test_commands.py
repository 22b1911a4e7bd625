"""Section 6: slash commands from annotated functions, and their registration with Discord."""

from __future__ import annotations

from typing import Annotated, Any

import hikari
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bot
from bot import AutoDefer, Command, CommandContext, OperatorError, listed, option_values, read_command
from playground import Discord, limits
from playground.errors import Refused
from tests import kit

Json = dict[str, Any]


def command(function: Any, name: str = "ask", description: str = "Ask it.") -> Any:
    """Mark the function. `why_refused` and `read_command` take it from here."""
    return bot.command(name, description)(function)


def why_refused(*functions: Any) -> str:
    """The sentence with which a bot refuses to take these."""
    app = bot.App(bot.Config())
    with pytest.raises(OperatorError) as refused:
        app.add(*functions)
    return str(refused.value)


def with_option(hint: Any, name: str = "which", **namespace: Any) -> Any:
    """A coroutine `pick` with one option of that annotation."""
    exec(f"async def pick(ctx, {name}): ...", namespace)
    pick = namespace["pick"]
    pick.__annotations__[name] = hint
    return pick


async def plain(ctx: CommandContext) -> None:
    await ctx.respond("plain")


# What a function says about its command


def test_options_come_from_annotations_and_defaults() -> None:
    async def ask(
        ctx: CommandContext,
        question: Annotated[str, 5, "What to vote on", "not this"],
        how_many: int,
        note: Annotated[str, "Shown below"] = "",
    ) -> None: ...

    read = read_command(bot.command("ask", "Ask it.", auto_defer=AutoDefer.OFF)(ask))
    assert read[:3] == ("ask", "Ask it.", ask)
    assert read.auto_defer is AutoDefer.OFF
    assert [(each.name, int(each.type), each.description, each.is_required) for each in read.options] == [
        ("question", 3, "What to vote on", True),
        ("how_many", 4, "how many", True),
        ("note", 3, "Shown below", False),
    ]


def test_required_options_come_first_and_keep_their_order() -> None:
    async def ask(ctx: CommandContext, a: int = 1, *, b: int, c: str = "", d: str) -> None: ...

    assert [option.name for option in read_command(command(ask)).options] == ["b", "d", "a", "c"]


def test_a_command_without_options_defers_with_a_message() -> None:
    assert read_command(command(plain)) == Command("ask", "Ask it.", plain, (), AutoDefer.MESSAGE)


async def no_context() -> None: ...


def no_coroutine(ctx: CommandContext) -> None: ...


async def starred(ctx: CommandContext, *names: str) -> None: ...


async def double_starred(ctx: CommandContext, **names: str) -> None: ...


async def by_place(ctx: CommandContext, name: str, /) -> None: ...


@pytest.mark.parametrize(
    ("function", "start"),
    [
        (no_coroutine, "/ask (no_coroutine) is no coroutine. Write: async def"),
        (no_context, "/ask (no_context)"),
        (starred, "/ask (starred): the parameter names "),
        (double_starred, "/ask (double_starred): the parameter names "),
        (by_place, "/ask (by_place): the parameter name "),
    ],
)
def test_a_function_that_no_command_could_call_is_refused(function: Any, start: str) -> None:
    assert why_refused(command(function)).startswith(start)


@pytest.mark.parametrize("name", ["", "Ask", "a.b", "a/b", "a\n", "x" * 33])
def test_a_name_that_discord_refuses_is_refused(name: str) -> None:
    assert why_refused(command(plain, name)) == (
        f"/{name} (plain): {name!r} is no command name. Use 1 to 32 lower-case letters, digits, - and _."
    )


@pytest.mark.parametrize("name", ["a", "a-b_9", "x" * 32, "größe", "質問"])
def test_a_name_that_discord_takes_is_taken(name: str) -> None:
    bot.App(bot.Config()).add(command(plain, name))
    limits.check_command({"name": name, "description": "d"})


def test_a_group_has_two_levels_at_most_and_single_spaces() -> None:
    assert (
        why_refused(command(plain, "a b c d"))
        == "/a b c d (plain): a name has one to three words of 1 to 32 characters."
    )
    assert why_refused(command(plain, "a  b")).startswith("/a  b (plain): '' is no command name.")


@pytest.mark.parametrize("length", [0, 101])
def test_a_description_of_a_wrong_length_is_refused(length: int) -> None:
    assert why_refused(command(plain, "ask", "x" * length)) == (
        f"/ask (plain): its description has {length} characters; Discord allows 1 to 100."
    )


OPTIONS = "str, int, float, bool, User, InteractionMember, Role, InteractionChannel, Attachment"


@pytest.mark.parametrize("hint", [object, None, list[str], str | int, hikari.Member, "bytes"])
def test_an_option_of_a_type_that_is_none_names_function_and_parameter(hint: Any) -> None:
    assert why_refused(command(with_option(hint))) == (
        f"/ask (pick): the parameter which must be one of {OPTIONS} to be an option."
    )


def test_an_option_without_annotation_is_refused_likewise() -> None:
    async def pick(ctx, which) -> None: ...

    assert why_refused(command(pick)) == f"/ask (pick): the parameter which must be one of {OPTIONS} to be an option."


@pytest.mark.parametrize("name", ["Which", "x" * 33])
def test_an_options_name_that_discord_refuses_is_refused(name: str) -> None:
    assert why_refused(command(with_option(str, name))) == (
        f"/ask (pick): {name} is no option name. Use up to 32 lower-case letters, digits, _."
    )


@pytest.mark.parametrize("length", [0, 101])
def test_an_options_description_of_a_wrong_length_is_refused(length: int) -> None:
    assert why_refused(command(with_option(Annotated[str, "x" * length]))) == (
        "/ask (pick): the description of which must have 1 to 100 characters."
    )


def test_a_long_parameter_name_is_a_description_too() -> None:
    assert read_command(command(with_option(str, "x" * 32))).options[0].description == "x" * 32


def test_more_than_25_options_are_refused() -> None:
    def taking(count: int) -> Any:
        namespace: Json = {}
        exec(f"async def pick(ctx, {', '.join(f'o{number}: int' for number in range(count))}): ...", namespace)
        return command(namespace["pick"])

    assert len(read_command(taking(25)).options) == 25
    assert why_refused(taking(26)) == "/ask (pick): 26 options; Discord allows 25."


def test_a_type_that_is_not_imported_is_named() -> None:
    assert why_refused(command(with_option("Nowhere"))) == (
        "/ask (pick): name 'Nowhere' is not defined. Use types such as int or str, imported where bot.py sees them."
    )


@pytest.mark.parametrize("hint", ["hikari.Nowhere", "1+"])
def test_an_annotation_that_cannot_be_read_is_one_sentence(hint: str) -> None:
    assert why_refused(command(with_option(hint, hikari=hikari))).startswith("/ask (pick): ")


def test_two_commands_cannot_share_a_name() -> None:
    async def other(ctx: CommandContext) -> None: ...

    assert why_refused(command(plain), command(other)) == "/ask is there twice. Rename one of the two commands."


NAMES = st.text("abz09-_äß質A. '", max_size=33) | st.text(max_size=3)


@settings(deadline=None)
@given(NAMES, st.text(max_size=101))
def test_what_the_bot_takes_the_playground_takes_too(name: str, description: str) -> None:
    try:
        [whole] = listed([read_command(command(plain, name, description))])
    except OperatorError:
        return
    try:
        limits.check_command({"name": whole.name, "description": whole.description})
    except Refused as refused:
        raise AssertionError((name, description)) from refused


# What a person gave


def values(**given: Any) -> Json:
    """What reaches a command with a number, a text and an optional number."""

    async def ask(ctx: CommandContext, number: int, text: str, more: int = 0) -> None: ...

    return option_values(read_command(command(ask)), [{"name": name, "value": value} for name, value in given.items()])


@pytest.mark.parametrize(
    "given",
    [
        {"number": 5, "text": "a"},
        {"text": "", "number": -(2**53)},
        {"number": 0, "text": "5", "more": 2**53},
        {},
    ],
)
def test_given_options_are_passed_on_by_name(given: Json) -> None:
    assert values(**given) == given


def test_an_option_that_the_function_no_longer_has_is_left_out() -> None:
    assert values(number=1, gone=2) == {"number": 1}


@pytest.mark.parametrize("given", [{"number": "5"}, {"number": 5.5}, {"number": None}, {"text": 5}, {"more": True}])
def test_a_value_of_another_type_is_refused(given: Json) -> None:
    [name] = given
    with pytest.raises(ValueError, match=f"^option {name}: Expected `"):
        values(**given)


async def test_a_command_is_called_with_what_a_person_typed() -> None:
    async def roll(ctx: CommandContext, sides: int, note: str = "no note", times: int = 1) -> None:
        await ctx.respond(f"{sides!r} {note!r} {times!r}")

    async with Discord() as discord, kit.running(discord, command(roll, "roll")):
        alice = discord.user("alice")
        short = await alice.command("roll", sides=6)
        long = await alice.command("roll", times=2, note='"x"', sides=-1)
        assert [discord.text(used.message) for used in (short, long)] == ["6 'no note' 1", "-1 '\"x\"' 2"]
