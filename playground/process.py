"""The bot as a process of its own: started, stopped, killed and started again, with its log."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

Status = Literal["starting", "running", "stopped", "exited", "none"]

STOP_WAIT_S = 5.0
READY_WAIT_S = 15.0
LOG_TAIL = 30
# A bot token as Discord gives them out: the id in base64, a time stamp, and a signature of 27 or more characters.
PRODUCTION_TOKEN = re.compile(r"[MNO][\w-]{22,27}\.[\w-]{6}\.[\w-]{27,}")

NEVER_A_PRODUCTION_TOKEN = (
    "{where} looks like a production token: never hand one to a local fake. "
    "Take it out; the playground gives the bot a token of its own."
)


def refuse_production_token(value: str, where: str) -> None:
    if PRODUCTION_TOKEN.search(value):
        raise ValueError(NEVER_A_PRODUCTION_TOKEN.format(where=where))


class BotProcess:
    """One bot: a command line that is run as often as wanted, one process at a time."""

    def __init__(
        self, script: str, args: tuple[str, ...], *, env: Mapping[str, str], cwd: str | None, python: str
    ) -> None:
        for name, value in env.items():
            refuse_production_token(value, name)
        self.script = script
        self.log: list[str] = []
        """Every line the bot wrote to stdout or stderr, of all its runs."""
        self.on_line: Callable[[str], None] = lambda line: None
        self.on_status: Callable[[], None] = lambda: None
        self._command = [python, script, *args]
        self._env = {**os.environ, **env}
        self._cwd = cwd
        self._process: asyncio.subprocess.Process | None = None
        self._watch: asyncio.Task[None] | None = None
        self._is_ready = asyncio.Event()
        self._was_stopped = False

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    @property
    def returncode(self) -> int | None:
        """None while it runs; -9 after a SIGKILL, as subprocess has it."""
        return self._process.returncode if self._process is not None else None

    @property
    def status(self) -> Status:
        if self._process is None:
            return "none"
        if self.returncode is None:
            return "running" if self._is_ready.is_set() else "starting"
        return "stopped" if self._was_stopped else "exited"

    async def start(self) -> None:
        """Start the process. When this returns it runs, but has not connected yet."""
        if self.pid is not None:
            raise ValueError(f"{self.script} runs already, as process {self.pid}.")
        self._is_ready.clear()
        self._was_stopped = False
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            env=self._env,
            cwd=self._cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            # Out of the terminal's reach: Ctrl-C stops the playground, and that stops the bot.
            start_new_session=True,
        )
        self._watch = asyncio.create_task(self._follow(self._process))
        self.on_status()

    async def _follow(self, process: asyncio.subprocess.Process) -> None:
        """Collect the log until the end of the process."""
        assert process.stdout is not None
        rest = b""
        while chunk := await process.stdout.read(1 << 16):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._add_line(line)
        if rest:
            self._add_line(rest)
        await process.wait()
        self.on_status()

    def _add_line(self, raw: bytes) -> None:
        line = raw.decode(errors="replace").rstrip("\r")
        self.log.append(line)
        self.on_line(line)

    def connected(self) -> None:
        """The bot has an identified or resumed gateway session."""
        if self.pid is not None and not self._is_ready.is_set():
            self._is_ready.set()
            self.on_status()

    async def ready(self, timeout: float = READY_WAIT_S) -> None:
        """Wait for the gateway session. Raises RuntimeError with the end of the log when the bot exits first."""
        assert self._watch is not None
        waiting = asyncio.create_task(self._is_ready.wait())
        try:
            await asyncio.wait({waiting, self._watch}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if self._is_ready.is_set() and self.returncode is None:
            return
        tail = "\n".join(self.log[-LOG_TAIL:])
        if self._watch.done():
            raise RuntimeError(f"{self.script} ended with exit code {self.returncode} before it was ready:\n{tail}")
        raise TimeoutError(f"{self.script} was not ready after {timeout} s:\n{tail}")

    def kill(self) -> None:
        """SIGKILL: the process gets no chance to do anything more."""
        self._end("kill")

    async def terminate(self) -> int:
        """SIGTERM, and wait for the end; SIGKILL when it takes more than 5 s."""
        self._end("terminate")
        try:
            async with asyncio.timeout(STOP_WAIT_S):
                return await self.wait()
        except TimeoutError:
            self.log.append(f"playground: {self.script} did not stop within {STOP_WAIT_S:.0f} s and was killed")
            self.kill()
            return await self.wait()

    def _end(self, how: Literal["kill", "terminate"]) -> None:
        if self._process is None or self.returncode is not None:
            return
        self._was_stopped = True
        if how == "kill":
            self._process.kill()
        else:
            self._process.terminate()

    async def wait(self) -> int:
        """Wait until it has ended and its log is complete; the exit code."""
        if self._process is None or self._watch is None:
            raise ValueError(f"{self.script} was never started.")
        await asyncio.shield(self._watch)
        assert self._process.returncode is not None
        return self._process.returncode

    async def restart(self) -> None:
        """Stop it when it runs, then start the same command again."""
        if self._process is not None:
            await self.terminate()
        await self.start()

    async def close(self) -> None:
        """End it and everything it started."""
        if self._process is None:
            return
        await self.terminate()
        if sys.platform != "win32":
            with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody of its group is left
                os.killpg(self._process.pid, signal.SIGKILL)

    def for_page(self) -> dict[str, object]:
        code = self.returncode
        return {"name": Path(self.script).name, "status": self.status, "pid": self.pid, "exit_code": code}
