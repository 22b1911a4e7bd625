"""The documentation is held to the code: what it names is there, and what it shows runs."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def all_tests() -> set[str]:
    return {
        node.name
        for file in (ROOT / "tests").glob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def test_every_promise_names_tests_that_are_there() -> None:
    text, there = (ROOT / "docs/guarantees.md").read_text("utf-8"), all_tests()
    promises = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert len(promises) == 14
    for promise in promises:
        named = set(re.findall(r"\btest_\w+", promise))
        assert named, promise.splitlines()[0]
        assert named <= there, named - there


def python_blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def test_the_first_command_of_the_readme_works_where_it_says(tmp_path: Path) -> None:
    command = python_blocks()[0]
    source = (ROOT / "bot.py").read_text("utf-8")
    with_command = source.replace("\ndef your_bot(", f"\n{command}\n\ndef your_bot(")
    edited = re.sub(r"(def your_bot.*?app\.add\()", r"\1hello, ", with_command, flags=re.DOTALL)
    (tmp_path / "bot.py").write_text(edited, "utf-8")
    done = subprocess.run(
        [sys.executable, "bot.py", "check"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("5 commands, 2 views and records: no mistakes found.")


def test_the_second_way_of_the_readme_works(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text((ROOT / "bot.py").read_text("utf-8"), "utf-8")
    (tmp_path / "mybot.py").write_text(python_blocks()[1], "utf-8")
    done = subprocess.run(
        [sys.executable, "mybot.py", "check"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("1 commands, 0 views and records: no mistakes found.")


@pytest.mark.parametrize("line", re.findall(r"python bot\.py ([a-z]+(?: [a-z]+)?)", README))
def test_every_command_the_readme_names_is_there(line: str) -> None:
    command, *action = line.split()
    done = subprocess.run(
        [sys.executable, "bot.py", command, *(a for a in action if a in ("retry", "discard", "list")), "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def messages() -> list[str]:
    section = README.split("## Messages a newcomer meets")[1].split("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", section, flags=re.MULTILINE)


def test_the_messages_of_the_readme_stand_in_the_code_word_for_word() -> None:
    source = (ROOT / "bot.py").read_text("utf-8")
    assert len(messages()) == 8
    for message in messages():
        # A number, a name or what Python says differs from case to case; every other word must be there.
        words = re.sub(r"bot\.db|process 4121|view poll|: label|button \"…\"|95", "…", message)
        for part in re.split(r"…[:.]?", words):
            assert part.strip() in source, f"{part.strip()!r} of {message!r}"
