"""SIGKILL before and after every commit and every request to Discord: nothing is lost, doubled or left unshown.

Over HTTP no click is sent again. One that was accepted counts, although its answer may be lost; who was answered was
accepted. A command whose person was told of a failure is on the failed list as expired, and has said nothing.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from playground import Discord
from playground.people import Used
from playground.process import BotProcess
from playground.shapes import EPHEMERAL
from tests.kit import Json, Now, button_id, record_of, rows, shown, start, state_of, until

pytestmark = pytest.mark.crash

LATE_S = 60  # Discord waits so long here: how fast this machine starts a process is no part of these tests
PENDING = "SELECT key FROM inbox WHERE done_at IS NULL"
NOT_SHOWN = " UNION ALL SELECT key FROM record WHERE name<>'points' AND shown < version"


class Done(NamedTuple):
    """What somebody did. `posts` so many counters, or `fails`."""

    name: str
    used: Used
    posts: int = 0
    fails: bool = False


@dataclass
class Scene:
    """A bot that will die, the message people click, and what there must be in the end."""

    discord: Discord
    process: BotProcess
    store: Path
    message: Json
    clicks: list[Done] = field(default_factory=list["Done"])
    commands: list[Done] = field(default_factory=list["Done"])
    expired: list[Done] = field(default_factory=list["Done"])  # over HTTP, the commands nobody could be answered

    async def click(self, label: str, count: int = 1) -> None:
        """Have some people click at the same moment; who is not counted clicks `fail`."""
        for _ in range(count):
            name = f"person{len(self.discord.world.user_ids)}"
            used = self.discord.user(name).click(custom_id=self.button(label), message=self.message["id"])
            self.clicks.append(Done(name, used, fails=label == "fail"))

    def button(self, label: str) -> str:
        """Return the custom id of a button, whatever number the first one shows."""
        names = ("add", "late", "tell", "hold", "fail")
        return self.message["components"][0]["components"][names.index(label)]["custom_id"]

    async def command(self, name: str, posts: int = 0) -> None:
        """Use a command that makes so many counters."""
        used = self.discord.user("alice").start_command(name, {})
        self.commands.append(Done(name, used, posts))

    @property
    def people(self) -> list[str]:
        """Who must be counted, each under a name of their own."""
        return [each.name for each in self.clicks if not each.fails and self.is_accepted(each)]

    @property
    def failures(self) -> int:
        """How many clicks must be on the failed list."""
        return sum(each.fails for each in self.clicks if self.is_accepted(each))

    @property
    def posts(self) -> int:
        """How many counters there must be."""
        # What `again` posts is no answer of its own, and comes although nobody can be told of it.
        counts = (each for each in self.commands if each not in self.expired or each.name == "again")
        return 1 + sum(each.posts for each in counts if self.is_accepted(each))

    def is_accepted(self, done: Done) -> bool:
        """Return whether it must have happened: through the gateway everything, over HTTP what reached the disk."""
        key = f"interaction:{done.used.interaction['id']}"
        return Now.mode == "gateway" or bool(rows(self.store, "SELECT 1 FROM inbox WHERE key=?", key))

    async def at_rest(self) -> None:
        """Wait until everything that people did is done and shown."""
        await self.discord.delivered()
        with contextlib.suppress(TimeoutError):  # what is missing then is told by what looks next
            await until(self.is_at_rest, timeout=60)

    def is_at_rest(self) -> bool:
        accepted = rows(self.store, "SELECT count(*) FROM inbox")[0][0]
        is_all = Now.mode == "rest" or accepted >= len(self.discord.journal.of("interaction"))
        return is_all and not rows(self.store, PENDING + NOT_SHOWN)

    def set_expired_aside(self) -> None:
        """Over HTTP: see that those commands are on the failed list whose person saw none of it, and take them off."""
        lost = [each for each in self.commands if each.used.state == "failed" and self.is_accepted(each)]
        keys = [key for (key,) in rows(self.store, "SELECT key FROM failed WHERE type='ExpiredError'")]
        fresh = [f"interaction:{each.used.interaction['id']}" for each in lost if each not in self.expired]
        assert sorted(keys) == sorted(fresh)
        rows(self.store, "DELETE FROM failed WHERE type='ExpiredError'")
        self.expired = lost


# What is going on when the process dies: a preparation, and what leads to the point.

Act = Callable[[Scene], Awaitable[None]]


async def nothing(scene: Scene) -> None:
    """Come as it is."""


async def one_failed(scene: Scene) -> None:
    """Have an event on the failed list that does better when it is tried again."""
    await scene.command("shaky")
    await until(lambda: rows(scene.store, "SELECT key FROM failed"))


async def work_left(scene: Scene) -> None:
    """Have a process that is gone, with a click half done, a message that is behind, and no command registered."""
    if scene.posts == 1:
        await scene.command("post", posts=1)
        await scene.at_rest()
    held = scene.store.with_name("held")
    held.touch()
    await scene.click("hold")
    await until(lambda: rows(scene.store, PENDING))
    scene.process.kill()
    await scene.process.wait()
    held.unlink()
    rows(scene.store, "UPDATE record SET shown=0 WHERE key<>?", record_of(scene.message).key)
    scene.discord.world.replace_commands(None, [])


async def half_told(scene: Scene) -> None:
    """Have a process that is gone, which had only promised a secret."""
    armed = scene.store.with_name("armed")
    armed.write_text("after callback 5", "utf-8")
    await scene.command("secret")
    await die(scene, armed, "after callback 5")


async def forgotten(scene: Scene) -> None:
    """Have a process that is gone, whose session Discord has forgotten."""
    await until(lambda: rows(scene.store, "SELECT session FROM cursor"))
    scene.process.kill()
    await scene.process.wait()
    scene.discord.gateway.invalidate()


async def start_again(scene: Scene) -> None:
    """Start the process."""
    await scene.process.start()


async def stop(scene: Scene) -> None:
    """Tell the process to end."""
    await scene.process.terminate()


async def hear_something(scene: Scene) -> None:
    """Send an event that nobody stores."""
    scene.discord.send_raw("VOICE_CHANNEL_STATUS_UPDATE", {})


class Way(NamedTuple):
    """How to get to some points."""

    go: Act
    points: tuple[str, ...]
    prepare: Act = nothing
    meanwhile: int = 2  # clicks, before the next start
    keeps_session: bool = True
    may_tell_twice: bool = False  # a notice, when its sender died before it was noted that the command is done
    over_http: tuple[str, ...] | None = ()  # more points; None: the mode makes no difference

    def points_in(self, mode: str) -> tuple[str, ...]:
        """Return the points that there are in that mode."""
        if mode == "gateway":
            return self.points
        if self.over_http is None:
            return ()
        return (*(point for point in self.points if point not in OF_THE_GATEWAY), *self.over_http)


ORIGINAL = "/webhooks/{webhook}/{token}/messages/@original"
OF_THE_GATEWAY = "GET /gateway/bot", "a cursor", "a flush", "a gap", "a session"
WAYS = {
    "three clicks": Way(
        lambda scene: scene.click("add", 3),
        ("an event", "a state", "callback 7", "what is shown", "in the handler"),
        over_http=("an answer", f"GET {ORIGINAL}"),
    ),
    "a click that no other follows": Way(lambda scene: scene.click("add"), ("a state", "callback 7"), meanwhile=0),
    "a deferred click": Way(lambda scene: scene.click("late"), ("callback 6", f"PATCH {ORIGINAL}")),
    "a click with a reply": Way(lambda scene: scene.click("tell"), ("POST /webhooks/{webhook}/{token}",)),
    "a click that fails": Way(lambda scene: scene.click("fail"), ("a failure", "callback 4")),
    "a command": Way(lambda scene: scene.command("post", 1), ("a new record", "callback 4", "a done mark")),
    "a deferred command": Way(lambda scene: scene.command("later", 1), ("callback 5", f"PATCH {ORIGINAL}")),
    "a deferred secret": Way(
        lambda scene: scene.command("secret"),
        (f"DELETE {ORIGINAL}", "POST /webhooks/{webhook}/{token}"),
        may_tell_twice=True,
    ),
    "a secret half told": Way(start_again, (f"GET {ORIGINAL}",), half_told),
    "a retry": Way(
        lambda scene: scene.command("again", 1), ("a retry", "POST /channels/{channel}/messages"), one_failed
    ),
    "a discard": Way(lambda scene: scene.command("discard"), ("a discard",), one_failed, over_http=None),
    "an event that nobody stores": Way(hear_something, ("a cursor",)),
    "a heartbeat": Way(nothing, ("a flush",)),
    "a start": Way(
        start_again,
        (
            "GET /gateway/bot",
            "GET /oauth2/applications/@me",
            "GET /applications/{application}/commands",
            "PUT /applications/{application}/commands",
            "PATCH /channels/{channel}/messages/{message}",
            "a run",
            "a purge",
        ),
        work_left,
        over_http=("GET /users/@me",),
    ),
    "a start without a session": Way(start_again, ("a gap", "a session"), forgotten, meanwhile=0, keeps_session=False),
    "a stop": Way(stop, ("a release",), over_http=None),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("mode", "way"),
    [(mode, way) for mode in ("gateway", "rest") for way in WAYS if WAYS[way].points_in(mode)],
    indirect=["mode"],
)
async def test_a_kill_at_any_commit_or_request_loses_nothing_doubles_nothing_and_leaves_nothing_unshown(
    mode: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playground.interactions.FIRST_ANSWER_S", LATE_S)
    monkeypatch.setattr("playground.endpoint.FIRST_ANSWER_S", LATE_S)
    monkeypatch.setattr("playground.gateway.HEARTBEAT_MS", 2_000)
    store, armed = tmp_path / "bot.db", tmp_path / "armed"
    go, _, prepare, meanwhile, keeps_session, may_tell_twice, _ = WAYS[way]
    async with Discord() as discord:
        process = await start(discord, "killed", store)
        message = (await discord.user("alice").command("post")).message
        assert message
        scene = Scene(discord, process, store, message)
        for point in [moment for each in WAYS[way].points_in(mode) for moment in moments(each)]:
            is_second_start = go is start_again and point.startswith("after ")
            if not is_second_start:
                await prepare(scene)
            armed.write_text(point, "utf-8")
            await go(scene)
            await die(scene, armed, point)
            if go is start_again and not is_second_start:
                continue  # the next start comes by here as well
            await scene.click("add", meanwhile)
            await process.start()
            await process.ready(30)
            if mode == "rest":
                await scene.click("add", meanwhile)  # beside what was left; those before found nobody
            await scene.at_rest()
            check(scene, point, notices=2 if may_tell_twice else 1)
        assert discord.gateway.identifies == (mode == "gateway") or not keeps_session
        await check_counters(scene)


async def die(scene: Scene, armed: Path, point: str) -> None:
    """Wait for the death at the point, or say what the process did instead."""
    try:
        await until(lambda: not armed.exists(), timeout=60)
    except TimeoutError:
        raise AssertionError("\n".join([f"nobody died {point}", *scene.process.log[-20:]])) from None
    assert await scene.process.wait() == -9, point


def moments(point: str) -> list[str]:
    """Return when to die there."""
    return [point] if point.startswith("in ") else [f"before {point}", f"after {point}"]


def check(scene: Scene, point: str, notices: int) -> None:
    """Everything was done once, and every message shows it."""
    discord, store = scene.discord, scene.store
    if Now.mode == "rest":
        scene.set_expired_aside()
    told = [each for each in (*scene.clicks, *scene.commands) if each.used.state in ("answered", "deferred")]
    assert [each for each in told if not scene.is_accepted(each)] == [], f"{point}: somebody was told what is lost"
    counted, clicked = Counter(state_of(store, scene.message)["people"]), Counter(scene.people)
    assert counted == clicked, f"{point}: lost {clicked - counted}, doubled {counted - clicked}"
    assert shown(discord, scene.message) == len(scene.people), point
    public = Counter(cause_of(message) for message in discord.messages() if is_public(message))
    private = Counter(cause_of(message) for message in discord.messages() if not is_public(message))
    assert max(public.values()) == 1, f"{point}: something was posted twice"
    assert max(private.values(), default=0) <= notices, f"{point}: somebody was told twice"
    assert not public.keys() & private.keys(), point
    assert not [message for message in discord.messages() if "else sees" in message["content"] and is_public(message)]
    assert len(counters(scene)) == scene.posts, point
    unposted = sum(each.posts for each in scene.expired if each.name != "again")  # saved before it could not be said
    assert rows(store, "SELECT count(*) FROM record WHERE name<>'points'") == [(scene.posts + unposted,)], point
    points = rows(store, "SELECT json_extract(CAST(data AS TEXT), '$.count') FROM record WHERE name='points'")
    assert sum(count for (count,) in points) == len(scene.people), point
    assert rows(store, "SELECT count(*) FROM failed") == [(scene.failures,)], point


def is_public(message: Json) -> bool:
    return not message["flags"] & EPHEMERAL


def cause_of(message: Json) -> str:
    """Return the interaction that a message answers; of one tried again, that its second answer is meant."""
    return message["interaction_metadata"]["id"] if "interaction_metadata" in message else f"{message['nonce']} again"


def counters(scene: Scene) -> list[Json]:
    """Return the messages with a button."""
    return [message for message in scene.discord.messages() if message["components"]]


async def check_counters(scene: Scene) -> None:
    """Every counter that was posted counts."""
    before = {message["id"]: shown(scene.discord, message) for message in counters(scene)}
    for message in counters(scene):
        scene.discord.user("alice").click(custom_id=button_id(message), message=message["id"])
    await scene.at_rest()
    assert {message["id"]: shown(scene.discord, message) - 1 for message in counters(scene)} == before
