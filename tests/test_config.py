"""The settings: what config.env and the environment may say, and what an operator reads when they say it wrong."""

from __future__ import annotations

import base64
import dataclasses
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bot
from bot import Config, OperatorError

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "config.example.env"

SIGNATURE = "x7Qk2_" * 6 + "-Zb"
TOKEN = f"{base64.b64encode(b'123456789012345678').decode()}.GaBcDe.{SIGNATURE}"

MISSING = "DISCORD_TOKEN is missing. Copy config.example.env to {path} and paste your token there."
PLACEHOLDER = "is still the placeholder. Paste the token from your application's Bot page."
NO_TOKEN = "is not a bot token. Copy it from your application's Bot page, Reset Token."
NO_PAIR = "is not NAME=value. Write one setting a line."
UNKNOWN = f"is not a setting. The settings are {', '.join(bot.SETTINGS)}."

Load = Callable[..., Config]
Mistakes = Callable[..., list[str]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config.env"


@pytest.fixture
def load(path: Path) -> Load:
    """Read a config.env with this text, a token in front unless it is told otherwise, and this environment."""

    def load(text: str | bytes = "", *, token: bool = True, **environ: str) -> Config:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return Config.load(path, {"DISCORD_TOKEN": TOKEN, **environ} if token else environ)

    return load


@pytest.fixture
def mistakes(load: Load, path: Path) -> Mistakes:
    """Return what the operator is told, a line each, with the path cut short."""

    def mistakes(text: str | bytes = "", **more: Any) -> list[str]:
        with pytest.raises(OperatorError) as caught:
            load(text, **more)
        return str(caught.value).replace(str(path), "config.env").splitlines()

    return mistakes


# What may be written


@pytest.mark.parametrize(
    ("line", "attribute", "value"),
    [
        (f"DISCORD_TOKEN={TOKEN}", "token", TOKEN),
        ("DISCORD_API=http://127.0.0.1:8765/api/v10", "api", "http://127.0.0.1:8765/api/v10"),
        ("DISCORD_API=https://discord.test", "api", "https://discord.test"),
        ("DISCORD_API=https://discord.test/api/v10/", "api", "https://discord.test/api/v10"),
        ("STORE=sqlite:data/my bot.db", "store", "sqlite:data/my bot.db"),
        ("STORE=sqlite:/var/lib/bot.db", "store", "sqlite:/var/lib/bot.db"),
        (r"STORE=sqlite:C:\bots\new.db", "store", r"sqlite:C:\bots\new.db"),
        ("STORE=:memory:", "store", ":memory:"),
        ("DEV_GUILD=123456789012345678", "dev_guild", 123456789012345678),
        ("LOG_LEVEL=debug", "log_level", "DEBUG"),
        ("LOG_LEVEL=Warning", "log_level", "WARNING"),
        ("SHARD_COUNT=2", "shard_count", 2),
        ("DRAIN_S=0", "drain_s", 0),
        ("DRAIN_S=600", "drain_s", 600),
        ("MAX_HANDLERS=1", "max_handlers", 1),
        ("MAX_HANDLER_RUNS=1", "max_handler_runs", 1),
        ("MAX_FAILED=100000", "max_failed", 100_000),
    ],
)
def test_every_setting_can_be_written_and_is_read(load: Load, line: str, attribute: str, value: object) -> None:
    assert getattr(load(line), attribute) == value


@pytest.mark.parametrize(
    "text",
    [
        "DRAIN_S=7",
        "DRAIN_S = 7  ",
        "  DRAIN_S=7",
        "export DRAIN_S=7",
        "DRAIN_S='7'",
        'DRAIN_S="7"',
        'DRAIN_S=" 7 "',
        "DRAIN_S=7 # seconds",
        'DRAIN_S="7" # seconds',
        "# DRAIN_S=8\n\n\t\nDRAIN_S=7\n#DRAIN_S=9",
        "DRAIN_S=7\r\nMAX_FAILED=5\r\n",
        "MAX_FAILED=5\rDRAIN_S=7\r",
        "\ufeffDRAIN_S=7\n",
        "# Grüße, 世界 🎉\nDRAIN_S=7",
    ],
)
def test_a_line_may_be_written_in_every_common_way(load: Load, text: str) -> None:
    assert load(text).drain_s == 7


def test_a_hash_inside_quotes_belongs_to_the_value(load: Load) -> None:
    assert load('STORE="sqlite:bot #1.db"').store == "sqlite:bot #1.db"


def test_the_environment_wins_over_the_file(load: Load) -> None:
    assert load("DRAIN_S=7\nMAX_FAILED=5", DRAIN_S="8") == Config(token=TOKEN, drain_s=8, max_failed=5)


def test_other_variables_of_the_environment_are_not_looked_at(load: Load) -> None:
    assert load(PATH="/bin", DRAIN="8", drain_s="8") == Config(token=TOKEN)


@pytest.mark.parametrize("name", [name for name in bot.SETTINGS if name != "DISCORD_TOKEN"])
def test_an_empty_value_means_the_default(load: Load, name: str) -> None:
    assert load(f"{name}=") == load(f'{name}=""') == load(f"{name}=  # nothing") == load() == Config(token=TOKEN)
    assert load(**{name: ""}) == Config(token=TOKEN)


def test_without_a_file_the_environment_is_enough(tmp_path: Path) -> None:
    assert Config.load(tmp_path / "none.env", {"DISCORD_TOKEN": TOKEN}) == Config(token=TOKEN)


def test_what_needs_no_token_goes_without(load: Load, path: Path) -> None:
    path.write_text("DRAIN_S=7\n")
    assert Config.load(path, {}, needs_token=False) == Config(drain_s=7)


@pytest.mark.parametrize("part", ["your", "YouR", "paste", "PaSTe"])
def test_a_token_in_which_the_placeholders_words_happen_to_stand_is_a_token(load: Load, part: str) -> None:
    lucky = TOKEN[:-8] + part + "abc"
    assert load(f"DISCORD_TOKEN={lucky}", token=False).token == lucky


def test_the_bots_id_stands_in_its_token() -> None:
    assert bot.bot_id_of(TOKEN) == 123456789012345678


# What is refused


BAD_VALUES = [
    ("MODE", ["getway", "http", "REST API"], "is not a mode. Write MODE=gateway or MODE=rest."),
    ("DISCORD_PUBLIC_KEY", ["abc", "g" * 64, "a" * 63], "is not the key of 64 digits from your application's page"),
    ("DISCORD_API", ["discord.com", "ftp://x/y", "http:///api", "https://a b/c"], "is not an http address."),
    ("STORE", ["bot.db", "sqlite:", "sqlite:/", "sqlite://bot.db", "sqlite:///bot.db", "mysql:x"], "is not a store"),
    ("DEV_GUILD", ["my server", "0", "-1", "12.5", "9" * 25, "<#123456789012345678>"], "is not a server's id."),
    ("LOG_LEVEL", ["loud", "10", "INFO,DEBUG"], "is not DEBUG, INFO, WARNING or ERROR."),
    ("SHARD_COUNT", ["0", "auto", "-5", "9" * 5000], "is not a whole number from 1 to 999."),
    ("SHARDS", ["all", "-1", "0,", "0-2", "1,auto"], "is not auto, or numbers from 0 on such as 0,2."),
    ("RUN", ["all", "rest", "web;gateway", "web,"], "is not gateway, web, or gateway,web."),
    ("DRAIN_S", ["soon", "-1", "1.5", "1e3", "9" * 5000], "is not a whole number of seconds from 0 to 999."),
    ("MAX_HANDLERS", ["0", "many", "-5", "9" * 5000], "is not a whole number from 1 to 9999."),
    ("MAX_HANDLER_RUNS", ["0", "five", "-5", "9" * 5000], "is not a whole number from 1 to 99."),
    ("MAX_FAILED", ["0", "all", "-5", "9" * 5000], "is not a whole number from 1 to 999999."),
    ("WEB_HOST", ["http://x", "a b", "x/y"], "is not an address of this machine"),
    ("WEB_PORT", ["http", "-1", "9" * 5000, ":80"], "is not a port from 0 (any) to 65535."),
    ("WEB_SOCKET", ["/", "/run/"], "is not the path of a socket"),
    ("WEB_PATH", ["bot", "/a b", "//", "/a//b"], "is not a path such as /bot."),
    ("PIN_KEYS", ["yes", "1", "pin"], "is not true or false."),
    ("HOOK_KEY", ["abc", "g" * 64, "whpk_", "whpk_" + "A" * 44], "is not an Ed25519 public key"),
]


@pytest.mark.parametrize(("name", "values", "sentence"), BAD_VALUES)
def test_a_bad_value_is_named_with_its_line_and_the_remedy(
    mistakes: Mistakes, name: str, values: list[str], sentence: str
) -> None:
    for value in values:
        [told] = mistakes(f"# one\n\n{name}='{value}'\n")
        assert told.startswith(f"config.env line 3: {name}={value} {sentence}")
        [told] = mistakes(**{name: value})
        assert told.startswith(f"environment: {name}={value} {sentence}")
        assert told.endswith(".")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("DISCORD_API", "Leave it out to use Discord itself."),
        ("STORE", "Write STORE=sqlite:bot.db, or STORE=:memory: to keep nothing."),
        ("DEV_GUILD", "Turn on Developer Mode in Discord, right-click your server, Copy Server ID."),
    ],
)
def test_where_the_rule_alone_does_not_help_the_sentence_says_what_to_do(
    mistakes: Mistakes, name: str, remedy: str
) -> None:
    [told] = mistakes(f"{name}=?")
    assert told.endswith(remedy)


def test_every_setting_but_the_secrets_is_in_the_table_of_bad_values() -> None:
    secrets = {"DISCORD_TOKEN", "HOOK_SECRET"}
    assert {name for name, _, _ in BAD_VALUES} == {*bot.SETTINGS} - secrets


@pytest.mark.parametrize("given", ["RUN=web", "SHARDS=auto", "SHARDS=0,2"])
@pytest.mark.parametrize("store", ["", "STORE=:memory:", "STORE=sqlite:x.db"])
def test_several_processes_need_a_store_that_they_can_share(
    mistakes: Mistakes, load: Load, given: str, store: str
) -> None:
    [told] = mistakes(f"{given}\n{store}")
    assert told.startswith(
        "RUN and SHARDS are for several processes, and STORE keeps things for one. Write STORE=redis://"
    )
    assert load(f"{given}\nSTORE=postgresql://me@there/bot").is_shared


def test_a_password_in_the_address_of_a_store_is_not_repeated(mistakes: Mistakes, load: Load) -> None:
    for wrong in ("postgre://me:hunter2@there/bot", "redis://me:hunter2@there/0 x", "sqlite://me:hunter2@there"):
        [told] = mistakes(f"STORE='{wrong}'")
        assert told.startswith("config.env line 1: STORE is not a store this bot can open.")
        assert "hunter2" not in repr(load("STORE=redis://me:hunter2@there/0")) + told


def test_a_port_that_is_too_high_is_told(mistakes: Mistakes) -> None:
    assert mistakes("WEB_PORT=65536") == ["config.env line 1: WEB_PORT=65536 is no port. The highest is 65535."]


def test_over_http_there_must_be_a_place_to_listen(mistakes: Mistakes, load: Load) -> None:
    assert mistakes("MODE=rest") == [
        "MODE=rest needs a place where Discord's requests come in. Write WEB_PORT=8080, say."
    ]
    assert load("MODE=rest\nWEB_PORT=8080").web_port == 8080
    assert load("MODE=REST\nWEB_SOCKET=/run/x.sock").mode == "rest"


@pytest.mark.parametrize("name", ["HOOK_SECRET", "HOOK_SECRET_DEPLOY"])
def test_a_short_secret_is_refused_and_not_repeated(mistakes: Mistakes, name: str) -> None:
    for told in (*mistakes(f"{name}=hunter2"), *mistakes(**{name: "hunter2"})):
        assert f"{name} is not a secret of 16 characters or more." in told
        assert "hunter2" not in told


def test_a_hook_may_have_a_secret_of_its_own(load: Load) -> None:
    config = load("HOOK_SECRET=for everybody else\nHOOK_SECRET_DEPLOY=for this one alone", HOOK_KEY_CI="a" * 64)
    assert config.hook_secrets == {"": "for everybody else", "deploy": "for this one alone"}
    assert config.hook_keys == {"ci": "a" * 64}
    assert "everybody" not in repr(config)


def test_what_only_looks_like_a_hooks_secret_is_no_setting(mistakes: Mistakes, load: Load) -> None:
    [told] = mistakes("HOOK_SECRETS=for everybody else")
    assert told.startswith("config.env line 1: HOOK_SECRETS is not a setting.")
    assert load(HOOK_SECRETS="x", HOOK_SECRET_="y" * 20) == Config(token=TOKEN)


@pytest.mark.parametrize("value", ["paste-your-token-here", "your token", "PASTE TOKEN", "<your-token>"])
def test_the_placeholder_is_known_for_what_it_is(mistakes: Mistakes, value: str) -> None:
    assert mistakes(f"DISCORD_TOKEN='{value}'", token=False) == [f"config.env line 1: DISCORD_TOKEN {PLACEHOLDER}"]


@pytest.mark.parametrize(
    "value",
    [
        "hunter2",
        "Bot",
        "a.b.c",
        f"Bot {TOKEN}",
        TOKEN.replace(".", ""),
        base64.b64encode(b"0").decode() + ".a.b",
        "é.a.b",
    ],
)
def test_what_is_no_token_is_refused_and_not_repeated(mistakes: Mistakes, value: str) -> None:
    assert mistakes(f"DISCORD_TOKEN={value}", token=False) == [f"config.env line 1: DISCORD_TOKEN {NO_TOKEN}"]
    assert mistakes(token=False, DISCORD_TOKEN=value) == [f"environment: DISCORD_TOKEN {NO_TOKEN}"]


@pytest.mark.parametrize("text", ["", "# DISCORD_TOKEN=x", "DISCORD_TOKEN=", "DISCORD_TOKEN=''", "DRAIN_S=7"])
def test_a_missing_token_is_named_with_the_file_it_belongs_into(mistakes: Mistakes, text: str) -> None:
    assert mistakes(text, token=False) == [MISSING.format(path="config.env")]


def test_an_unknown_name_is_answered_with_the_known_ones(mistakes: Mistakes) -> None:
    assert mistakes("SPEED=high\nlog_level=INFO") == [
        f"config.env line 1: SPEED {UNKNOWN}",
        f"config.env line 2: log_level {UNKNOWN}",
    ]


def test_a_name_given_twice_is_refused_even_with_the_same_value(mistakes: Mistakes) -> None:
    twice = "is given twice. Keep one of the two lines."
    assert mistakes("DRAIN_S=7\n\nexport DRAIN_S=7") == [f"config.env line 3: DRAIN_S {twice}"]
    assert mistakes("DRAIN_S=\nDRAIN_S=7") == [f"config.env line 2: DRAIN_S {twice}"]


@pytest.mark.parametrize(
    "line", ["DRAIN_S", "DRAIN_S 7", "DRAIN_S: 7", "=7", "some words", 'STORE="sqlite:bot.db', "'"]
)
def test_a_line_that_is_no_pair_is_named_and_the_next_is_still_read(mistakes: Mistakes, line: str) -> None:
    told = mistakes(f"# one\n{line}\nMAX_FAILED=x")
    assert [told[0], told[1][:34]] == [f"config.env line 2 {NO_PAIR}", "config.env line 3: MAX_FAILED=x is"]


@pytest.mark.parametrize(
    ("above", "line"),
    [
        ("", 1),
        ("\n", 2),
        ("\n\n\n", 4),
        ("   \n", 2),
        ("\n  \n\t\n\n", 5),
        ("\r\n\r\n", 3),
        (" \r\n\t\r\n", 3),
        ("\r\r", 3),
        ("# a\n\n# b\n", 4),
        ("# a\n  \n  # b\n  \n", 5),
        ("\ufeff\n", 2),
        ("LOG_LEVEL=INFO\n\n", 3),
        ("LOG_LEVEL=INFO # why\n \n", 3),
        ("no pair\n\n", 3),
        ("STORE='sqlite:a\nb.db'\n", 3),
        ("\nLOG_LEVEL='\n\nINFO\n'\n\n", 7),
        ("# ünï 世界 🎉\n\n", 3),
    ],
)
@pytest.mark.parametrize("wrong", ["DRAIN_S=x", "  export DRAIN_S='x'", "UNKNOWN=1", "no"])
def test_the_line_is_right_whatever_stands_above(mistakes: Mistakes, above: str, line: int, wrong: str) -> None:
    assert any(re.match(rf"config\.env line {line}[: ]", told) for told in mistakes(above + wrong))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (f"DISCORD_TOKEN={TOKEN}\nSTORE=sqlite:gr\xfc\xdfe.db".encode("latin-1"), "can't decode byte 0xfc"),
        (f"DISCORD_TOKEN={TOKEN}".encode("utf-16"), "can't decode byte 0xff"),
        (b"\xff\xfe", "can't decode byte 0xff"),
    ],
)
def test_a_file_that_is_not_utf_8_is_one_mistake(mistakes: Mistakes, content: bytes, reason: str) -> None:
    [told] = mistakes(content, token=False)
    assert told.startswith("config.env cannot be read (")
    assert reason in told
    assert told.endswith("). Save it as UTF-8 text this user may read.")


def test_what_cannot_be_opened_is_one_mistake(path: Path) -> None:
    path.mkdir()
    with pytest.raises(
        OperatorError, match=r"config\.env cannot be read \(.*\)\. Save it as UTF-8 text .*\."
    ) as caught:
        Config.load(path, {})
    assert "\n" not in str(caught.value)


def test_all_mistakes_are_told_at_once(mistakes: Mistakes) -> None:
    text = "\n".join(["SPEED=high", "", "DRAIN_S", "STORE=bot.db", "LOG_LEVEL=INFO", "LOG_LEVEL=DEBUG", "MAX_FAILED=0"])
    told = mistakes(text, token=False, DEV_GUILD="here")
    starts = [
        "config.env line 1: SPEED is not a setting.",
        "config.env line 3 is not NAME=value.",
        "config.env line 6: LOG_LEVEL is given twice.",
        "config.env line 4: STORE=bot.db is not a store",
        "config.env line 7: MAX_FAILED=0 is not a whole number",
        "environment: DEV_GUILD=here is not a server",
        "DISCORD_TOKEN is missing.",
    ]
    assert len(told) == len(starts)
    for start in starts:
        assert any(line.startswith(start) for line in told), (start, told)


# Secrets


@pytest.mark.parametrize(
    "text",
    [
        f"DISCORD_TOKEN=Bot {TOKEN}",
        f"DISCORD_TOKEN={TOKEN}\nDISCORD_TOKEN={TOKEN}",
        f"DISCORD_TOKEN={TOKEN}\nFOO=1",
        f"TOKEN={TOKEN}",
        f"STORE={TOKEN}",
        f"LOG_LEVEL=Bot {TOKEN}",
        f"{TOKEN}",
        TOKEN.replace(".", ""),
        f"{TOKEN}=",
        f"{TOKEN}==\n",
        f"DISCORD_TOKEN: {TOKEN}",
        f"DISCORD_TOKEN:{TOKEN}",
        f"DISCORD_TOKEN:{TOKEN}:x",
        f"my:{TOKEN}:x",
        f"token_{TOKEN}=1",
        f'DISCORD_TOKEN="{TOKEN}',
        f"DISCORD_TOKEN {TOKEN}",
        f"DISCORD_TOKEN={TOKEN}\nSTORE=\xff".encode("latin-1"),
    ],
)
def test_the_token_is_in_no_message_wherever_it_was_pasted(mistakes: Mistakes, text: str | bytes) -> None:
    told = "\n".join(mistakes(text, token=False))
    assert SIGNATURE not in told
    assert TOKEN.partition(".")[0] not in told


def test_the_token_is_not_in_the_settings_repr() -> None:
    assert SIGNATURE not in repr(Config(token=TOKEN))


# config.example.env


def example_settings() -> dict[str, str]:
    """Return every setting that the example shows, commented out or not."""
    pairs = re.findall(r"^(?:# )?([A-Z_]+)=(.*)$", EXAMPLE.read_text("utf-8"), re.MULTILINE)
    assert len(pairs) == len(dict(pairs)), "a setting is there twice"
    return dict(pairs)


def test_the_example_shows_every_setting_once_and_no_other() -> None:
    assert {*example_settings()} == {*bot.SETTINGS}


def test_the_example_shows_the_defaults(load: Load) -> None:
    shown = example_settings() | {"DISCORD_TOKEN": TOKEN}
    assert load("\n".join(f"{name}={value}" for name, value in shown.items())) == Config(token=TOKEN)
    for name, (attribute, *_) in bot.SETTINGS.items():
        default = getattr(Config(), attribute)
        said = "" if default is None or default == {} else str(default)
        assert name == "DISCORD_TOKEN" or shown[name].lower() == said.lower()


def test_the_example_says_in_a_line_what_each_setting_means() -> None:
    lines = EXAMPLE.read_text("utf-8").splitlines()
    for number, line in enumerate(lines):
        if re.match(r"(# )?[A-Z_]+=", line):
            assert re.match(r"# [A-Z].*\.$", lines[number - 1]), line


def test_every_field_of_the_settings_can_be_set() -> None:
    assert {attribute for attribute, *_ in bot.SETTINGS.values()} == {each.name for each in dataclasses.fields(Config)}


def test_the_example_as_it_stands_asks_for_the_token_and_nothing_else(mistakes: Mistakes) -> None:
    lines = EXAMPLE.read_text("utf-8").splitlines()
    number = lines.index("DISCORD_TOKEN=paste-your-token-here") + 1
    told = mistakes(EXAMPLE.read_bytes(), token=False)
    assert told == [f"config.env line {number}: DISCORD_TOKEN {PLACEHOLDER}"]


# What the person at the terminal sees


def run_bot(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run bot.py in that folder to its end, without the settings of whoever runs the tests."""
    clean = {name: value for name, value in os.environ.items() if name not in bot.SETTINGS}
    command = [sys.executable, str(ROOT / "bot.py"), *arguments]
    return subprocess.run(
        command, cwd=folder, env=clean | environ, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("arguments", [[], ["run"]])
def test_a_bot_without_a_token_ends_with_a_sentence_and_2(tmp_path: Path, arguments: list[str]) -> None:
    done = run_bot(tmp_path, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", MISSING.format(path="config.env") + "\n")
    assert not [*tmp_path.iterdir()], "nothing is made before the settings are right"


def test_a_copied_example_ends_with_the_placeholders_sentence_and_2(tmp_path: Path) -> None:
    (tmp_path / "config.env").write_bytes(EXAMPLE.read_bytes())
    done = run_bot(tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"config\.env line \d+: DISCORD_TOKEN {re.escape(PLACEHOLDER)}\n", done.stderr)


@pytest.mark.parametrize("arguments", [["run"], ["check"]])
def test_several_mistakes_end_with_a_line_each_and_2(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "my.env").write_text(f"\nDISCORD_TOKEN={TOKEN}\nDRAIN_S=soon\nTOKEN={TOKEN}\n")
    done = run_bot(tmp_path, "--config", "my.env", *arguments, LOG_LEVEL="loud")
    assert (done.returncode, done.stdout) == (2, "")
    assert [line[:30] for line in sorted(done.stderr.splitlines())] == [
        "environment: LOG_LEVEL=loud is",
        "my.env line 3: DRAIN_S=soon is",
        "my.env line 4: TOKEN is not a ",
    ]


def test_check_needs_no_token_and_says_so(tmp_path: Path) -> None:
    done = run_bot(tmp_path, "check")
    assert (done.returncode, done.stderr) == (0, "")
    assert "There is no DISCORD_TOKEN yet: copy config.example.env to config.env" in done.stdout
