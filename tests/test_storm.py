"""Storms: people click without pause while the bot is killed, stopped, cut off and refused, and no click is lost.

Over HTTP no click is sent again: there, all that were accepted count, and among them are all whose person was answered.
Each kind comes in two sizes, a short one for every day and a long one (marked `long`, `make crash`). The plan follows
from a seed, which the totals name: STORM_SEED=… repeats it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from playground import Discord
from playground.people import Used
from playground.process import BotProcess
from tests.kit import Json, Now, Watch, button_id, path_of_answers, record_of, rows, shown, start, state_of, until

pytestmark = pytest.mark.crash

PEOPLE, POLLS = 50, 20
LATENCY_S = 0.1  # to Discord and back
CLICK_EVERY_S = 1.4  # each person
HOT_SHARE = 0.2  # of these clicks go to one poll, and with each burst one of everybody
BURST_EVERY_S, POST_EVERY_S = 4, 3
RUNS = 99  # five kills that hit the same click by chance do not make it poison
COMES_BACK_WITHIN_S, SETTLES_WITHIN_S = 60, 120  # generous: the machine may be busy
PENDING = "SELECT key FROM inbox WHERE done_at IS NULL"
BEHIND = " UNION ALL SELECT key FROM record WHERE name='tally' AND shown < version"


@dataclass(frozen=True)
class Size:
    """How many clicks, and how many of each thing that goes wrong. They keep step, however fast the machine is."""

    clicks: int
    events: Mapping[str, int]


SHORT = {
    "kill": Size(200, {"kill": 4}),
    "terminate": Size(200, {"terminate": 3}),
    "sockets": Size(200, {"abort": 1, "close": 1, "reconnect": 1, "cut": 8}),
    "http": Size(200, {"refuse": 8, "break": 8, "delay": 8}),
    "everything": Size(
        200, {"kill": 2, "terminate": 1, "abort": 1, "reconnect": 1, "cut": 4, "refuse": 4, "break": 4, "delay": 4}
    ),
}
# No answer is late where the bot is killed: one of a dead process may then come after what its successor showed.
SHORT_OVER_HTTP = {
    "kill": Size(200, {"kill": 4}),
    "terminate": Size(200, {"terminate": 3}),
    "answers": Size(200, {"lose": 8, "copy": 8, "late": 8}),
    "everything": Size(200, {"kill": 2, "terminate": 1, "lose": 4, "copy": 4, "refuse": 4, "break": 4, "delay": 4}),
}
LONG = {
    "kill": Size(10_000, {"kill": 200}),
    "terminate": Size(3_000, {"terminate": 50}),
    "sockets": Size(3_000, {"abort": 6, "close": 12, "reconnect": 12, "cut": 100}),
    "http": Size(3_000, {"refuse": 60, "break": 60, "delay": 60}),
    "everything": Size(
        3_000,
        {"kill": 30, "terminate": 12, "abort": 4, "close": 4, "reconnect": 4}
        | {"cut": 25, "refuse": 25, "break": 25, "delay": 25},
    ),
}
LONG_OVER_HTTP = {
    "kill": Size(10_000, {"kill": 200}),
    "terminate": Size(3_000, {"terminate": 50}),
    "answers": Size(3_000, {"lose": 60, "copy": 60, "late": 60}),
    "everything": Size(
        3_000,
        {"kill": 30, "terminate": 12, "lose": 25, "copy": 25, "refuse": 25, "break": 25, "delay": 25},
    ),
}


def in_both_modes(sizes: Mapping[str, Size], over_http: Mapping[str, Size]) -> Any:
    """Run the test with each of these kinds."""
    gateway = [pytest.param("gateway", each, id=kind) for kind, each in sizes.items()]
    rest = [pytest.param("rest", each, id=f"rest-{kind}") for kind, each in over_http.items()]
    return pytest.mark.parametrize(("mode", "size"), gateway + rest, indirect=["mode"])


@pytest.mark.timeout(300)
@in_both_modes(SHORT, SHORT_OVER_HTTP)
async def test_a_storm_loses_no_click_counts_none_twice_and_leaves_none_unshown(
    size: Size, tmp_path: Path, record_property: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_property("totals", await weather("short", size, tmp_path / "bot.db", monkeypatch))


@pytest.mark.long
@pytest.mark.timeout(1_800)
@in_both_modes(LONG, LONG_OVER_HTTP)
async def test_a_long_storm_loses_no_click_counts_none_twice_and_leaves_none_unshown(
    size: Size, tmp_path: Path, record_property: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_property("totals", await weather("long", size, tmp_path / "bot.db", monkeypatch))


async def weather(name: str, size: Size, store: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Raise a storm, look at what it left, and return its totals in a line."""
    seed = os.environ.get("STORM_SEED") or str(random.randrange(10**6))
    print(f"STORM_SEED={seed} repeats this plan")
    # Discord forgets what a heartbeat confirmed, and hears one every other second.
    monkeypatch.setattr("playground.gateway.HEARTBEAT_MS", 2_000)
    async with Discord() as discord:
        discord.gateway.trim_on_heartbeat = True
        process = await start(discord, "storm", store, DRAIN_S=1, MAX_HANDLER_RUNS=RUNS)
        storm = Storm(discord, process, store, random.Random(seed))
        await storm.post_polls()
        discord.latency_s = LATENCY_S
        began = time.monotonic()
        await storm.blow(size)
        await storm.settle()
        seconds = time.monotonic() - began
        check_clicks(storm)
        check_messages(storm)
        check_answers(storm)
        totals = f"{Now.mode}, {name}: {storm.totals(size)}; {seconds:.0f} s; seed {seed}"
        await check_posts(storm)
        return totals


@dataclass
class Storm:
    """One bot, the people who click it, and what is done to it."""

    discord: Discord
    process: BotProcess
    store: Path
    chance: random.Random
    clicks: list[Used] = field(default_factory=list[Used])
    posts: list[Used] = field(default_factory=list[Used])
    watches: dict[str, Watch] = field(default_factory=dict[str, Watch])
    messages: list[Json] = field(default_factory=list[Json])
    due: float = 0  # clicks, by how far the plan has come
    is_over: bool = False

    async def post_polls(self) -> None:
        """Post the polls; the first one is the hot one."""
        assert (await self.discord.user("alice").command("post")).message  # the command is registered now
        polls = [await self.discord.user("alice").start_command("post", {}) for _ in range(POLLS - 1)]
        assert [poll.state for poll in polls] == ["answered"] * len(polls)
        self.messages = self.discord.messages()
        self.watches = {message["id"]: Watch(self.discord, message) for message in self.messages}

    async def blow(self, size: Size) -> None:
        """Let everything on the plan go wrong, in an order of its own, while people click."""
        plan = [event for event, count in size.events.items() for _ in range(count)]
        self.chance.shuffle(plan)
        async with asyncio.TaskGroup() as people:
            for number in range(PEOPLE):
                people.create_task(self.click_on(f"person{number}", random.Random(self.chance.random())))
            people.create_task(self.burst_on())
            people.create_task(self.post_on())
            for event in plan:
                self.due += size.clicks / len(plan)
                await EVENTS[event](self)
                await until(lambda: len(self.clicks) >= self.due, SETTLES_WITHIN_S)
            self.is_over = True

    async def settle(self) -> None:
        """Wait until the bot has done all that people asked for."""
        self.discord.faults.clear()
        self.discord.delivery_faults.clear()
        await self.process.ready(COMES_BACK_WITHIN_S)
        await self.discord.delivered()
        with contextlib.suppress(TimeoutError):  # the checks tell more of what is missing
            await until(self.is_done, SETTLES_WITHIN_S)

    def is_done(self) -> bool:
        """Whether the inbox has everything, all of it is done, and every message is known to show its record."""
        is_all = Now.mode == "rest" or len(self.accepted()) >= len(self.discord.journal.of("interaction"))
        return is_all and not rows(self.store, PENDING + BEHIND)

    def accepted(self) -> set[str]:
        """Return the ids of the interactions that are in the inbox."""
        return {key.removeprefix("interaction:") for (key,) in rows(self.store, "SELECT key FROM inbox")}

    def made(self, several: list[Used]) -> list[Used]:
        """Return those of them that the bot must have done."""
        accepted = self.accepted()
        return [each for each in several if Now.mode == "gateway" or each.interaction["id"] in accepted]

    # People

    async def click_on(self, name: str, chance: random.Random) -> None:
        """Click now and then until it is over."""
        while not self.is_over:
            await asyncio.sleep(chance.uniform(0, 2 * CLICK_EVERY_S))
            await self.turn()
            self.click(name, self.messages[0] if chance.random() < HOT_SHARE else chance.choice(self.messages[1:]))

    async def burst_on(self) -> None:
        """Have everybody click the hot poll at the same moment, again and again."""
        while not self.is_over:
            await asyncio.sleep(BURST_EVERY_S)
            await self.turn()
            for number in range(PEOPLE):
                self.click(f"person{number}", self.messages[0])

    async def post_on(self) -> None:
        """Use the command now and then."""
        while not self.is_over:
            await asyncio.sleep(POST_EVERY_S)
            self.posts.append(self.discord.user("alice").start_command("post", {}))

    async def turn(self) -> None:
        """Wait until a click is due, or all is over."""
        while len(self.clicks) >= self.due and not self.is_over:
            await asyncio.sleep(0.05)

    def click(self, name: str, message: Json) -> None:
        """Click the poll as that person."""
        self.clicks.append(self.discord.user(name).click(custom_id=button_id(message), message=message["id"]))

    # What goes wrong

    async def kill(self) -> None:
        """SIGKILL at some moment."""
        await asyncio.sleep(self.chance.uniform(0, 0.8))
        self.process.kill()
        assert await self.process.wait() == -9
        await self.start_again()

    async def terminate(self) -> None:
        """SIGTERM at some moment; -15: it had not come so far as to listen to signals."""
        await asyncio.sleep(self.chance.uniform(0, 0.8))
        assert await self.process.terminate() in (0, -15), self.process.log[-20:]
        await self.start_again()

    async def start_again(self) -> None:
        """Start the bot, and now and then leave it to the next event while it is still starting."""
        await self.process.start()
        if self.chance.random() < 0.2:
            await asyncio.sleep(self.chance.uniform(0, 1))
        else:
            await self.process.ready(COMES_BACK_WITHIN_S)

    async def lose_gateway(self, how: Callable[[], None]) -> None:
        """End the gateway connection at some moment, and wait until the session is resumed."""
        await asyncio.sleep(self.chance.uniform(0, 0.8))
        before = self.discord.gateway.resumes
        how()
        await until(lambda: self.discord.gateway.resumes > before, COMES_BACK_WITHIN_S)

    async def disturb(self, **fault: Any) -> None:
        """Put a fault in the way of some requests, for a moment: piled up, they would end one for good."""
        path = self.chance.choice([path_of_answers(), path_of_answers(), "/webhooks/*", "/channels/*", "*"])
        added = self.discord.faults.add(path=path, times=self.chance.randint(1, 3), **fault)
        await asyncio.sleep(self.chance.uniform(0, 0.4))
        added.times = added.hits

    async def disturb_delivery(self, **fault: Any) -> None:
        """Let something happen to some interactions on their way to the bot and back, for a moment."""
        added = self.discord.delivery_faults.add(times=self.chance.randint(1, 9), **fault)
        await asyncio.sleep(self.chance.uniform(0, 0.4))
        added.times = added.hits

    # What came of it

    def totals(self, size: Size) -> str:
        """Return the figures of the storm."""
        happened = ", ".join(f"{count} {event}" for event, count in size.events.items())
        in_time = sum(click.state != "failed" for click in self.clicks)
        hot = len(clicked(self)[self.messages[0]["id"]])
        resumed = [each.data["replayed"] for each in self.discord.journal.of("gateway") if "replayed" in each.data]
        edits = sum(len(watch.counts) - 1 for watch in self.watches.values())
        replayed = f"{sum(resumed)} events replayed in {len(resumed)} resumes, 1 IDENTIFY"
        copied = f"{sum(each.copy > 0 for each in self.discord.deliveries)} copies"
        return (
            f"{happened}; {len(self.clicks)} clicks by {PEOPLE} on {POLLS} polls, {hot} of them on one;"
            f" {len(self.made(self.clicks))} accepted, each counted once; {in_time} answered in time;"
            f" {replayed if Now.mode == 'gateway' else copied}; {edits} edits, none back; {len(self.posts)} posts"
        )


EVENTS: Mapping[str, Callable[[Storm], Awaitable[None]]] = {
    "kill": Storm.kill,
    "terminate": Storm.terminate,
    "abort": lambda storm: storm.lose_gateway(storm.discord.gateway.drop),
    "close": lambda storm: storm.lose_gateway(lambda: storm.discord.gateway.drop(4000)),
    "reconnect": lambda storm: storm.lose_gateway(storm.discord.gateway.reconnect),
    "cut": lambda storm: storm.disturb(drop=storm.chance.choice(["before", "after"])),
    "refuse": lambda storm: storm.disturb(
        status=429, retry_after=storm.chance.uniform(0.1, 1), is_global=storm.chance.random() < 0.2
    ),
    "break": lambda storm: storm.disturb(status=storm.chance.choice([500, 502, 503, 504])),
    "delay": lambda storm: storm.disturb(delay_s=storm.chance.uniform(0.2, 2)),
    "lose": lambda storm: storm.disturb_delivery(drop=storm.chance.choice(["asked", "answered"])),
    "copy": lambda storm: storm.disturb_delivery(
        copies=storm.chance.randint(2, 4), when=storm.chance.choice(["at once", "answered"])
    ),
    "late": lambda storm: storm.disturb_delivery(delay_s=storm.chance.uniform(0.2, 2)),
}


def clicked(storm: Storm) -> dict[str, list[int]]:
    """Return the clicks that the journal has for each message, in order; over HTTP, those that were accepted."""
    made: defaultdict[str, list[int]] = defaultdict(list)
    accepted = storm.accepted()
    for entry in storm.discord.journal.of("interaction"):
        if entry.data["type"] == "component" and (Now.mode == "gateway" or entry.data["id"] in accepted):
            made[entry.data["payload"]["message"]["id"]].append(int(entry.data["id"]))
    return made


def check_clicks(storm: Storm) -> None:
    """Every click of the journal is in its poll's state once, and nothing is left over."""
    made, answered = clicked(storm), [each for each in storm.clicks if each.state in ("answered", "deferred")]
    assert sum(map(len, made.values())) == len(storm.made(storm.clicks))
    assert len(storm.made(answered)) == len(answered), "somebody was answered whose click is lost"
    for message in storm.messages:
        counted, asked_for = Counter(state_of(storm.store, message)["clicks"]), Counter(made[message["id"]])
        lost, doubled = asked_for - counted, counted - asked_for
        assert (lost, doubled) == (Counter(), Counter()), f"{len(lost)} lost, {len(doubled)} doubled"
    check_points(storm)
    assert rows(storm.store, PENDING) == []
    assert rows(storm.store, "SELECT * FROM gap") == []
    assert storm.discord.gateway.identifies == (Now.mode == "gateway")


def check_points(storm: Storm) -> None:
    """Everybody has a point for each of their clicks, on whatever poll."""
    made = Counter(each.interaction["member"]["user"]["id"] for each in storm.made(storm.clicks))
    kept = rows(storm.store, "SELECT key, json_extract(CAST(data AS TEXT), '$.count') FROM record WHERE name='points'")
    assert dict(kept) == made


def check_messages(storm: Storm) -> None:
    """Every message shows its record's newest version, and has never shown an older one after a newer."""
    for message in storm.messages:
        watch = storm.watches[message["id"]]
        assert shown(storm.discord, message) == len(state_of(storm.store, message)["clicks"])
        assert not watch.went_back, watch.counts


def check_answers(storm: Storm) -> None:
    """Nobody was answered twice, and nobody was told anything but what they asked for."""
    answered = Counter(entry.data["id"] for entry in storm.discord.journal.of("callback"))
    assert set(answered.values()) == {1}
    causes = Counter(message["interaction_metadata"]["id"] for message in storm.discord.messages())
    assert set(causes.values()) == {1}
    posted = {post.interaction["id"] for post in storm.posts if post.message}
    assert causes.keys() - posted == {message["interaction_metadata"]["id"] for message in storm.messages}


async def check_posts(storm: Storm) -> None:
    """Each use of the command made one record and one message, whose button works.

    Only one that Discord gave up before the bot was back (3 s) has no message: the failed list holds it, and no other.
    """
    posts = storm.made(storm.posts)
    expired = sorted(f"interaction:{post.interaction['id']}" for post in posts if post.state == "failed")
    failed = rows(storm.store, "SELECT key, type, text, runs FROM failed ORDER BY key")
    assert [row[0] for row in failed] == expired, failed
    assert rows(storm.store, "SELECT count(*) FROM record WHERE name='tally'") == [(POLLS + len(posts),)]
    posted = [post.message for post in storm.posts if post.message]
    assert len(posted) == len(posts) - len(expired)
    assert len({record_of(message) for message in posted}) == len(posted)
    for message in posted:
        assert shown(storm.discord, message) == 0
        storm.click("alice", message)
    await until(lambda: all(shown(storm.discord, message) == 1 for message in posted), SETTLES_WITHIN_S)
