"""The rules for answering an interaction, each one by itself, and what people see of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from playground import Discord
from playground.people import Person, Used
from playground.world import APPLICATION_ID
from tests.clients.raw import Json, RawBot

pytest_plugins = ("tests.clients.fixtures",)

BUTTON = {"type": 2, "style": 1, "custom_id": "yes", "label": "Yes"}
WITH_BUTTON = {"content": "Tea?", "components": [{"type": 1, "components": [BUTTON]}]}
INPUT = {"type": 4, "custom_id": "title", "style": 1}
FORM = {"custom_id": "form", "title": "Rename", "components": [{"type": 18, "label": "Title", "component": INPUT}]}


@pytest_asyncio.fixture
async def bot(discord: Discord) -> AsyncIterator[RawBot]:
    async with RawBot(discord) as bot:
        question = {"type": 3, "name": "question", "description": "What to ask."}
        commands = [{"name": "poll", "description": "Ask.", "options": [question]}]
        await bot.rest("PUT", f"/applications/{APPLICATION_ID}/commands", commands)
        yield bot


async def use(bot: RawBot, person: Person) -> tuple[Used, Json]:
    """A command that waits for its answer."""
    used = person.start_command("poll", {"question": "Tea?"})
    return used, await bot.interaction()


async def click(bot: RawBot, person: Person) -> tuple[Used, Json]:
    """A click on a button of a message that a command made."""
    _, command = await use(bot, person)
    await bot.rest.answer(command, 4, WITH_BUTTON)
    used = person.click("Yes")
    return used, await bot.interaction()


async def submit(bot: RawBot, person: Person, opener: str) -> tuple[Used, Json]:
    """A form sent, that a command or a click opened."""
    _, interaction = await (use if opener == "command" else click)(bot, person)
    await bot.rest.answer(interaction, 9, FORM)
    used = person.submit({"Title": "New"})
    return used, await bot.interaction()


def code(answer: tuple[int, Json]) -> tuple[int, int]:
    return answer[0], answer[1]["code"]


# The first answer


async def test_a_command_is_answered_with_a_message(bot: RawBot, alice: Person) -> None:
    used, interaction = await use(bot, alice)
    assert used.state == "pending"
    assert interaction["data"]["options"] == [{"type": 3, "name": "question", "value": "Tea?"}]
    assert await bot.rest.answer(interaction, 4, {"content": "hello"}) == (204, None)
    await used
    assert (used.state, used.callback) == ("answered", {"type": 4, "data": {"content": "hello"}})
    assert used.message is not None
    assert (used.message["content"], used.message["type"]) == ("hello", 20)
    assert used.message["interaction_metadata"]["user"]["id"] == alice.id
    assert used.latency_s is not None


async def test_within_three_seconds_of_the_clock_and_not_later(discord: Discord, bot: RawBot, alice: Person) -> None:
    used, interaction = await use(bot, alice)
    discord.clock.advance(2.5)
    assert used.state == "pending"
    assert (await bot.rest.answer(interaction, 6 - 2, {"content": "in time"}))[0] == 204
    late, interaction = await use(bot, alice)
    discord.clock.advance(3.1)
    assert (late.state, late.text) == ("failed", "The application did not respond")
    assert code(await bot.rest.answer(interaction, 4, {"content": "late"})) == (404, 10062)
    assert code(await bot.rest.webhook("POST", interaction, {"content": "late"})) == (404, 10015)


async def test_nobody_there_fails_after_three_seconds(discord: Discord, alice: Person) -> None:
    discord.world.put_command(None, {"name": "poll", "description": "x"})
    waiting = asyncio.create_task(alice.command("poll"))
    await asyncio.sleep(0)
    discord.clock.advance(3)
    assert (await waiting).state == "failed"


async def test_a_second_answer_is_refused_with_40060(discord: Discord, bot: RawBot, alice: Person) -> None:
    _, interaction = await use(bot, alice)
    await bot.rest.answer(interaction, 4, {"content": "one"})
    assert code(await bot.rest.answer(interaction, 4, {"content": "two"})) == (400, 40060)
    discord.clock.advance(10)
    assert code(await bot.rest.answer(interaction, 4, {"content": "three"})) == (400, 40060)
    assert len(discord.messages()) == 1


@pytest.mark.parametrize(("field", "value"), [("id", "1"), ("token", "nonsense")])
async def test_a_wrong_id_or_token_is_unknown(bot: RawBot, alice: Person, field: str, value: str) -> None:
    _, interaction = await use(bot, alice)
    assert code(await bot.rest.answer({**interaction, field: value}, 4, {"content": "x"})) == (404, 10062)


async def test_a_refused_answer_leaves_time_for_a_better_one(bot: RawBot, alice: Person) -> None:
    used, interaction = await use(bot, alice)
    status, body = await bot.rest.answer(interaction, 4, {"content": "x" * 2001})
    assert (status, body["errors"]["data"]["content"]["_errors"][0]["code"]) == (400, "BASE_TYPE_MAX_LENGTH")
    assert (used.state, used.text) == (
        "pending",
        "The bot's answer was refused: data.content: Must be 2000 or fewer in length.",
    )
    assert (await bot.rest.answer(interaction, 4, {"content": "short"}))[0] == 204
    assert ((await used).state, used.text) == ("answered", None)


async def test_a_refused_answer_and_no_better_one_fails_with_the_reason(
    discord: Discord, bot: RawBot, alice: Person
) -> None:
    used, interaction = await use(bot, alice)
    await bot.rest.answer(interaction, 4, {})
    discord.clock.advance(3)
    assert (used.state, used.text) == ("failed", "The bot's answer was refused: Cannot send an empty message")


CALLBACKS: dict[int, Json | None] = {
    1: None,
    4: {"content": "x"},
    5: None,
    6: None,
    7: {"content": "x"},
    8: {"choices": []},
    9: FORM,
    10: None,
    12: None,
}


@pytest.mark.parametrize(
    ("kind", "allowed"),
    [
        ("command", {4, 5, 9}),
        ("click", {4, 5, 6, 7, 9}),
        ("form of a command", {4, 5}),
        ("form of a click", {4, 5, 6, 7}),
        ("autocomplete", {8}),
    ],
)
async def test_which_answers_a_kind_of_interaction_may_get(
    discord: Discord, bot: RawBot, alice: Person, kind: str, allowed: set[int]
) -> None:
    async def one() -> Json:
        if kind == "autocomplete":
            command = discord.world.commands_in(None)[0]
            data = {"id": command["id"], "type": 1, "name": "poll", "options": []}
            discord.interactions.begin("autocomplete", alice.user, discord.world.channel_of(None)["id"], data)
            return await bot.interaction()
        if kind.startswith("form"):
            return (await submit(bot, alice, "command" if kind.endswith("command") else "click"))[1]
        return (await (use if kind == "command" else click)(bot, alice))[1]

    taken: set[int] = set()
    for type_, data in CALLBACKS.items():
        status, body = await bot.rest.answer(await one(), type_, data)
        if status == 204:
            taken.add(type_)
        else:
            assert (status, body["errors"]["type"]["_errors"][0]["code"]) == (400, "BASE_TYPE_CHOICES")
    assert taken == allowed


async def test_with_response_gives_the_message_for_4_and_7_only(bot: RawBot, alice: Person) -> None:
    _, interaction = await use(bot, alice)
    status, body = await bot.rest.answer(interaction, 4, WITH_BUTTON, "?with_response=true")
    assert (status, body["resource"]["type"], body["resource"]["message"]["content"]) == (200, 4, "Tea?")
    assert body["interaction"]["response_message_id"] == body["resource"]["message"]["id"]
    assert body["interaction"]["response_message_loading"] is False

    alice.click("Yes")
    _, body = await bot.rest.answer(await bot.interaction(), 7, {"content": "x"}, "?with_response=1")
    assert (body["resource"]["type"], body["resource"]["message"]["content"]) == (7, "x")

    alice.click("Yes")
    _, body = await bot.rest.answer(await bot.interaction(), 6, None, "?with_response=True")
    assert ("resource" in body, "response_message_id" in body["interaction"]) == (False, True)

    _, interaction = await use(bot, alice)
    _, body = await bot.rest.answer(interaction, 5, {"flags": 64}, "?with_response=true")
    assert ("resource" in body, body["interaction"]["response_message_loading"]) == (False, True)
    assert body["interaction"]["response_message_ephemeral"] is True

    _, interaction = await use(bot, alice)
    _, body = await bot.rest.answer(interaction, 9, FORM, "?with_response=true")
    assert ("resource" in body, "response_message_id" in body["interaction"]) == (False, False)

    _, interaction = await use(bot, alice)
    assert await bot.rest.answer(interaction, 4, {"content": "x"}, "?with_response=false") == (204, None)


async def test_a_callback_has_no_rate_limit_headers(discord: Discord, bot: RawBot, alice: Person) -> None:
    discord.rate_limits = True
    _, interaction = await use(bot, alice)
    await bot.rest.answer(interaction, 4, {"content": "x"})
    assert not [name for name in bot.rest.headers if name.startswith("X-RateLimit")]


async def test_callbacks_and_webhooks_need_no_bot_token(bot: RawBot, alice: Person) -> None:
    _, interaction = await use(bot, alice)
    path = f"/interactions/{interaction['id']}/{interaction['token']}/callback"
    assert (await bot.rest("POST", path, {"type": 4, "data": {"content": "x"}}, token="none"))[0] == 204
    path = f"/webhooks/{APPLICATION_ID}/{interaction['token']}"
    assert (await bot.rest("POST", path, {"content": "x"}, token="none"))[0] == 200


# Deferred


async def test_a_deferred_message_is_thinking_until_it_is_edited(discord: Discord, bot: RawBot, alice: Person) -> None:
    used, interaction = await use(bot, alice)
    await bot.rest.answer(interaction, 5)
    await used
    assert used.message is not None
    assert (used.state, used.message["flags"] & 128) == ("deferred", 128)
    settling = asyncio.create_task(used.settled())
    await asyncio.sleep(0)
    assert not settling.done()
    status, edited = await bot.rest.webhook("PATCH", interaction, {"content": "done"}, "@original")
    assert (status, edited["content"], edited["flags"] & 128) == (200, "done", 0)
    assert discord.text((await settling).message) == "done"


async def test_a_deferral_may_set_ephemeral_and_nothing_else(bot: RawBot, alice: Person) -> None:
    used, interaction = await use(bot, alice)
    for flags in (1 << 15, 64 | 4):
        status, body = await bot.rest.answer(interaction, 5, {"flags": flags})
        assert (status, list(body["errors"]["data"])) == (400, ["flags"])
    assert (await bot.rest.answer(interaction, 5, {"flags": 64}))[0] == 204
    assert (await used).message is not None


async def test_the_deferral_fixes_who_sees_the_message(discord: Discord, bot: RawBot, alice: Person) -> None:
    used, interaction = await use(bot, alice)
    await bot.rest.answer(interaction, 5, {"flags": 64})
    await bot.rest.webhook("PATCH", interaction, {"content": "done", "flags": 0}, "@original")
    assert (await used).message in discord.messages(seen_by="alice")
    assert discord.messages(seen_by="bob") == []


async def test_the_first_followup_after_a_deferral_takes_the_thinking_messages_place(
    discord: Discord, bot: RawBot, alice: Person
) -> None:
    used, interaction = await use(bot, alice)
    await bot.rest.answer(interaction, 5)
    _, first = await bot.rest.webhook("POST", interaction, {"content": "first", "flags": 64})
    _, second = await bot.rest.webhook("POST", interaction, {"content": "second"})
    await used.settled()
    assert [message["content"] for message in discord.messages()] == ["first", "second"]
    assert (first["flags"] & 128, first["id"] == second["id"]) == (0, False)
    assert discord.messages(seen_by="bob") == discord.messages()


async def test_an_edit_may_turn_a_thinking_message_into_v2(bot: RawBot, alice: Person) -> None:
    _, interaction = await use(bot, alice)
    await bot.rest.answer(interaction, 5)
    body = {"flags": 1 << 15, "components": [{"type": 10, "content": "x"}]}
    status, edited = await bot.rest.webhook("PATCH", interaction, body, "@original")
    assert (status, edited["flags"]) == (200, 1 << 15)


async def test_a_deferred_update_changes_nothing_until_an_edit_of_the_message(
    discord: Discord, bot: RawBot, alice: Person
) -> None:
    used, interaction = await click(bot, alice)
    await bot.rest.answer(interaction, 6)
    await used
    assert used.message is not None
    assert (used.state, used.message["content"]) == ("deferred", "Tea?")
    path = f"/channels/{used.message['channel_id']}/messages/{used.message['id']}"
    await bot.rest("PATCH", path, {"content": "by the channel"})
    assert discord.text((await used.settled()).message).startswith("by the channel")


async def test_settled_gives_up_after_its_time(bot: RawBot, alice: Person) -> None:
    used, interaction = await use(bot, alice)
    await bot.rest.answer(interaction, 5)
    with pytest.raises(TimeoutError):
        await used.settled(timeout=0.01)


# Updates


async def test_a_click_updates_its_message(discord: Discord, bot: RawBot, alice: Person) -> None:
    used, interaction = await click(bot, alice)
    assert interaction["message"]["content"] == "Tea?"
    assert interaction["data"] == {"component_type": 2, "custom_id": "yes", "id": 2}
    assert (await bot.rest.answer(interaction, 7, {"content": "Tea!"}))[0] == 204
    assert (await used).message == discord.messages()[0]
    assert (discord.messages()[0]["content"], len(discord.messages()[0]["components"])) == ("Tea!", 1)


async def test_v2_cannot_be_lost_and_keeps_legacy_fields_out(discord: Discord, bot: RawBot, alice: Person) -> None:
    _, interaction = await use(bot, alice)
    v2 = {"flags": 1 << 15, "components": [{"type": 1, "components": [BUTTON]}]}
    await bot.rest.answer(interaction, 4, v2)
    alice.click("Yes")
    status, body = await bot.rest.answer(await bot.interaction(), 7, {"content": "legacy", "flags": 0})
    assert (status, list(body["errors"]["data"])) == (400, ["content"])
    alice.click("Yes")
    await bot.rest.answer(await bot.interaction(), 7, {"components": [{"type": 10, "content": "new"}]})
    assert (discord.messages()[0]["flags"], discord.text(discord.messages()[0])) == (1 << 15, "new")


async def test_a_legacy_message_becomes_v2_only_when_its_content_is_taken_away(bot: RawBot, alice: Person) -> None:
    _, interaction = await click(bot, alice)
    v2: Json = {"flags": 1 << 15, "components": [{"type": 10, "content": "new"}]}
    status, body = await bot.rest.answer(interaction, 7, v2)
    assert (status, list(body["errors"]["data"])) == (400, ["content"])
    assert (await bot.rest.answer(interaction, 7, {**v2, "content": None}))[0] == 204


# After the first answer


async def test_followups_are_made_read_edited_and_deleted(discord: Discord, bot: RawBot, alice: Person) -> None:
    used, interaction = await use(bot, alice)
    await bot.rest.answer(interaction, 4, {"content": "original"})
    status, followup = await bot.rest.webhook("POST", interaction, {"content": "more", "flags": 64})
    assert (status, followup["flags"]) == (200, 64)
    assert await bot.rest.webhook("GET", interaction, None, followup["id"]) == (200, followup)
    _, edited = await bot.rest.webhook("PATCH", interaction, {"content": "less"}, followup["id"])
    assert edited["content"] == "less"
    assert (await bot.rest.webhook("GET", interaction, None, "@original"))[1]["content"] == "original"
    assert await bot.rest.webhook("DELETE", interaction, None, followup["id"]) == (204, None)
    assert await bot.rest.webhook("DELETE", interaction, None, "@original") == (204, None)
    assert code(await bot.rest.webhook("GET", interaction, None, "@original")) == (404, 10008)
    assert (discord.messages(), (await used).message) == ([], None)


async def test_before_the_first_answer_there_is_no_webhook(bot: RawBot, alice: Person) -> None:
    _, interaction = await use(bot, alice)
    assert code(await bot.rest.webhook("POST", interaction, {"content": "x"})) == (404, 10015)
    assert code(await bot.rest.webhook("PATCH", interaction, {"content": "x"}, "@original")) == (404, 10015)


async def test_an_unknown_token_or_application_has_no_webhook(bot: RawBot, alice: Person) -> None:
    _, interaction = await use(bot, alice)
    await bot.rest.answer(interaction, 4, {"content": "x"})
    for wrong in ({"token": "nonsense"}, {"application_id": "9"}):
        assert code(await bot.rest.webhook("POST", {**interaction, **wrong}, {"content": "x"})) == (404, 10015)


async def test_the_token_works_for_fifteen_minutes(discord: Discord, bot: RawBot, alice: Person) -> None:
    _, interaction = await use(bot, alice)
    await bot.rest.answer(interaction, 4, {"content": "x"})
    discord.clock.advance(15 * 60 - 5)
    assert (await bot.rest.webhook("PATCH", interaction, {"content": "y"}, "@original"))[0] == 200
    discord.clock.advance(10)
    assert code(await bot.rest.webhook("PATCH", interaction, {"content": "z"}, "@original")) == (401, 50027)
    assert code(await bot.rest.webhook("POST", interaction, {"content": "z"})) == (401, 50027)
    path = f"/channels/{interaction['channel_id']}/messages/{discord.messages()[0]['id']}"
    assert (await bot.rest("PATCH", path, {"content": "by the channel"}))[0] == 200


async def test_a_token_reaches_only_its_own_messages(bot: RawBot, alice: Person) -> None:
    first, interaction = await use(bot, alice)
    await bot.rest.answer(interaction, 4, {"content": "first"})
    assert (await first).message is not None
    _, other = await use(bot, alice)
    await bot.rest.answer(other, 4, {"content": "second"})
    assert first.message is not None
    assert code(await bot.rest.webhook("PATCH", other, {"content": "x"}, first.message["id"])) == (404, 10008)


async def test_a_form_has_no_original_message(bot: RawBot, alice: Person) -> None:
    _, interaction = await use(bot, alice)
    await bot.rest.answer(interaction, 9, FORM)
    assert code(await bot.rest.webhook("GET", interaction, None, "@original")) == (404, 10008)
    assert (await bot.rest.webhook("POST", interaction, {"content": "x"}))[0] == 200


# Ephemeral


async def test_an_ephemeral_message_is_for_one_person_and_out_of_the_channels_reach(
    discord: Discord, bot: RawBot, alice: Person
) -> None:
    used, interaction = await use(bot, alice)
    await bot.rest.answer(interaction, 4, {**WITH_BUTTON, "flags": 64})
    assert (await used).message is not None
    assert used.message is not None
    assert [message["id"] for message in discord.messages(seen_by="alice")] == [used.message["id"]]
    assert discord.messages(seen_by="bob") == []
    with pytest.raises(LookupError, match="bob sees no enabled button 'Yes'"):
        discord.user("bob").click("Yes")
    channel = f"/channels/{interaction['channel_id']}/messages"
    assert await bot.rest("GET", channel) == (200, [])
    for method in ("GET", "PATCH", "DELETE"):
        assert code(await bot.rest(method, f"{channel}/{used.message['id']}", {})) == (404, 10008)
    alice.click("Yes")
    assert (await bot.rest.answer(await bot.interaction(), 7, {"content": "seen"}))[0] == 204
    assert discord.messages(seen_by="alice")[0]["content"] == "seen"


async def test_a_dismissed_message_is_gone_for_the_person_only(discord: Discord, bot: RawBot, alice: Person) -> None:
    used, interaction = await use(bot, alice)
    await bot.rest.answer(interaction, 4, {"content": "psst", "flags": 64})
    assert (await used).message is not None
    assert used.message is not None
    alice.dismiss(used.message)
    assert discord.messages(seen_by="alice") == []
    assert (await bot.rest.webhook("PATCH", interaction, {"content": "x"}, "@original"))[0] == 200
    public = await alice.say("hello")
    with pytest.raises(ValueError, match="Only a message that only you can see"):
        alice.dismiss(public)


# Forms


async def test_a_form_is_filled_by_label_or_custom_id_and_names_what_opened_it(bot: RawBot, alice: Person) -> None:
    used, interaction = await submit(bot, alice, "click")
    assert interaction["data"]["custom_id"] == "form"
    assert interaction["data"]["components"][0]["component"]["value"] == "New"
    assert interaction["message"]["content"] == "Tea?"
    await bot.rest.answer(interaction, 4, {"content": "renamed"})
    assert (await used).message is not None
    assert used.message is not None
    metadata = used.message["interaction_metadata"]
    assert (metadata["type"], metadata["triggering_interaction_metadata"]["type"]) == (5, 3)


async def test_a_form_stays_open_until_the_bot_answers_it(discord: Discord, bot: RawBot, alice: Person) -> None:
    used, _ = await submit(bot, alice, "command")
    discord.clock.advance(3)
    assert used.state == "failed"
    again = alice.submit({"title": "Better"})
    await bot.rest.answer(await bot.interaction(), 4, {"content": "ok"})
    assert (await again).state == "answered"
    with pytest.raises(LookupError, match="alice has no such form open"):
        alice.submit({"title": "x"})


async def test_the_form_opened_last_is_the_one_that_is_submitted(bot: RawBot, alice: Person) -> None:
    for custom_id in ("first", "second"):
        _, interaction = await use(bot, alice)
        used = await bot.rest.answer(interaction, 9, {**FORM, "custom_id": custom_id})
        assert used[0] == 204
    alice.submit({"title": "x"})
    assert (await bot.interaction())["data"]["custom_id"] == "second"


ALL_FIELDS: Json = {
    "custom_id": "all",
    "title": "Everything",
    "components": [
        {"type": 18, "label": "Text", "component": {**INPUT, "min_length": 2, "max_length": 5, "required": False}},
        {
            "type": 18,
            "label": "Colour",
            "component": {"type": 3, "custom_id": "c", "options": [{"label": c, "value": c} for c in ("red", "blue")]},
        },
        {"type": 18, "label": "Who", "component": {"type": 5, "custom_id": "w", "max_values": 2, "required": False}},
        {
            "type": 18,
            "label": "One",
            "component": {
                "type": 21,
                "custom_id": "r",
                "required": False,
                "options": [{"label": c, "value": c} for c in ("a", "b")],
            },
        },
        {
            "type": 18,
            "label": "Some",
            "component": {
                "type": 22,
                "custom_id": "s",
                "options": [{"label": c, "value": c, "default": c == "a"} for c in ("a", "b")],
            },
        },
    ],
}


async def opened(bot: RawBot, alice: Person, form: Json) -> None:
    _, interaction = await use(bot, alice)
    assert (await bot.rest.answer(interaction, 9, form))[0] == 204


async def test_every_field_sends_what_discord_sends(discord: Discord, bot: RawBot, alice: Person) -> None:
    await opened(bot, alice, ALL_FIELDS)
    bob = discord.user("bob").id
    alice.submit({"Text": "ab", "Colour": "red", "Who": [bob], "One": "b"})
    data = (await bot.interaction())["data"]
    fields = [part["component"] for part in data["components"]]
    assert [field.get("value", field.get("values")) for field in fields] == ["ab", ["red"], [bob], "b", ["a"]]
    assert "values" not in fields[3]
    assert data["resolved"]["users"][bob]["username"] == "bob"
    alice.submit({"Colour": "blue"})
    fields = [part["component"] for part in (await bot.interaction())["data"]["components"]]
    assert [field.get("value", field.get("values")) for field in fields] == ["", ["blue"], [], None, ["a"]]


async def test_a_checkbox_is_true_or_false(bot: RawBot, alice: Person) -> None:
    box = {"type": 18, "label": "Sure", "component": {"type": 23, "custom_id": "sure"}}
    await opened(bot, alice, {**FORM, "components": [{"type": 10, "content": "Really?"}, box]})
    alice.submit({"Sure": True})
    components = (await bot.interaction())["data"]["components"]
    assert (components[0]["type"], components[1]["component"]["value"]) == (10, True)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"Colour": "green"}, "Colour has no option 'green'. There are: red, blue."),
        ({}, "Colour takes 1 to 1 values, not 0."),
        ({"Colour": "red", "Text": "abcdef"}, "Text has 2 to 5 characters, not 6."),
        ({"Colour": "red", "Nothing": 1}, "The form 'Everything' has no field 'Nothing'."),
    ],
)
async def test_a_form_cannot_be_sent_as_discord_would_not_let_a_person(
    bot: RawBot, alice: Person, values: Json, sentence: str
) -> None:
    await opened(bot, alice, ALL_FIELDS)
    with pytest.raises(ValueError) as problem:
        alice.submit(values)
    assert str(problem.value) == sentence


# People


async def test_a_select_sends_values_and_whom_they_mean(discord: Discord, bot: RawBot, alice: Person) -> None:
    _, interaction = await use(bot, alice)
    options = [{"label": c, "value": c} for c in ("red", "blue")]
    rows = [
        {"type": 1, "components": [{"type": 3, "custom_id": "c", "placeholder": "Colour", "options": options}]},
        {"type": 1, "components": [{"type": 5, "custom_id": "w", "placeholder": "Who"}]},
    ]
    await bot.rest.answer(interaction, 4, {"components": rows})
    alice.select("Colour", ["red"])
    assert (await bot.interaction())["data"]["values"] == ["red"]
    alice.select(custom_id="w", values=[discord.user("bob")])
    data = (await bot.interaction())["data"]
    assert data["values"] == [discord.user("bob").id] == list(data["resolved"]["users"])
    with pytest.raises(ValueError, match=r"There is no option 'green'. There are: red, blue."):
        alice.select("Colour", ["green"])
    with pytest.raises(ValueError, match=r"Choose 1 to 1 values, not 2."):
        alice.select("Colour", ["red", "blue"])


async def test_the_newest_enabled_button_with_that_label_is_clicked(
    discord: Discord, bot: RawBot, alice: Person
) -> None:
    def message(custom_id: str, **more: Any) -> Json:
        return {"components": [{"type": 1, "components": [{**BUTTON, "custom_id": custom_id, **more}]}]}

    channel = f"/channels/{discord.world.channel_of(None)['id']}/messages"
    old = (await bot.rest("POST", channel, message("old")))[1]
    await bot.rest("POST", channel, message("new"))
    await bot.rest("POST", channel, message("off", disabled=True))
    alice.click("Yes")
    assert (await bot.interaction())["data"]["custom_id"] == "new"
    alice.click("Yes", message=old)
    assert (await bot.interaction())["data"]["custom_id"] == "old"
    with pytest.raises(LookupError, match="alice sees no enabled button 'off'"):
        alice.click(custom_id="off")


async def test_a_click_is_made_at_once_and_wait_false_does_not_wait(bot: RawBot, alice: Person) -> None:
    await click(bot, alice)
    used = await alice.click("Yes", wait=False)
    assert used.state == "pending"
    await bot.rest.answer(await bot.interaction(), 6)
    assert (await used.answered()).state == "deferred"


OPTIONS: list[Json] = [
    {"type": 3, "name": "text", "description": "x", "min_length": 2, "required": True},
    {"type": 4, "name": "number", "description": "x", "min_value": 1, "max_value": 5},
    {"type": 5, "name": "flag", "description": "x"},
    {"type": 6, "name": "who", "description": "x"},
    {"type": 7, "name": "where", "description": "x"},
    {"type": 8, "name": "role", "description": "x"},
    {"type": 10, "name": "amount", "description": "x"},
    {"type": 3, "name": "size", "description": "x", "choices": [{"name": "S", "value": "s"}]},
]


async def test_options_are_sent_as_their_types_with_what_they_mean(
    discord: Discord, bot: RawBot, alice: Person
) -> None:
    commands = [{"name": "all", "description": "x", "options": OPTIONS}]
    await bot.rest("PUT", f"/applications/{APPLICATION_ID}/commands", commands)
    given = {"text": "ab", "number": "3", "flag": "true", "who": "bob", "where": "random", "role": "@everyone"}
    alice.start_command("all", {**given, "amount": 1.5, "size": "s"})
    data = (await bot.interaction())["data"]
    bob, random = discord.user("bob").id, discord.world.channel_of("random")["id"]
    values = {option["name"]: option["value"] for option in data["options"]}
    role = values.pop("role")
    assert values == {
        "text": "ab", "number": 3, "flag": True, "who": bob, "where": random, "amount": 1.5, "size": "s"
    }  # fmt: skip
    assert {group: list(found) for group, found in data["resolved"].items()} == {
        "users": [bob], "members": [bob], "channels": [random], "roles": [role]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "/all needs the option 'text'."),
        ({"text": "a"}, "text is 2 to any characters, not 1."),
        ({"text": "ab", "number": "x"}, "number is a number, not 'x'."),
        ({"text": "ab", "number": 9}, "number is 1 to 5, not 9."),
        ({"text": "ab", "flag": "maybe"}, "flag is true or false, not 'maybe'."),
        ({"text": "ab", "size": "xl"}, "size is one of ['s'], not 'xl'."),
        ({"text": "ab", "nope": 1}, "/all has no option 'nope'."),
    ],
)
async def test_a_command_cannot_be_used_as_discord_would_not_let_a_person(
    discord: Discord, alice: Person, given: Json, sentence: str
) -> None:
    discord.world.put_command(None, {"name": "all", "description": "x", "options": OPTIONS})
    with pytest.raises(ValueError) as problem:
        alice.start_command("all", given)
    assert str(problem.value) == sentence


async def test_subcommands_are_named_by_their_words(discord: Discord, bot: RawBot, alice: Person) -> None:
    create = {"type": 1, "name": "create", "description": "x", "options": [OPTIONS[0]]}
    group = {"type": 2, "name": "admin", "description": "x", "options": [create]}
    discord.world.replace_commands(None, [{"name": "poll", "description": "x", "options": [create, group]}])
    alice.start_command("poll create", {"text": "ab"})
    option = {"type": 3, "name": "text", "value": "ab"}
    data = (await bot.interaction())["data"]
    assert data["options"] == [{"type": 1, "name": "create", "options": [option]}]
    alice.start_command("poll admin create", {"text": "ab"})
    assert (await bot.interaction())["data"]["options"][0]["options"][0]["options"] == [option]
    with pytest.raises(LookupError, match="/poll needs one of its subcommands: create, admin"):
        alice.start_command("poll", {})
    with pytest.raises(LookupError, match=r"The bot has no command 'pool'. Registered: poll."):
        alice.start_command("pool", {})


async def test_context_menus_are_used_on_people_and_messages(discord: Discord, bot: RawBot, alice: Person) -> None:
    discord.world.replace_commands(None, [{"name": "Wave", "type": 2}, {"name": "Report this", "type": 3}])
    alice.start_command("Wave", {}, target=discord.user("bob"))
    data = (await bot.interaction())["data"]
    assert list(data["resolved"]["users"]) == [data["target_id"]] == [discord.user("bob").id]
    said = await discord.user("bob").say("hello")
    alice.start_command("Report this", {}, target=said)
    data = (await bot.interaction())["data"]
    assert data["resolved"]["messages"][data["target_id"]]["content"] == "hello"


async def test_a_command_waits_until_the_bot_has_registered_it(discord: Discord, alice: Person) -> None:
    using = asyncio.create_task(alice.command("later"))
    await asyncio.sleep(0.03)
    assert discord.interactions.pending == {}
    discord.world.put_command(None, {"name": "later", "description": "x"})
    while not discord.interactions.pending:
        await asyncio.sleep(0.005)
    discord.clock.advance(3)
    assert (await using).state == "failed"


async def test_a_private_channel_has_no_guild(discord: Discord, bot: RawBot, alice: Person) -> None:
    channel = discord.world.direct_channel_with(alice.id)
    alice.start_command("poll", {}, channel=channel["id"])
    interaction = await bot.interaction()
    assert ("guild_id" in interaction, interaction["user"]["id"], interaction["context"]) == (False, alice.id, 1)
    assert (await bot.rest.answer(interaction, 4, {"content": "x"}))[0] == 204
    assert len(discord.messages(channel["id"])) == 1


async def test_somebody_new_joins_on_first_use_and_ids_grow(discord: Discord) -> None:
    dora = discord.user("dora")
    assert (dora.user["username"], discord.user("dora").id) == ("dora", dora.id)
    first, second = await dora.say("one"), await dora.say("two")
    assert int(first["id"]) < int(second["id"])
    with pytest.raises(ValueError, match="1 to 2000 characters"):
        await dora.say("")
    with pytest.raises(LookupError, match=r"no channel 'nowhere'. There are: general, random"):
        await dora.say("x", "nowhere")
