"""The key of a hook's sender is pinned when it is first seen; another one needs a word from whoever runs the bot."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from nacl.signing import SigningKey
from test_command_line import Done, run_on

from playground import Discord
from playground.process import BotProcess
from playground.server import free_port
from tests.kit import ROOT, start, until

BOT = ROOT / "tests" / "bots" / "hooked.py"
OURS, THEIRS = SigningKey.generate(), SigningKey.generate()


def fingerprint(key: SigningKey) -> str:
    return hashlib.sha256(bytes(key.verify_key)).hexdigest()


async def send(process: BotProcess, version: int, key: SigningKey) -> int:
    """Send the hook, signed with the key, and return the status; once the bot no longer says that it is starting."""
    found = [503]

    async def is_started() -> bool:
        found.append(await send_once(process, version, key))
        return found[-1] != 503

    await until(is_started)
    return found[-1]


async def send_once(process: BotProcess, version: int, key: SigningKey) -> int:
    body, stamp = json.dumps({"version": version}), str(int(time.time()))
    signature = key.sign(f"msg_{version}.{stamp}.{body}".encode()).signature
    headers = {
        "Content-Type": "application/json",
        "Webhook-Id": f"msg_{version}",
        "Webhook-Timestamp": stamp,
        "Webhook-Signature": f"v1a,{base64.b64encode(signature).decode()}",
        "Webhook-Key": f"whpk_{base64.b64encode(bytes(key.verify_key)).decode()}",
    }
    url = f"http://127.0.0.1:{process.web_port}/hooks/deploy"
    async with aiohttp.ClientSession() as session, session.post(url, data=body, headers=headers) as response:
        return response.status


async def trust(discord: Discord, store: Path, *words: str) -> Done:
    """Run `python bot.py trust …` for that database."""
    return await run_on(discord, BOT, "trust", *words, cwd=store.parent, STORE=f"sqlite:{store}", PYTHONPATH=str(ROOT))


async def hooked(discord: Discord, store: Path) -> BotProcess:
    """Start the bot so that it pins keys."""
    return await start(discord, "hooked", store, PIN_KEYS="true", WEB_PORT=free_port())


async def test_the_first_key_is_pinned_and_another_is_refused_until_it_is_trusted(tmp_path: Path) -> None:
    store = tmp_path / "bot.db"
    async with Discord() as discord:
        process = await hooked(discord, store)
        assert await send(process, 1, OURS) == 202
        for version in (2, 3):
            assert await send(process, version, THEIRS) == 401
        told = [line for line in process.log if "another key is pinned" in line]
        assert len(told) == 1 and f"python hooked.py trust deploy {fingerprint(THEIRS)}" in told[0]

        done = await trust(discord, store, "deploy", fingerprint(THEIRS))
        assert done == (0, "The running bot has taken the order; its log says what came of it.\n", "")
        assert any(f"deploy is trusted with {fingerprint(THEIRS)}" in line for line in process.log)
        assert [await send(process, 4, OURS), await send(process, 5, THEIRS)] == [401, 202]
        await until(lambda: "deployed 5" in process.log)
        assert [line for line in process.log if line.startswith("deployed")] == ["deployed 1", "deployed 5"]

        assert await process.terminate() == 0
        done = await trust(discord, store, "deploy", fingerprint(OURS).upper())
        assert done == (0, f"deploy is trusted with {fingerprint(OURS)}.\n", "")
        await process.start()
        await process.ready()
        assert [await send(process, 6, THEIRS), await send(process, 7, OURS)] == [401, 202]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["deplyo", "0" * 64], "deplyo has no key that is pinned. Hooks that may have: deploy.\n"),
        (["deploy", "abc"], "abc is no fingerprint. The log shows it, 64 digits, where a key is refused.\n"),
        (["deploy", "0" * 64], "bot.db is not there. The bot makes it when it runs for the first time.\n"),
    ],
)
async def test_what_cannot_be_trusted_is_answered_with_what_can(
    words: list[str], sentence: str, tmp_path: Path
) -> None:
    async with Discord() as discord:
        done: Any = await trust(discord, tmp_path / "bot.db", *words)
        assert (done.code, done.out, done.err.replace(f"{tmp_path}/", "")) == (2, "", sentence)
