"""What a message can hold: files in every place that takes one, edits that keep and replace them, embeds, flags."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest

from playground import Discord
from tests.clients.raw import Json, RawBot

pytest_plugins = ("tests.clients.fixtures",)

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x03\x00\x00\x00\x02\x08\x06\x00\x00\x00"
GIF = b"GIF89a\x04\x00\x05\x00"
V2 = 1 << 15


@pytest.fixture
def messages(discord: Discord) -> str:
    return f"/channels/{discord.world.channel_of(None)['id']}/messages"


async def send(bot: RawBot, method: str, path: str, body: Json, **files: bytes) -> tuple[int, Json]:
    """A request with files; in a keyword `a_png` stands for a.png."""
    form = aiohttp.FormData()
    form.add_field("payload_json", json.dumps(body), content_type="application/json")
    for number, (name, data) in enumerate(files.items()):
        form.add_field(f"files[{number}]", data, filename=name.replace("_", "."), content_type="application/x-unknown")
    headers = {"Authorization": f"Bot {bot.rest.discord.token}"}
    async with bot.rest.session.request(method, bot.rest.discord.api + path, data=form, headers=headers) as response:
        return response.status, await response.json()


async def content_of(bot: RawBot, url: str) -> bytes:
    async with bot.rest.session.get(url) as response:
        return await response.read()


def v2(*components: Json) -> Json:
    return {"flags": V2, "components": list(components)}


def media(name: str) -> Json:
    return {"media": {"url": f"attachment://{name}"}}


PLACES: dict[str, tuple[Json, Any]] = {
    "file": ({"type": 13, "file": {"url": "attachment://a.png"}}, lambda part: part["file"]),
    "gallery": ({"type": 12, "items": [media("a.png")]}, lambda part: part["items"][0]["media"]),
    "thumbnail": (
        {"type": 9, "components": [{"type": 10, "content": "x"}], "accessory": {"type": 11, **media("a.png")}},
        lambda part: part["accessory"]["media"],
    ),
    "container": (
        {"type": 17, "components": [{"type": 13, "file": {"url": "attachment://a.png"}}]},
        lambda part: part["components"][0]["file"],
    ),
}


@pytest.mark.parametrize("place", PLACES)
async def test_a_component_shows_the_file_that_was_sent_along(bot: RawBot, messages: str, place: str) -> None:
    component, of = PLACES[place]
    status, made = await send(bot, "POST", messages, v2(component), a_png=PNG)
    [attachment] = made["attachments"]
    shown = of(made["components"][0])
    assert (status, shown["attachment_id"], shown["width"], shown["height"]) == (200, attachment["id"], 3, 2)
    assert (attachment["size"], attachment["content_type"]) == (len(PNG), "image/png")
    assert await content_of(bot, shown["url"]) == await content_of(bot, shown["proxy_url"]) == PNG
    status, body = await bot.rest("POST", messages, v2(component))
    assert (status, "UNFURLED_MEDIA_ITEM_REFERENCED_ATTACHMENT_NOT_FOUND" in json.dumps(body)) == (400, True)


async def test_a_file_component_has_the_files_name_and_size(bot: RawBot, messages: str) -> None:
    _, made = await send(bot, "POST", messages, v2(PLACES["file"][0]), a_png=PNG)
    file = made["components"][0]
    assert (file["name"], file["size"], file["spoiler"]) == ("a.png", len(PNG), False)
    status, body = await bot.rest("POST", messages, v2({"type": 13, "file": {"url": "https://x.y/a.png"}}))
    assert (status, list(body["errors"]["components"]["0"]["file"])) == (400, ["url"])


async def test_an_edit_keeps_describes_replaces_and_takes_away_files(bot: RawBot, messages: str) -> None:
    _, made = await send(bot, "POST", messages, {"content": "x"}, a_png=PNG, b_gif=GIF)
    one, (first, second) = f"{messages}/{made['id']}", made["attachments"]
    assert [each.get("width") for each in (first, second)] == [3, 4]

    async def edit(body: Json, **files: bytes) -> list[str]:
        status, edited = await send(bot, "PATCH", one, body, **files)
        assert status == 200
        return [each["filename"] for each in edited["attachments"]]

    assert await edit({"content": "y"}) == ["a.png", "b.gif"]
    assert await edit({"content": "z"}, c_txt=b"c") == ["a.png", "b.gif", "c.txt"]
    kept = {"id": second["id"], "description": "two"}
    assert await edit({"attachments": [kept, {"id": 0, "description": "new"}]}, d_txt=b"d") == ["b.gif", "d.txt"]
    _, now = await bot.rest("GET", one)
    assert [each["description"] for each in now["attachments"]] == ["two", "new"]
    assert await edit({"attachments": []}) == []


async def test_what_an_edit_takes_away_cannot_be_shown_by_it(bot: RawBot, messages: str) -> None:
    _, made = await send(bot, "POST", messages, v2(PLACES["file"][0]), a_png=PNG)
    one = f"{messages}/{made['id']}"
    assert (await bot.rest("PATCH", one, {"components": [PLACES["file"][0]]}))[0] == 200
    gone = {"attachments": [], "components": [PLACES["file"][0]]}
    assert (await bot.rest("PATCH", one, gone))[0] == 400
    assert (await send(bot, "PATCH", one, gone, a_png=GIF))[0] == 200


async def test_a_callback_a_followup_and_an_update_carry_files(discord: Discord, bot: RawBot) -> None:
    discord.world.put_command(None, {"name": "poll", "description": "x"})
    discord.user("alice").start_command("poll", {})
    interaction = await bot.interaction()
    button = {"type": 1, "components": [{"type": 2, "style": 1, "custom_id": "b", "label": "B"}]}
    callback = f"/interactions/{interaction['id']}/{interaction['token']}/callback?with_response=true"
    body = {"type": 4, "data": {**v2(PLACES["file"][0], button), "attachments": [{"id": 0, "description": "a"}]}}
    status, answer = await send(bot, "POST", callback, body, a_png=PNG)
    assert (status, answer["resource"]["message"]["attachments"][0]["description"]) == (200, "a")
    webhook = f"/webhooks/{interaction['application_id']}/{interaction['token']}"
    status, followup = await send(bot, "POST", webhook, {"content": ""}, b_gif=GIF)
    assert (status, followup["attachments"][0]["height"]) == (200, 5)
    discord.user("alice").click("B")
    click = await bot.interaction()
    path = f"/interactions/{click['id']}/{click['token']}/callback?with_response=true"
    new = v2({"type": 13, "file": {"url": "attachment://b.gif"}})
    status, answer = await send(bot, "POST", path, {"type": 7, "data": {**new, "attachments": []}}, b_gif=GIF)
    updated = answer["resource"]["message"]
    assert (status, len(updated["attachments"]), updated["components"][0]["name"]) == (200, 1, "b.gif")


async def test_a_name_with_a_space_is_written_as_an_address(bot: RawBot, messages: str) -> None:
    form = aiohttp.FormData()
    component = {"type": 13, "file": {"url": "attachment://my%20notes.txt"}}
    form.add_field("payload_json", json.dumps(v2(component)), content_type="application/json")
    form.add_field("files[0]", b"x", filename="my notes.txt")
    headers = {"Authorization": f"Bot {bot.rest.discord.token}"}
    async with bot.rest.session.post(bot.rest.discord.api + messages, data=form, headers=headers) as response:
        made = await response.json()
    assert (response.status, made["components"][0]["name"]) == (200, "my notes.txt")
    assert await content_of(bot, made["components"][0]["file"]["url"]) == b"x"


async def test_embeds_show_files_and_pictures_from_elsewhere(bot: RawBot, messages: str) -> None:
    embed = {
        "title": "T",
        "image": {"url": "attachment://a.png"},
        "thumbnail": {"url": "https://x.y/t.png"},
        "author": {"name": "a", "icon_url": "attachment://a.png"},
        "footer": {"text": "f", "icon_url": "https://x.y/i.png"},
    }
    _, made = await send(bot, "POST", messages, {"embeds": [embed]}, a_png=PNG)
    [shown] = made["embeds"]
    url = made["attachments"][0]["url"]
    assert shown["image"] == {"url": url, "proxy_url": url, "width": 3, "height": 2}
    assert shown["author"] == {"name": "a", "icon_url": url, "proxy_icon_url": url}
    assert shown["thumbnail"]["url"] == "https://x.y/t.png"
    assert shown["footer"]["icon_url"] == "https://x.y/i.png"


async def test_embeds_hold_six_thousand_characters_together(bot: RawBot, messages: str) -> None:
    embeds = [{"title": "t" * 100, "description": "d" * 2800, "footer": {"text": "f" * 100}} for _ in range(2)]
    assert (await bot.rest("POST", messages, {"embeds": embeds}))[0] == 200
    embeds[1]["author"] = {"name": "a"}
    status, body = await bot.rest("POST", messages, {"embeds": embeds})
    assert (status, body["errors"]["embeds"]["_errors"][0]["code"]) == (400, "MAX_EMBED_SIZE_EXCEEDED")


async def test_a_premium_button_is_only_for_its_sku(discord: Discord, bot: RawBot, messages: str) -> None:
    def row(**more: Any) -> Json:
        return {"components": [{"type": 1, "components": [{"type": 2, "style": 6, **more}]}]}

    status, made = await bot.rest("POST", messages, row(sku_id="5"))
    assert (status, made["components"][0]["components"][0]["sku_id"]) == (200, "5")
    for more in (
        {},
        {"sku_id": "5", "label": "x"},
        {"sku_id": "5", "custom_id": "x"},
        {"sku_id": "5", "url": "https://x.y"},
    ):
        assert (await bot.rest("POST", messages, row(**more)))[0] == 400


async def test_flags_that_a_message_may_have_and_an_edit_may_change(bot: RawBot, messages: str) -> None:
    suppress, silent = 1 << 2, 1 << 12
    _, made = await bot.rest("POST", messages, {"content": "x", "flags": suppress | silent | 1 << 7})
    assert made["flags"] == suppress | silent
    one = f"{messages}/{made['id']}"
    assert (await bot.rest("PATCH", one, {"flags": 0}))[1]["flags"] == silent
    assert (await bot.rest("PATCH", one, {"content": "y"}))[1]["flags"] == silent
    assert (await bot.rest("PATCH", one, {"flags": suppress}))[1]["flags"] == suppress | silent
    _, made = await bot.rest("POST", messages, v2({"type": 10, "content": "x"}))
    assert (await bot.rest("PATCH", f"{messages}/{made['id']}", {"flags": 0}))[1]["flags"] == V2


async def test_v2_components_are_refused_on_a_message_that_is_not_v2(bot: RawBot, messages: str) -> None:
    _, made = await bot.rest("POST", messages, {"content": "x"})
    text = {"type": 10, "content": "x"}
    assert (await bot.rest("PATCH", f"{messages}/{made['id']}", {"components": [text]}))[0] == 400


async def test_an_answer_to_another_message_names_it(discord: Discord, bot: RawBot, messages: str) -> None:
    said = await discord.user("bob").say("hello", "dm")
    path = f"/channels/{said['channel_id']}/messages"
    _, made = await bot.rest("POST", path, {"content": "x", "message_reference": {"message_id": said["id"]}})
    assert made["message_reference"] == {"type": 0, "channel_id": said["channel_id"], "message_id": said["id"]}
