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
Mode = Literal["gateway", "rest"]
"""How interactions come to the bot: through its gateway connection, or over HTTP."""

MOVED = Path(__file__).parent / "moved"
"""Holds the sitecustomize that lets a bot's time.time() go with the playground's clock."""
STOP_WAIT_S = 5.0
READY_WAIT_S = 15.0
LOG_TAIL = 30
LOG_WAIT_S = 0.3
# A bot token as Discord gives them out: the id in base64, a time stamp, and a signature of 27 or more characters.
PRODUCTION_TOKEN = re.compile(r"[MNO][\w-]{22,27}\.[\w-]{6}\.[\w-]{27,}")

NEVER_A_PRODUCTION_TOKEN = (
    "{where} looks like a production token: never hand one to a local fake. "
    "Take it out; the playground gives the bot a token of its own."
)


def refuse_production_token(value: str, where: str) -> None:
    """Raise ValueError with a sentence that names the place and never the token."""
    if PRODUCTION_TOKEN.search(value):
        raise ValueError(NEVER_A_PRODUCTION_TOKEN.format(where=where))


class Run(asyncio.SubprocessProtocol):
    """One process from its start to its end: collects lines, and knows when both it and its log are over."""

    def __init__(self, on_line: Callable[[str], None], on_end: Callable[[], None]) -> None:
        self.is_over = asyncio.Event()
        self._on_line = on_line
        self._on_end = on_end
        self._rest = b""

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._on_line(line.decode(errors="replace").rstrip("\r"))

    def process_exited(self) -> None:
        # What it started may hold the pipe open for ever, so the log's end is not waited for without limit.
        asyncio.get_running_loop().call_later(LOG_WAIT_S, self._end)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    def _end(self) -> None:
        if self.is_over.is_set():
            return
        if self._rest:
            self._on_line(self._rest.decode(errors="replace"))
        self.is_over.set()
        self._on_end()


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
        self.on_start: Callable[[], None] = lambda: None
        self.web_port = int(env["WEB_PORT"]) if "WEB_PORT" in env else None
        """Where it serves HTTP on 127.0.0.1; None when it was not told to."""
        self._command = [python, script, *args]
        # What lies around in the environment is left behind; only one given on purpose is refused.
        around = {name: value for name, value in os.environ.items() if not PRODUCTION_TOKEN.search(value)}
        self._env = {**around, **env}
        if "PLAYGROUND_CLOCK" in self._env:
            others = self._env.get("PYTHONPATH")
            self._env["PYTHONPATH"] = os.pathsep.join([str(MOVED), *([others] if others else [])])
        self._cwd = cwd
        self._transport: asyncio.SubprocessTransport | None = None
        self._run: Run | None = None
        self._is_ready = asyncio.Event()
        self._one_start_at_a_time = asyncio.Lock()
        self._was_stopped = False

    @property
    def pid(self) -> int | None:
        """None when it does not run."""
        return self._transport.get_pid() if self._transport is not None and self.returncode is None else None

    @property
    def returncode(self) -> int | None:
        """None while it runs; -9 after a SIGKILL, as subprocess has it."""
        return self._transport.get_returncode() if self._transport is not None else None

    @property
    def mode(self) -> Mode:
        return "rest" if self._env.get("MODE") == "rest" else "gateway"

    @property
    def web_address(self) -> str | None:
        """Where its web side is; None when it was not told to have one."""
        return None if self.web_port is None else f"http://127.0.0.1:{self.web_port}"

    @property
    def status(self) -> Status:
        """starting until it is ready, then running; stopped when it was told to end, exited when it was not."""
        if self._transport is None:
            return "none"
        if self.returncode is None:
            return "running" if self._is_ready.is_set() else "starting"
        return "stopped" if self._was_stopped else "exited"

    async def start(self) -> None:
        """Start the process, after the end of one that was told to stop. When this returns it has not connected yet."""
        async with self._one_start_at_a_time:
            if self.pid is not None and not self._was_stopped:
                raise ValueError(f"{self.script} runs already, as process {self.pid}.")
            if self._run is not None:
                await self.wait()
            await self._start()

    async def _start(self) -> None:
        self._is_ready.clear()
        self._was_stopped = False
        run = Run(self._add_line, self._on_end)
        self._transport, self._run = await asyncio.get_running_loop().subprocess_exec(
            lambda: run,
            *self._command,
            env=self._env,
            cwd=self._cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            # Out of the terminal's reach: Ctrl-C stops the playground, and that stops the bot.
            start_new_session=True,
        )
        self.on_status()
        self.on_start()

    def _add_line(self, line: str) -> None:
        self.log.append(line)
        self.on_line(line)

    def _on_end(self) -> None:
        if self._transport is not None:
            self._transport.close()
        self.on_status()

    def complain(self, sentence: str) -> None:
        """Put something into the log that the bot itself does not say."""
        self._add_line(f"playground: {sentence}")

    def connected(self) -> None:
        """The bot has an identified or resumed gateway session, or answers PINGs as it should."""
        if self.pid is not None and not self._is_ready.is_set():
            self._is_ready.set()
            self.on_status()

    async def ready(self, timeout: float = READY_WAIT_S) -> None:
        """Wait for the gateway session, or for the endpoint's answer to PINGs in the mode rest.

        Raises RuntimeError with the end of the log when the bot exits first.
        """
        await self._first_of(self._is_ready, self._current().is_over, timeout)
        if self._is_ready.is_set() and self.returncode is None:
            return
        tail = "\n".join(self.log[-LOG_TAIL:])
        if self.returncode is not None:
            raise RuntimeError(f"{self.script} ended with exit code {self.returncode} before it was ready:\n{tail}")
        raise TimeoutError(f"{self.script} was not ready after {timeout} s:\n{tail}")

    async def _first_of(self, one: asyncio.Event, other: asyncio.Event, timeout: float) -> None:
        waiting = [asyncio.create_task(event.wait()) for event in (one, other)]
        try:
            await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()

    def _current(self) -> Run:
        if self._run is None:
            raise ValueError(f"{self.script} was never started.")
        return self._run

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
            self.complain(f"{self.script} did not stop within {STOP_WAIT_S:.0f} s and was killed")
            self.kill()
            return await self.wait()

    def _end(self, how: Literal["kill", "terminate"]) -> None:
        if self._transport is None or self.returncode is not None:
            return
        self._was_stopped = True
        if how == "kill":
            self._transport.kill()
        else:
            self._transport.terminate()

    async def wait(self) -> int:
        """Wait until it has ended and its log is complete; the exit code."""
        await self._current().is_over.wait()
        assert self.returncode is not None
        return self.returncode

    async def restart(self, mode: Mode | None = None) -> None:
        """Stop it when it runs, then start the same command again, in another mode if one is given."""
        if mode == "rest" and self.web_port is None:
            raise ValueError(f"{self.script} has no port for HTTP. Start it with mode={mode!r}, or with web=True.")
        if self._run is not None:
            await self.terminate()
        self._env["MODE"] = mode or self.mode
        await self.start()

    async def close(self) -> None:
        """End it and everything it started; at once when this is cancelled."""
        if self._transport is None:
            return
        try:
            await self.terminate()
        finally:
            self.kill()
            if sys.platform != "win32":
                with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody of its group is left
                    os.killpg(self._transport.get_pid(), signal.SIGKILL)

    def for_page(self) -> dict[str, object]:
        code = self.returncode
        about: dict[str, object] = {"name": Path(self.script).name, "status": self.status, "pid": self.pid}
        return {**about, "exit_code": code, "mode": self.mode, "has_web": self.web_port is not None}
