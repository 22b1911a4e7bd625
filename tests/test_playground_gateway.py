"""The playground's gateway, one step at a time: codes, sessions, replay, intents."""

from __future__ import annotations

import json
import zlib
from typing import Any

import aiohttp
import pytest

from playground import Discord
from playground.gateway import CLIENT_EVENTS_MAX, EVENTS_KEPT, SESSION_LIVES_S
from playground.world import GUILD_ID
from tests.clients.raw import DIRECT_MESSAGES, EVERYTHING, GUILD_MESSAGES, GUILDS, RawBot, Rest, Socket, until


async def lost_session(discord: Discord) -> Socket:
    """A session that was identified for and whose connection was cut."""
    before = len(discord.journal.of("gateway"))
    async with Socket(discord) as socket:
        await socket.identify()
    await until(lambda: len(discord.journal.of("gateway")) > before)
    return socket


async def answer_to_resume(discord: Discord, lost: Socket, seq: int | None = None) -> dict[str, Any]:
    async with Socket(discord) as socket:
        await socket.resume(lost.session_id, lost.seq if seq is None else seq)
        return await socket.receive()


async def test_identify_is_answered_with_ready_and_then_the_guild_numbered_from_one() -> None:
    async with Discord() as discord, Socket(discord) as socket:
        await socket.send(2, {"token": discord.token, "intents": GUILDS, "properties": {}})
        ready, guild = await socket.receive(), await socket.receive()
        assert [ready["t"], guild["t"]] == ["READY", "GUILD_CREATE"]
        assert [ready["s"], guild["s"]] == [1, 2]
        assert ready["d"]["resume_gateway_url"] == discord.url.replace("http", "ws") + "/resume"
        assert {member["user"]["username"] for member in guild["d"]["members"]} >= {"alice", "bob", "carol"}
        assert discord.gateway.identifies == 1


async def test_zlib_stream_is_one_stream_flushed_after_every_payload() -> None:
    async with (
        Discord() as discord,
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{discord.url}/gateway?v=10&encoding=json&compress=zlib-stream") as ws,
    ):
        inflate = zlib.decompressobj()
        hello = await ws.receive_bytes()
        assert hello.endswith(b"\x00\x00\xff\xff")
        assert json.loads(inflate.decompress(hello))["op"] == 10
        await ws.send_json({"op": 1, "d": None})
        assert json.loads(inflate.decompress(await ws.receive_bytes()))["op"] == 11


async def test_a_compression_the_gateway_does_not_speak_is_refused_in_a_sentence() -> None:
    async with (
        Discord() as discord,
        aiohttp.ClientSession() as session,
        session.get(f"{discord.url}/gateway?compress=zstd-stream") as response,
    ):
        assert (response.status, "zlib-stream" in await response.text()) == (400, True)


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        ("nonsense", 4002),
        ("[1]", 4002),
        ('{"op": 2, "d": 5}', 4002),
        ('{"op": 77}', 4001),
        ('{"op": 3, "d": {}}', 4003),
        ('{"op": 2, "d": {"token": "TOKEN", "intents": 1, "shard": [1, 1]}}', 4010),
        ('{"op": 2, "d": {"token": "TOKEN", "intents": 1, "shard": "no"}}', 4010),
        ('{"op": 2, "d": {"token": "TOKEN", "intents": 1073741824}}', 4013),
        ('{"op": 2, "d": {"token": "TOKEN"}}', 4013),
        ('{"op": 2, "d": {"token": "TOKEN", "intents": 32768}}', 4014),
        ('{"op": 2, "d": {"token": "another", "intents": 1}}', 4004),
        ('{"op": 6, "d": {"token": "another", "session_id": "x", "seq": 1}}', 4004),
    ],
)
async def test_what_a_client_gets_wrong_closes_with_discords_code(payload: str, code: int) -> None:
    async with Discord() as discord, Socket(discord) as socket:
        discord.gateway.denied_intents = 1 << 15
        await socket.ws.send_str(payload.replace("TOKEN", discord.token))
        assert await socket.receive() == {"op": "closed", "code": code}


async def test_no_payload_at_all_makes_the_gateway_itself_fail(caplog: pytest.LogCaptureFixture) -> None:
    odd: list[Any] = [None, True, -1, 2**70, "x", [], {}, [None], [1, "x"], {"x": 1}]
    async with Discord() as discord:
        fields = ("token", "intents", "shard", "session_id", "seq", "user_ids", "nonce", "guild_id")
        sound = {"token": discord.token, "intents": 1, "session_id": "x", "seq": 1}
        almost = [{**sound, field: value} for field in fields for value in odd]
        for op in (0, 1, 2, 3, 4, 6, 8, 31, "x", None):
            for data in odd + (almost if op in (2, 6, 8) else []):
                async with Socket(discord) as socket:
                    if op not in (2, 6):
                        await socket.identify()
                    await socket.ws.send_json({"op": op, "d": data})
                    await socket.send(1, None)
                    while (await socket.receive())["op"] not in (11, "closed"):
                        pass
    assert caplog.records == []


async def test_a_second_identify_on_one_socket_closes_with_4005() -> None:
    async with Discord() as discord, Socket(discord) as socket:
        await socket.identify()
        await socket.send(2, {"token": discord.token, "intents": GUILDS})
        assert (await socket.receive())["code"] == 4005


async def test_too_many_payloads_in_a_minute_close_with_4008() -> None:
    async with Discord() as discord, Socket(discord) as socket:
        for _ in range(CLIENT_EVENTS_MAX):
            await socket.send(1, None)
            assert (await socket.receive())["op"] == 11
        await socket.send(1, None)
        assert (await socket.receive())["code"] == 4008


async def test_a_token_that_is_offered_never_reaches_the_journal() -> None:
    async with Discord() as discord, Socket(discord) as socket:
        await socket.identify(token="a-real-one")
        await socket.receive()
        assert "a-real-one" not in repr(list(discord.journal))
        assert discord.journal.of("gateway_in")[-1].data["op"] == 2


async def test_resume_replays_what_was_missed_in_order_and_then_says_resumed() -> None:
    async with Discord() as discord:
        lost = await lost_session(discord)
        for number in range(5):
            discord.send_raw("TEST", {"number": number})
        async with Socket(discord, compress=True, path="/resume") as socket:
            await socket.resume(lost.session_id, lost.seq)
            payloads = [await socket.receive() for _ in range(6)]
        assert [payload["t"] for payload in payloads] == ["TEST"] * 5 + ["RESUMED"]
        assert [payload["d"].get("number") for payload in payloads[:5]] == [0, 1, 2, 3, 4]
        assert [payload["s"] for payload in payloads] == list(range(lost.seq + 1, lost.seq + 7))
        assert (discord.gateway.identifies, discord.gateway.resumes) == (1, 1)


async def test_resume_replays_also_what_was_sent_but_not_confirmed() -> None:
    async with Discord() as discord:
        lost = await lost_session(discord)
        assert (await answer_to_resume(discord, lost, seq=0))["t"] == "READY"


@pytest.mark.parametrize(("code", "answer"), [(1000, 9), (1001, 9), (4000, 0)])
async def test_a_close_with_1000_or_1001_ends_the_session_and_another_code_does_not(code: int, answer: int) -> None:
    async with Discord() as discord:
        async with Socket(discord) as socket:
            await socket.identify()
            await socket.ws.close(code=code)
        assert (await answer_to_resume(discord, socket))["op"] == answer


@pytest.mark.parametrize("code", [None, 1000, 1001, 4000, 4007])
async def test_a_socket_that_the_server_ends_leaves_the_session_whole(code: int | None) -> None:
    async with Discord() as discord:
        async with Socket(discord) as socket:
            await socket.identify()
            discord.gateway.drop(code)
            assert (await socket.receive())["code"] == code
        assert (await answer_to_resume(discord, socket))["t"] == "RESUMED"


async def test_an_invalidated_session_is_refused_and_identify_works_on_the_same_socket() -> None:
    async with Discord() as discord:
        lost = await lost_session(discord)
        discord.gateway.invalidate()
        async with Socket(discord) as socket:
            await socket.resume(lost.session_id, lost.seq)
            assert await socket.receive() == {"op": 9, "d": False}
            await socket.identify()
        assert discord.gateway.identifies == 2


async def test_a_live_socket_goes_on_after_its_session_was_invalidated() -> None:
    async with Discord() as discord, Socket(discord) as socket:
        await socket.identify()
        discord.gateway.invalidate()
        discord.send_raw("TEST", {})
        assert await socket.event("TEST") == {}


async def test_an_unknown_session_is_refused() -> None:
    async with Discord() as discord, Socket(discord) as socket:
        await socket.resume("nobody", 1)
        assert await socket.receive() == {"op": 9, "d": False}


async def test_a_sequence_number_the_server_never_sent_closes_with_4007() -> None:
    async with Discord() as discord:
        lost = await lost_session(discord)
        assert (await answer_to_resume(discord, lost, seq=lost.seq + 1))["code"] == 4007


async def test_a_session_ends_180_s_after_its_socket() -> None:
    async with Discord() as discord:
        first, second = await lost_session(discord), await lost_session(discord)
        discord.clock.advance(SESSION_LIVES_S - 5)
        assert (await answer_to_resume(discord, first))["t"] == "RESUMED"
        discord.clock.advance(6)
        assert (await answer_to_resume(discord, second))["op"] == 9


async def test_who_missed_more_than_the_buffer_holds_must_identify() -> None:
    async with Discord() as discord:
        lost = await lost_session(discord)
        for number in range(EVENTS_KEPT):
            discord.send_raw("TEST", number)
        assert (await answer_to_resume(discord, lost))["d"] == 0
        for _ in range(2):  # RESUMED is an event too
            discord.send_raw("TEST", 0)
        assert (await answer_to_resume(discord, lost))["op"] == 9


async def test_trimming_forgets_what_a_heartbeat_confirmed() -> None:
    async with Discord() as discord:
        discord.gateway.trim_on_heartbeat = True
        async with Socket(discord) as socket:
            await socket.identify()
            discord.send_raw("TEST", 1)
            await socket.event("TEST")
            await socket.send(1, socket.seq)
            assert (await socket.receive())["op"] == 11
        assert (await answer_to_resume(discord, socket))["t"] == "RESUMED"
        assert (await answer_to_resume(discord, socket, seq=socket.seq - 1))["op"] == 9


async def test_without_trimming_a_heartbeat_forgets_nothing() -> None:
    async with Discord() as discord:
        async with Socket(discord) as socket:
            await socket.identify()
            await socket.send(1, socket.seq)
            await socket.receive()
        assert (await answer_to_resume(discord, socket, seq=1))["t"] == "GUILD_CREATE"


async def test_a_second_process_takes_the_session_over_and_the_first_is_closed() -> None:
    async with Discord() as discord, Socket(discord) as first, Socket(discord) as second:
        await first.identify()
        await second.resume(first.session_id, first.seq)
        assert await second.events(until="RESUMED") == ["RESUMED"]
        assert (await first.receive())["code"] == 4000
        discord.send_raw("TEST", "for the second")
        assert await second.event("TEST") == "for the second"


async def test_reconnect_asks_with_op_7() -> None:
    async with Discord() as discord, Socket(discord) as socket:
        discord.gateway.reconnect()
        assert (await socket.receive())["op"] == 7


async def test_events_come_by_intent() -> None:
    async with Discord() as discord, RawBot(discord, GUILDS) as deaf, RawBot(discord, GUILD_MESSAGES) as hearing:
        await discord.user("alice").say("hello")
        discord.send_raw("END", {})
        async with Socket(discord) as probe:
            await probe.identify()
        names = [[event["t"] for event in bot.events if event.get("t")] for bot in (deaf, hearing)]
        assert names == [["END"], ["MESSAGE_CREATE", "END"]]


async def test_content_is_hidden_without_the_intent_unless_it_is_the_bots_own_or_mentions_it() -> None:
    async with Discord() as discord, Rest(discord) as rest, Socket(discord) as socket:
        await socket.identify(GUILD_MESSAGES)
        alice = discord.user("alice")
        await alice.say("secret")
        assert (await socket.event("MESSAGE_CREATE"))["content"] == ""
        await alice.say(f"hey <@{discord.world.bot['id']}>")
        heard = await socket.event("MESSAGE_CREATE")
        assert (heard["content"][:3], heard["mentions"][0]["bot"]) == ("hey", True)
        await rest("POST", f"/channels/{heard['channel_id']}/messages", {"content": "mine"})
        assert (await socket.event("MESSAGE_CREATE"))["content"] == "mine"


async def test_an_ephemeral_message_is_an_event_of_direct_messages_without_a_guild() -> None:
    async with Discord() as discord, RawBot(discord, GUILDS) as bot, Socket(discord) as socket:
        await socket.identify(DIRECT_MESSAGES | GUILD_MESSAGES)
        await bot.rest("PUT", f"/applications/{discord.world.bot['id']}/commands", [{"name": "a", "description": "a"}])
        used = discord.user("alice").start_command("a", {})
        await bot.rest.answer(await bot.interaction(), 4, {"content": "psst", "flags": 64})
        event = await socket.event("MESSAGE_CREATE")
        assert (event["content"], "guild_id" in event, "member" in event) == ("psst", False, False)
        assert (await used).message == discord.messages(seen_by="alice")[0]


async def test_edits_and_deletions_are_events() -> None:
    async with Discord() as discord, Rest(discord) as rest, Socket(discord) as socket:
        await socket.identify()
        channel = f"/channels/{discord.world.channel_of(None)['id']}/messages"
        _, message = await rest("POST", channel, {"content": "one"})
        await rest("PATCH", f"{channel}/{message['id']}", {"content": "two"})
        await rest("DELETE", f"{channel}/{message['id']}")
        assert (await socket.event("MESSAGE_UPDATE"))["content"] == "two"
        gone = await socket.event("MESSAGE_DELETE")
        assert gone == {"id": message["id"], "channel_id": message["channel_id"], "guild_id": GUILD_ID}


async def test_a_guilds_events_go_to_its_shard_and_private_ones_to_shard_0() -> None:
    async with Discord() as discord:
        count = next(count for count in range(2, 20) if (int(GUILD_ID) >> 22) % count)
        home = (int(GUILD_ID) >> 22) % count
        async with Socket(discord) as zero, Socket(discord) as other:
            await zero.identify(EVERYTHING, shard=[0, count])
            await other.identify(EVERYTHING, shard=[home, count])
            await discord.user("alice").say("in the guild")
            discord.world.direct_channel_with(discord.user("bob").id)
            discord.send_raw("END", {})
            assert await zero.events(until="END") == ["CHANNEL_CREATE", "END"]
            assert await other.events(until="END") == ["GUILD_CREATE", "MESSAGE_CREATE", "END"]


async def test_members_are_sent_when_asked_for() -> None:
    async with Discord() as discord, Socket(discord) as socket:
        await socket.identify()
        alice = discord.user("alice")
        await socket.send(8, {"guild_id": GUILD_ID, "user_ids": [alice.id], "nonce": "n"})
        chunk = await socket.event("GUILD_MEMBERS_CHUNK")
        assert ([member["user"]["id"] for member in chunk["members"]], chunk["nonce"]) == ([alice.id], "n")


async def test_latency_delays_events_and_keeps_their_order() -> None:
    async with Discord() as discord, Socket(discord) as socket:
        await socket.identify()
        discord.latency_s = 0.04
        discord.send_raw("TEST", 1)
        discord.latency_s = 0.0
        discord.send_raw("TEST", 2)
        assert [await socket.event("TEST"), await socket.event("TEST")] == [1, 2]


async def test_any_payload_can_be_sent_raw() -> None:
    async with Discord() as discord, Socket(discord) as socket:
        await socket.identify()
        for payload in (None, [], "text", {"id": None}):
            discord.send_raw("INTERACTION_CREATE", payload)
            assert await socket.event("INTERACTION_CREATE") == payload


async def test_identifies_are_counted_down_from_a_thousand() -> None:
    async with Discord() as discord, Rest(discord) as rest:
        await lost_session(discord)
        _, found = await rest("GET", "/gateway/bot")
        limit = found["session_start_limit"]
        assert (limit["total"], limit["remaining"], limit["max_concurrency"]) == (1000, 999, 1)


async def test_any_payload_can_be_sent_outside_the_numbering() -> None:
    async with Discord() as discord, Socket(discord) as socket:
        await socket.identify()
        before = socket.seq
        for frame in ("no JSON", "", '{"op":0,"t":"TEST","s":7,"d":NaN}'):
            discord.send_frame(frame.encode())
            assert await socket.ws.receive_str() == frame
        discord.send_raw("TEST", None)
        assert (await socket.receive())["s"] == before + 1
