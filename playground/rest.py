"""The way of a REST request: route, token, faults, rate limits, body, operation, answer."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import unquote

import msgspec
from aiohttp import BodyPartReader, MultipartReader, web
from aiohttp.multipart import MultipartResponseWrapper

from .buckets import Buckets
from .calls import Call
from .clock import Clock
from .errors import KNOWN, Json, Refused
from .faults import Fault, Faults
from .journal import Journal
from .process import NEVER_A_PRODUCTION_TOKEN, PRODUCTION_TOKEN
from .routes import NEEDS_NO_TOKEN, ROUTES, Operation, Operations
from .uploads import Upload

PREFIX = "/api/v10"


class Router:
    """Finds the operation for a method and path."""

    def __init__(self) -> None:
        self._by_shape: dict[tuple[str, int, str], list[tuple[list[str], str, Operation]]] = {}
        for method, template, operation in ROUTES:
            parts = template.strip("/").split("/")
            self._by_shape.setdefault((method, len(parts), parts[0]), []).append((parts, template, operation))

    def find(self, method: str, path: str) -> tuple[str, Operation, dict[str, str]] | None:
        parts = path.strip("/").split("/")
        for template, route, operation in self._by_shape.get((method, len(parts), parts[0]), ()):
            params = match(template, parts)
            if params is not None:
                return route, operation, params
        return None


def match(template: list[str], parts: list[str]) -> dict[str, str] | None:
    """The path's parameters, or None when it does not fit."""
    params: dict[str, str] = {}
    for want, part in zip(template, parts, strict=True):
        if want.startswith("{"):
            params[want[1:-1]] = part
        elif want != part:
            return None
    return params


class Rest:
    """Answers every request under /api/v10."""

    def __init__(self, operations: Operations, token: str, clock: Clock, journal: Journal) -> None:
        self.faults = Faults(journal)
        self.buckets = Buckets(clock)
        self.unknown: list[str] = []
        """Requests for routes that nobody implemented, as "GET /path"."""
        self.delay_s: Callable[[], float] = lambda: 0.0
        self.on_sent: Callable[[str, str, int, Any], None] | None = None
        self._operations = operations
        self.token = token
        self._journal = journal
        self._router = Router()
        self._has_warned = False

    async def serve(self, request: web.Request) -> web.StreamResponse:
        method, path = request.method, request.path.removeprefix(PREFIX)
        found = self._router.find(method, path)
        if found is None:
            return self._not_found(method, path)
        route, operation, params = found
        reason = request.headers.get("X-Audit-Log-Reason")
        call = Call(method, path, route, params, dict(request.query), reason=unquote(reason) if reason else None)
        if not self._is_authorized(request, path):
            self._warn_of_production_token(request.headers.get("Authorization", ""))
            return self._answer(call, 401, Refused(40001).body)
        try:
            return await self._disturbed(request, call, operation)
        except ConnectionResetError:  # the bot was killed while it sent this: nothing happens, and nobody hears of it
            return cut(request)

    def _not_found(self, method: str, path: str) -> web.Response:
        self.unknown.append(f"{method} {path}")
        self._journal.note("unknown", method=method, path=path)
        print(
            f"playground: nothing answers {method} {path}. Add it to ROUTES in playground/routes.py.", file=sys.stderr
        )
        return self._answer(Call(method, path, "", {}, {}), 404, Refused(0).body)

    def _is_authorized(self, request: web.Request, path: str) -> bool:
        is_public = path == "/gateway" or path.startswith(NEEDS_NO_TOKEN)
        return is_public or request.headers.get("Authorization") == f"Bot {self.token}"

    def _warn_of_production_token(self, offered: str) -> None:
        """Say it once, and never what the token is."""
        if PRODUCTION_TOKEN.search(offered) and not self._has_warned:
            self._has_warned = True
            print(NEVER_A_PRODUCTION_TOKEN.format(where="The token the bot offered"), file=sys.stderr)

    async def _disturbed(self, request: web.Request, call: Call, operation: Operation) -> web.Response:
        """Carry the call out, with the fault and the delays that are in force."""
        fault = self.faults.take(call.method, call.path)
        await self._sleep(self.delay_s())
        if fault is not None and fault.drop == "before":
            return cut(request)
        if fault is not None and fault.status is not None:
            answer = self._answer_fault(call, fault)
        else:
            answer = await self._carry_out(request, call, operation)
        await self._sleep(self.delay_s() + (fault.delay_s if fault else 0.0))
        return cut(request) if fault is not None and fault.drop == "after" else answer

    async def _sleep(self, seconds: float) -> None:
        if seconds > 0:
            await asyncio.sleep(seconds)

    def _answer_fault(self, call: Call, fault: Fault) -> web.Response:
        assert fault.status is not None
        if fault.code in KNOWN:
            return self._answer(call, fault.status, Refused(fault.code).body)
        if fault.status != 429:
            body = {"message": f"{fault.status}: injected fault", "code": fault.code or 0}
            return self._answer(call, fault.status, body)
        return self._answer_too_many(call, fault.retry_after, fault.is_global, {"X-RateLimit-Scope": "user"})

    def _answer_too_many(
        self, call: Call, retry_after: float, is_global: bool, headers: dict[str, str]
    ) -> web.Response:
        body = {"message": "You are being rate limited.", "retry_after": round(retry_after, 3), "global": is_global}
        return self._answer(call, 429, body, {"Retry-After": f"{retry_after:.3f}", **headers})

    async def _carry_out(self, request: web.Request, call: Call, operation: Operation) -> web.Response:
        verdict = self.buckets.take(call.method, call.route, call.params)
        if verdict.retry_after is not None:
            return self._answer_too_many(call, verdict.retry_after, verdict.is_global, verdict.headers)
        try:
            call.body, call.uploads = await read_body(request)
            status, body = operation(self._operations, call)
        except Refused as refused:
            status, body = refused.status, refused.body
        return self._answer(call, status, body, verdict.headers)

    def _answer(self, call: Call, status: int, body: Any, headers: dict[str, str] | None = None) -> web.Response:
        self._journal.note(
            "rest", method=call.method, path=call.path, route=call.route, query=call.query, status=status,
            body=call.body, answer=body,
        )  # fmt: skip
        if self.on_sent is not None and call.route:
            self.on_sent(call.method, call.route, status, body)
        if body is None:
            return web.Response(status=status, headers=headers)
        # Exactly this content type: discord.py takes one with a charset for text.
        all_headers = {**(headers or {}), "Content-Type": "application/json"}
        return web.Response(status=status, headers=all_headers, body=msgspec.json.encode(body))


def cut(request: web.Request) -> web.Response:
    """Break the connection off. The response returned is never seen."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


async def read_body(request: web.Request) -> tuple[Any, list[Upload]]:
    """The JSON of a request and the files sent with it."""
    if not request.can_read_body:
        return None, []
    if request.content_type.startswith("multipart/"):
        return await read_parts(await request.multipart())
    return decode(await request.read()), []


def decode(raw: bytes) -> Any:
    if not raw:
        return None
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:
        raise Refused(50109) from None


async def read_parts(parts: MultipartReader | MultipartResponseWrapper) -> tuple[Any, list[Upload]]:
    """payload_json and files[n]; what payload_json says about attachment n describes file n."""
    body: Any = None
    files: dict[str, Upload] = {}
    async for part in parts:
        if not isinstance(part, BodyPartReader):
            raise Refused(50035)
        data = bytes(await part.read(decode=True))
        if part.name == "payload_json":
            body = decode(data)
        else:
            kind = part.headers.get("Content-Type", "application/octet-stream")
            number = (part.name or "").removeprefix("files[").removesuffix("]")
            files[number] = Upload(unquote(part.filename or "file"), kind, data)  # aiohttp writes it quoted
    return describe_uploads(body, files)


def describe_uploads(body: Any, files: dict[str, Upload]) -> tuple[Any, list[Upload]]:
    if not isinstance(body, dict):
        return body, list(files.values())
    message = cast(Json, body)
    holder: Json = message["data"] if isinstance(message.get("data"), dict) else message
    for about in holder.get("attachments") or ():
        file = files.get(str(about.get("id")))
        if file is not None:
            name = about.get("filename") or file.filename
            files[str(about["id"])] = file._replace(filename=name, description=about.get("description"))
    return message, list(files.values())
