"""Section 3 over real sockets: each component is sent and shown, used and understood; files stay the right ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import aiohttp
import hikari
import pytest

import bot
from bot import (
    Button,
    ChannelSelect,
    ComponentContext,
    Container,
    File,
    InMessage,
    InStore,
    Layout,
    LinkButton,
    MediaGallery,
    MentionableSelect,
    Option,
    Plain,
    PremiumButton,
    RoleSelect,
    Row,
    Section,
    Select,
    Separator,
    TextDisplay,
    Thumbnail,
    UserSelect,
    View,
    handler,
)
from playground import Discord
from playground.shapes import IS_COMPONENTS_V2
from tests import kit, openapi
from tests.kit import Json, at_rest, running, until, variant

pytestmark = pytest.mark.both_modes

PICTURE = "https://example.org/a.png"
PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000030000000208060000009d74661a")
IDS: list[int] = []  # of bob, carol, Staff and #random, in the Discord that a test runs


def png(name: str = "a.png") -> hikari.Bytes:
    return hikari.Bytes(PNG, name)


def plain_embed() -> hikari.Embed:
    return hikari.Embed(title="T", description="D", color=0xFF0000).add_field("N", "V").set_image(png("e.png"))


Make = Callable[[Any], Layout]
BOB, CAROL, STAFF, RANDOM = range(4)
LAYOUTS: dict[str, Make] = {
    "text": lambda v: TextDisplay("# a"),
    "several": lambda v: [TextDisplay("a"), Separator(), Separator(divider=False, large=True), TextDisplay("b")],
    "container": lambda v: Container(TextDisplay("a"), Row(Button(v.press, label="A")), accent=0xFF0000, spoiler=True),
    "buttons": lambda v: [
        Row(
            Button(v.press, label="A", emoji="👍", style="danger"),
            Button(v.press_one, 1, label="B", style="secondary"),
            Button(v.press_one, 2, label="C", style="success", disabled=True),
            LinkButton(PICTURE, label="L", emoji="<:wave:123456789012345678>"),
            PremiumButton(123456789012345678),
        )
    ],
    "section": lambda v: [
        Section(TextDisplay("a"), TextDisplay("b"), TextDisplay("c"), accessory=Button(v.press, label="A")),
        Section(TextDisplay("a"), accessory=LinkButton(PICTURE, label="L")),
        Section(TextDisplay("a"), accessory=Thumbnail(PICTURE, description="d", spoiler=True)),
        Section(TextDisplay("a"), accessory=Thumbnail(png())),
    ],
    "gallery": lambda v: MediaGallery(PICTURE, Thumbnail(png(), description="d", spoiler=True), png("b.png")),
    "files": lambda v: [
        File(hikari.Bytes(b"log", "log.txt"), spoiler=True),
        Container(File(hikari.Bytes(b"x", "my notes.txt"))),
    ],
    "select": lambda v: Row(
        Select(
            v.choose,
            options=[Option("Red", "r", "warm", "🔴", default=True), "blue", "green"],
            placeholder="Select",
            min_values=1,
            max_values=2,
        )
    ),
    "users": lambda v: Row(
        UserSelect(v.choose, placeholder="Users", max_values=3, defaults=[IDS[BOB], hikari.Snowflake(IDS[CAROL])])
    ),
    "roles": lambda v: Row(RoleSelect(v.choose, placeholder="Roles", min_values=0, defaults=[IDS[STAFF]])),
    "mentionables": lambda v: Row(
        MentionableSelect(v.choose, placeholder="Mentionables", max_values=25, defaults=[IDS[BOB]])
    ),
    "channels": lambda v: Row(
        ChannelSelect(
            v.choose,
            placeholder="Channels",
            max_values=2,
            types=[hikari.ChannelType.GUILD_TEXT, hikari.ChannelType.GUILD_NEWS, hikari.ChannelType.GUILD_TEXT],
            defaults=[IDS[RANDOM]],
        )
    ),
    "select with an argument": lambda v: Row(
        Select(v.choose_one, "a:b", options=["x", "y"], placeholder="Argument", disabled=False)
    ),
    "plain": lambda v: Plain("hello"),
    "plain with everything": lambda v: Plain(
        "hello",
        Row(Button(v.press, label="A")),
        Row(Select(v.choose, options=["x"], placeholder="P")),
        embeds=[plain_embed(), hikari.Embed(title="U")],
    ),
    "plain embed": lambda v: Plain(embeds=[plain_embed()]),
    "plain rows": lambda v: Plain("", *[Row(Button(v.press_one, number, label="B")) for number in range(5)]),
}


class Showing(View):
    """Shows one of the layouts and notes how it is used."""

    which: str

    def render(self) -> Layout:
        return LAYOUTS[self.which](self)

    @handler
    async def press(self, ctx: ComponentContext) -> None:
        self.note(ctx)

    @handler
    async def press_one(self, ctx: ComponentContext, number: int) -> None:
        self.note(ctx, number)

    @handler
    async def choose(self, ctx: ComponentContext) -> None:
        self.note(ctx)

    @handler
    async def choose_one(self, ctx: ComponentContext, text: str) -> None:
        self.note(ctx, text)

    def note(self, ctx: ComponentContext, *args: Any) -> None:
        USES.append(Use(self.which, ctx.values, args, ctx))


class Use(NamedTuple):
    """How a component was used: what the handler found."""

    which: str
    values: list[Any]
    args: tuple[Any, ...]
    ctx: ComponentContext


USES: list[Use] = []
InTheStore = variant(Showing, name="showing", state=InStore())
InTheMessage = variant(Showing, name="carrying", state=InMessage())


@pytest.fixture
async def world() -> AsyncIterator[tuple[Discord, bot.App]]:
    """A Discord with people, roles and channels to choose from, and a bot."""
    async with Discord(check=openapi.CHECK) as discord:
        people = [discord.user(name).id for name in ("bob", "carol")]
        IDS[:] = map(int, (*people, discord.role("Staff")["id"], discord.world.channel_of("random")["id"]))
        USES.clear()
        async with running(discord, InTheStore, InTheMessage) as app:
            yield discord, app


def missing(sent: Any, shown: Any, at: str = "") -> list[str]:
    """What of the JSON that was sent is not shown like that; Discord adds ids and what it knows of media."""
    if isinstance(sent, dict):
        return [each for key, value in sent.items() for each in missing(value, shown.get(key), f"{at}.{key}")]
    if isinstance(sent, list) and isinstance(shown, list) and len(sent) == len(shown):
        return [each for k, pair in enumerate(zip(sent, shown, strict=True)) for each in missing(*pair, f"{at}.{k}")]
    if isinstance(sent, str) and sent.startswith("attachment://"):
        name = sent.rpartition("/")[2]
        return [] if "/attachments/" in str(shown) and str(shown).endswith(name) else [f"{at}: {shown}"]
    return [] if sent == shown else [f"{at}: {sent!r} is shown as {shown!r}"]


@pytest.mark.parametrize("which", LAYOUTS)
async def test_what_is_sent_is_what_is_shown(which: str, world: tuple[Discord, bot.App]) -> None:
    discord, app = world
    for cls in (InTheStore, InTheMessage):
        view = cls(which)
        if cls is InTheMessage and not any("custom_id" in each for each in payloads_of(view)):
            continue  # nowhere to keep a state
        message = await app.send(discord.world.channel_of("general")["id"], view)
        kept = discord.world.find(str(message.id))
        assert kept
        shown, sent = kept.message, await app.build(view)
        payloads = [each.build()[0] for each in sent["components"]]
        if cls is InTheStore:  # each one that is built has a key of its own
            key = bot.decode_id(next(iter(ids_in(shown)), "")) or (bot.RecordId("showing", "A" * 11),)
            payloads = [each.build()[0] for each in bot.lay_out(view, key[0])["components"]]
        assert not missing(payloads, shown["components"])
        assert bool(shown["flags"] & IS_COMPONENTS_V2) is not which.startswith("plain")
        assert shown["content"] == (sent.get("content") or "")
        assert [each["title"] for each in shown["embeds"]] == [each.title for each in sent.get("embeds", [])]
        assert not [each for each in message.embeds if each.image and not each.image.url.startswith("http")]


def payloads_of(view: Any) -> list[Json]:
    """Every component of a view, whatever it keeps its state in."""
    body = bot.lay_out(InTheStore(view.which), bot.RecordId("showing", "A" * 11))
    return [each for part in body["components"] for each in bot.walk(part.build()[0])]


def ids_in(message: Json) -> list[str]:
    """The custom ids in a message."""
    return [each["custom_id"] for part in message["components"] for each in bot.walk(part) if "custom_id" in each]


USED: dict[str, tuple[list[Any], list[type], list[str]]] = {
    "select": (["r", "green"], [str, str], ["r", "green"]),
    "users": (["bob", "carol", "eve"], [hikari.InteractionMember, hikari.InteractionMember, hikari.User], []),
    "roles": (["Staff"], [hikari.Role], []),
    "mentionables": (["bob", "Staff"], [hikari.InteractionMember, hikari.Role], []),
    "channels": (["random", "general"], [hikari.InteractionChannel, hikari.InteractionChannel], []),
    "select with an argument": (["y"], [str], ["y"]),
}


@pytest.mark.parametrize("which", USED)
async def test_what_is_chosen_reaches_the_handler_as_what_it_is(which: str, world: tuple[Discord, bot.App]) -> None:
    discord, app = world
    discord.user("eve")
    discord.leave("eve")  # no member any more
    names, kinds, texts = USED[which]
    for cls in (InTheStore, InTheMessage):
        view = cls(which)
        message = await app.send(discord.world.channel_of("general")["id"], view)
        placeholder = next(each["placeholder"] for each in payloads_of(view) if "placeholder" in each)
        await discord.user("alice").select(placeholder, names, message=str(message.id))
        use = USES[-1]
        assert [isinstance(value, kind) for value, kind in zip(use.values, kinds, strict=True)] == [True] * len(names)
        found = [getattr(value, "username", None) or getattr(value, "name", value) for value in use.values]
        assert found == (texts or names)
        assert use.args == (("a:b",) if "argument" in which else ())
        assert use.ctx.user.username == "alice" and use.ctx.member and use.ctx.member.user == use.ctx.user
        assert use.ctx.message and str(use.ctx.message.id) == str(message.id)
        assert use.ctx.permissions & hikari.Permissions.ADMINISTRATOR
        assert (use.ctx.locale, use.ctx.guild_id) == ("en-US", int(discord.world.channel_of("general")["guild_id"]))
    assert not await app.failed()


async def test_nobody_chosen_is_an_empty_list(world: tuple[Discord, bot.App]) -> None:
    discord, app = world
    await app.send(discord.world.channel_of("general")["id"], InTheStore("roles"))
    await discord.user("alice").select("Roles", [])
    assert USES[-1].values == []


@pytest.mark.parametrize(
    ("which", "label", "args"), [("buttons", "A", ()), ("buttons", "B", (1,)), ("section", "A", ())]
)
async def test_a_button_calls_its_handler_with_its_arguments(
    which: str, label: str, args: tuple[int, ...], world: tuple[Discord, bot.App]
) -> None:
    discord, app = world
    for cls in (InTheStore, InTheMessage):
        await app.send(discord.world.channel_of("general")["id"], cls(which))
        await discord.user("bob").click(label)
        assert (USES[-1].args, USES[-1].values, USES[-1].ctx.user.username) == (args, [], "bob")
    assert len(USES) == 2
    assert not await app.failed()


# Files


class Album(View):
    """A message with a file in each place, whose bytes tell its state; `close_it` and others change how it ends."""

    count: int = 0
    empty: bool = False

    def render(self) -> Layout:
        row = Row(
            Button(self.add, label="+1"),
            Button(self.take_away_late, label="late"),
            Button(self.take_away, label="none"),
            Button(self.end, label="off"),
        )
        if self.empty:
            return row
        data = f"{self.count}".encode()
        return [
            File(hikari.Bytes(data, "count.txt")),
            Section(TextDisplay("a"), accessory=Thumbnail(hikari.Bytes(data, "thumb.png"))),
            MediaGallery(hikari.Bytes(data, "first.png"), hikari.Bytes(data, "second.png")),
            row,
        ]

    @handler
    async def add(self, ctx: ComponentContext) -> None:
        self.count += 1
        await ctx.rerender()

    @handler
    async def take_away_late(self, ctx: ComponentContext) -> None:
        await ctx.defer()
        await self.take_away(ctx)

    @handler
    async def take_away(self, ctx: ComponentContext) -> None:
        self.empty = not self.empty
        await ctx.rerender()

    @handler
    async def end(self, ctx: ComponentContext) -> None:
        await ctx.switch_off()


class OldAlbum(Album):
    """The same in the older kind of message."""

    def render(self) -> Layout:
        row = Row(
            Button(self.add, label="+1"),
            Button(self.take_away_late, label="late"),
            Button(self.take_away, label="none"),
            Button(self.end, label="off"),
        )
        if self.empty:
            return Plain("empty", row)
        embed = hikari.Embed(title="T").set_image(hikari.Bytes(f"{self.count}".encode(), "first.png"))
        return Plain("full", row, embeds=[embed])


NAMES = {Album: ["count.txt", "first.png", "second.png", "thumb.png"], OldAlbum: ["first.png"]}


async def attached(message: Json) -> dict[str, str]:
    """The files on a message, by name, as they can be loaded."""
    found: dict[str, str] = {}
    async with aiohttp.ClientSession() as session:
        for each in message["attachments"]:
            assert each["filename"] not in found, "it is there twice"
            async with session.get(each["url"]) as response:
                found[each["filename"]] = await response.text()
    return found


@pytest.mark.parametrize("state", [InStore(), InMessage()], ids=["InStore", "InMessage"])
@pytest.mark.parametrize("ephemeral", [False, True], ids=["public", "ephemeral"])
@pytest.mark.parametrize("base", NAMES)
async def test_a_message_has_the_files_of_its_newest_state_and_each_once(
    base: type[Album], ephemeral: bool, state: Any
) -> None:
    cls = variant(base, name="album", state=state)

    @bot.command("post", "Post it.")
    async def post(ctx: bot.CommandContext) -> None:
        await ctx.respond(cls(), ephemeral=ephemeral)

    async with Discord(check=openapi.CHECK) as discord, running(discord, cls, post) as app:
        alice = discord.user("alice")
        used = await alice.command("post")
        assert used.message
        id = used.message["id"]

        async def files() -> dict[str, str]:
            await at_rest(app.store)
            kept = discord.world.find(id)
            assert kept
            return dict(sorted((await attached(kept.message)).items()))

        async def files_are(wanted: dict[str, str]) -> bool:
            return await files() == wanted

        def full(count: int) -> dict[str, str]:
            return dict.fromkeys(NAMES[base], f"{count}")

        assert await files() == full(0)
        await alice.click("+1")
        assert await files() == full(1)
        clicks = [alice.click("+1") for _ in range(5)]
        for click in clicks:
            await click
        assert await files() == full(6)
        for wanted in ({}, full(6)):  # through the click's token
            await alice.click("late")
            await until(lambda wanted=wanted: files_are(wanted))
        if isinstance(state, InStore) and not ephemeral:
            for wanted in ({}, full(6)):  # through the channel
                await take_away_all(app)
                await until(lambda wanted=wanted: files_are(wanted))
        await alice.click("none")
        assert await files() == {}
        await alice.click("none")
        assert await files() == full(6)
        await alice.click("off")
        assert await files() == full(6)
        with pytest.raises(LookupError):
            alice.click("+1")
        assert not await app.failed()


async def take_away_all(app: bot.App) -> None:
    """Take the files of every album away from outside of a click, or give them back."""

    def turn(album: Any) -> None:
        album.empty = not album.empty

    async for id, _ in app.find(app.views.classes["album"]):  # type: ignore
        await app.update(id, turn)


async def test_a_message_of_the_older_kind_may_end_as_components() -> None:
    class Ending(View):
        def render(self) -> Layout:
            return Plain("hello", Row(Button(self.end, label="end")), embeds=[plain_embed()])

        @handler
        async def end(self, ctx: ComponentContext) -> None:
            await ctx.edit([TextDisplay("It is over."), File(hikari.Bytes(b"x", "x.txt"))])

    cls = variant(Ending, name="ending")
    async with Discord(check=openapi.CHECK) as discord, running(discord, cls, kit.posting(cls)) as app:
        used = await discord.user("alice").command("post")
        assert used.message and [each["filename"] for each in used.message["attachments"]] == ["e.png"]
        used = await discord.user("alice").click("end")
        assert used.message and (used.message["content"], used.message["embeds"]) == ("", [])
        assert "It is over." in discord.text(used.message)
        assert await attached(used.message) == {"x.txt": "x"}
        assert not await app.failed()


async def test_a_file_reaches_a_command_a_followup_and_an_edit() -> None:
    layout = [TextDisplay("a"), File(hikari.Bytes(b"x", "x.txt"))]

    @bot.command("files", "Send files.")
    async def files(ctx: bot.CommandContext) -> None:
        await ctx.defer()
        await ctx.respond(layout)
        await ctx.respond(layout)
        await ctx.send(ctx.channel_id or 0, layout)

    async with Discord(check=openapi.CHECK) as discord, running(discord, files) as app:
        await discord.user("alice").command("files")
        await until(lambda: len(discord.messages()) == 3)
        await at_rest(app.store)
        for message in discord.messages():
            assert await attached(message) == {"x.txt": "x"}
        assert not await app.failed()


# Switched off


@pytest.mark.parametrize("which", LAYOUTS)
def test_switched_off_every_control_is_disabled_and_nothing_else_changes(which: str) -> None:
    IDS[:] = range(4)
    view, id = InTheStore(which), bot.RecordId("showing", "A" * 11)
    before, after = bot.lay_out(view, id), bot.disabled(bot.lay_out(view, id))
    files = [len(each.build()[1]) for each in before["components"]]
    assert [len(each.build()[1]) for each in after["components"]] == files
    assert {name: value for name, value in after.items() if name != "components"}.keys() == before.keys() - {
        "components"
    }
    for old, new in zip(before["components"], after["components"], strict=True):
        for one, other in zip(bot.walk(old.build()[0]), bot.walk(new.build()[0]), strict=True):
            uses = "custom_id" in one or "sku_id" in one
            assert other.get("disabled") == (True if uses else one.get("disabled"))
            assert one["type"] == other["type"] and one.get("custom_id") == other.get("custom_id")
