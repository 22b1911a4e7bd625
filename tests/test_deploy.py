"""docs/deploy.md: its commands are run in its order, its proxies stand before a real bot, its units are verified."""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
import json
import re
import shlex
import shutil
import ssl
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import bot
from playground.people import Used
from playground.process import BotProcess
from playground.server import free_port
from tests.kit import ROOT, rows, until
from tests.machine import BINARIES, HOST, TEXT, Machine, Proxy, Unit, blocks, machine, sections

pytestmark = pytest.mark.skipif(not TEXT, reason="docs/deploy.md is not here")

SOCKET = "unix//run/everclick/web.sock", "http://unix:/run/everclick/web.sock"
PROXIES: tuple[Proxy, ...] = ("nginx", "caddy")
FORGED = {
    "Forwarded": "for=192.0.2.1;host=bot.example.org;proto=https",
    "X-Forwarded-For": "127.0.0.1, 192.0.2.1",
    "X-Forwarded-Host": "elsewhere.example.org",
    "X-Forwarded-Prefix": "/metrics",
    "X-Forwarded-Proto": "http",
    "X-HTTP-Method-Override": "GET",
    "X-Original-URL": "/bot/health",
    "X-Real-IP": "127.0.0.1",
    "X-Rewrite-URL": "/bot/health",
}

needs = {name: pytest.mark.skipif(not found, reason=f"{name} is not here") for name, found in BINARIES.items()}
both_proxies = pytest.mark.parametrize("proxy", [pytest.param(name, marks=needs[name]) for name in PROXIES])


def text_of(it: Machine, used: Used) -> str:
    assert used.message, used
    return it.discord.text(used.message)


async def get(url: str, **options: Any) -> tuple[int, str, str]:
    """Return status, server and body of an answer."""
    options = {"method": "GET", **options}
    async with aiohttp.ClientSession() as client, client.request(url=url, **options) as response:
        return response.status, response.headers.get("Server", ""), await response.text()


# The page's commands, on a machine made of folders


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_the_pages_commands_install_run_back_up_restore_and_upgrade_a_bot(tmp_path: Path) -> None:
    if not all(map(shutil.which, ("bash", "curl", "find"))) or not all(BINARIES.values()):
        pytest.skip("needs bash, curl, nginx and Caddy")
    async with machine() as it:
        alice, bob, carol = map(it.discord.user, ("alice", "bob", "carol"))
        await it.follow("The folders")
        assert it.asked[0][:2] == ["useradd", "--system"]
        pip = f"pip -m pip install -r {it.at('/opt/everclick/requirements.txt')}\n"
        assert (it.root / "pip").read_text() == pip
        settings = it.at("/etc/everclick/config.env")
        assert settings.read_bytes() == (ROOT / "config.example.env").read_bytes()
        settings.write_text(settings.read_text().replace("paste-your-token-here", it.discord.token))
        assert "no mistakes found." in (await it.follow("The command"))[0].out

        # The gateway
        await it.follow("systemd")
        store = it.at("/var/lib/everclick/bot.db")
        assert store.exists()
        poll = (await alice.command("poll", question="Tea?")).message
        assert text_of(it, await bob.click("Yes: 0")).count("Yes: 1")

        # Over HTTP
        await it.follow("Over HTTP")
        assert (await alice.click("Yes: 1", message=poll)).state == "failed"  # nobody has saved the address yet
        await it.follow("nginx")
        url = f"http://127.0.0.1:{it.port}/bot/interactions"
        await it.discord.set_endpoint(url)
        await it.stop_proxy("nginx")
        await it.follow("Caddy")
        [refused] = await it.follow("The portal")
        [shown] = blocks("The portal", "json")
        assert json.loads(refused.out) == json.loads(shown)
        assert text_of(it, await alice.click("Yes: 1", message=poll)).count("Yes: 2")
        [health] = await it.follow("Is it well?")
        assert json.loads(health.out)["status"] == "ok"
        told = {name for name in re.findall(r"`(\w+)`", sections()["Is it well?"]) if name in json.loads(health.out)}
        assert told == {"status", "inbox", "oldest_s", "failed", "loop_lag_s"}
        [log] = await it.follow("Logs")
        assert "is running as process" in log.out
        assert log.out.endswith("0 failed events.\n")

        # Backup and restore
        *_, rehearsal = await it.follow("Backup")
        [copy] = it.at("/var/lib/everclick/backups").iterdir()
        assert '"question":"Tea?","yes":2,' in rehearsal.out
        assert rehearsal.out.endswith("0 failed events.\n")
        assert it.bot
        assert text_of(it, await carol.click("Yes: 2", message=poll)).count("Yes: 3")
        later = (await alice.command("poll", question="Coffee?")).message
        assert later
        again = await it.run(blocks("Backup", "sh")[-1])  # it is the copy that is read, not what the bot has
        assert ('"yes":2,' in again.out, "Coffee?" in again.out) == (True, False)
        await it.follow("Restore")
        await it.discord.set_endpoint(url)
        assert text_of(it, await carol.click("No: 0", message=poll)).count("Yes: 2\nNo: 1")
        expired = await bob.click("Yes: 0", message=later)
        assert text_of(it, expired) == bot.Texts().expired
        aside = it.at("/var/lib/everclick/aside/bot.db")
        assert len(rows(aside, "SELECT * FROM record")) > len(rows(copy, "SELECT * FROM record"))

        # An upgrade, and the way back
        before = it.at("/opt/everclick/bot.py")
        older = before.read_text("utf-8").replace(f'__version__ = "{bot.__version__}"', '__version__ = "0.0.9"')
        before.write_text(older, "utf-8")
        await it.control_bot("restart")
        [health] = await it.follow("Is it well?")
        assert json.loads(health.out)["version"] == "0.0.9"
        await it.follow("Upgrade")
        [health] = await it.follow("Is it well?")
        assert json.loads(health.out)["version"] == bot.__version__
        assert before.read_bytes() == (ROOT / "bot.py").read_bytes()
        assert it.at("/opt/everclick/bot.py.before").read_text("utf-8") == older
        assert (it.root / "pip").read_text() == pip * 2
        assert [file.name for file in sorted(copy.parent.iterdir()) if "before-upgrade" in file.name]
        await it.discord.set_endpoint(url)
        assert text_of(it, await bob.click("No: 1", message=poll)).count("You already voted.")

        # And back to the gateway
        words = settings.read_text()
        settings.write_text(words.replace("MODE=rest\n", "MODE=gateway\n"))
        await it.control_bot("restart")
        assert (await alice.click("No: 1", message=poll)).state == "failed"  # online, and deaf
        await it.discord.set_endpoint(None)
        dave = it.discord.user("dave")
        assert text_of(it, await dave.click("No: 1", message=poll)).count("No: 2")
        assert (await it.run("sudo curl -s --unix-socket /run/everclick/web.sock http://localhost/bot/health")).out
        assert complaints(it.logs) == []


def complaints(log: list[str]) -> list[str]:
    loud = [line for line in log if re.search(r" WARNING | ERROR |Traceback", line)]
    return [line for line in loud if "everything waits for" not in line]


# A bot behind each proxy

NOTE = '''"""A poll, and a hook that posts what it is told."""

import os

import bot


class Note(bot.msgspec.Struct):
    channel: int
    text: str


@bot.hook("note")
async def note(ctx: bot.EventContext, body: Note) -> None:
    await ctx.send(body.channel, body.text)


def my_bot(app: bot.App) -> None:
    bot.your_bot(app)
    app.add(note)


bot.main(my_bot)
'''


@contextlib.asynccontextmanager
async def behind(proxy: Proxy, by: str = "socket") -> AsyncIterator[Machine]:
    """A bot in MODE=rest, and that proxy before it; they meet at a socket or at a port."""
    async with machine() as it:
        port = free_port()
        where = "WEB_SOCKET=/run/everclick/web.sock" if by == "socket" else f"WEB_PORT={port}"
        lines = [f"DISCORD_TOKEN={it.discord.token}", f"HOOK_SECRET={it.discord.hooks.secret}", it.place(where)]
        for folder in ("/etc/everclick", "/opt/everclick/.venv/bin", "/var/lib/everclick"):
            it.at(folder).mkdir(parents=True)
        it.at("/opt/everclick/.venv/bin/python").symlink_to(it.root / "stand-ins" / "venv_python")
        it.at("/etc/everclick/config.env").write_text("\n".join([*lines, "MODE=rest", "WEB_PATH=/bot", ""]))
        it.at("/opt/everclick/mybot.py").write_text(NOTE, "utf-8")
        shutil.copy(ROOT / "bot.py", it.at("/opt/everclick"))
        [unit, *_] = blocks("systemd", "ini")
        unit = it.place(unit).replace("/bot.py ", "/mybot.py ")
        it.at("/etc/systemd/system/everclick.service").write_text(unit)
        title, language, file, with_a_port = {
            "nginx": ("nginx", "nginx", "/etc/nginx/conf.d/everclick.conf", "proxy_pass http://127.0.0.1:8080;"),
            "caddy": ("Caddy", "caddyfile", "/etc/caddy/Caddyfile", "reverse_proxy 127.0.0.1:8080 {"),
        }[proxy]
        [conf] = blocks(title, language)
        if by == "port":
            assert f"With a port: `{with_a_port}`" in sections()[title]
            start, _, end = with_a_port.replace("8080", str(port)).partition(" ")
            conf = re.sub(rf"{start} \S*(unix\S+[^;{{ ])( {{|;)", lambda _: f"{start} {end}", conf)
            assert "unix" not in conf
        it.at(file).write_text(it.place(conf), "utf-8")
        await it.start_bot()
        assert (await it.run(f"systemctl start {proxy}")).code == 0
        await it.discord.set_endpoint(f"http://127.0.0.1:{it.port}/bot/interactions")
        yield it
        assert it.bot
        assert await it.bot.terminate() == 0
        assert complaints(it.logs) == []


@pytest.mark.parametrize("by", ["socket", "port"])
@both_proxies
async def test_commands_clicks_and_hooks_come_through_the_proxy_over_restarts_of_the_bot(proxy: Proxy, by: str) -> None:
    async with behind(proxy, by) as it:
        alice, bob, carol = map(it.discord.user, ("alice", "bob", "carol"))
        assert it.bot
        poll = (await alice.command("poll", question="Tea?")).message
        assert text_of(it, await alice.click("Yes: 0")).count("Yes: 1")
        assert await hook(it, "first") == 202
        await until(lambda: "first" in posted(it))

        it.bot.kill()
        await it.bot.wait()
        assert (await bob.click("Yes: 1", message=poll)).state == "failed"
        assert it.discord.deliveries[-1].status == 502
        await it.start_bot()
        assert text_of(it, await bob.click("Yes: 1", message=poll)).count("Yes: 2")
        await it.control_bot("restart")
        assert text_of(it, await carol.click("Yes: 2", message=poll)).count("Yes: 3")
        assert await hook(it, "second") == 202
        await until(lambda: "second" in posted(it))
        clicks = [each for each in it.discord.deliveries if each.status != 502]
        assert {each.status for each in clicks} == {200}

        # The same by TLS, by an older HTTP, and with whatever else stands in the headers: a copy is known as one.
        request, answer = clicks[-1].request, clicks[-1].body
        trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        it.authority.configure_trust(trust)
        by_tls = {"ssl": trust, "server_hostname": HOST}
        url, secure = (f"{at}/bot/interactions" for at in addresses(it))
        old, new = aiohttp.http.HttpVersion10, aiohttp.http.HttpVersion11
        for to, more, version in ((url, {}, new), (secure, by_tls, new), (secure, by_tls, old)):
            headers = {**request.headers, **FORGED, "Host": HOST if more else f"127.0.0.1:{it.port}"}
            async with (
                aiohttp.ClientSession(version=version) as client,
                client.post(to, data=request.body, headers=headers, **more) as response,
            ):
                assert (response.status, await response.json()) == (200, answer)
        assert await until_shown(it, poll) == "## Tea?\nYes: 3\nNo: 0"


def posted(it: Machine) -> list[str]:
    return [it.discord.text(each) for each in it.discord.messages("general", seen_by="alice")]


async def until_shown(it: Machine, message: Any) -> str:
    """Return what a message reads when nothing is left to do."""
    store = it.at("/var/lib/everclick/bot.db")
    await until(lambda: not rows(store, "SELECT key FROM inbox WHERE done_at IS NULL"))
    kept = it.discord.world.find(message["id"])
    assert kept
    return it.discord.text(kept.message)


def addresses(it: Machine) -> tuple[str, str]:
    return f"http://127.0.0.1:{it.port}", f"https://127.0.0.1:{it.tls_port}"


async def hook(it: Machine, text: str) -> int:
    """Send a hook through the proxy; return the status."""
    body = {"channel": int(it.discord.world.channel_of("general")["id"]), "text": text}
    address = f"{addresses(it)[0]}/bot"
    return (await it.discord.send_hook("note", body, address=address, scheme="standard")).status


@both_proxies
async def test_the_proxy_lets_in_what_the_page_says_and_no_large_body(proxy: Proxy) -> None:
    async with behind(proxy) as it:
        inside = it.place("--unix-socket /run/everclick/web.sock http://localhost/bot")
        health = await it.run(f"curl -s {inside}/health") if shutil.which("curl") else None
        assert health is None or json.loads(health.out)["status"] == "ok"
        hidden = ["/", "/bot", "/bot/", "/bot/health", "/bot/metrics", "/health", "/metrics", "/hooks/note"]
        hidden += ["/interactions", "/bot/interactions/", "/bot/interactions/x", "/bot/hooks", "/bot//health"]
        hidden += ["/bot/hooks/../health", "/bot/hooks/%2e%2e/health", "/bot/hooks/..%2fhealth", "/bot/./health"]
        hidden += ["/bot/interactions/../health", "//bot/health", "/bot/health?/bot/hooks/", "/BOT/health"]
        for path in hidden:
            for method in ("GET", "POST"):
                status, said = await raw(it, f"{method} {path} HTTP/1.1")
                assert (status in (400, 404), "status" in said) == (True, False), (method, path, status, said)
        for path in ("/bot/interactions", "/bot/hooks/note"):
            assert (await raw(it, f"GET {path} HTTP/1.1"))[0] == 405
            status, said = await raw(it, f"POST {path} HTTP/1.1")
            assert (status, json.loads(said)["error"] != "") == (401 if "interactions" in path else 415, True)

            options: dict[str, Any] = {"method": "POST", "headers": {"Content-Type": "application/json"}}
            url, largest = f"{addresses(it)[0]}{path}", b" " * (1 << 20)
            status, _, said = await get(url, data=io.BytesIO(largest), **options)
            assert (status, "error" in json.loads(said)) == (401, True)
            for too_large in (io.BytesIO(largest + b" "), in_chunks(largest + b" ")):
                status, server, said = await get(url, data=too_large, **options)
                assert (status, server.split("/")[0].lower(), "error" in said) == (413, proxy, False)
        refused = [line for line in it.logs if "a request to the hook note was refused" in line]
        it.logs[:] = [line for line in it.logs if line not in refused]


async def in_chunks(body: bytes) -> AsyncIterator[bytes]:
    """Yield the body in parts: sent so, it does not say its length beforehand."""
    for start in range(0, len(body), 1 << 16):
        yield body[start : start + (1 << 16)]


async def raw(it: Machine, request: str) -> tuple[int, str]:
    """Send a request line as it is; return status and body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", it.port)
    lines = [request, f"Host: 127.0.0.1:{it.port}", *(f"{name}: {text}" for name, text in FORGED.items())]
    writer.write("\r\n".join([*lines, "Content-Length: 0", "Connection: close", "", ""]).encode())
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    if "transfer-encoding: chunked" in head.lower():
        body = body.partition("\r\n")[2]
    return int(head.split()[1]), body


@both_proxies
async def test_a_proxy_without_a_bot_and_a_wrong_path_look_as_the_page_says(proxy: Proxy) -> None:
    async with behind(proxy) as it:
        table = sections()["The portal"]
        url = f"{addresses(it)[0]}/bot/interactions"
        assert '| 404 and no `{"error": …}` |' in table
        status, _, said = await get(f"{addresses(it)[0]}/interactions", method="POST")
        assert (status, "error" in said) == (404, False)

        settings, other = it.at("/etc/everclick/config.env"), "WEB_PATH=/other"
        right = settings.read_text()
        for wrong in (right.replace("WEB_PATH=/bot", other), right.replace("MODE=rest", "MODE=gateway")):
            settings.write_text(wrong)
            await it.control_bot("restart")
            status, _, said = await get(url, method="POST")
            assert (status, said) == (404, '{"error": "Not Found"}')
            assert f"| 404 and `{said}` |" in table
        settings.write_text(right.replace("MODE=rest", f"MODE=rest\nDISCORD_PUBLIC_KEY={'1' * 64}"))
        await it.control_bot("restart")
        with pytest.raises(ValueError, match=re.escape("answers a signed PING with 401")):
            await it.discord.set_endpoint(url)
        assert it.bot
        await it.bot.terminate()
        assert (await get(url, method="POST"))[0] == 502
        assert "| 502 |" in table
        settings.write_text(right)
        await it.start_bot()


# Units


def units(root: Path) -> list[Path]:
    """Save the page's units in the folder, with programs in them that are there."""
    made, program = list[Path](), re.compile(r"(?<==)/(opt/everclick/.venv/bin/python|usr/local/bin/everclick-backup)")
    unit = re.compile(r"`/etc/systemd/system/(\S+)`:\n\n```ini\n(.*?)^```", re.MULTILINE | re.DOTALL)
    for file, code in itertools.chain(*(unit.findall(sections()[title]) for title in ("systemd", "Backup"))):
        made.append(root / file)
        made[-1].write_text(program.sub(sys.executable, code), "utf-8")
    return made


async def systemd_analyze(*words: str | Path) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        "systemd-analyze", *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
async def test_systemd_finds_no_fault_with_the_units_and_little_that_the_bot_could_harm(tmp_path: Path) -> None:
    found = units(tmp_path)
    assert [file.suffix for file in found] == [".service", ".service", ".timer"]
    assert await systemd_analyze("verify", "--man=no", *found) == (0, "")
    found[0].write_text(found[0].read_text().replace("ProtectHome=yes", "ProtectHome=maybe\nProtectHouse=yes"))
    _, said = await systemd_analyze("verify", "--man=no", found[0])
    assert "Failed to parse protect home value" in said
    assert "ProtectHouse" in said
    units(tmp_path)
    code, said = await systemd_analyze("security", "--offline=true", "--threshold=20", "--no-pager", found[0])
    assert code == 0, said


def test_the_unit_goes_by_the_exit_codes_and_lets_handlers_end(tmp_path: Path) -> None:
    unit = Unit(units(tmp_path)[0]).values
    wanted = unit["Restart"], unit["RestartPreventExitStatus"]
    assert wanted == ("on-failure", str(bot.OperatorError.exit_code))
    assert bot.OutageError.exit_code == 1
    help = bot.parse_arguments.__code__.co_consts
    assert any("2 something is to be mended" in text for text in help if isinstance(text, str))
    assert int(unit["TimeoutStopSec"]) > bot.Config().drain_s + 2
    assert unit["WorkingDirectory"] == f"/var/lib/{unit['StateDirectory']}"
    codes = re.findall(r"^\| (\d)(?:, or it was killed)? \|", sections()["systemd"], re.M)
    assert codes == ["0", "1", "2"]


# The container


def instructions() -> list[tuple[str, str]]:
    """Return the Containerfile's instructions."""
    [file] = blocks("A container", "dockerfile")
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in file.splitlines()]


@pytest.mark.skipif(
    shutil.which("hadolint", path=str(Path(sys.executable).parent)) is None, reason="hadolint is not here"
)
async def test_a_linter_finds_no_fault_with_the_containerfile(tmp_path: Path) -> None:
    async def lint(text: str) -> tuple[int, str]:
        (tmp_path / "Containerfile").write_text(text, "utf-8")
        process = await asyncio.create_subprocess_exec(
            *(Path(sys.executable).parent / "hadolint", "--no-color", "Containerfile"), cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, _ = await process.communicate()
        return process.returncode or 0, out.decode()

    [file] = blocks("A container", "dockerfile")
    assert await lint(file) == (0, "")
    assert (await lint(file.replace("USER 10001", "USER root")))[0] == 1
    assert (await lint(file.replace("ENTRYPOINT", "ENTRYPOIN")))[0] == 1


async def test_a_bot_started_as_in_the_container_is_healthy_until_it_is_stopped_by_the_signal(tmp_path: Path) -> None:
    given = dict(instructions())
    assert given["FROM"].startswith("docker.io/library/python:3.11")
    for name in [name for kind, words in instructions() if kind == "COPY" for name in words.split()[:-1]]:
        assert (ROOT / name).is_file()
    port, env = free_port(), dict(pair.split("=") for pair in given["ENV"].split())
    [program, script, *rest] = json.loads(given["ENTRYPOINT"])
    _, _, check = given["HEALTHCHECK"].partition("CMD ")
    check = [sys.executable, *json.loads(check.replace(env["WEB_PORT"], str(port)))[1:]]
    assert (program, given["USER"], given["WORKDIR"], given["VOLUME"]) == ("python", "10001", "/data", "/data")
    assert (env["WEB_HOST"], given["STOPSIGNAL"]) == ("0.0.0.0", "SIGTERM")
    async with machine() as it:
        env |= {"WEB_PORT": str(port), "DISCORD_TOKEN": it.discord.token, "DISCORD_API": it.discord.api}
        process = BotProcess(
            script.replace("/app", str(ROOT)), tuple(rest), env=env, cwd=str(tmp_path), python=sys.executable
        )
        it.discord.bots.append(process)

        async def is_healthy() -> bool:
            asked = await asyncio.create_subprocess_exec(*check, stderr=asyncio.subprocess.DEVNULL)
            return await asked.wait() == 0

        assert not await is_healthy()
        await process.start()
        await until(is_healthy)
        assert (tmp_path / "bot.db").exists()
        assert await process.terminate() == 0
        assert not await is_healthy()


def test_dockers_words_fit_the_containerfile() -> None:
    given = dict(instructions())
    [commands] = blocks("A container", "sh")
    build, run, execute = (shlex.split(line) for line in commands.replace("\\\n", "").splitlines())
    image, port = build[build.index("-t") + 1], dict(pair.split("=") for pair in given["ENV"].split())["WEB_PORT"]
    options = dict(itertools.pairwise(run))
    assert (run[-1], build[-3:]) == (image, ["-f", "Containerfile", "."])
    assert options["-p"] == f"127.0.0.1:{port}:{port}"
    assert options["-v"].split(":")[1] == given["VOLUME"]
    assert int(options["--stop-timeout"]) > bot.Config().drain_s + 2
    assert execute[:3] == ["docker", "exec", options["--name"]]
    assert execute[3:-1] == json.loads(given["ENTRYPOINT"])


def test_every_block_of_the_page_is_run_in_its_order_or_read_here() -> None:
    kinds = filter(None, re.findall(r"^```(\w*)$", TEXT, re.MULTILINE))
    assert set(kinds) == {"sh", "ini", "dockerfile", "nginx", "caddyfile", "json"}
    titles = [title for title in sections() if blocks(title, "sh") and title != "A container"]
    followed = re.findall(r'it\.follow\("([^"]+)"\)', Path(__file__).read_text("utf-8"))
    assert list(dict.fromkeys(followed)) == titles
