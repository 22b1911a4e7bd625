"""Section 6: slash commands from annotated functions, and their registration with Discord."""

from __future__ import annotations

import asyncio
import functools
import re
from pathlib import Path
from typing import Annotated, Any

import hikari
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bot
from bot import AutoDefer, Command, CommandContext, OperatorError, listed, option_values, read_command
from playground import Discord, limits
from playground.errors import Refused
from playground.usable import NotUsable
from tests import kit

pytestmark = pytest.mark.both_modes

Json = dict[str, Any]


def command(function: Any, name: str = "ask", description: str = "Ask it.") -> Any:
    """Mark the function. `why_refused` and `read_command` take it from here."""
    return bot.command(name, description)(function)


def why_refused(*functions: Any) -> str:
    """The sentence with which a bot refuses to take these."""
    app = bot.App(bot.Config())
    with pytest.raises(OperatorError) as refused:
        app.add(*functions)
    return str(refused.value)


def with_option(hint: Any, name: str = "which", **namespace: Any) -> Any:
    """A coroutine `pick` with one option of that annotation."""
    exec(f"async def pick(ctx, {name}): ...", namespace)
    pick = namespace["pick"]
    pick.__annotations__[name] = hint
    return pick


async def plain(ctx: CommandContext) -> None:
    await ctx.respond("plain")


# What a function says about its command


def test_options_come_from_annotations_and_defaults() -> None:
    async def ask(
        ctx: CommandContext,
        question: Annotated[str, 5, "What to vote on", "not this"],
        how_many: int,
        note: Annotated[str, "Shown below"] = "",
    ) -> None: ...

    read = read_command(bot.command("ask", "Ask it.", auto_defer=AutoDefer.OFF)(ask))
    assert read[:3] == ("ask", "Ask it.", ask)
    assert read.auto_defer is AutoDefer.OFF
    assert [(each.name, int(each.type), each.description, each.is_required) for each in read.options] == [
        ("question", 3, "What to vote on", True),
        ("how_many", 4, "how many", True),
        ("note", 3, "Shown below", False),
    ]


def test_required_options_come_first_and_keep_their_order() -> None:
    async def ask(ctx: CommandContext, a: int = 1, *, b: int, c: str = "", d: str) -> None: ...

    assert [option.name for option in read_command(command(ask)).options] == ["b", "d", "a", "c"]


def test_a_command_without_options_defers_with_a_message() -> None:
    assert read_command(command(plain)) == Command("ask", "Ask it.", plain, (), AutoDefer.MESSAGE)


async def menu_of_a_user(ctx: CommandContext, user: hikari.User) -> None: ...


async def no_context() -> None: ...


def no_coroutine(ctx: CommandContext) -> None: ...


async def starred(ctx: CommandContext, *names: str) -> None: ...


async def double_starred(ctx: CommandContext, **names: str) -> None: ...


async def by_place(ctx: CommandContext, name: str, /) -> None: ...


@pytest.mark.parametrize(
    ("function", "start"),
    [
        (no_coroutine, "/ask (no_coroutine) is no coroutine. Write: async def"),
        (no_context, "/ask (no_context)"),
        (starred, "/ask (starred): the parameter names "),
        (double_starred, "/ask (double_starred): the parameter names "),
        (by_place, "/ask (by_place): the parameter name "),
    ],
)
def test_a_function_that_no_command_could_call_is_refused(function: Any, start: str) -> None:
    assert why_refused(command(function)).startswith(start)


@pytest.mark.parametrize("mark", [functools.partial(bot.command, description="Ask it."), bot.user_command])
def test_a_command_has_no_message_that_an_update_could_be_promised_for(mark: Any) -> None:
    assert why_refused(mark("ask", auto_defer=AutoDefer.UPDATE)(menu_of_a_user)) == (
        "/ask (menu_of_a_user): AutoDefer.UPDATE needs a message. Write MESSAGE or OFF."
    )


@pytest.mark.parametrize("name", ["", "Ask", "a.b", "a/b", "a\n", "x" * 33])
def test_a_name_that_discord_refuses_is_refused(name: str) -> None:
    assert why_refused(command(plain, name)) == (
        f"/{name} (plain): {name!r} is no command name. Use 1 to 32 lower-case letters, digits, - and _."
    )


@pytest.mark.parametrize("name", ["a", "a-b_9", "x" * 32, "größe", "質問"])
def test_a_name_that_discord_takes_is_taken(name: str) -> None:
    bot.App(bot.Config()).add(command(plain, name))
    limits.check_command({"name": name, "description": "d"})


def test_a_group_has_two_levels_at_most_and_single_spaces() -> None:
    assert (
        why_refused(command(plain, "a b c d"))
        == "/a b c d (plain): a name has one to three words of 1 to 32 characters."
    )
    assert why_refused(command(plain, "a  b")).startswith("/a  b (plain): '' is no command name.")


@pytest.mark.parametrize("length", [0, 101])
def test_a_description_of_a_wrong_length_is_refused(length: int) -> None:
    assert why_refused(command(plain, "ask", "x" * length)) == (
        f"/ask (plain): its description has {length} characters; Discord allows 1 to 100."
    )


OPTIONS = "str, int, float, bool, User, InteractionMember, Role, InteractionChannel, Attachment"


@pytest.mark.parametrize("hint", [object, None, list[str], str | int, hikari.Member, "bytes"])
def test_an_option_of_a_type_that_is_none_names_function_and_parameter(hint: Any) -> None:
    assert why_refused(command(with_option(hint))) == (
        f"/ask (pick): the parameter which must be one of {OPTIONS} to be an option."
    )


def test_an_option_without_annotation_is_refused_likewise() -> None:
    async def pick(ctx, which) -> None: ...

    assert why_refused(command(pick)) == f"/ask (pick): the parameter which must be one of {OPTIONS} to be an option."


@pytest.mark.parametrize("name", ["Which", "x" * 33])
def test_an_options_name_that_discord_refuses_is_refused(name: str) -> None:
    assert why_refused(command(with_option(str, name))) == (
        f"/ask (pick): {name} is no option name. Use up to 32 lower-case letters, digits, _."
    )


@pytest.mark.parametrize("length", [0, 101])
def test_an_options_description_of_a_wrong_length_is_refused(length: int) -> None:
    assert why_refused(command(with_option(Annotated[str, "x" * length]))) == (
        "/ask (pick): the description of which must have 1 to 100 characters."
    )


def test_a_long_parameter_name_is_a_description_too() -> None:
    assert read_command(command(with_option(str, "x" * 32))).options[0].description == "x" * 32


def test_more_than_25_options_are_refused() -> None:
    def taking(count: int) -> Any:
        namespace: Json = {}
        exec(f"async def pick(ctx, {', '.join(f'o{number}: int' for number in range(count))}): ...", namespace)
        return command(namespace["pick"])

    assert len(read_command(taking(25)).options) == 25
    assert why_refused(taking(26)) == "/ask (pick): 26 options; Discord allows 25."


def test_a_type_that_is_not_imported_is_named() -> None:
    assert why_refused(command(with_option("Nowhere"))) == (
        "/ask (pick): name 'Nowhere' is not defined. Use types such as int or str, imported where bot.py sees them."
    )


@pytest.mark.parametrize("hint", ["hikari.Nowhere", "1+"])
def test_an_annotation_that_cannot_be_read_is_one_sentence(hint: str) -> None:
    assert why_refused(command(with_option(hint, hikari=hikari))).startswith("/ask (pick): ")


def test_two_commands_cannot_share_a_name() -> None:
    async def other(ctx: CommandContext) -> None: ...

    assert why_refused(command(plain), command(other)) == "/ask is there twice. Rename one of the two commands."


NAMES = st.text("abz09-_äß質A. '", max_size=33) | st.text(max_size=3)


@settings(deadline=None)
@given(NAMES, st.text(max_size=101))
def test_what_the_bot_takes_the_playground_takes_too(name: str, description: str) -> None:
    try:
        [whole] = listed([read_command(command(plain, name, description))])
    except OperatorError:
        return
    try:
        limits.check_command({"name": whole.name, "description": whole.description})
    except Refused as refused:
        raise AssertionError((name, description)) from refused


# What a person gave


def values(**given: Any) -> Json:
    """What reaches a command with a number, a text and an optional number."""

    async def ask(ctx: CommandContext, number: int, text: str, more: int = 0) -> None: ...

    return option_values(read_command(command(ask)), [{"name": name, "value": value} for name, value in given.items()])


@pytest.mark.parametrize(
    "given",
    [
        {"number": 5, "text": "a"},
        {"text": "", "number": -(2**53)},
        {"number": 0, "text": "5", "more": 2**53},
        {},
    ],
)
def test_given_options_are_passed_on_by_name(given: Json) -> None:
    assert values(**given) == given


def test_an_option_that_the_function_no_longer_has_is_left_out() -> None:
    assert values(number=1, gone=2) == {"number": 1}


@pytest.mark.parametrize("given", [{"number": "5"}, {"number": 5.5}, {"number": None}, {"text": 5}, {"more": True}])
def test_a_value_of_another_type_is_refused(given: Json) -> None:
    [name] = given
    with pytest.raises(ValueError, match=f"^option {name}: Expected `"):
        values(**given)


async def test_a_command_is_called_with_what_a_person_typed() -> None:
    async def roll(ctx: CommandContext, sides: int, note: str = "no note", times: int = 1) -> None:
        await ctx.respond(f"{sides!r} {note!r} {times!r}")

    async with Discord() as discord, kit.running(discord, command(roll, "roll")):
        alice = discord.user("alice")
        short = await alice.command("roll", sides=6)
        long = await alice.command("roll", times=2, note='"x"', sides=-1)
        assert [discord.text(used.message) for used in (short, long)] == ["6 'no note' 1", "-1 '\"x\"' 2"]


def kept(folder: Path) -> bot.Store:
    """A store that outlives its process."""
    return bot.SQLiteStore(str(folder / "bot.db"), bot.bot_id_of(Discord().token))


# Groups


def naming(name: str, description: str = "Do it.", **more: Any) -> Any:
    """A command that answers with its name."""

    async def say(ctx: CommandContext) -> None:
        await ctx.respond(f"this is {name}")

    return bot.command(name, description, **more)(say)


NAMED = "poll create", "poll list", "poll admin close", "poll admin open", "other"


async def test_each_command_of_a_group_runs_its_own_function() -> None:
    async with Discord() as discord, kit.running(discord, *map(naming, NAMED)):
        bob = discord.user("bob")
        assert [discord.text((await bob.command(name)).message) for name in NAMED] == [f"this is {n}" for n in NAMED]
        for incomplete in ("poll", "poll admin", "poll admin create"):
            with pytest.raises(LookupError):
                await bob.command(incomplete)


def test_a_group_is_listed_as_one_command_with_the_others_inside() -> None:
    local = bot.Localized({"de": "neu"}, {"de": "Neu"})
    ours = naming("poll create", "Make one.", local=local), naming("poll admin end")
    [poll] = listed(map(read_command, ours))
    assert (poll.name, poll.description) == ("poll", "poll")
    create, admin = poll.options
    assert (create.name, create.description, create.type) == ("create", "Make one.", hikari.OptionType.SUB_COMMAND)
    assert (create.name_localizations, create.description_localizations) == ({"de": "neu"}, {"de": "Neu"})
    assert (admin.name, admin.type) == ("admin", hikari.OptionType.SUB_COMMAND_GROUP)
    assert [(each.name, each.description) for each in admin.options or ()] == [("end", "Do it.")]


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["poll", "poll create"], "/poll create: /poll is a command and a group. Rename one of the two."),
        (["poll create", "poll"], "/poll: /poll is a command and a group. Rename one of the two."),
        (["a b", "a b c"], "/a b c is there twice. Rename one of the two commands."),
        (["a b c", "a b"], "/a b is there twice. Rename one of the two commands."),
        (["a b", "a b"], "/a b is there twice. Rename one of the two commands."),
        ([f"a c{number}" for number in range(26)], "/a c25: Discord allows 25 commands in a group."),
        ([f"a b c{number}" for number in range(26)], "/a b c25: Discord allows 25 commands in a group."),
        ([f"a g{number} c" for number in range(26)], "/a g25 c: Discord allows 25 commands in a group."),
        (["a B"], "/a B (say): 'B' is no command name. Use 1 to 32 lower-case letters, digits, - and _."),
    ],
)
def test_a_group_that_discord_would_refuse_is_refused(names: list[str], problem: str) -> None:
    assert why_refused(*map(naming, names)) == problem


@pytest.mark.parametrize("more", [{"permissions": hikari.Permissions.BAN_MEMBERS}, {"nsfw": True}])
def test_all_commands_of_a_group_have_the_same_rules(more: Json) -> None:
    assert why_refused(naming("a b"), naming("a c", **more)) == (
        "/a c: all commands of /a need the same permissions and places."
    )


async def test_25_commands_in_a_group_of_25_options_are_taken() -> None:
    names = [f"a b c{number}" for number in range(25)]
    async with Discord() as discord, kit.running(discord, *map(naming, names)):
        used = await discord.user("bob").command(names[-1])
        assert discord.text(used.message) == f"this is {names[-1]}"


# Menus


@bot.user_command("Look Up")
async def look_up(ctx: CommandContext, user: hikari.User) -> None:
    await ctx.respond(f"{type(user).__name__} {user.username} {ctx.target == str(user.id)}")


@bot.message_command("Quote it")
async def quote(ctx: CommandContext, message: hikari.Message) -> None:
    await ctx.respond(f"{message.author.username}: {message.content} {ctx.target == str(message.id)}")


@pytest.mark.parametrize(("channel", "kind"), [(None, "InteractionMember"), ("dm", "UserImpl")])
async def test_a_command_in_the_menu_of_a_person_gets_the_person(channel: str | None, kind: str) -> None:
    async with Discord() as discord, kit.running(discord, look_up):
        bob = discord.user("bob")
        used = await discord.user("alice").command("Look Up", target=bob, channel=channel)
        assert discord.text(used.message) == f"{kind} bob True"


@pytest.mark.parametrize("channel", [None, "dm"])
async def test_a_command_in_the_menu_of_a_message_gets_the_message(channel: str | None) -> None:
    async with Discord() as discord, kit.running(discord, quote):
        alice = discord.user("alice")
        message = await alice.say("To be quoted", channel)
        used = await alice.command("Quote it", target=message, channel=channel)
        assert discord.text(used.message) == "alice: To be quoted True"


async def test_a_slash_command_and_menus_may_share_a_name_and_each_has_its_own_cooldown() -> None:
    async def on_user(ctx: CommandContext, user: hikari.User) -> None:
        await ctx.respond("user")

    async def on_message(ctx: CommandContext, message: hikari.Message) -> None:
        await ctx.respond("message")

    wait: Json = {"cooldown": 3600}
    things = (
        naming("it", **wait),
        bot.user_command("it", **wait)(on_user),
        bot.message_command("it", **wait)(on_message),
    )
    async with Discord() as discord, kit.running(discord, *things):
        alice = discord.user("alice")
        message = await alice.say("x")
        used = [await alice.command("it", target=target) for target in (None, alice, message)]
        assert [discord.text(each.message) for each in used] == ["this is it", "user", "message"]


async def menu_of_nothing(ctx: CommandContext) -> None: ...


async def menu_of_two(ctx: CommandContext, user: hikari.User, more: str) -> None: ...


async def menu_of_a_text(ctx: CommandContext, user: str) -> None: ...


async def menu_of_a_message(ctx: CommandContext, message: hikari.Message) -> None: ...


async def menu_without_a_type(ctx, user) -> None: ...


@pytest.mark.parametrize(
    "function", [menu_of_nothing, menu_of_two, menu_of_a_text, menu_of_a_message, menu_without_a_type]
)
def test_a_function_that_no_menu_could_call_is_refused(function: Any) -> None:
    assert why_refused(bot.user_command("Look Up")(function)) == (
        f"/Look Up ({function.__name__}) must take ctx and its target."
        " Write: (ctx: CommandContext, it: hikari.InteractionMember)"
    )


@pytest.mark.parametrize("kind", [hikari.User, hikari.Member, hikari.InteractionMember, hikari.PartialUser])
def test_the_menu_of_a_person_takes_any_type_that_fits(kind: Any) -> None:
    async def pick(ctx: CommandContext, it: Any) -> None: ...

    pick.__annotations__["it"] = kind
    bot.App(bot.Config()).add(bot.user_command("Look Up")(pick))


@pytest.mark.parametrize("name", ["", "x" * 33])
def test_a_menus_name_has_1_to_32_characters(name: str) -> None:
    assert why_refused(bot.message_command(name)(menu_of_a_message)) == (
        f"/{name} (menu_of_a_message): a name has one to three words of 1 to 32 characters."
    )


# Who may use it, and where


async def test_a_permission_is_what_a_member_needs() -> None:
    async with Discord() as discord, kit.running(discord, naming("ban", permissions=hikari.Permissions.BAN_MEMBERS)):
        bob = discord.user("bob")
        with pytest.raises(NotUsable, match="it needs the permission Ban Members"):
            await bob.command("ban")
        bob.grant("ban_members")
        assert (await bob.command("ban")).state == "answered"


async def test_what_is_not_for_all_ages_is_for_channels_that_say_so() -> None:
    async with Discord() as discord, kit.running(discord, naming("night", nsfw=True)):
        discord.create_channel("late", nsfw=True)
        bob = discord.user("bob")
        with pytest.raises(NotUsable, match="age-restricted"):
            await bob.command("night")
        assert (await bob.command("night", channel="late")).state == "answered"


GUILD, DM, FRIENDS = hikari.ApplicationContextType
BY_GUILD, BY_USER = hikari.ApplicationIntegrationType


@pytest.mark.parametrize(
    ("more", "places"),
    [
        ({}, ["general", "dm"]),
        ({"contexts": [GUILD]}, ["general"]),
        ({"contexts": [DM]}, ["dm"]),
        ({"installs": [BY_USER]}, ["general", "dm", "elsewhere", "friends"]),
        ({"installs": [BY_GUILD, BY_USER], "contexts": [FRIENDS, GUILD]}, ["general", "elsewhere", "friends"]),
    ],
)
async def test_a_command_is_offered_where_it_says_and_answers_there(more: Json, places: list[str]) -> None:
    async with Discord() as discord, kit.running(discord, naming("it", **more)):
        alice, found = discord.user("alice"), list[str]()
        for place in ("general", "dm", "elsewhere", "friends"):
            try:
                used = await alice.command("it", channel=place)
            except NotUsable:
                continue
            assert discord.text(used.message) == "this is it"
            found.append(place)
        assert found == places


# Where somebody has installed it for themselves, and the bot itself is not


def installed(function: Any, name: str = "mine") -> Any:
    return bot.command(name, "Use it.", installs=[BY_USER])(function)


@pytest.mark.parametrize("place", ["elsewhere", "friends"])
@pytest.mark.parametrize("way", ["at once", "deferred", "deferred for one", "after the 2 s"])
async def test_where_the_bot_is_not_every_way_to_answer_works(place: str, way: str) -> None:
    go_on = asyncio.Event()

    async def mine(ctx: CommandContext) -> None:
        if way == "after the 2 s":
            await go_on.wait()
        elif way != "at once":
            await ctx.defer(ephemeral=way == "deferred for one")
        await ctx.respond("first", ephemeral=way == "deferred for one")
        await ctx.respond("second")

    async with Discord() as discord, kit.running(discord, installed(mine)) as app:
        used = await discord.user("alice").command("mine", channel=place)
        go_on.set()
        channel = discord.world.channel_of(place)["id"]
        await kit.until(lambda: texts(discord, channel) == ["first", "second"])
        assert used.state == ("answered" if way == "at once" else "deferred")
        assert [kept.visible_to is not None for kept in discord.world.in_channel(channel)] == [
            way == "deferred for one", False,
        ]  # fmt: skip
        assert await app.failed() == []


def texts(discord: Discord, channel: str) -> list[str]:
    return [discord.text(kept.message) for kept in discord.world.in_channel(channel)]


async def test_a_view_where_the_bot_is_not_lives_by_its_clicks_and_is_kept_over_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cls = kit.view()

    async def mine(ctx: CommandContext) -> None:
        await ctx.respond(cls())

    things = cls, installed(mine)
    async with Discord() as discord:
        async with kit.running(discord, *things, store=kept(tmp_path)) as app:
            used = await discord.user("alice").command("mine", channel="elsewhere")
            assert used.message
            play = kit.Play(discord, app, discord.user("alice"), used.message)
            for count in (1, 2):
                await play.click("bob")
                await play.at_rest()
                assert (play.shown, await play.count()) == (count, count)

            def add(view: Any) -> None:
                view.count += 10

            # Without a click there is no way to the message: its state is kept, and the next click shows it.
            await app.update(kit.record_of(play.message), add)
            await play.at_rest()
            assert (play.shown, await play.count()) == (2, 12)
        async with kit.running(discord, *things, store=kept(tmp_path)) as app:
            play = kit.Play(discord, app, discord.user("alice"), used.message)
            await play.at_rest()
            assert play.shown == 2
            await play.click()
            await play.at_rest()
            assert (play.shown, await play.count()) == (13, 13)
            assert await app.failed() == []
    assert kit.complaints(caplog) == []


# Promised answers


@pytest.mark.parametrize("promised", [False, True])
@pytest.mark.parametrize("hidden", [False, True])
async def test_an_answer_is_seen_by_those_it_is_for_whatever_was_promised(promised: bool, hidden: bool) -> None:
    async def slow(ctx: CommandContext) -> None:
        await ctx.defer(ephemeral=promised)
        await ctx.respond("first", ephemeral=hidden)
        await ctx.respond("second", ephemeral=not hidden)

    async with Discord() as discord, kit.running(discord, command(slow, "slow")):
        channel = discord.world.channel_of(None)["id"]
        await discord.user("alice").command("slow")
        await kit.until(lambda: texts(discord, channel) == ["first", "second"])
        assert [each.visible_to is not None for each in discord.world.in_channel(channel)] == [hidden, not hidden]
        webhooks = [each.data["method"] for each in discord.journal.of("rest") if "/webhooks/" in each.data["path"]]
        webhooks = [each for each in webhooks if each != "GET"]  # over HTTP it looks for its answer
        assert webhooks == (["PATCH", "POST"] if promised is hidden else ["DELETE", "POST", "POST"])


# Cooldown


@pytest.mark.parametrize("channel", [None, "dm"])
async def test_a_cooldown_is_each_persons_own_and_outlives_a_restart(channel: str | None, tmp_path: Path) -> None:
    ran: list[str] = []

    async def roll(ctx: CommandContext) -> None:
        ran.append(ctx.user.username)
        await ctx.respond("rolled")

    roll_ = bot.command("roll", "Roll.", cooldown=3600)(roll)
    async with Discord() as discord:
        for _ in range(2):
            async with kit.running(discord, roll_, naming("other"), store=kept(tmp_path)) as app:
                alice, bob = discord.user("alice"), discord.user("bob")
                for person in (alice, bob, alice):
                    await person.command("roll", channel=channel)
                used = await alice.command("roll", channel=channel)
                assert re.fullmatch(r"You can use this again <t:\d+:R>\.", discord.text(used.message))
                assert used.message and used.message["flags"] & 64
                assert (await alice.command("other", channel=channel)).state == "answered"
                assert await app.failed() == []
    assert ran == ["alice", "bob"]


async def test_ten_uses_at_once_are_one_within_the_cooldown() -> None:
    ran: list[int] = []

    async def roll(ctx: CommandContext) -> None:
        ran.append(ctx.id)
        await asyncio.sleep(0)
        await ctx.respond("rolled")

    async with Discord() as discord, kit.running(discord, bot.command("roll", "Roll.", cooldown=3600)(roll)) as app:
        alice = discord.user("alice")
        used = await asyncio.gather(*(alice.command("roll") for _ in range(10)))
        assert sorted(discord.text(each.message) == "rolled" for each in used) == [False] * 9 + [True]
        assert await app.failed() == []


async def test_a_use_that_failed_costs_no_cooldown() -> None:
    tries: list[int] = []

    async def roll(ctx: CommandContext) -> None:
        tries.append(1)
        if len(tries) == 1:
            raise RuntimeError("no die")
        await ctx.respond("rolled")

    async with Discord() as discord, kit.running(discord, bot.command("roll", "Roll.", cooldown=3600)(roll)):
        alice = discord.user("alice")
        used = [await alice.command("roll") for _ in range(2)]
        assert [discord.text(each.message) for each in used] == [bot.Texts().failed, "rolled"]


# In the person's language


async def test_a_command_is_found_by_its_name_in_the_persons_language() -> None:
    local = bot.Localized({"de": "frage"}, {"de": "Frag etwas."})
    async with Discord() as discord, kit.running(discord, naming("ask", local=local), naming("poll make", local=local)):
        alice = discord.user("alice")
        alice.locale = "de"
        used = [await alice.command(name) for name in ("frage", "ask", "poll frage")]
        assert [discord.text(each.message) for each in used] == ["this is ask", "this is ask", "this is poll make"]
