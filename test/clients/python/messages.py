import json

import anthropic
from checks import PNG, TOKEN, URL, check, same

client = anthropic.Anthropic(base_url=URL, api_key=TOKEN)


def said(text):
    return {"model": "default", "max_tokens": 1000, "messages": [{"role": "user", "content": text}]}


@check("plain")
def _():
    answer = client.messages.create(**said("Where is Oslo?"))
    same([block.text for block in answer.content], ["You said: Where is Oslo?"])
    same(answer.stop_reason, "end_turn")


@check("stream")
def _():
    with client.messages.stream(**said("in a stream")) as stream:
        pieces = list(stream.text_stream)
        final = stream.get_final_message()
    same("".join(pieces), "You said: in a stream")
    same(final.content[0].text, "You said: in a stream")


@check("count_tokens")
def _():
    asked = said("How many tokens has this?")
    del asked["max_tokens"]
    assert client.messages.count_tokens(**asked).input_tokens > 0


@check("models")
def _():
    assert "default" in [model.id for model in client.models.list()]


@check("a wrong token")
def _():
    try:
        anthropic.Anthropic(base_url=URL, api_key="wrong").messages.create(**said("x"))
    except anthropic.AuthenticationError as error:
        same(error.status_code, 401)
    else:
        raise AssertionError("it was let in")


# The model does what it is told (scripted-model.ts), and `report` says what its provider was asked.

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"name": name, "description": name, "input_schema": CITY} for name in ("weather", "time_in")]


def results(answer, content="rain"):
    used = [block for block in answer.content if block.type == "tool_use"]
    given = [{"type": "tool_result", "tool_use_id": block.id, "content": content} for block in used]
    return [{"role": "assistant", "content": answer.content}, {"role": "user", "content": given}]


@check("tools, and a choice that is forced beside their results")
def _():
    asked = said('call weather {"city": "Oslo"}')
    first = client.messages.create(**asked, tools=TOOLS)
    asked["messages"] += results(first)
    second = client.messages.create(**asked, tools=TOOLS, tool_choice={"type": "tool", "name": "time_in"})
    same([block.name for block in second.content], ["time_in"])
    asked["messages"] += results(second, "noon")
    last = client.messages.create(**asked, tools=TOOLS, tool_choice={"type": "none"})
    same((last.stop_reason, last.content[0].text), ("end_turn", "The tools answered: noon"))


@check("parallel calls off")
def _():
    asked = said('call weather {"city": "Oslo"}\ncall time_in {"city": "Oslo"}')
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    same(len(client.messages.create(**asked, tools=TOOLS, tool_choice=choice).content), 1)


@check("structured output: output_config, parse")
def _():
    from pydantic import BaseModel

    class City(BaseModel):
        name: str
        people: int

    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": False}
    answer = client.messages.create(**said("a city"), output_config={"format": {"type": "json_schema", "schema": schema}})
    same(json.loads(answer.content[0].text), {"name": "text"})
    same(client.messages.parse(**said("a city"), output_format=City).parsed_output, City(name="text", people=7))


@check("a picture and search results of a tool")
def _():
    asked = said('call weather {"city": "Bergen"}')
    first = client.messages.create(**asked, tools=TOOLS)
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    found = {"type": "search_result", "source": "https://example.org", "title": "Rain", "content": [{"type": "text", "text": "wet"}]}
    asked["messages"] += results(first, [picture, found])
    asked["messages"][-1]["content"].append({"type": "text", "text": "report"})
    same(json.loads(client.messages.create(**asked, tools=TOOLS).content[0].text)["pictures"], 1)


@check("stop sequences, system and cache_control")
def _():
    system = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    answer = client.messages.create(**said("say one END two"), stop_sequences=["END"], system=system)
    same(answer.content[0].text.strip(), "one")


@check("the tool runner")
def _():
    ran = []

    @anthropic.beta_tool
    def weather(city: str) -> str:
        """Weather of a city."""
        ran.append(city)
        return "rain"

    runner = client.beta.messages.tool_runner(**said('call weather {"city": "Rome"}'), tools=[weather])
    same((runner.until_done().content[0].text, ran), ("The tools answered: rain", ["Rome"]))
