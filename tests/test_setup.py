"""What a newcomer types first: make, pip and the one file alone, on machines that lack something."""

import importlib.metadata
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import bot

ROOT = Path(__file__).resolve().parent.parent
TARGETS = ["help", "play", "test", "check", "bench", "crash", "clean"]
INSTALL = "-m pip install --quiet --disable-pip-version-check -r"

on_posix = pytest.mark.skipif(os.name != "posix", reason="make and bash are for POSIX systems")
pytestmark = on_posix


def plain_environment() -> dict[str, str]:
    """The environment without what would steer make, the bot, or a browser onto this screen."""
    steering = {"MAKEFLAGS", "MAKELEVEL", "PYTHON", "DISPLAY", "WAYLAND_DISPLAY", *bot.SETTINGS}
    return {name: value for name, value in os.environ.items() if name not in steering}


def run(*command: str | Path, cwd: Path, expect: int = 0, **env: str) -> str:
    """Run to the end, check the exit code, and return what was printed on both streams."""
    done = subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env=plain_environment() | env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == expect, f"{command} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


def write_script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the Makefile and the requirements, and nothing installed."""
    for name in ("Makefile", "requirements.txt", "requirements-dev.txt"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


@pytest.fixture
def installed(folder: Path) -> Path:
    """The same folder after a set-up: a .venv whose Python is this one, and the stamps that say it is ready."""
    write_script(folder / ".venv/bin/python", f'exec "{sys.executable}" "$@"')
    for stamp in ("made", "ready", "ready-dev"):
        (folder / ".venv" / stamp).touch()
    return folder


# ---- make --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["make"], ["make", "help"]])
def test_help_is_the_default_and_lists_every_target_with_one_line(folder: Path, command: list[str]) -> None:
    lines = run(*command, cwd=folder).splitlines()
    assert [line.split()[1] for line in lines] == TARGETS
    assert all(re.fullmatch(r"  make \w+ +\S.*", line) for line in lines)
    assert not (folder / ".venv").exists()


def test_play_installs_only_what_the_bot_needs_and_starts_the_playground(folder: Path) -> None:
    steps = run("make", "-n", "play", "ARGS=mybot.py --port 9000", cwd=folder).splitlines()
    assert "python3 -m venv --clear .venv" in steps
    assert [step for step in steps if INSTALL in step] == [f".venv/bin/python {INSTALL} requirements.txt"]
    assert steps[-1] == ".venv/bin/python bot.py playground mybot.py --port 9000"


def test_test_installs_the_tools_too_and_runs_all_but_the_long_tests(folder: Path) -> None:
    steps = run("make", "-n", "test", cwd=folder).splitlines()
    installs = [step.rpartition(" ")[2] for step in steps if INSTALL in step]
    assert installs == ["requirements.txt", "requirements-dev.txt"]
    pytest_runs = [step.partition(" ;")[0].partition("; ")[0] for step in steps if " -m pytest " in step]
    assert pytest_runs == [
        '.venv/bin/python -m pytest -m "not long" -n auto --dist worksteal --reruns 2',
        '.venv/bin/python -m pytest -m "not long" --reruns 2  --alone -n 0',
    ]


@pytest.mark.parametrize(
    ("on_workers", "alone", "result"),
    [(0, 0, 0), (0, 5, 0), (5, 0, 0), (5, 5, 2), (1, 0, 2), (0, 1, 2), (1, 5, 2), (5, 1, 2), (2, 2, 2)],
)
def test_test_fails_when_one_run_fails_or_both_find_nothing(
    installed: Path, on_workers: int, alone: int, result: int
) -> None:
    codes = f'case "$*" in *--alone*) exit {alone};; *) exit {on_workers};; esac'
    write_script(
        installed / ".venv/bin/python",
        f'case "$*" in *pytest*) echo "$@"; {codes};; esac; exec "{sys.executable}" "$@"',
    )
    said = run("make", "test", "ARGS=-k poll", cwd=installed, expect=result)
    assert len(re.findall(r"^-m pytest .* -k poll(?: --alone -n 0)?$", said, flags=re.MULTILINE)) == 2


TWO_TESTS = """
import pytest

@pytest.mark.alone
def test_that_needs_the_machine_for_itself(): ...

def test_that_does_not(): ...
"""


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ([], ["that_needs_the_machine_for_itself", "that_does_not"]),
        (["-n", "2"], ["that_does_not"]),
        (["--alone"], ["that_needs_the_machine_for_itself"]),
    ],
    ids=["plain", "on workers", "alone"],
)
def test_each_test_runs_in_one_of_the_two_runs(tmp_path: Path, options: list[str], names: list[str]) -> None:
    (tmp_path / "test_two.py").write_text(TWO_TESTS)
    plain = ["-v", "-c", str(ROOT / "pyproject.toml"), "-p", "tests.conftest", "-p", "no:cacheprovider"]
    said = run(sys.executable, "-m", "pytest", *plain, *options, tmp_path / "test_two.py", cwd=ROOT)
    ended = re.findall(r"::test_(\w+) PASSED|PASSED .*::test_(\w+)", said)
    assert ["".join(pair) for pair in ended] == names, said


def test_crash_runs_the_long_tests(folder: Path) -> None:
    steps = run("make", "-n", "crash", "ARGS=-k kill", cwd=folder).splitlines()
    assert steps[-1] == ".venv/bin/python -m pytest -m long -n auto --dist worksteal -v -k kill"


def test_a_second_call_installs_nothing(installed: Path) -> None:
    assert run("make", "-n", "play", cwd=installed).splitlines() == [".venv/bin/python bot.py playground "]


def test_a_changed_requirements_file_is_installed_again(installed: Path) -> None:
    os.utime(installed / "requirements-dev.txt", (2**32, 2**32))
    steps = run("make", "-n", "test", cwd=installed)
    assert "-r requirements-dev.txt" in steps
    assert "-r requirements.txt" not in steps
    assert "-m venv" not in steps


def test_a_venv_whose_python_is_gone_is_made_anew(installed: Path) -> None:
    (installed / ".venv/bin/python").unlink()
    assert "-m venv --clear" in run("make", "-n", "play", cwd=installed)


def test_a_venv_of_another_version_is_made_anew_only_when_that_version_is_asked_for(installed: Path) -> None:
    other = write_script(installed / "python3.99", "echo 3.99")
    assert "-m venv" not in run("make", "-n", "play", cwd=installed)
    assert "-m venv" not in run("make", "-n", "play", f"PYTHON={sys.executable}", cwd=installed)
    assert f"{other} -m venv --clear" in run("make", "-n", "play", f"PYTHON={other}", cwd=installed)
    assert f"{other} -m venv --clear" in run("make", "-n", "play", cwd=installed, PYTHON=str(other))


OLD_PYTHON = f"""
[ "$1" = -V ] && exec echo Python 3.10.9
exec "{sys.executable}" -c "import sys; sys.version_info = (3, 10, 9); exec(sys.argv[1])" "$2"
"""


@pytest.mark.parametrize(
    ("behaviour", "sentences"),
    [
        (None, ["There is no ", "here that starts", "Install Python 3.11 or newer"]),
        (OLD_PYTHON, ["is Python 3.10.9", "needs 3.11 or newer"]),
        ('case "$2" in *ensurepip*) exit 1;; esac', ["cannot make a virtual environment", "apt install python3-venv"]),
    ],
    ids=["no-python", "old-python", "no-venv"],
)
def test_a_python_that_will_not_do_is_named_with_the_remedy(
    folder: Path, behaviour: str | None, sentences: list[str]
) -> None:
    python = folder / "their-python"
    if behaviour is not None:
        write_script(python, behaviour)
    said = run("make", "play", f"PYTHON={python}", cwd=folder, expect=2)
    assert all(sentence in said for sentence in (str(python), *sentences)), said
    assert "Traceback" not in said
    assert not (folder / ".venv").exists()


def test_bench_says_when_there_is_nothing_yet(installed: Path) -> None:
    assert "There is no benchmark in benchmarks/ yet." in run("make", "bench", cwd=installed)


def test_bench_runs_each_script_and_stops_at_one_that_fails(installed: Path) -> None:
    scripts = installed / "benchmarks"
    scripts.mkdir()
    (scripts / "_shared.py").write_text("raise SystemExit('not a benchmark')")
    (scripts / "a.py").write_text("print('first figures')")
    assert "first figures" in run("make", "bench", cwd=installed)
    (scripts / "b.py").write_text("raise SystemExit(7)")
    (scripts / "c.py").write_text("print('third figures')")
    assert "third figures" not in run("make", "bench", cwd=installed, expect=2)


def test_clean_leaves_the_token_and_the_data(installed: Path) -> None:
    kept = [installed / "config.env", installed / "bot.db"]
    for path in kept:
        path.touch()
    (installed / "playground/__pycache__").mkdir(parents=True)
    run("make", "clean", cwd=installed)
    assert all(path.exists() for path in kept)
    assert not (installed / ".venv").exists()
    assert not (installed / "playground/__pycache__").exists()


# ---- CI ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def ci(folder: Path) -> Path:
    """A copy of .ci/run among stand-ins that only say how they were called."""
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", folder / ".ci")
    for name in ("make", "apt-get"):
        write_script(folder / "stand-ins" / name, f'echo "{name} $*"')
    for name in ("git", "python3"):
        write_script(folder / "stand-ins" / name, "exit 0")
    return folder


def run_ci(folder: Path, expect: int = 0) -> list[str]:
    path = f"{folder / 'stand-ins'}:{os.environ['PATH']}"
    return run("bash", folder / ".ci/run", cwd=folder.parent, expect=expect, CI="true", PATH=path).splitlines()


def test_ci_checks_first_then_tests_and_ends_with_the_storms(ci: Path) -> None:
    calls = [line for line in run_ci(ci) if line.startswith("make")]
    assert calls == ["make check", "make test", "make crash"]


def test_ci_fails_when_a_step_fails_and_goes_no_further(ci: Path) -> None:
    write_script(ci / "stand-ins/make", 'echo "make $*"; test "$1" != check')
    assert "make test" not in run_ci(ci, expect=1)
    write_script(ci / "stand-ins/make", 'echo "make $*"; test "$1" != test')
    assert run_ci(ci, expect=1)[-1] == "make test"
    write_script(ci / "stand-ins/make", 'echo "make $*"; test "$1" != crash')
    assert run_ci(ci, expect=1)[-1] == "make crash"


def test_ci_installs_what_is_missing_before_it_starts(ci: Path) -> None:
    write_script(ci / "stand-ins/python3", 'case "$2" in *ensurepip*) exit 1;; esac')
    calls = [line for line in run_ci(ci) if line.startswith(("make", "apt-get"))]
    assert calls[0] == "apt-get update -q"
    assert re.match(r"apt-get install .*\bpython3-venv\b", calls[1])
    assert calls[2:] == ["make check", "make test", "make crash"]


# ---- What is installed -------------------------------------------------------------------------------------------


def requirements(name: str) -> Iterator[Requirement]:
    lines = (line.partition("#")[0].strip() for line in (ROOT / name).read_text("utf-8").splitlines())
    return (Requirement(line) for line in lines if line and not line.startswith("-r"))


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_every_requirement_has_a_tried_range_and_what_is_installed_lies_in_it(name: str) -> None:
    for requirement in requirements(name):
        operators = {clause.operator for clause in requirement.specifier}
        assert operators == {">=", "<"}, f"{name}: give {requirement.name} a lower and an upper end"
        have = importlib.metadata.version(requirement.name)
        assert have in requirement.specifier, f"{name}: {requirement.name} {have} is not in {requirement.specifier}"


def test_the_bot_needs_five_packages_and_hikari_stays_on_one_minor_version() -> None:
    wanted = {requirement.name: requirement for requirement in requirements("requirements.txt")}
    assert set(wanted) == {"hikari", "aiohttp", "aiosqlite", "python-dotenv", "msgspec"}
    assert str(wanted["hikari"].specifier) == "<2.8,>=2.7.0"
    assert wanted["hikari"].extras == {"server"}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git clone")
@pytest.mark.parametrize("name", ["config.env", "bot.db", "bot.db-wal", "bot.db-shm", "bot.db.lock", ".venv/x"])
def test_git_never_takes_the_token_or_the_data(name: str) -> None:
    assert run("git", "check-ignore", name, cwd=ROOT).strip() == name


def test_tests_cannot_reach_another_machine() -> None:
    with pytest.raises(AssertionError, match=r"192\.0\.2\.1"), socket.socket() as stranger:
        stranger.connect(("192.0.2.1", 80))
    with pytest.raises(AssertionError, match=r"example\.invalid"):
        socket.getaddrinfo("example.invalid", 80)


# ---- The one file alone ------------------------------------------------------------------------------------------


def test_the_bot_works_without_the_other_folders(tmp_path: Path) -> None:
    for name in ("bot.py", "config.example.env"):
        shutil.copy(ROOT / name, tmp_path)
    run(sys.executable, "bot.py", "check", cwd=tmp_path)


SETTING = re.compile(r"^(?:# )?(?P<name>[A-Z_]+)=(?P<value>.*)$")


def example_settings() -> dict[str, str]:
    """Each setting in config.example.env with its value there, commented out or not."""
    lines = (ROOT / "config.example.env").read_text("utf-8").splitlines()
    return {match["name"]: match["value"] for match in map(SETTING.match, lines) if match}


def test_the_example_configuration_names_every_setting_with_its_meaning() -> None:
    assert example_settings().keys() == bot.SETTINGS.keys()
    lines = (ROOT / "config.example.env").read_text("utf-8").splitlines()
    for above, line in pairwise(lines):
        if SETTING.match(line):
            assert re.match(r"# \w.*\.", above), f"config.example.env: say above {line} what it means"


def test_the_example_configuration_shows_the_defaults() -> None:
    for name, value in example_settings().items():
        setting, default = bot.SETTINGS[name], getattr(bot.Config(), bot.SETTINGS[name].attribute)
        if name != "DISCORD_TOKEN":
            assert (setting.read(value) if value else None) == (None if default in ("", {}) else default), (
                f"config.example.env: {name}={value}"
            )


def test_the_copied_example_is_refused_until_it_has_a_token(tmp_path: Path) -> None:
    """And nothing else in it is a mistake, when all of it is put in force."""
    shutil.copy(ROOT / "bot.py", tmp_path)
    text = (ROOT / "config.example.env").read_text("utf-8")
    (tmp_path / "config.env").write_text(re.sub(r"(?m)^# (?=[A-Z_]+=)", "", text))
    said = run(sys.executable, "bot.py", cwd=tmp_path, expect=2).splitlines()
    assert len(said) == 1
    assert re.match(r"config\.env line \d+: DISCORD_TOKEN is still the placeholder", said[0])


# ---- A fresh clone -----------------------------------------------------------------------------------------------


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The files that git tracks, as they are now, in a folder whose name has a space."""
    target = tmp_path / "my bot"
    for name in filter(None, run("git", "ls-files", "-z", cwd=ROOT).split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)
    return target


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_make_play_on_a_fresh_clone_serves_the_page(clone: Path) -> None:
    with subprocess.Popen(
        ["make", "play", "ARGS=--port 0"],
        cwd=clone,
        env=plain_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as play:
        assert play.stdout
        try:
            said = next(line for line in play.stdout if line.startswith("Playground: "))
            with urllib.request.urlopen(said.split()[1], timeout=10) as page:
                assert page.status == 200
                assert b"playground-token" in page.read()
        finally:
            os.killpg(play.pid, signal.SIGTERM)
            play.communicate(timeout=20)
    assert run("make", "-n", "play", cwd=clone).splitlines() == [".venv/bin/python bot.py playground "]
    packages = run(clone / ".venv/bin/python", "-m", "pip", "list", "--format=freeze", cwd=clone)
    assert "pytest" not in packages


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_plain_lines_do_without_make(clone: Path) -> None:
    run(sys.executable, "-m", "venv", ".venv", cwd=clone)
    run(clone / ".venv/bin/python", "-m", "pip", "install", "-q", "-r", "requirements.txt", cwd=clone)
    run(clone / ".venv/bin/python", "bot.py", "check", cwd=clone)
