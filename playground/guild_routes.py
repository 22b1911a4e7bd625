"""The REST operations on the guild, its channels, members and roles, and on reactions and pins."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import unquote

from . import limits, permissions, shapes
from .calls import NOTHING, TRUE, Call, Reply
from .errors import Refused
from .shapes import Json
from .world import GUILD_ID, Kept, World

TIMEOUT_DAYS_MAX = 28
REACTIONS_MAX = 20
PINS_MAX = 250


class GuildOperations:
    """What the routes of this module do. Each looks first at whether the bot may."""

    world: World

    # What the bot may

    def _require_guild(self, call: Call, permission: str | None = None) -> None:
        """The guild the path names, and a permission in it."""
        if call.params["guild_id"] != GUILD_ID or not self.world.bot_in_guild:
            raise Refused(10004)
        if permission is not None:
            self._require_bits(self.world.membership.base(self.world.bot["id"]), permission)

    def _channel(self, call: Call, permission: str | None = None) -> Json:
        """The channel the path names, when the bot sees it and may do that in it."""
        channel = self.world.channels.get(call.params["channel_id"])
        if channel is None:
            raise Refused(10003)
        bits = self.world.permissions_in(self.world.bot["id"], channel)
        if not bits & permissions.VIEW_CHANNEL:
            raise Refused(50001)
        if permission is not None:
            self._require_bits(bits, permission)
        return channel

    def _require_bits(self, bits: int, permission: str) -> None:
        if not bits & (permissions.BITS[permission] | permissions.ADMINISTRATOR):
            raise Refused(50013)

    def _message(self, call: Call, permission: str | None = None) -> Kept:
        """The message the path names. An ephemeral one is out of reach of the channel's routes."""
        channel_id = self._channel(call, permission)["id"]
        kept = self.world.find(call.params["message_id"])
        if kept is None or kept.visible_to is not None or kept.message["channel_id"] != channel_id:
            raise Refused(10008)
        return kept

    def _user(self, call: Call) -> Json:
        user = self.world.users.get(call.params["user_id"])
        if user is None:
            raise Refused(10013)
        return user

    def _member(self, call: Call) -> Json:
        member = self.world.membership.find(call.params["user_id"])
        if member is None:
            raise Refused(10007)
        return member

    def _require_above(self, user_id: str) -> None:
        """The bot moderates only whose highest role stands below its own; nobody moderates the owner."""
        membership, bot_id = self.world.membership, self.world.bot["id"]
        if user_id != bot_id and membership.highest(user_id) >= membership.highest(bot_id):
            raise Refused(50013)

    def _role(self, call: Call) -> Json:
        role = self.world.membership.roles.get(call.params["role_id"])
        if role is None:
            raise Refused(10011)
        return role

    def _role_below(self, call: Call) -> Json:
        """The role the path names, which the bot may give, take, change and delete."""
        role = self._role(call)
        self._require_guild(call, "MANAGE_ROLES")
        if role["position"] >= self.world.membership.highest(self.world.bot["id"]):
            raise Refused(50013)
        return role

    # The guild and its members

    def get_guild(self, call: Call) -> Reply:
        self._require_guild(call)
        counts = {"approximate_member_count": len(self.world.members()), "approximate_presence_count": 1}
        return 200, {**self.world.guild, **(counts if call.query.get("with_counts") in TRUE else {})}

    def leave_guild(self, call: Call) -> Reply:
        self._require_guild(call)
        self.world.take_bot_out()
        return NOTHING

    def get_members(self, call: Call) -> Reply:
        self._require_guild(call)
        after, limit = call.number("after", 0), call.number("limit", 1)
        members = sorted(self.world.members(), key=lambda member: int(member["user"]["id"]))
        return 200, [member for member in members if int(member["user"]["id"]) > after][:limit]

    def search_members(self, call: Call) -> Reply:
        self._require_guild(call)
        wanted = call.query.get("query", "").lower()
        found = [each for each in self.world.members() if starts_with(each, wanted)]
        return 200, found[: call.number("limit", 1)]

    def get_member(self, call: Call) -> Reply:
        self._require_guild(call)
        return 200, self._member(call)

    def edit_member(self, call: Call) -> Reply:
        """Nickname, roles and timeout; each takes a permission of its own."""
        self._require_guild(call)
        user_id, body = self._member(call)["user"]["id"], call.json
        limits.check_member(body)
        changes: Json = {}
        if "nick" in body:
            self._require_guild(call, "MANAGE_NICKNAMES")
            changes["nick"] = body["nick"] or None
        if body.get("roles") is not None:
            self._require_guild(call, "MANAGE_ROLES")
            changes["roles"] = self._roles_to_have(user_id, [str(id_) for id_ in body["roles"]])
        if "communication_disabled_until" in body:
            self._require_guild(call, "MODERATE_MEMBERS")
            changes["communication_disabled_until"] = self._timeout(user_id, body["communication_disabled_until"])
        if changes.keys() - {"roles"}:
            self._require_above(user_id)
        return 200, self.world.membership.change(user_id, **changes)

    def _roles_to_have(self, user_id: str, wanted: list[str]) -> list[str]:
        membership, bot_id = self.world.membership, self.world.bot["id"]
        changed = set(wanted) ^ set((membership.find(user_id) or {"roles": []})["roles"])
        if changed - membership.roles.keys():
            raise Refused(10011)
        if any(membership.roles[id_]["position"] >= membership.highest(bot_id) for id_ in changed):
            raise Refused(50013)
        return list(dict.fromkeys(wanted))

    def _timeout(self, user_id: str, until: str | None) -> str | None:
        """Until when a member is silent, as Discord writes it. An administrator cannot be silenced."""
        if until is None:
            return None
        if self.world.membership.base(user_id) & permissions.ADMINISTRATOR:
            raise Refused(50013)
        at = datetime.fromisoformat(until).timestamp()
        if at - self.world.clock.now() > TIMEOUT_DAYS_MAX * 86_400:
            report = limits.Report()
            report.add(("communication_disabled_until",), "timeout", high=TIMEOUT_DAYS_MAX)
            report.raise_if_any()
        return shapes.timestamp(at)

    def edit_own_member(self, call: Call) -> Reply:
        self._require_guild(call, "CHANGE_NICKNAME")
        limits.check_member(call.json)
        changes = {"nick": call.json["nick"] or None} if "nick" in call.json else {}
        return 200, self.world.membership.change(self.world.bot["id"], **changes)

    def kick_member(self, call: Call) -> Reply:
        self._require_guild(call, "KICK_MEMBERS")
        user_id = self._member(call)["user"]["id"]
        self._require_above(user_id)
        self.world.membership.remove(user_id)
        return NOTHING

    def add_role(self, call: Call) -> Reply:
        self._require_guild(call)
        self.world.membership.give(self._member(call)["user"]["id"], self._role_below(call)["id"])
        return NOTHING

    def remove_role(self, call: Call) -> Reply:
        self._require_guild(call)
        self.world.membership.take(self._member(call)["user"]["id"], self._role_below(call)["id"])
        return NOTHING

    # Bans

    def get_bans(self, call: Call) -> Reply:
        self._require_guild(call, "BAN_MEMBERS")
        return 200, list(self.world.membership.bans.values())

    def get_ban(self, call: Call) -> Reply:
        self._require_guild(call, "BAN_MEMBERS")
        ban = self.world.membership.bans.get(call.params["user_id"])
        if ban is None:
            raise Refused(10026)
        return 200, ban

    def ban(self, call: Call) -> Reply:
        self._require_guild(call, "BAN_MEMBERS")
        user = self._user(call)
        limits.check_ban(call.json)
        self._require_above(user["id"])
        self.world.membership.ban(user, call.reason)
        seconds = call.json.get("delete_message_seconds") or 86_400 * (call.json.get("delete_message_days") or 0)
        if seconds:
            self.world.delete_all_of(user["id"], self.world.clock.now() - seconds)
        return NOTHING

    def unban(self, call: Call) -> Reply:
        self._require_guild(call, "BAN_MEMBERS")
        if call.params["user_id"] not in self.world.membership.bans:
            raise Refused(10026)
        self.world.membership.unban(self._user(call))
        return NOTHING

    # Roles

    def get_roles(self, call: Call) -> Reply:
        self._require_guild(call)
        return 200, list(self.world.membership.roles.values())

    def get_role(self, call: Call) -> Reply:
        self._require_guild(call)
        return 200, self._role(call)

    def create_role(self, call: Call) -> Reply:
        self._require_guild(call, "MANAGE_ROLES")
        limits.check_role(call.json)
        given = call.json.get("permissions")
        bits = permissions.EVERYONE if given is None else int(given)
        name = call.json.get("name") or "new role"
        return 200, self.world.membership.put_role(self.world.snowflake(), name, bits, **role_fields(call.json))

    def edit_role(self, call: Call) -> Reply:
        self._require_guild(call)
        role = self._role_below(call)
        limits.check_role(call.json)
        given = call.json.get("permissions")
        bits = int(role["permissions"] if given is None else given)
        name = call.json.get("name") or role["name"]
        return 200, self.world.membership.put_role(role["id"], name, bits, **role_fields(call.json))

    def delete_role(self, call: Call) -> Reply:
        self._require_guild(call)
        role = self._role_below(call)
        if role["managed"] or role["id"] == GUILD_ID:
            raise Refused(50028)
        self.world.membership.delete_role(role["id"])
        return NOTHING

    # Channels

    def get_guild_channels(self, call: Call) -> Reply:
        self._require_guild(call)
        return 200, self.world.guild_channels()

    def create_channel(self, call: Call) -> Reply:
        self._require_guild(call, "MANAGE_CHANNELS")
        limits.check_channel(call.json, is_new=True)
        type_ = call.json.get("type") or 0
        self._check_parent(call.json)
        fields = channel_fields(call.json)
        return 201, self.world.create_channel(channel_name(call.json["name"], type_), type_, **fields)

    def edit_channel(self, call: Call) -> Reply:
        channel = self._guild_channel(call)
        limits.check_channel(call.json, is_new=False)
        self._check_parent(call.json)
        changes = channel_fields(call.json)
        if call.json.get("name") is not None:
            changes["name"] = channel_name(call.json["name"], channel["type"])
        return 200, self.world.change_channel(channel["id"], **changes)

    def delete_channel(self, call: Call) -> Reply:
        """A private channel is only closed: it stays for the next time."""
        channel = self._channel(call)
        if "guild_id" not in channel:
            return 200, channel
        return 200, self.world.delete_channel(self._guild_channel(call)["id"])

    def _guild_channel(self, call: Call, permission: str = "MANAGE_CHANNELS") -> Json:
        channel = self._channel(call)
        if "guild_id" not in channel:
            raise Refused(50024)
        return self._channel(call, permission)

    def _check_parent(self, body: Json) -> None:
        parent = self.world.channels.get(str(body.get("parent_id")))
        if body.get("parent_id") is not None and (parent is None or parent["type"] != 4):
            report = limits.Report()
            report.add(("parent_id",), "parent")
            report.raise_if_any()

    def put_overwrite(self, call: Call) -> Reply:
        channel = self._guild_channel(call, "MANAGE_ROLES")
        limits.check_overwrite(call.json)
        made = shapes.overwrite(call.params["overwrite_id"], call.json)
        others = [each for each in channel["permission_overwrites"] if each["id"] != made["id"]]
        self.world.change_channel(channel["id"], permission_overwrites=[*others, made])
        return NOTHING

    def delete_overwrite(self, call: Call) -> Reply:
        channel = self._guild_channel(call, "MANAGE_ROLES")
        old: list[Json] = channel["permission_overwrites"]
        left = [each for each in old if each["id"] != call.params["overwrite_id"]]
        if len(left) == len(old):
            raise Refused(10009)
        self.world.change_channel(channel["id"], permission_overwrites=left)
        return NOTHING

    def get_channel(self, call: Call) -> Reply:
        return 200, self._channel(call)

    def start_typing(self, call: Call) -> Reply:
        self.world.tell("typing", (self._channel(call, "SEND_MESSAGES"), self.world.bot))
        return NOTHING

    # Reactions

    def add_reaction(self, call: Call) -> Reply:
        kept, emoji = self._message(call, "READ_MESSAGE_HISTORY"), self._emoji(call)
        if emoji not in kept.reactors:
            self._channel(call, "ADD_REACTIONS")
            if len(kept.reactors) >= REACTIONS_MAX:
                raise Refused(30010)
        self.world.react(kept, self.world.bot["id"], emoji)
        return NOTHING

    def remove_own_reaction(self, call: Call) -> Reply:
        self.world.unreact(self._message(call), self.world.bot["id"], self._emoji(call))
        return NOTHING

    def remove_reaction(self, call: Call) -> Reply:
        kept = self._message(call, "MANAGE_MESSAGES")
        self.world.unreact(kept, self._user(call)["id"], self._emoji(call))
        return NOTHING

    def get_reactions(self, call: Call) -> Reply:
        kept, limit = self._message(call), min(100, call.number("limit", 25))
        after = call.number("after", 0)
        who = sorted(kept.reactors.get(self._emoji(call), ()), key=int)
        return 200, [self.world.users[id_] for id_ in who if int(id_) > after][:limit]

    def remove_reactions(self, call: Call) -> Reply:
        kept = self._message(call, "MANAGE_MESSAGES")
        self.world.clear_reactions(kept, self._emoji(call) if "emoji_name" in call.params else None)
        return NOTHING

    def _emoji(self, call: Call) -> str:
        """An emoji itself, or "name:id"; words are no emoji."""
        emoji = unquote(call.params["emoji_name"])
        _, colon, id_ = emoji.rpartition(":")
        if (colon and not id_.isdecimal()) or (not colon and emoji.isascii() and emoji.isalpha()):
            raise Refused(10014)
        return emoji

    # Pins

    def get_pins(self, call: Call) -> Reply:
        return 200, [kept.message for kept in self._pinned(call)]

    def get_pins_page(self, call: Call) -> Reply:
        pinned = self._pinned(call)
        items = [{"pinned_at": shapes.timestamp(kept.pinned_at), "message": kept.message} for kept in pinned]
        return 200, {"items": items, "has_more": False}

    def _pinned(self, call: Call) -> list[Kept]:
        kept = [each for each in self.world.in_channel(self._channel(call)["id"]) if each.message["pinned"]]
        return sorted(kept, key=lambda each: -each.pinned_at)

    def pin(self, call: Call) -> Reply:
        kept = self._message(call, "MANAGE_MESSAGES")
        if len(self._pinned(call)) >= PINS_MAX:
            raise Refused(30003)
        self.world.pin(kept, True)
        return NOTHING

    def unpin(self, call: Call) -> Reply:
        self.world.pin(self._message(call, "MANAGE_MESSAGES"), False)
        return NOTHING


def starts_with(member: Json, wanted: str) -> bool:
    names = (member["nick"], member["user"]["username"], member["user"]["global_name"])
    return any(name.lower().startswith(wanted) for name in names if name)


def role_fields(body: Json) -> Json:
    made = {key: body[key] for key in ("color", "hoist", "mentionable") if body.get(key) is not None}
    if "color" in made:
        made["colors"] = {"primary_color": made["color"], "secondary_color": None, "tertiary_color": None}
    return made


def channel_fields(body: Json) -> Json:
    """What a bot may say of a channel besides its name and type."""
    kept = ("topic", "nsfw", "rate_limit_per_user", "parent_id", "position", "bitrate", "user_limit")
    made = {key: body[key] for key in kept if key in body and (body[key] is not None or key in ("topic", "parent_id"))}
    if body.get("permission_overwrites") is not None:
        made["permission_overwrites"] = [
            shapes.overwrite(str(each["id"]), each) for each in body["permission_overwrites"]
        ]
    return made


def channel_name(name: str, type_: int) -> str:
    """Text channels are written in lower case with dashes."""
    return "-".join(name.lower().split()) if type_ in (0, 5) else name
