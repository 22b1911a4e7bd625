"""Suggestions for options: never kept, answered at once and always, typed, and as long as Discord takes them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import hikari
import pytest

import bot
from bot import Autocomplete, AutocompleteContext, CommandContext
from playground import Discord
from playground.people import Person
from tests import kit
from tests.kit import Json
from tests.test_commands import kept

pytestmark = pytest.mark.both_modes

FRUIT = ["Apple", "Banana", "Cherry"]


async def fruit(ctx: AutocompleteContext, typed: str) -> list[str]:
    return [each for each in FRUIT if each.lower().startswith(typed.lower())]


def taking(suggest: Any, kind: Any = str, name: str = "take") -> Any:
    """The command /take with an option `which` of that type and these suggestions, and two more options."""

    async def take(ctx: CommandContext, which: Any, who: hikari.User | None = None, count: int = 0) -> None:
        await ctx.respond(f"{which!r} {who and who.username} {count}")

    take.__annotations__["which"] = Annotated[kind, Autocomplete(suggest)]
    return bot.command(name, "Take it.")(take)


async def suggested(suggest: Any, kind: Any = str, typed: str = "x") -> list[Json]:
    """What alice is offered."""
    async with Discord() as discord, kit.running(discord, taking(suggest, kind)):
        return await discord.user("alice").autocomplete("take", "which", typed)


def returning(*found: Any) -> Any:
    async def suggest(ctx: AutocompleteContext, typed: str) -> Any:
        return found

    return suggest


async def test_a_person_is_offered_what_the_function_returns_and_sends_its_value() -> None:
    async with Discord() as discord, kit.running(discord, taking(fruit)):
        alice = discord.user("alice")
        offered = await alice.autocomplete("take", "which", "b")
        assert offered == [{"name": "Banana", "value": "Banana"}]
        assert await alice.autocomplete("take", "which", "zz") == []
        used = await alice.command("take", which=offered[0]["value"])
        assert discord.text(used.message) == "'Banana' None 0"
        free = await alice.command("take", which="something else")
        assert discord.text(free.message) == "'something else' None 0"


async def test_the_function_sees_who_types_what_and_where_and_what_was_given_so_far() -> None:
    seen: list[Any] = []

    async def suggest(ctx: AutocompleteContext, typed: str) -> list[str]:
        who = ctx.found[ctx.options["who"]]
        given = [typed, who.username, ctx.options["count"]]
        seen.append([*given, ctx.user.username, ctx.locale, ctx.guild_id, ctx.channel_id])
        return []

    async with Discord() as discord, kit.running(discord, taking(suggest)):
        alice = discord.user("alice")
        alice.locale = "de"
        await alice.autocomplete("take", "which", "ty", who="bob", count=7)
        channel = discord.world.channel_of(None)
        where = [int(channel["guild_id"]), int(channel["id"])]
    assert seen == [["ty", "bob", 7, "alice", "de", *where]]


@pytest.mark.parametrize("name", ["list add", "list item add"])
async def test_suggestions_for_a_command_of_a_group(name: str) -> None:
    async with Discord() as discord, kit.running(discord, taking(fruit, name=name), taking(returning(), name="list x")):
        alice = discord.user("alice")
        assert [each["value"] for each in await alice.autocomplete(name, "which", "")] == FRUIT
        assert await alice.autocomplete("list x", "which", "") == []


@pytest.mark.parametrize(
    ("kind", "found", "offered"),
    [
        (int, [1, (("two"), 2), "3", 4.0], [("1", 1), ("two", 2), ("3", 3), ("4.0", 4)]),
        (float, [0.5, ("one", 1)], [("0.5", 0.5), ("one", 1.0)]),
        (str, [1, ("two", 2)], [("1", "1"), ("two", "2")]),
        (int | None, [5], [("5", 5)]),
    ],
)
async def test_values_are_of_the_options_type(kind: Any, found: list[Any], offered: list[Any]) -> None:
    choices = [(each["name"], each["value"]) for each in await suggested(returning(*found), kind)]
    assert [(name, type(value), value) for name, value in choices] == [(n, type(v), v) for n, v in offered]


async def test_25_are_offered_at_most_and_long_names_are_cut() -> None:
    assert [each["value"] for each in await suggested(returning(*range(100)), int)] == [*range(25)]
    [cut] = await suggested(returning(("n" * 101, "v" * 100), ("v", "v" * 101), ("", "nameless"), ""))
    assert (cut["name"], cut["value"]) == ("n" * 100, "v" * 100)


@pytest.mark.parametrize("find", [{"a": 1}.keys, lambda: {"a"}, lambda: (each for each in "a")])
async def test_anything_that_can_be_gone_through_is_offered(find: Callable[[], Any]) -> None:
    async def suggest(ctx: AutocompleteContext, typed: str) -> Any:
        return find()

    assert await suggested(suggest) == [{"name": "a", "value": "a"}]


# Errors


async def raising(ctx: AutocompleteContext, typed: str) -> list[str]:
    raise RuntimeError("no idea")


async def looking_for_what_is_gone(ctx: AutocompleteContext, typed: str) -> list[str]:
    await ctx.app.rest.fetch_channel(77)
    return []


async def hanging(ctx: AutocompleteContext, typed: str) -> list[str]:
    await asyncio.Event().wait()
    return []


@pytest.mark.parametrize(
    ("suggest", "kind", "problem"),
    [
        (raising, str, "RuntimeError('no idea')"),
        (hanging, str, "TimeoutError()"),
        (looking_for_what_is_gone, str, "NotFoundError("),
        (returning("one"), int, "ValueError("),
        (returning(("a", "b", "c")), str, "ValueError("),
        (returning(None), int, "TypeError("),
    ],
)
async def test_an_error_costs_one_line_and_offers_nothing_in_time(
    suggest: Any, kind: Any, problem: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bot, "AUTO_DEFER_AFTER_S", 0.2)
    assert await suggested(suggest, kind) == []
    [line] = kit.complaints(caplog)
    assert line.startswith(f"no suggestions for /take: {problem}")


async def test_a_question_for_what_the_bot_no_longer_has_is_answered_with_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Discord() as discord, kit.running(discord, taking(fruit)):
        await kit.until(lambda: discord.world.commands_in(None))
        text = {"type": 3, "name": "which", "description": "x", "autocomplete": True}
        for name in ("take", "gone"):
            body = {"name": name, "description": "x", "options": [text, text | {"name": "other"}]}
            discord.world.put_command(None, body)
        alice = discord.user("alice")
        assert await alice.autocomplete("take", "other", "x") == []
        assert await alice.autocomplete("gone", "which", "x") == []
    problems = "take: KeyError('other')", "gone: KeyError((1, 'gone'))"
    assert kit.complaints(caplog) == [f"no suggestions for /{each}" for each in problems]


UNREADABLE = None, {}, {"name": "take"}, {"name": "take", "options": [5]}, {"options": [{"name": "which"}]}


@pytest.mark.parametrize("data", UNREADABLE)
async def test_a_question_that_cannot_be_read_is_one_line(data: Any, caplog: pytest.LogCaptureFixture) -> None:
    async with Discord() as discord, kit.running(discord, taking(fruit)) as app:
        alice = discord.user("alice")
        await alice.command("take", which="x")
        question = {"id": "77", "application_id": "1", "type": 4, "token": "t", "data": data}
        assert await kit.deliver(discord, question) in (None, 200)
        await kit.until(lambda: kit.complaints(caplog))
        assert (await alice.command("take", which="y")).state == "answered"
        assert await app.failed() == []
    [line] = kit.complaints(caplog)
    assert line.startswith("a question for suggestions (/")


# Never kept, and beside everything else


async def test_no_question_reaches_the_store() -> None:
    store = bot.MemoryStore(bot.BotId(1))
    accepted: list[bot.Event] = []
    accept = store.accept

    def note(event: bot.Event | None, cursor: bot.Cursor | None) -> Any:
        accepted.extend([event] if event else [])
        return accept(event, cursor)

    store.accept = note
    async with Discord() as discord, kit.running(discord, taking(fruit), store=store):
        alice = discord.user("alice")
        for typed in ("", "a", "ap"):
            await alice.autocomplete("take", "which", typed)
        await alice.command("take", which="x")
    assert [json.loads(event.body)["type"] for event in accepted] == [2]


@pytest.mark.alone  # a suggestion has 3 s, and to take 500 clicks takes most of them
async def test_500_clicks_that_wait_for_a_slow_view_hold_up_no_suggestion() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def press(self: kit.Counting, ctx: bot.ComponentContext) -> None:
        begun.set()
        await go_on.wait()
        self.count += 1
        await ctx.rerender()

    async with kit.playing(kit.view(press), taking(fruit), max_handlers=1) as play:
        clicks = [play.click() for _ in range(500)]
        await begun.wait()  # the only slot is taken
        alice = play.alice
        offered = await asyncio.gather(*(ask(alice, typed) for typed in ("a", "b", "c", "")))
        assert [len(each) for each in offered] == [1, 1, 1, 3]
        assert not go_on.is_set()
        go_on.set()
        await play.at_rest()
        assert [await play.count(), len(clicks)] == [500, 500]


async def ask(person: Person, typed: str) -> list[Json]:
    return await person.autocomplete("take", "which", typed)


async def test_a_question_that_comes_again_or_too_late_is_quietly_dropped(caplog: pytest.LogCaptureFixture) -> None:
    asked: list[str] = []

    async def suggest(ctx: AutocompleteContext, typed: str) -> list[str]:
        asked.append(typed)
        return FRUIT

    async with Discord() as discord, kit.running(discord, taking(suggest)) as app:
        alice = discord.user("alice")
        await alice.autocomplete("take", "which", "a")
        [first] = [each.data["payload"] for each in discord.journal.of("interaction")]
        await kit.deliver(discord, first)  # answered already: 40060
        discord.clock.advance(5)
        await kit.deliver(discord, first | {"id": "77"})  # unknown: 10062
        await kit.until(lambda: len(asked) == 3)
        refused = [200, 400, 404] if kit.Now.mode == "gateway" else []  # over HTTP no answer is a callback
        await kit.until(lambda: callbacks(discord) == refused)
        assert await app.failed() == []
        assert (await alice.command("take", which="x")).state == "answered"
    assert kit.complaints(caplog) == []


def callbacks(discord: Discord) -> list[int]:
    """What answers to questions were answered with."""
    rest = [each.data for each in discord.journal.of("rest") if each.data["route"].endswith("/callback")]
    return [each["status"] for each in rest if each["body"]["type"] == 8]


@pytest.mark.gateway_only  # which sends it once more
async def test_a_question_asked_while_the_bot_was_down_is_dropped_at_its_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Discord() as discord:
        async with kit.running(discord, taking(fruit), store=kept(tmp_path)):
            alice = discord.user("alice")
            await alice.autocomplete("take", "which", "a")
        asking = asyncio.create_task(alice.autocomplete("take", "which", "b"))
        await kit.until(lambda: len(discord.journal.of("interaction")) == 2)
        discord.clock.advance(3.1)
        with pytest.raises(RuntimeError, match="did not respond"):
            await asking
        async with kit.running(discord, taking(fruit), store=kept(tmp_path)) as app:
            await kit.until(lambda: callbacks(discord) == [200, 404])
            assert await app.store.pending() == []
            assert len(await alice.autocomplete("take", "which", "")) == 3
    assert kit.complaints(caplog) == []
