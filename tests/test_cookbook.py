"""The bots of docs/cookbook.md: checked, typed, and used in the playground as people would, with kill -9 in between."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from playground import Discord
from playground.people import Used
from playground.process import BotProcess
from playground.shapes import walk
from playground.world import What
from tests.kit import ROOT, Json, rows, start, until

PAGE = ROOT / "docs" / "cookbook.md"
TEXT = PAGE.read_text("utf-8") if PAGE.exists() else ""
BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
RECIPES = dict(part.split("\n", 1) for part in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:])

pytestmark = pytest.mark.skipif(not TEXT, reason="docs/cookbook.md is not here")

PENDING = "SELECT key FROM inbox WHERE done_at IS NULL"
NOT_SHOWN = "SELECT key FROM record WHERE shown < version AND message IS NOT NULL"


def save(title: str, folder: Path) -> Path:
    """Write the recipe's bot into the folder."""
    [code] = BLOCK.findall(RECIPES[title])
    file = folder / f"{title.lower().replace(' ', '_').replace('-', '_')}_bot.py"
    file.write_text(code, "utf-8")
    return file


# The page


def test_the_page_has_thirteen_bots_of_twenty_to_eighty_lines_each_between_two_sentences() -> None:
    assert len(RECIPES) == 13
    assert re.findall(r"\]\(#([\w-]+)\)", TEXT) == [title.lower().replace(" ", "-") for title in RECIPES]
    for title, recipe in RECIPES.items():
        before, code, after = BLOCK.split(recipe)
        assert re.fullmatch(r"\n.+(\n.+)?\n\n", before), title
        assert re.fullmatch(r"\n.+(\n.+)?\n+", after), title
        assert 20 <= sum(bool(line.strip()) for line in code.splitlines()) <= 80, title
        assert max(map(len, code.splitlines())) <= 120, title


async def test_check_finds_no_mistake_in_any_of_them(tmp_path: Path) -> None:
    async def check(title: str) -> tuple[str, str, int | None]:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            save(title, tmp_path),
            "check",
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "HOOK_SECRET": "of sixteen characters"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        return title, said.decode().splitlines()[0].partition(": ")[2], process.returncode

    titles = list(RECIPES)
    some = [titles[at : at + 3] for at in range(0, len(titles), 3)]
    said = [each for few in some for each in await asyncio.gather(*map(check, few))]
    assert said == [(title, "no mistakes found.", 0) for title in titles]


def test_all_of_them_pass_pyright_in_its_strict_mode(tmp_path: Path) -> None:
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed")
    version = subprocess.run([sys.executable, "-m", "pyright", "--version"], capture_output=True, check=False)
    if version.returncode:
        pytest.skip("pyright cannot run here: it needs Node.js")
    for title in RECIPES:
        save(title, tmp_path)
    settings = {"strict": ["."], "extraPaths": [str(ROOT)], "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = json.loads(done.stdout)
    found = [f"{Path(each['file']).name}: {each['message']}" for each in said["generalDiagnostics"]]
    assert (found, said["summary"]["filesAnalyzed"], done.returncode) == ([], 13, 0)


# Using them


@dataclass
class Served:
    """A recipe's bot as a process, and the Discord it is in."""

    discord: Discord
    process: BotProcess
    store: Path

    def now(self, message: Json | None) -> str:
        """Return all that stands in the message as it is now; "" when it is gone."""
        kept = self.discord.world.find(message["id"]) if message else None
        return self.discord.text(kept.message) if kept else ""

    async def reads(self, message: Json | None, text: str) -> None:
        """Wait until the message has that text in it."""
        with contextlib.suppress(TimeoutError):
            await until(lambda: text in self.now(message))
        assert text in self.now(message)

    async def answer(self, used: Awaitable[Used]) -> Json:
        """Return the message by which the bot answered, also when it only promised one at first."""
        message = (await (await used).settled()).message
        assert message
        return message

    async def said(self, used: Awaitable[Used]) -> str:
        """Return all that stands in the bot's answer."""
        return self.discord.text(await self.answer(used))

    def told(self, name: str) -> str:
        """Return the newest message that this person sees."""
        return self.discord.text(max(self.seen(name), key=lambda message: int(message["id"])))

    def seen(self, name: str) -> list[Json]:
        """Return the messages that this person sees, of all channels."""
        channels = [each["id"] for each in self.discord.world.guild_channels()]
        return [each for id in channels for each in self.discord.messages(id, seen_by=name)]

    async def hears(self, name: str, text: str) -> None:
        """Wait until the newest message that this person sees has that text in it."""
        with contextlib.suppress(TimeoutError):
            await until(lambda: text in self.told(name))
        assert text in self.told(name)

    async def kill(self) -> None:
        """kill -9. What people do from now on reaches the bot when it is back."""
        self.process.kill()
        await self.process.wait()

    async def start(self) -> None:
        await self.process.start()
        await self.process.ready()

    async def survive(self) -> None:
        """Die by kill -9 as soon as the last thing somebody did is on disk, and come back."""
        accepted = len(self.discord.journal.of("interaction"))
        await until(lambda: rows(self.store, "SELECT count(*) FROM inbox")[0][0] >= accepted)
        await self.kill()
        await self.start()
        await self.at_rest()

    @contextlib.asynccontextmanager
    async def dying_at(self, what: What) -> AsyncIterator[None]:
        """Die by kill -9 when Discord has just done that for the bot, which does not learn of it, and come back."""

        def listen(happens: What, _: Any) -> None:
            if happens == what:
                self.process.kill()

        self.discord.world.listeners.append(listen)
        yield
        async with asyncio.timeout(20):
            await self.process.wait()
        self.discord.world.listeners.remove(listen)
        await self.start()
        await self.at_rest()

    async def at_rest(self) -> None:
        """Wait until all that was accepted is done and shown."""
        await until(lambda: not rows(self.store, f"{PENDING} UNION ALL {NOT_SHOWN}"))

    @property
    def complaints(self) -> list[str]:
        """What went wrong by the bot's own word, without what a busy machine or a moved clock causes."""
        loud = [line for line in self.process.log if re.search(r" WARNING | ERROR |Traceback", line)]
        return [
            line for line in loud if not re.search("everything waits for|the gateway session cannot be resumed", line)
        ]


@pytest.fixture(autouse=True)
def discord_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """How fast this machine starts a process is no part of these tests."""
    monkeypatch.setattr("playground.interactions.FIRST_ANSWER_S", 60)
    monkeypatch.setattr("playground.endpoint.FIRST_ANSWER_S", 60)


@contextlib.asynccontextmanager
async def serving(title: str, folder: Path, **env: Any) -> AsyncIterator[Served]:
    """Run the recipe's bot as a process; in the end it must have nothing to complain about."""
    async with Discord() as discord:
        store = folder / "bot.db"
        served = Served(discord, await start(discord, save(title, folder), store, **env), store)
        yield served
        await served.at_rest()
        assert served.complaints == []
        assert rows(store, "SELECT * FROM failed") == []


@pytest.mark.both_modes
async def test_a_role_menu_gives_roles_and_takes_them(tmp_path: Path) -> None:
    async with serving("Role menu", tmp_path) as it:
        alice, bob, carol = map(it.discord.user, ("alice", "bob", "carol"))
        red, blue = it.discord.role("Red")["id"], it.discord.role("Blue")["id"]
        menu = await it.answer(alice.command("rolemenu", first="Red", second="Blue"))
        assert it.now(menu) == "Red\nBlue"
        assert await it.said(bob.click("Red")) == "Red is on."
        assert (bob.member or {})["roles"] == [red]
        async with it.dying_at("member"):
            bob.click("Blue")
        assert (bob.member or {})["roles"] == [red, blue]
        assert await it.said(bob.click("Red", message=menu)) == "Red is off."
        assert (bob.member or {})["roles"] == [blue]

        with pytest.raises(LookupError, match="Manage Roles"):
            await bob.command("rolemenu", first="Red")
        carol.grant("manage_roles")
        it.discord.role("Boss", ["administrator"])
        refused = carol.command("rolemenu", first="Boss")
        assert await it.said(refused) == "You can only offer roles that may do no more than you."
        it.discord.world.membership.put_role("77", "High", 0, position=60)
        await alice.command("rolemenu", first="High")
        await bob.click("High")
        await it.hears("bob", "I cannot give that role")


@pytest.mark.both_modes
async def test_a_ticket_is_private_and_one_for_each_person(tmp_path: Path) -> None:
    async with serving("Ticket panel", tmp_path) as it:
        alice, bob, carol = map(it.discord.user, ("alice", "bob", "carol"))
        it.discord.role("Staff")
        it.discord.user("dave").add_role("Staff")
        panel = await it.answer(alice.command("tickets", staff="Staff"))
        assert "Here it is" in await it.said(bob.click("Open a ticket"))
        first = "what is it about?"
        assert [first in self for self in map(it.discord.text, it.discord.messages("ticket-bob", seen_by="bob"))] == [
            True
        ]
        assert len(it.discord.messages("ticket-bob", seen_by="dave")) == 1
        assert it.discord.messages("ticket-bob", seen_by="carol") == []
        await it.survive()
        assert "You have a ticket already" in await it.said(bob.click("Open a ticket", message=panel))

        async with it.dying_at("channel_new"):
            carol.click("Open a ticket", message=panel)
        await until(lambda: any(first in it.discord.text(each) for each in it.seen("carol")))
        assert names(it.discord).count("ticket-carol") == 2
        async with it.dying_at("channel_gone"):
            carol.click("Close")
        it.discord.delete_channel("ticket-carol")
        await carol.click("Open a ticket", message=panel)
        it.discord.delete_channel("ticket-bob")
        await bob.click("Open a ticket", message=panel)
        assert sorted(name for name in names(it.discord) if "ticket" in name) == ["ticket-bob", "ticket-carol"]
        it.discord.role("playground-bot", ["view_channel", "send_messages"])
        refused = alice.click("Open a ticket", message=panel)
        assert await it.said(refused) == "I may not make channels here."


def names(discord: Discord) -> list[str]:
    return [channel["name"] for channel in discord.world.guild_channels()]


async def test_pages_are_turned_by_who_asked_for_them(tmp_path: Path) -> None:
    async with serving("Paginator", tmp_path) as it:
        alice, bob = it.discord.user("alice"), it.discord.user("bob")
        page = await it.answer(alice.command("rules"))
        assert "Page 1 of 3" in it.now(page)
        with pytest.raises(LookupError):
            alice.click("Back", message=page)
        await alice.click("Next", message=page)
        await it.reads(page, "Page 2 of 3")
        assert await it.said(bob.click("Next", message=page)) == "This is not for you."
        await it.kill()
        alice.click("Next", message=page)
        await it.start()
        await it.reads(page, "Page 3 of 3")
        with pytest.raises(LookupError):
            alice.click("Next", message=page)
        await alice.click("Back", message=page)
        await it.reads(page, "2. Stay on topic")


@pytest.mark.both_modes
async def test_a_purge_asks_first_and_deletes_what_it_asked_about(tmp_path: Path) -> None:
    async with serving("Confirm dialog", tmp_path) as it:
        alice, bob = it.discord.user("alice"), it.discord.user("bob")
        said = [await bob.say(f"message {number}") for number in range(5)]
        with pytest.raises(LookupError, match="Manage Messages"):
            await bob.command("purge", count=3)
        asked = await it.answer(alice.command("purge", count=3))
        assert "Delete 3 messages?" in it.now(asked)
        await alice.click("Cancel", message=asked)
        await it.reads(asked, "Nothing was deleted.")
        assert all(map(it.now, said))

        asked = await it.answer(alice.command("purge", count=2))
        later = await bob.say("later")
        alice.click("Delete", message=asked)
        alice.click("Cancel", message=asked)
        await it.hears("alice", "This was used already.")
        await it.reads(asked, "2 messages are gone.")
        left = ["message 0", "message 1", "message 2"]
        assert [it.now(each) for each in (*said, later)] == [*left, "", "", "later"]

        asked = await it.answer(alice.command("purge", count=3))
        async with it.dying_at("all gone"):
            alice.click("Delete", message=asked)
            alice.click("Delete", message=asked)
            await bob.say("even later")
        await until(lambda: not it.now(later))
        assert [it.discord.text(each) for each in it.seen("bob")] == ["message 0", "even later"]

        it.discord.role("playground-bot", ["view_channel", "send_messages", "read_message_history"])
        asked = await it.answer(alice.command("purge", count=2))
        await alice.click("Delete", message=asked)
        await it.reads(asked, "I may not delete messages here.")


@pytest.mark.both_modes
async def test_a_giveaway_that_ends_while_the_bot_is_down_is_drawn_once(tmp_path: Path) -> None:
    async with serving("Giveaway", tmp_path) as it:
        alice, bob, carol = map(it.discord.user, ("alice", "bob", "carol"))
        assert "no time span" in await it.said(alice.command("giveaway", prize="Cake", lasts="soon"))
        async with it.dying_at("message"):
            alice.start_command("giveaway", {"prize": "Nothing", "lasts": "2h"})
        await alice.command("giveaway", prize="Cake", lasts="1h")
        nothing, cake = [each for each in it.seen("bob") if "0 are in" in it.now(each)]
        await bob.click("Enter", message=cake)
        await it.reads(cake, "1 are in")
        async with it.dying_at("edit"):
            carol.click("Enter", message=cake)
        await it.reads(cake, "2 are in")
        assert await it.said(bob.click("Enter", message=cake)) == "You are in already."

        await it.kill()
        it.discord.clock.advance(3_600)
        await it.start()
        await it.reads(cake, "won!")
        assert any(f"<@{person.id}> won!" in it.now(cake) for person in (bob, carol))
        outcome = it.now(cake)
        assert "ends" in it.now(nothing)
        async with it.dying_at("edit"):
            it.discord.clock.advance(3_600)
        await it.reads(nothing, "Nobody came.")
        assert it.now(cake) == outcome


@pytest.mark.both_modes
async def test_a_todo_list_is_added_to_ticked_and_cleared(tmp_path: Path) -> None:
    async with serving("To-do list", tmp_path) as it:
        alice, bob = it.discord.user("alice"), it.discord.user("bob")
        todo = await it.answer(alice.command("todo"))
        assert (await bob.click("Add", message=todo)).form
        await it.survive()
        async with it.dying_at("edit"):
            bob.submit({"Item": "Milk"})
        assert it.now(todo).count("Milk") == 1
        await alice.click("Add", message=todo)
        await alice.submit({"Item": "Bread"})
        await it.reads(todo, "Bread")
        async with it.dying_at("edit"):
            alice.click("✓", message=todo)
        assert "~~Milk~~" in it.now(todo)
        await bob.click("Clear what is done", message=todo)
        await until(lambda: "Milk" not in it.now(todo))
        assert "Bread" in it.now(todo)

        for number in range(8):
            await alice.click("Add", message=todo)
            await alice.submit({"Item": f"Item {number}"})
            await it.reads(todo, f"Item {number}")
        assert (await alice.click("Add", message=todo)).form
        await bob.click("Add", message=todo)
        await bob.submit({"Item": "The last"})
        await it.reads(todo, "The last")
        with pytest.raises(LookupError):
            alice.click("Add", message=todo)
        await alice.submit({"Item": "One too many"})
        await it.hears("alice", "The list is full.")
        assert "One too many" not in it.now(todo)


@pytest.mark.both_modes
async def test_feedback_with_a_file_reaches_the_staff_once(tmp_path: Path) -> None:
    async with serving("Feedback form", tmp_path) as it:
        alice, bob = it.discord.user("alice"), it.discord.user("bob")
        assert (await bob.command("feedback")).form
        given = {
            "How do you like it here?": "Good",
            "Why?": "The cake",
            "Files to show us": [("cake.png", b"a picture")],
        }
        await bob.submit(given)
        await it.hears("bob", "Nobody reads feedback here yet.")
        assert "from now on" in await it.said(alice.command("feedbackhere", channel="random"))
        form = (await bob.click("Try again")).form
        assert form
        assert "The cake" in [each.get("value") for each in walk(form["components"])]
        async with it.dying_at("message"):
            bob.submit({"Files to show us": [("cake.png", b"a picture")]})
        [posted] = it.discord.messages("random", seen_by="carol")
        assert f"**Good**, says <@{bob.id}>:\nThe cake" in it.discord.text(posted)
        [file] = posted["attachments"]
        assert (file["filename"], file["size"]) == ("cake.png", 9)

        await bob.command("feedback")
        await bob.submit({"How do you like it here?": "Bad", "Why?": "No cake"})
        await until(lambda: len(it.discord.messages("random", seen_by="carol")) == 2)
        assert it.discord.messages("random", seen_by="carol")[-1]["attachments"] == []
        with pytest.raises(LookupError, match="Manage Guild"):
            await bob.command("feedbackhere")
        it.discord.delete_channel("random")
        await bob.command("feedback")
        await bob.submit({"How do you like it here?": "Bad", "Why?": "Still no cake"})
        await it.hears("bob", "I cannot write where feedback goes.")


@pytest.mark.both_modes
async def test_moderators_mute_members_and_nobody_else(tmp_path: Path) -> None:
    async with serving("Mute", tmp_path) as it:
        alice, bob, carol, dave = map(it.discord.user, ("alice", "bob", "carol", "dave"))
        with pytest.raises(LookupError, match="Moderate Members"):
            await bob.command("mute", member=carol)
        bob.grant("moderate_members")
        assert "is muted until" in await it.said(bob.command("mute", member=carol, lasts="1d", reason="spam"))
        with pytest.raises(LookupError):
            await carol.say("I am not")
        assert "is muted until" in await it.said(bob.command("Mute for an hour", target=dave))
        await it.at_rest()  # over HTTP it knows only now that this has arrived
        it.discord.clock.advance(3_601)
        await dave.say("Here I am again")
        with pytest.raises(LookupError):
            await carol.say("And I am not")
        assert "cannot be muted" in await it.said(bob.command("mute", member=alice))
        it.discord.world.membership.put_role("77", "High", 0, position=60)
        dave.add_role("High")
        assert "stands above mine" in await it.said(bob.command("mute", member=dave))


RIGHT = {"planet": "Jupiter", "spider": "Eight", "Australia": "Canberra"}
WRONG = {"planet": "Saturn", "spider": "Six", "Australia": "Sydney"}


@pytest.mark.both_modes
async def test_trivia_counts_a_point_once_and_lets_who_guessed_wrong_wait(tmp_path: Path) -> None:
    async with serving("Trivia", tmp_path) as it:
        alice, bob, carol = map(it.discord.user, ("alice", "bob", "carol"))
        question = await it.answer(alice.command("trivia"))
        topic = next(word for word in RIGHT if word in it.now(question))
        await bob.click(WRONG[topic], message=question)
        await it.hears("bob", "No. Think for half a minute.")
        await it.survive()
        assert "You can use this again" in await it.said(bob.click(RIGHT[topic], message=question))
        it.discord.clock.advance(31)
        async with it.dying_at("edit"):
            bob.click(RIGHT[topic], message=question)
        assert f"A point for <@{bob.id}>" in it.now(question)
        with pytest.raises(LookupError):
            carol.click(RIGHT[topic], message=question)

        for person in (carol, carol):
            question = await it.answer(alice.command("trivia"))
            topic = next(word for word in RIGHT if word in it.now(question))
            await person.click(RIGHT[topic], message=question)
            await it.reads(question, f"A point for <@{carol.id}>")
            it.discord.clock.advance(31)
        assert await it.said(bob.command("scores")) == f"<@{carol.id}>: 2\n<@{bob.id}>: 1"


@pytest.mark.both_modes
async def test_settings_are_kept_and_shown(tmp_path: Path) -> None:
    async with serving("Settings page", tmp_path) as it:
        alice, bob = it.discord.user("alice"), it.discord.user("bob")
        with pytest.raises(LookupError, match="Manage Guild"):
            await bob.command("settings")
        page = await it.answer(alice.command("settings"))
        assert page
        assert chosen(page) == [["en"], [], []]
        async with it.dying_at("edit"):
            alice.select("Language", ["de"], message=page)
        await alice.select("Log", ["random"], message=page)
        await it.survive()
        staff = [it.discord.role("Staff")["id"], it.discord.role("Helpers")["id"]]
        await alice.select("Team", staff, message=page)
        await it.at_rest()
        log = it.discord.world.channel_of("random")["id"]
        kept = it.discord.world.find(page["id"])
        assert kept
        for again in (kept.message, await it.answer(alice.command("settings"))):
            assert chosen(again) == [["de"], [log], staff]
        await alice.select("Log", [], message=page)
        await it.at_rest()
        assert chosen(await it.answer(alice.command("settings"))) == [["de"], [], staff]

        alice.remove_role("Administrator")
        await alice.select("Language", ["fr"], message=page)
        await it.hears("alice", "This is not for you.")
        alice.grant("manage_guild")
        assert chosen(await it.answer(alice.command("settings"))) == [["de"], [], staff]


def chosen(message: Json | None) -> list[list[str]]:
    """Return what is chosen in each select of the message."""
    parts = [each for each in walk((message or {})["components"]) if each["type"] in (3, 6, 8)]
    return [
        [each["value"] for each in part.get("options", ()) if each.get("default")]
        + [each["id"] for each in part.get("default_values", ())]
        for part in parts
    ]


async def test_who_joins_is_greeted_once_and_gets_a_role(tmp_path: Path) -> None:
    async with serving("Welcome", tmp_path) as it:
        alice, bob = it.discord.user("alice"), it.discord.user("bob")
        newbie = it.discord.role("Newbie")["id"]
        it.discord.role("Boss", ["administrator"])
        bob.grant("manage_guild")
        assert "no more than you" in await it.said(bob.command("welcome", text="Hi", role="Boss"))
        dave = it.discord.join("dave")  # before anything is set
        assert await it.said(alice.command("welcome", channel="random", text="Hi {name}!", role="Newbie"))
        erin = it.discord.join("erin")
        await until(lambda: it.discord.messages("random", seen_by="carol"))
        async with it.dying_at("message"):
            frank = it.discord.join("frank")
        greeted = [message["content"] for message in it.discord.messages("random", seen_by="carol")]
        assert greeted == [f"Hi <@{person.id}>!" for person in (erin, frank)]
        assert [(each.member or {})["roles"] for each in (dave, erin, frank)] == [[], [newbie], [newbie]]


async def test_the_third_warning_silences(tmp_path: Path) -> None:
    async with serving("Warnings", tmp_path) as it:
        alice, bob, carol = map(it.discord.user, ("alice", "bob", "carol"))
        with pytest.raises(LookupError, match="Moderate Members"):
            await bob.command("warn", member=carol, reason="spam")
        bob.grant("moderate_members")
        assert "warning 1 of 3: spam" in await it.said(bob.command("warn", member=carol, reason="spam"))
        alice.start_command("warn", {"member": carol, "reason": "more spam"})
        await it.survive()
        assert await it.said(bob.command("warnings", user=carol)) == "- spam\n- more spam"
        await carol.say("I may still talk")
        async with it.dying_at("member"):
            alice.start_command("warn", {"member": carol, "reason": "still spam"})
        await it.hears("bob", "warning 3 of 3: still spam")
        with pytest.raises(LookupError):
            await carol.say("Not now")
        await bob.command("pardon", user=carol)
        assert await it.said(bob.command("warnings", user=carol)) == "There are none."

        await bob.command("warn", member=carol, reason="again")
        it.discord.clock.advance(30 * 86_400 + 1)
        assert await it.said(bob.command("warnings", user=carol)) == "There are none."
