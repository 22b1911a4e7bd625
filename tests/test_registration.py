"""Registration: Discord's list of commands is compared with the bot's and sent when it differs, and only then."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated, Any, Literal

import hikari
import pytest

import bot
from bot import Autocomplete, AutocompleteContext, CommandContext, Localized, Range, read_command
from playground import Discord
from playground.world import GUILD_ID
from tests import kit
from tests.kit import Json
from tests.test_command_line import BOT, Done, run, run_on, token_of
from tests.test_commands import command, plain


def asking(name: str = "ask", description: str = "Ask it.", **hints: Any) -> Any:
    """A command with an option for each hint, a required one unless the hint stands in a tuple."""
    parameters = [f"{option}=0" if isinstance(hint, tuple) else option for option, hint in hints.items()]
    namespace: Json = {}
    exec(f"async def ask(ctx, {', '.join(parameters)}): ...", namespace)
    ask = namespace["ask"]
    ask.__annotations__ = {option: hint[0] if isinstance(hint, tuple) else hint for option, hint in hints.items()}
    return command(ask, name, description)


TEXT, NUMBER = Annotated[str, "T"], (int, 0)


async def register(discord: Discord, *commands: Any, guild: int | None = None) -> bool:
    """Register the commands through a real REST client, and return whether they were sent."""
    app = hikari.RESTApp(url=discord.api)
    await app.start()
    try:
        async with app.acquire(discord.token, hikari.TokenType.BOT) as rest:
            application = hikari.Snowflake(discord.world.bot["id"])
            return await bot.register_commands(rest, application, [read_command(each) for each in commands], guild)
    finally:
        await app.close()


def sent(discord: Discord) -> list[tuple[str, Any]]:
    """Every list of commands that was sent: where to, and the list."""
    writes = [each.data for each in discord.journal.of("rest") if each.data["route"].endswith("/commands")]
    return [(each["path"], each["body"]) for each in writes if each["method"] != "GET"]


@pytest.mark.parametrize("guild", [None, int(GUILD_ID)])
async def test_commands_are_registered_globally_or_in_the_guild(guild: int | None) -> None:
    async with Discord() as discord:
        async with kit.running(discord, asking(text=TEXT, number=NUMBER), asking("b"), dev_guild=guild):
            pass  # stopping waits until they are registered
        [(path, body)] = sent(discord)
        assert path.endswith(f"/guilds/{guild}/commands" if guild else f"{discord.world.bot['id']}/commands")
        assert [(each["name"], each["description"]) for each in body] == [("ask", "Ask it."), ("b", "Ask it.")]
        options = [(each["name"], each["type"], each["description"], each["required"]) for each in body[0]["options"]]
        assert options == [("text", 3, "T", True), ("number", 4, "number", False)]
        assert not discord.world.commands_in(None if guild else GUILD_ID)


@pytest.mark.parametrize("guild", [None, int(GUILD_ID)])
async def test_commands_that_discord_has_are_not_sent_again(guild: int | None) -> None:
    ours = [asking(text=TEXT, number=NUMBER), asking("b"), asking("c", a=int)]
    async with Discord() as discord:
        assert await register(discord, *ours, guild=guild)
        assert not await register(discord, *reversed(ours), guild=guild)
        assert len(sent(discord)) == 1


@pytest.mark.parametrize(
    "after",
    [
        asking(name="other", text=TEXT, number=NUMBER),
        asking(description="Else.", text=TEXT, number=NUMBER),
        asking(words=TEXT, number=NUMBER),
        asking(text=Annotated[str, "U"], number=NUMBER),
        asking(text=Annotated[int, "T"], number=NUMBER),
        asking(text=TEXT, number=int),
        asking(text=TEXT),
        asking(number=int, text=TEXT),
        asking(),
    ],
    ids=["name", "description", "option", "its description", "its type", "required", "fewer", "order", "none"],
)
async def test_any_difference_is_sent(after: Any) -> None:
    async with Discord() as discord:
        await register(discord, asking(text=TEXT, number=NUMBER))
        assert await register(discord, after)
        assert not await register(discord, after)
        assert len(sent(discord)) == 2


async def test_a_command_that_is_gone_is_removed_from_discord() -> None:
    async with Discord() as discord:
        await register(discord, asking("a"), asking("b"))
        await register(discord, asking("b"))
        assert [each["name"] for each in discord.world.commands_in(None)] == ["b"]
        await register(discord)
        assert discord.world.commands_in(None) == []


OPTION = {"type": 3, "name": "text", "description": "T", "required": True}
ASK = {"name": "ask", "description": "Ask it.", "options": [OPTION]}


@pytest.mark.parametrize(
    "theirs",
    [
        {"type": 2, "name": "Look up", "description": ""},
        ASK | {"options": [OPTION | {"choices": [{"name": "a", "value": "a"}]}]},
        ASK | {"options": [OPTION | {"max_length": 5}]},
        ASK | {"options": [OPTION | {"autocomplete": True}]},
        ASK | {"nsfw": True},
        ASK | {"default_member_permissions": "8"},  # "0" and none at all are the same to hikari
    ],
    ids=["a context menu", "choices", "a length", "autocomplete", "nsfw", "permissions"],
)
async def test_what_another_program_left_there_is_replaced(theirs: Json) -> None:
    async with Discord() as discord:
        ours = [asking("b"), asking(text=TEXT)]
        await register(discord, *ours)
        discord.world.put_command(None, {"type": 1, **theirs})
        assert await register(discord, *ours)
        assert [each["name"] for each in discord.world.commands_in(None)] == ["b", "ask"]
        assert not await register(discord, *ours)


async def test_a_list_that_discord_refuses_is_logged_and_the_bot_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async with Discord() as discord:
        discord.world.put_command(None, {"name": "ask", "description": "Ask it."})
        refused = discord.faults.add(method="PUT", path="*/commands", status=403)
        async with kit.running(discord, command(plain), asking("other")):
            await kit.until(lambda: refused.hits)
            used = await discord.user("alice").command("ask")
            assert discord.text(used.message) == "plain"
    [line] = [record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR")]
    assert "403" in line


async def suggest(ctx: AutocompleteContext, typed: str) -> list[str]:
    return []


NUMBER_HINT: Any = Annotated[int, "How many", Range(0, 9), Localized({"de": "zahl"}, {"de": "Wie viele"})]


def rich(
    hint: Any = NUMBER_HINT,
    which: Any = Literal["a", "b"],
    channel: Any = Annotated[hikari.InteractionChannel, hikari.ChannelType.GUILD_TEXT],
    name: str = "poll create",
    **more: Any,
) -> Any:
    """A command with everything a command can have, in a group; an argument changes one thing of it."""

    async def create(ctx: CommandContext, number: Any, which: Any, where: Any) -> None: ...

    create.__annotations__ |= {"number": hint, "which": which, "where": channel}
    settings: Json = {
        "permissions": hikari.Permissions.KICK_MEMBERS, "nsfw": True,
        "local": Localized({"de": "neu"}, {"de": "Eine neue"}),
        "contexts": [hikari.ApplicationContextType.GUILD, hikari.ApplicationContextType.BOT_DM],
        "installs": [hikari.ApplicationIntegrationType.GUILD_INSTALL],
    }  # fmt: skip
    return bot.command(name, "Make one.", **settings | more)(create)


def menu(name: str = "Look up", **more: Any) -> Any:
    @bot.user_command(name, **more)
    async def look_up(ctx: CommandContext, user: hikari.User) -> None: ...

    return look_up


GUILD, DM, FRIENDS = hikari.ApplicationContextType
BY_GUILD, BY_USER = hikari.ApplicationIntegrationType


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (rich(), rich(Annotated[int, "How many", Range(high=9), Localized({"de": "zahl"}, {"de": "Wie viele"})])),
        (rich(), rich(Annotated[int, "How many", Range(0, 8), Localized({"de": "zahl"}, {"de": "Wie viele"})])),
        (rich(), rich(Annotated[int, "How many", Range(0, 9), Localized({"de": "anzahl"}, {"de": "Wie viele"})])),
        (rich(), rich(Annotated[int, "How many", Range(0, 9), Localized({"de": "zahl"}, {"de": "Die Zahl"})])),
        (rich(), rich(Annotated[float, "How many", Range(0, 9), Localized({"de": "zahl"}, {"de": "Wie viele"})])),
        (rich(), rich(which=Literal["b", "a"])),
        (rich(), rich(which=Literal["a", "c"])),
        (rich(), rich(which=Literal["a", "b", "c"])),
        (rich(which=enum.Enum("E", {"A": 1})), rich(which=enum.Enum("E", {"A": 2}))),
        (rich(), rich(which=str)),
        (rich(which=str), rich(which=Annotated[str, Autocomplete(suggest)])),
        (rich(which=str), rich(which=Annotated[str, Range(high=5)])),
        (rich(which=str), rich(which=Annotated[str, Range(2)])),
        (rich(), rich(channel=Annotated[hikari.InteractionChannel, hikari.ChannelType.GUILD_VOICE])),
        (rich(), rich(channel=hikari.InteractionChannel)),
        (rich(), rich(name="poll make")),
        (rich(), rich(name="poll admin create")),
        (rich(), rich(local=Localized({"de": "neue"}, {"de": "Eine neue"}))),
        (rich(), rich(local=Localized())),
        (rich(), rich(permissions=hikari.Permissions.BAN_MEMBERS)),
        (rich(), rich(permissions=hikari.Permissions.NONE)),
        (rich(), rich(nsfw=False)),
        (rich(), rich(contexts=[GUILD])),
        (rich(), rich(contexts=[])),
        (rich(contexts=[]), rich(contexts=[GUILD])),
        (rich(), rich(installs=[BY_GUILD, BY_USER])),
        (menu(), menu("Look Up")),
        (menu(), menu(local=Localized({"de": "Nachsehen"}))),
        (menu(), menu(permissions=hikari.Permissions.BAN_MEMBERS)),
        (menu(), menu(contexts=[GUILD])),
    ],
)
async def test_one_thing_changed_is_one_list_sent(before: Any, after: Any) -> None:
    async with Discord() as discord:
        for which, is_sent in ((before, True), (before, False), (after, True), (after, False)):
            assert await register(discord, which) is is_sent
        assert len(sent(discord)) == 2


async def test_places_that_discord_fills_in_itself_are_no_difference() -> None:
    async with Discord() as discord:
        await register(discord, menu(), rich(contexts=[], installs=[]))
        for each in [*discord.world.commands_in(None)]:
            discord.world.put_command(None, each | {"contexts": [0, 1, 2], "integration_types": [0, 1]})
        assert not await register(discord, menu(), rich(contexts=[], installs=[]))


async def test_the_order_of_places_is_no_difference() -> None:
    async with Discord() as discord:
        await register(discord, menu(contexts=[DM, GUILD], installs=[BY_USER, BY_GUILD]))
        assert not await register(discord, menu(contexts=[GUILD, DM], installs=[BY_GUILD, BY_USER]))


async def test_in_one_guild_places_are_neither_sent_nor_compared() -> None:
    async with Discord() as discord:
        assert await register(discord, rich(), menu(contexts=[GUILD]), guild=int(GUILD_ID))
        assert not await register(discord, rich(), menu(contexts=[GUILD]), guild=int(GUILD_ID))
        [(_, body)] = sent(discord)
        assert not any(each.get("contexts") or each.get("integration_types") for each in body)
        assert next(each["default_member_permissions"] for each in discord.world.commands_in(GUILD_ID)) == "2"


async def test_what_discord_lists_of_an_unknown_type_does_no_harm() -> None:
    async with Discord() as discord:
        discord.world.put_command(None, {"name": "launch", "type": 4, "description": ""})
        assert await register(discord, menu())
        assert not await register(discord, menu())


async def test_two_starts_send_nothing_the_second_time() -> None:
    things = rich(), menu(), command(plain)
    async with Discord() as discord:
        for _ in range(2):
            async with kit.running(discord, *things):
                pass
        assert len(sent(discord)) == 1
        # Elsewhere than before: the list of the other place stays as it is.
        async with kit.running(discord, *things, dev_guild=int(GUILD_ID)):
            pass
        assert len(discord.world.commands_in(GUILD_ID)) == len(discord.world.commands_in(None)) == 3


async def test_a_refusal_is_one_line_that_names_the_command_and_the_bot_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # That a command has 8,000 characters at most is left to Discord to check.
    choices: Any = Literal[tuple(f"{number:02}" + "x" * 98 for number in range(25))]
    too_big = asking("big", a=choices, b=choices)
    async with Discord() as discord:
        discord.world.put_command(None, {"name": "ask", "description": "Ask it."})
        async with kit.running(discord, command(plain), too_big):
            await kit.until(lambda: kit.complaints(caplog))
            used = await discord.user("alice").command("ask")
            assert discord.text(used.message) == "plain"
    assert kit.complaints(caplog) == [
        "the commands are not registered: Discord refuses the commands: /big: Command exceeds maximum size (8000)"
    ]


async def test_a_guild_that_the_bot_is_not_in_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async with Discord() as discord, kit.running(discord, command(plain), dev_guild=400000000000000999):
        await kit.until(lambda: kit.complaints(caplog))
    assert kit.complaints(caplog) == [
        "the commands are not registered: Discord lets the bot set no commands in server 400000000000000999."
        " Invite it there first."
    ]


# The command line


MYBOT = kit.ROOT / "tests" / "bots" / "commands.py"
LISTED = """\
/hello  Say hello.
/poll create  Ask everybody.
/poll admin close  End it.
Look up  (in the menu of a user)
Quote  (in the menu of a message)
"""


async def commands(discord: Discord, folder: Path, *more: str, **env: str) -> Done:
    """What `commands` with these arguments does; the store is of no matter to it."""
    return await run_on(discord, MYBOT, "commands", *more, cwd=folder, **{"STORE": "sqlite:nowhere/bot.db", **env})


async def test_commands_are_listed_sent_and_deleted_from_the_command_line(tmp_path: Path) -> None:
    async with Discord() as discord:
        assert await commands(discord, tmp_path) == (0, "0 commands everywhere.\n", "")
        assert await commands(discord, tmp_path, "sync") == (0, f"{LISTED}5 commands everywhere.\n", "")
        assert await commands(discord, tmp_path, "list") == (0, f"{LISTED}5 commands everywhere.\n", "")
        assert await commands(discord, tmp_path, "sync") == (0, f"{LISTED}5 commands everywhere.\n", "")
        assert len(sent(discord)) == 1
        assert await commands(discord, tmp_path, "clear") == (0, "0 commands everywhere.\n", "")
        assert discord.world.commands_in(None) == []
    assert [*tmp_path.iterdir()] == []


async def test_the_commands_of_one_server_are_their_own(tmp_path: Path) -> None:
    guild = f"in server {GUILD_ID}.\n"
    async with Discord() as discord:
        await register(discord, menu("Everywhere"))
        assert await commands(discord, tmp_path, "sync", "--guild", GUILD_ID) == (0, f"{LISTED}5 commands {guild}", "")
        assert (await commands(discord, tmp_path, DEV_GUILD=GUILD_ID)).out == f"{LISTED}5 commands {guild}"
        everywhere = "Everywhere  (in the menu of a user)\n1 commands everywhere.\n"
        assert (await commands(discord, tmp_path, "--guild", "0", DEV_GUILD=GUILD_ID)).out == everywhere
        assert (await commands(discord, tmp_path, "clear", "--guild", GUILD_ID)).out == f"0 commands {guild}"
        assert (await commands(discord, tmp_path)).out == everywhere


@pytest.mark.parametrize("action", ["list", "sync", "clear"])
async def test_what_keeps_commands_from_being_managed_is_one_sentence(tmp_path: Path, action: str) -> None:
    async with Discord() as discord:
        elsewhere = "400000000000000999"
        assert (await commands(discord, tmp_path, action, "--guild", elsewhere)).sentence == (
            f"Discord lets the bot set no commands in server {elsewhere}. Invite it there first."
        )
        wrong = token_of(int(discord.world.bot["id"]))
        assert (await commands(discord, tmp_path, action, DISCORD_TOKEN=wrong)).sentence == bot.REFUSED[4004]
    gone = await run(
        MYBOT, "commands", action, cwd=tmp_path, DISCORD_TOKEN=token_of(1), DISCORD_API="http://127.0.0.1:1/api/v10",
        PYTHONPATH=str(kit.ROOT),
    )  # fmt: skip
    assert gone.sentence_with(1).startswith("Discord cannot be reached at http://127.0.0.1:1/api/v10: ")


async def test_without_a_token_or_with_a_wrong_server_commands_end_with_2(tmp_path: Path) -> None:
    assert (await run(BOT, "commands", cwd=tmp_path)).sentence.startswith("DISCORD_TOKEN is missing.")
    done = await run(BOT, "commands", "--guild", "mine", cwd=tmp_path)
    assert (done.code, done.err.splitlines()[-1]) == (
        2, "bot.py commands: error: argument --guild: invalid int value: 'mine'"
    )  # fmt: skip


async def test_a_mistake_in_a_command_is_said_before_anything_is_sent(tmp_path: Path) -> None:
    async with Discord() as discord:
        done = await commands(discord, tmp_path, "sync", MISTAKE="1")
        assert done.sentence == "/a b c d (hello): a name has one to three words of 1 to 32 characters."
        assert discord.journal.of("rest") == []
