"""Discord's published OpenAPI as a check on what the playground sends; `check` is made for `Discord(check=…)`."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[2] / "shared" / "reference" / "discord-openapi.json"
IS_HERE = FILE.is_file()

# Gateway events have no schema of their own; what they are made of has. Of several schemas one must fit.
PARTS_OF_EVENT: dict[str, dict[str, str]] = {
    "READY": {"user": "UserPIIResponse"},
    "GUILD_CREATE": {"": "GuildResponse", "members[]": "GuildMemberResponse", "channels[]": "GuildChannelResponse"},
    "GUILD_MEMBERS_CHUNK": {"members[]": "GuildMemberResponse"},
    "CHANNEL_CREATE": {"": "PrivateChannelResponse GuildChannelResponse"},
    "CHANNEL_UPDATE": {"": "GuildChannelResponse"},
    "CHANNEL_DELETE": {"": "GuildChannelResponse"},
    "GUILD_MEMBER_ADD": {"": "GuildMemberResponse"},
    "GUILD_MEMBER_UPDATE": {"": "GuildMemberResponse"},
    "GUILD_MEMBER_REMOVE": {"user": "UserResponse"},
    "GUILD_ROLE_CREATE": {"role": "GuildRoleResponse"},
    "GUILD_ROLE_UPDATE": {"role": "GuildRoleResponse"},
    "MESSAGE_REACTION_ADD": {"member": "GuildMemberResponse", "emoji": "MessageReactionEmojiResponse"},
    "MESSAGE_CREATE": {"": "MessageResponse"},
    "MESSAGE_UPDATE": {"": "MessageResponse"},
    "INTERACTION_CREATE": {"message": "MessageResponse", "member": "GuildMemberResponse", "user": "UserResponse"},
}


@cache
def spec() -> dict[str, Any]:
    return json.loads(FILE.read_text(encoding="utf-8"))


@cache
def validator(pointer: str) -> Any:
    from jsonschema import Draft202012Validator
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT202012

    whole = Resource.from_contents(spec(), default_specification=DRAFT202012)
    registry: Any = Registry().with_resource("urn:discord", whole)
    return Draft202012Validator({"$ref": f"urn:discord#{pointer}"}, registry=registry)


def misfits(pointer: str, body: Any, what: str) -> list[str]:
    problems = validator(pointer).iter_errors(body)
    return [f"{what}: {'.'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in problems]


def check(what: str, kind: str, body: Any) -> list[str]:
    """What is wrong with a body: "GET /users/@me 200" of kind rest, or "gateway READY" of kind gateway."""
    return check_event(what, body) if kind == "gateway" else check_answer(what, body)


def check_answer(what: str, body: Any) -> list[str]:
    method, path, status = what.split(" ")
    if int(status) >= 400:
        return []  # the error schema is about another API version's bodies
    operation = spec()["paths"].get(path, {}).get(method.lower())
    if operation is None:
        return [f"{what}: there is no such operation"]
    answer = operation["responses"].get(status)
    if answer is None:
        return [f"{what}: there is no such status"]
    if "content" not in answer:
        return [] if body is None else [f"{what}: has a body"]
    escaped = path.replace("~", "~0").replace("/", "~1")
    pointer = f"/paths/{escaped}/{method.lower()}/responses/{status}/content/application~1json/schema"
    return misfits(pointer, body, what)


def check_event(what: str, body: Any) -> list[str]:
    found: list[str] = []
    for place, schemas in PARTS_OF_EVENT.get(what.removeprefix("gateway "), {}).items():
        name = place.removesuffix("[]")
        part = body if not name else body.get(name)
        parts = part if place.endswith("[]") else [part] if part is not None else []
        for one in parts:
            tried = [misfits(f"/components/schemas/{schema}", one, f"{what} {place}") for schema in schemas.split()]
            found += min(tried, key=len)
    return found


CHECK = check if IS_HERE else None
"""For `Discord(check=CHECK)`: with the file at hand everything that is sent is checked, without it nothing."""
