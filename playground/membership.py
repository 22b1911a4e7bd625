"""Who is in the guild, with which roles, and what they may do where."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from . import permissions, shapes
from .shapes import Json

BOT_ROLE_POSITION = 50


class Membership:
    """Members, roles and bans of the playground's guild. Objects are replaced, never changed in place."""

    def __init__(self, guild_id: str, bot: Json, now: Callable[[], float], tell: Callable[..., None]) -> None:
        self.guild_id = guild_id
        self.owner_id = ""
        self.roles: dict[str, Json] = {guild_id: shapes.role(guild_id, "@everyone", permissions.EVERYONE, 0)}
        self.bans: dict[str, Json] = {}
        self._members: dict[str, Json] = {}
        self._now = now
        self._tell = tell
        bot_role = shapes.role(bot["id"], bot["username"], permissions.ALL, BOT_ROLE_POSITION)
        self.roles[bot["id"]] = {**bot_role, "managed": True, "tags": {"bot_id": bot["id"]}}
        self._members[bot["id"]] = {**shapes.member(bot), "roles": [bot["id"]]}

    # Members

    def all(self) -> list[Json]:
        return list(self._members.values())

    def find(self, user_id: str) -> Json | None:
        return self._members.get(user_id)

    def of(self, user: Json) -> Json:
        """The member, or what a person who has left looked like."""
        return self._members.get(user["id"]) or shapes.member(user)

    def add(self, user: Json, *, quietly: bool = False) -> None:
        """Let someone join; `quietly` for who was there before anybody looked."""
        if user["id"] in self._members:
            return
        if user["id"] in self.bans:
            raise LookupError(f"{user['username']} is banned from the guild.")
        joined = {} if quietly else {"joined_at": shapes.timestamp(self._now())}
        self._members[user["id"]] = shapes.member(user) | joined
        if not quietly:
            self._tell("joined", self._members[user["id"]])

    def remove(self, user_id: str) -> None:
        """Leave, or be kicked."""
        if user_id in self._members:
            self._tell("left", self._members.pop(user_id)["user"])

    def change(self, user_id: str, **fields: Any) -> Json:
        self._members[user_id] = {**self._members[user_id], **fields}
        self._tell("member", self._members[user_id])
        return self._members[user_id]

    def ban(self, user: Json, reason: str | None) -> None:
        self.bans[user["id"]] = {"user": user, "reason": reason}
        self._tell("banned", user)
        self.remove(user["id"])

    def unban(self, user: Json) -> None:
        del self.bans[user["id"]]
        self._tell("unbanned", user)

    # Roles

    def role_named(self, name: str) -> Json | None:
        return next((role for role in self.roles.values() if name in (role["id"], role["name"])), None)

    def put_role(self, id_: str, name: str, bits: int, **more: Any) -> Json:
        """Make a role under the bot's, or change the one with that id."""
        old = self.roles.get(id_)
        position = min(BOT_ROLE_POSITION - 1, len(self.roles) - 1)
        blank = old or shapes.role(id_, name, bits, position)
        self.roles[id_] = {**blank, "name": name, "permissions": str(bits), **more}
        self._tell("role" if old else "role_new", self.roles[id_])
        return self.roles[id_]

    def delete_role(self, role_id: str) -> None:
        for member in self.all():
            if role_id in member["roles"]:
                self.change(member["user"]["id"], roles=[id_ for id_ in member["roles"] if id_ != role_id])
        self._tell("role_gone", self.roles.pop(role_id))

    def give(self, user_id: str, role_id: str) -> None:
        roles: list[str] = self._members[user_id]["roles"]
        if role_id not in roles:
            self.change(user_id, roles=[*roles, role_id])

    def take(self, user_id: str, role_id: str) -> None:
        roles: list[str] = self._members[user_id]["roles"]
        if role_id in roles:
            self.change(user_id, roles=[id_ for id_ in roles if id_ != role_id])

    # Permissions

    def base(self, user_id: str) -> int:
        """What they may do in the guild, whatever a channel says; nothing when they are not in it."""
        if user_id not in self._members:
            return 0
        return permissions.in_guild(self._roles_of(user_id), user_id == self.owner_id)

    def may(self, user_id: str, channel: Json) -> int:
        """What they may do in one of the guild's channels."""
        role_ids = [role["id"] for role in self._roles_of(user_id)]
        base = self.base(user_id)
        return permissions.in_channel(base, channel, user_id, role_ids, self.is_timed_out(user_id)) if base else 0

    def highest(self, user_id: str) -> int:
        """The position of a member's highest role; an owner stands above every role."""
        if user_id == self.owner_id:
            return 1 << 31
        return max((role["position"] for role in self._roles_of(user_id)), default=0)

    def is_timed_out(self, user_id: str) -> bool:
        until = (self._members.get(user_id) or {}).get("communication_disabled_until")
        return until is not None and datetime.fromisoformat(until).timestamp() > self._now()

    def _roles_of(self, user_id: str) -> Iterable[Json]:
        member = self._members.get(user_id) or {"roles": []}
        return [self.roles[id_] for id_ in (self.guild_id, *member["roles"]) if id_ in self.roles]
