import json

import openai
from checks import DATA_URL, TOKEN, URL, check, same

client = openai.OpenAI(base_url=f"{URL}/v1", api_key=TOKEN)


@check("models")
def _():
    assert "default" in [model.id for model in client.models.list()]
    same(client.models.retrieve("default").id, "default")


@check("plain, then with its history")
def _():
    said = [{"role": "user", "content": "Where is Oslo?"}]
    first = client.chat.completions.create(model="default", messages=said)
    same(first.choices[0].message.content, "You said: Where is Oslo?")
    same(first.choices[0].finish_reason, "stop")
    said += [{"role": "assistant", "content": first.choices[0].message.content}, {"role": "user", "content": "And Bergen?"}]
    same(client.chat.completions.create(model="default", messages=said).choices[0].message.content, "You said: And Bergen?")


@check("stream, with usage")
def _():
    pieces, usage = [], None
    said = [{"role": "user", "content": "in a stream"}]
    for chunk in client.chat.completions.create(model="default", messages=said, stream=True, stream_options={"include_usage": True}):
        pieces += [choice.delta.content or "" for choice in chunk.choices]
        usage = chunk.usage or usage
    same("".join(pieces), "You said: in a stream")
    assert usage and usage.completion_tokens > 0


@check("a wrong token")
def _():
    try:
        openai.OpenAI(base_url=f"{URL}/v1", api_key="wrong").models.list()
    except openai.AuthenticationError as error:
        same(error.status_code, 401)
    else:
        raise AssertionError("it was let in")


# The model does what it is told (scripted-model.ts), and `report` says what its provider was asked.

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": name, "description": name, "parameters": CITY}} for name in ("weather", "time_in")]


def ask(text, **more):
    return client.chat.completions.create(model="default", messages=[{"role": "user", "content": text}], **more).choices[0]


def results(message, content="rain"):
    return [message, *({"role": "tool", "tool_call_id": call.id, "content": content} for call in message.tool_calls)]


@check("tools, and a choice that is forced beside their results")
def _():
    said = [{"role": "user", "content": 'call weather {"city": "Oslo"}\ncall time_in {"city": "Oslo"}'}]
    first = client.chat.completions.create(model="default", messages=said, tools=TOOLS).choices[0]
    same([call.function.name for call in first.message.tool_calls], ["weather", "time_in"])
    said += results(first.message)
    choice = {"type": "function", "function": {"name": "time_in"}}
    second = client.chat.completions.create(model="default", messages=said, tools=TOOLS, tool_choice=choice).choices[0]
    same([call.function.name for call in second.message.tool_calls], ["time_in"])
    said += results(second.message, "noon")
    last = client.chat.completions.create(model="default", messages=said, tools=TOOLS, tool_choice="none").choices[0]
    same((last.finish_reason, last.message.content), ("stop", "The tools answered: noon"))


@check("parallel calls off")
def _():
    both = 'call weather {"city": "Oslo"}\ncall time_in {"city": "Oslo"}'
    same(len(ask(both, tools=TOOLS, parallel_tool_calls=False).message.tool_calls), 1)


@check("structured output: json_schema by parse, json_object")
def _():
    from pydantic import BaseModel

    class City(BaseModel):
        name: str
        people: int

    said = [{"role": "user", "content": "a city"}]
    parsed = client.chat.completions.parse(model="default", messages=said, response_format=City).choices[0].message.parsed
    same(parsed, City(name="text", people=7))
    same(json.loads(ask('say {"any": "thing"}', response_format={"type": "json_object"}).message.content), {"any": "thing"})


@check("pictures: of the user, of a tool, of a history")
def _():
    picture = {"type": "image_url", "image_url": {"url": DATA_URL}}
    seen = [{"role": "user", "content": [picture]}, {"role": "assistant", "content": "I see."}, {"role": "user", "content": "report"}]
    answer = client.chat.completions.create(model="default", messages=seen)
    same(json.loads(answer.choices[0].message.content)["pictures"], 1)
    said = [{"role": "user", "content": 'call weather {"city": "Bergen"}'}]
    first = client.chat.completions.create(model="default", messages=said, tools=TOOLS).choices[0]
    said += [*results(first.message, [picture]), {"role": "user", "content": "report"}]
    answer = client.chat.completions.create(model="default", messages=said, tools=TOOLS)
    same(json.loads(answer.choices[0].message.content)["pictures"], 1)


@check("stop texts, and a limit of tokens")
def _():
    same(ask("say Thought. Observation: made up", stop=["Observation:"]).message.content.strip(), "Thought.")
    facts = json.loads(ask("report", stop="END", max_completion_tokens=50).message.content)
    same((facts["stops"], facts["tokens"]), (1, 50))


@check("what cannot be is refused, and the field named")
def _():
    for field, value in (("n", 2), ("logprobs", True), ("functions", [{"name": "x"}])):
        try:
            ask("x", **{field: value})
        except openai.BadRequestError as error:
            same(error.param, field)
        else:
            raise AssertionError(f"{field} was taken")
