"""A bot without bot.py: takes hooks over HTTP, and interactions in both modes.

The first PING is answered with 503. UNSIGNED=1 lets it take requests whatever their signature; BROKEN=1 ends it soon.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from aiohttp import web
from discord_interactions import verify_key
from standardwebhooks import Webhook

API, TOKEN, PORT = (os.environ[name] for name in ("DISCORD_API", "DISCORD_TOKEN", "WEB_PORT"))
APPLICATION_ID = "100000000000000001"
ANSWER = {"type": 4, "data": {"content": f"pid {os.getpid()}"}}
pings: list[Any] = []
HOOKS = json.loads(os.environ.get("HOOKS", '{"deploy": "standard"}'))


async def take_interaction(request: web.Request) -> web.Response:
    body = await request.read()
    signature, at = (request.headers.get(f"X-Signature-{name}", "") for name in ("Ed25519", "Timestamp"))
    if "UNSIGNED" not in os.environ and not verify_key(body, signature, at, os.environ["DISCORD_PUBLIC_KEY"]):
        return web.Response(status=401)
    payload = json.loads(body)
    if payload["type"] == 1 and not pings:
        pings.append(payload)
        return web.json_response({"error": "it is starting"}, status=503)
    if payload["type"] == 1:
        return web.json_response({"type": 1})
    if payload["type"] == 2 and payload["data"]["name"] == "slow":
        await asyncio.sleep(60)
    return web.json_response(ANSWER)


async def tell_health(request: web.Request) -> web.Response:
    return web.json_response({"status": "ok", "hooks": HOOKS})


async def take_hook(request: web.Request) -> web.Response:
    if request.match_info["name"] not in HOOKS:
        return web.json_response({"error": "There is no such hook."}, status=404)
    body: Any = Webhook(os.environ["HOOK_SECRET"]).verify(await request.read(), dict(request.headers))
    print("hook", request.match_info["name"], body, flush=True)
    return web.json_response({"took": body})


async def be_at_the_gateway(app: web.Application) -> None:
    url = f"{API.partition('/api')[0].replace('http', 'ws', 1)}/gateway?v=10&encoding=json"
    async with aiohttp.ClientSession() as session, session.ws_connect(url) as socket:
        await socket.send_json({"op": 2, "d": {"token": TOKEN, "intents": 0, "properties": {}}})
        async for message in socket:
            payload = message.json()
            if payload.get("t") == "INTERACTION_CREATE":
                given = payload["d"]
                await session.post(f"{API}/interactions/{given['id']}/{given['token']}/callback", json=ANSWER)


async def connect(app: web.Application) -> AsyncIterator[None]:
    task = asyncio.create_task(be_at_the_gateway(app))
    yield
    task.cancel()


async def register(app: web.Application) -> None:
    commands = [{"name": name, "description": "x"} for name in ("ping", "slow")]
    headers = {"Authorization": f"Bot {TOKEN}"}
    async with aiohttp.ClientSession() as session:
        await session.put(f"{API}/applications/{APPLICATION_ID}/commands", json=commands, headers=headers)
    print("registered in the mode", os.environ["MODE"], flush=True)


if "BROKEN" in os.environ:
    sys.exit("broken")
app = web.Application()
app.on_startup.append(register)
if os.environ["MODE"] == "gateway":
    app.cleanup_ctx.append(connect)
app.router.add_post("/interactions", take_interaction)
app.router.add_get("/health", tell_health)
app.router.add_post("/hooks/{name}", take_hook)
web.run_app(app, host="127.0.0.1", port=int(PORT), print=None, access_log=None, shutdown_timeout=0.1)
