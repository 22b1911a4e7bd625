"""docs/tour.md: each lesson's change is made to a copy of bot.py, and what the reader is to see is seen."""

from __future__ import annotations

import ast
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from playground import Discord
from playground.people import Person
from playground.process import BotProcess
from tests.kit import ROOT, until

PAGE = ROOT / "docs" / "tour.md"
TEXT = PAGE.read_text("utf-8") if PAGE.exists() else ""
LESSONS = re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]
BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
BOT = (ROOT / "bot.py").read_text("utf-8")

pytestmark = pytest.mark.skipif(not TEXT, reason="docs/tour.md is not here")


def names_of(code: str) -> list[tuple[str, str]]:
    """Return the name and text of everything that a block defines."""
    found: list[tuple[str, str]] = []
    for node in ast.parse(code).body:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        name = getattr(node, "name", "") or getattr(getattr(node, "targets", [None])[0], "id", "")
        found.append((name, "\n".join(code.splitlines()[first - 1 : node.end_lineno])))
    return found


def changed(source: str, code: str) -> str:
    """Return the file after a lesson's change: what is there takes the new text, what is new is added and listed."""
    for name, text in names_of(code):
        there = next((each for each in names_of(source) if each[0] == name), None)
        if there:
            source = source.replace(there[1], text)
            continue
        source = source.replace("\ndef your_bot(", f"\n{text}\n\n\ndef your_bot(")
        if not name.isupper():
            source = re.sub(r"(\ndef your_bot.*?app\.add\()", rf"\1{name}, ", source, count=1, flags=re.DOTALL)
    return source


def after(lessons: int, folder: Path) -> Path:
    """Write bot.py as it is after so many lessons."""
    source = BOT
    for lesson in LESSONS[:lessons]:
        source = changed(source, BLOCK.findall(lesson)[0])
    (file := folder / "bot.py").write_text(source, "utf-8")
    return file


async def run(discord: Discord, file: Path) -> BotProcess:
    process = await discord.start_bot(file, cwd=file.parent, env={"STORE": f"sqlite:{file.parent / 'bot.db'}"})
    await process.ready()
    return process


async def restart(process: BotProcess) -> None:
    """Kill the bot and start it again, as the page's buttons do."""
    process.kill()
    await process.wait()
    await process.start()
    await process.ready()


def test_there_are_seven_lessons_each_with_a_change_and_what_to_see() -> None:
    assert [lesson[:2] for lesson in LESSONS] == [f"{number}." for number in range(1, 8)]
    for lesson in LESSONS:
        assert len(BLOCK.findall(lesson)) == 1
        assert "**You see**" in lesson
        assert re.search(r"\n\nRead ", lesson)


def test_what_a_lesson_tells_to_read_is_there() -> None:
    for lesson in LESSONS:
        sentence = re.search(r"^Read .*?(?=\n\n)", lesson, re.MULTILINE | re.DOTALL)
        assert sentence
        for name in re.findall(r"`([\w.]+)`", sentence.group()):
            assert re.search(rf"\b(class|def) {name.rpartition('.')[2]}\b", BOT), name


async def greet(discord: Discord, process: BotProcess, alice: Person) -> None:
    assert discord.text((await alice.command("ping", name="Ann")).message) == "Pong, Ann!"
    assert discord.text((await alice.command("ping")).message) == "Pong, you!"


async def vote(discord: Discord, process: BotProcess, alice: Person) -> None:
    poll = (await alice.command("poll", question="Tea?")).message
    await alice.click("Yes: 0", message=poll)
    await restart(process)
    await discord.user("bob").click("Maybe: 0", message=poll)
    assert (await discord.user("carol").click("Yes: 1", message=poll)).state == "answered"


async def press(discord: Discord, process: BotProcess, alice: Person) -> None:
    slow = (await alice.command("slow")).message
    assert slow
    clicks = [discord.user(name).click("0 clicks", message=slow) for name in ("alice", "bob", "alice", "bob")]
    for click in clicks:
        assert (await click.answered()).state != "failed"
    await until(lambda: "4 clicks" in str(discord.world.find(slow["id"])))


async def suggest(discord: Discord, process: BotProcess, alice: Person) -> None:
    await alice.command("idea")
    told = (await alice.submit({"About": "x"})).message
    assert "Say a little more" in discord.text(told)
    assert (await alice.click("Try again", message=told)).form
    await restart(process)
    sent = await alice.submit({"About": "Tea", "Your idea": "At four."})
    assert "Tea" in discord.text(sent.message) and "At four." in discord.text(sent.message)


async def score(discord: Discord, process: BotProcess, alice: Person) -> None:
    bob = discord.user("bob")
    for person in (bob, alice, bob):
        await alice.command("point", to=person)
    best = discord.text((await alice.command("best")).message)
    assert best.splitlines() == [f"<@{bob.id}>: 2", f"<@{alice.id}>: 1"]


async def order(discord: Discord, process: BotProcess, alice: Person) -> None:
    assert discord.text((await alice.command("order", what="soup")).message) == "Something went wrong."
    await until(lambda: any("the kitchen is closed" in line for line in process.log))


SEEN: dict[int, Callable[[Discord, BotProcess, Person], Awaitable[None]]] = {
    1: greet, 3: vote, 4: press, 5: suggest, 6: score, 7: order,
}  # fmt: skip


@pytest.mark.parametrize("number", SEEN)
async def test_a_lessons_change_shows_what_it_says(number: int, tmp_path: Path) -> None:
    async with Discord() as discord:
        process = await run(discord, after(number, tmp_path))
        await SEEN[number](discord, process, discord.user("alice"))


async def test_a_counter_from_before_the_second_lesson_gets_the_new_button(tmp_path: Path) -> None:
    async with Discord() as discord:
        process = await run(discord, after(1, tmp_path))
        alice = discord.user("alice")
        counter = (await alice.command("counter")).message
        for label in ("0", "1"):
            await alice.click(label, message=counter)
        await process.terminate()
        after(2, tmp_path)
        await process.start()
        await process.ready()
        used = await alice.click("2", message=counter)
        assert used.message
        labels = [each["label"] for each in used.message["components"][0]["components"]]
        assert labels == ["3", "+10", "-1"]


async def test_an_old_polls_button_is_told_that_it_cannot_be_read(tmp_path: Path) -> None:
    async with Discord() as discord:
        process = await run(discord, after(2, tmp_path))
        alice = discord.user("alice")
        poll = (await alice.command("poll", question="Tea?")).message
        await process.terminate()
        after(3, tmp_path)
        await process.start()
        await process.ready()
        used = await alice.click("Yes: 0", message=poll)
        assert discord.text(used.message) == "Something went wrong."


async def test_what_failed_in_the_seventh_lesson_is_served_after_the_retry(tmp_path: Path) -> None:
    async with Discord() as discord:
        file = after(7, tmp_path)
        process = await run(discord, file)
        await discord.user("alice").command("order", what="soup")
        await process.terminate()
        file.write_text(file.read_text("utf-8").replace("BROKEN = True", "BROKEN = False"), "utf-8")
        await process.start()
        await process.ready()
        env = {"DISCORD_TOKEN": discord.token, "DISCORD_API": discord.api, "STORE": f"sqlite:{tmp_path / 'bot.db'}"}
        retry = await discord.start_bot(file, "failed", "retry", cwd=tmp_path, env=env)
        assert await retry.wait() == 0
        await until(lambda: any(discord.text(each) == "One soup!" for each in discord.messages()))
