"""Listeners: gateway events of other kinds, accepted and kept like clicks."""

from __future__ import annotations

import asyncio
import inspect
import json
import signal
from pathlib import Path
from typing import Any

import hikari
import pytest

import bot
from bot import EventContext, Record, register
from playground import Discord
from tests.kit import at_rest, rows, running, start, until


@register(name="heard")
class Heard(Record):
    texts: list[str] = bot.field(default_factory=list[str])


async def heard(app: bot.App, key: str = "all") -> list[str]:
    saved = await app.store.load(bot.record_id(Heard, (key,)))
    return bot.decode_state(Heard, saved).texts if saved else []


async def note(ctx: EventContext, text: str, key: str = "all") -> None:
    (await ctx.record(Heard, key)).texts.append(text)


@bot.listen(hikari.GuildMessageCreateEvent, intents=hikari.Intents.MESSAGE_CONTENT)
async def on_message(ctx: EventContext, event: hikari.GuildMessageCreateEvent) -> None:
    await note(ctx, event.content or "")


# What is heard


async def test_messages_joins_and_reactions_are_heard_once_each() -> None:
    @bot.listen(hikari.MemberCreateEvent)
    async def on_join(ctx: EventContext, event: hikari.MemberCreateEvent) -> None:
        await note(ctx, event.user.username, "joined")

    @bot.listen(hikari.ReactionAddEvent)  # of a server and of a private channel alike
    async def on_reaction(ctx: EventContext, event: hikari.ReactionAddEvent) -> None:
        await note(ctx, str(event.emoji_name), "reactions")

    async with Discord() as discord, running(discord, on_message, on_join, on_reaction, Heard) as app:
        alice = discord.user("alice")
        message = await alice.say("hello")
        await alice.react(message, "👍")
        discord.join("dave")
        await until(lambda: all_there(app))
        await at_rest(app.store)
        assert [await heard(app), await heard(app, "joined"), await heard(app, "reactions")] == [
            ["hello"],
            ["dave"],
            ["👍"],
        ]


async def all_there(app: bot.App) -> bool:
    return all([await heard(app, key) for key in ("all", "joined", "reactions")])


async def test_the_intents_that_are_asked_for_follow_from_what_is_listened_to() -> None:
    @bot.listen(hikari.MemberCreateEvent)
    async def on_join(ctx: EventContext, event: hikari.MemberCreateEvent) -> None: ...

    app = bot.App(bot.Config())
    assert app.all_intents == hikari.Intents.NONE
    app.add(on_join)
    assert app.all_intents == hikari.Intents.GUILD_MEMBERS
    app.add(on_message)
    wanted = hikari.Intents.GUILD_MEMBERS | hikari.Intents.GUILD_MESSAGES | hikari.Intents.MESSAGE_CONTENT
    assert app.all_intents == wanted


async def test_a_privileged_intent_that_discord_refuses_is_named_in_one_sentence() -> None:
    async with Discord() as discord:
        discord.gateway.denied_intents = int(hikari.Intents.MESSAGE_CONTENT)
        with pytest.raises(bot.OperatorError) as refused:
            async with running(discord, on_message, Heard):
                pass
        assert str(refused.value) == (
            "Discord refuses MESSAGE_CONTENT. Switch it on at your application's page"
            " (Bot, Privileged Gateway Intents)."
        )


async def test_what_the_bot_says_is_heard_too_and_can_be_told_apart() -> None:
    @bot.listen(hikari.GuildMessageCreateEvent, intents=hikari.Intents.MESSAGE_CONTENT)
    async def echo(ctx: EventContext, event: hikari.GuildMessageCreateEvent) -> None:
        await note(ctx, f"{event.is_human}")
        if event.is_human:
            await ctx.send(event.channel_id, f"{event.content}!")

    async with Discord() as discord, running(discord, echo, Heard) as app:
        await discord.user("alice").say("hello")

        async def both() -> bool:
            return await heard(app) == ["True", "False"]

        await until(both)
        assert [each["content"] for each in discord.messages()] == ["hello", "hello!"]


async def test_many_messages_are_counted_in_the_order_they_were_written() -> None:
    async with Discord() as discord, running(discord, on_message, Heard) as app:
        alice, wanted = discord.user("alice"), [f"{number}" for number in range(100)]
        for text in wanted:
            await alice.say(text)

        async def all_counted() -> bool:
            return len(await heard(app)) == len(wanted)

        await until(all_counted)
        assert sorted(await heard(app), key=int) == wanted
        assert await app.failed() == []


# What goes wrong


async def test_a_listener_that_fails_is_kept_with_its_event_and_can_be_tried_again() -> None:
    is_broken = True

    @bot.listen(hikari.GuildMessageCreateEvent, intents=hikari.Intents.MESSAGE_CONTENT)
    async def shaky(ctx: EventContext, event: hikari.GuildMessageCreateEvent) -> None:
        await note(ctx, event.content or "")
        if is_broken:
            raise ValueError("not now")

    async with Discord() as discord, running(discord, shaky, on_message, Heard) as app:
        await discord.user("alice").say("hello")
        await until(app.failed)
        await at_rest(app.store)
        [failed] = await app.failed()
        assert failed.key.startswith("gateway:")
        assert failed.key.endswith(":shaky")
        assert failed.failure.text == "not now"
        assert await heard(app) == ["hello"]  # the other listener's
        is_broken = False
        assert await app.retry_failed() == 1
        await at_rest(app.store)
        assert await heard(app) == ["hello", "hello"]


@pytest.mark.parametrize("durable", [True, False])
async def test_an_event_that_hikari_cannot_read_is_kept_and_the_next_one_is_heard(durable: bool) -> None:
    @bot.listen(hikari.GuildMessageCreateEvent, durable=durable, intents=hikari.Intents.MESSAGE_CONTENT)
    async def hear(ctx: EventContext, event: hikari.GuildMessageCreateEvent) -> None:
        await note(ctx, event.content or "")

    async with Discord() as discord, running(discord, hear, Heard) as app:
        broken: list[Any] = [{}, {"id": "1", "guild_id": "1"}, {"id": "x"}, None, [], "text", 5]
        for data in broken:
            discord.send_raw("MESSAGE_CREATE", data)
        await discord.user("alice").say("hello")

        async def is_heard() -> bool:
            return await heard(app) == ["hello"] and len(await app.failed()) == len(broken)

        await until(is_heard)


@pytest.mark.parametrize(
    "name", ["MESSAGE_DELETE", "MESSAGE_DELETE_BULK", "CHANNEL_DELETE", "THREAD_DELETE", "GUILD_DELETE"]
)
async def test_a_deletion_that_cannot_be_read_deletes_nothing_and_stops_nobody(name: str) -> None:
    async with Discord() as discord, running(discord, on_message, Heard) as app:
        huge = str(1 << 70)
        for data in (None, [], "x", {}, {"id": huge, "ids": [huge], "channel_id": huge}, {"id": "x", "channel_id": {}}):
            discord.send_raw(name, data)
        await discord.user("alice").say("hello")

        async def is_heard() -> bool:
            return await heard(app) == ["hello"]

        await until(is_heard)


async def test_an_event_of_a_listener_that_is_gone_is_kept_with_a_sentence() -> None:
    async with Discord() as discord, running(discord, on_message, Heard) as app:
        event = bot.Event(bot.EventKey("gateway:s:1:gone"), b'{"listener":"gone","name":"X","shard":0,"data":{}}', 0)
        await app.store.accept(event, None)
        await app.dispatch.take_up()
        await until(app.failed)
        [failed] = await app.failed()
        assert failed.failure.text == "there is no listener gone. Is it listed in your_bot?"


NEVER = [hikari.StartedEvent, hikari.ExceptionEvent, hikari.ShardReadyEvent, hikari.ShardPayloadEvent]


@pytest.mark.parametrize("event", [*NEVER, hikari.InteractionCreateEvent])
def test_what_no_gateway_event_becomes_cannot_be_listened_to(event: Any) -> None:
    @bot.listen(event)
    async def deaf(ctx: EventContext, event: Any) -> None: ...

    with pytest.raises(bot.OperatorError) as refused:
        bot.App(bot.Config()).add(deaf)
    assert str(refused.value) == f"deaf: {event.__name__} does not come from Discord, and is never heard."


# Over a kill


async def test_every_message_counts_once_for_each_listener_whenever_the_process_is_killed(tmp_path: Path) -> None:
    store = tmp_path / "bot.db"
    async with Discord() as discord:
        process = await start(discord, "ears", store)
        await until(lambda: rows(store, "SELECT session FROM cursor"))  # a session that was never stored is lost
        alice, said = discord.user("alice"), 0
        for kill in range(4):
            for _ in range(10):
                await alice.say(f"m{said}")
                said += 1
                await asyncio.sleep(0.005 * kill)
            process.kill()
            assert await process.wait() == -signal.SIGKILL
            await alice.say(f"m{said}")  # while it is down
            said += 1
            await process.start()
            await process.ready()

        def counted() -> list[int]:
            found = rows(store, "SELECT data FROM record WHERE name='heard' ORDER BY key")
            return [len(json.loads(data)["texts"]) for (data,) in found]

        await until(lambda: counted() == [said, said])
        await until(lambda: not rows(store, "SELECT key FROM inbox WHERE done_at IS NULL"))
        for (data,) in rows(store, "SELECT data FROM record WHERE name='heard'"):
            texts = json.loads(data)["texts"]
            assert sorted(texts) == sorted(f"m{number}" for number in range(said))
        assert rows(store, "SELECT * FROM failed") == []
        assert discord.gateway.identifies == 1


# Each of hikari's events

MADE = {
    name: method.__events_bitmask__
    for name, method in inspect.getmembers(hikari.impl.EventManagerImpl)
    if name.startswith("on_") and hasattr(method, "__events_bitmask__")
}
TYPES = sorted(
    {each for each in vars(hikari.events).values() if inspect.isclass(each) and issubclass(each, hikari.Event)},
    key=lambda each: each.__name__,
)


@pytest.mark.parametrize("event", TYPES, ids=lambda each: each.__name__)
def test_a_type_is_heard_of_the_payloads_that_hikari_makes_it_of(event: Any) -> None:
    makers = {name[3:].upper() for name, bits in MADE.items() if bits & event.bitmask()}
    assert {*bot.Reader.payloads_of(event)} == makers - {"READY", "INTERACTION_CREATE"}
