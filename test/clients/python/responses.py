import json
import time

import openai
from checks import DATA_URL, TOKEN, URL, check, same

client = openai.OpenAI(base_url=f"{URL}/v1", api_key=TOKEN)


@check("plain")
def _():
    same(client.responses.create(model="default", input="Where is Oslo?").output_text, "You said: Where is Oslo?")


@check("stream")
def _():
    with client.responses.stream(model="default", input="in a stream") as stream:
        pieces = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    same("".join(pieces), "You said: in a stream")
    same(final.output_text, "You said: in a stream")


@check("previous_response_id goes on, and forks from an earlier one")
def _():
    first = client.responses.create(model="default", input="one")
    second = client.responses.create(model="default", input="two", previous_response_id=first.id)
    other = client.responses.create(model="default", input="three", previous_response_id=first.id)
    same([second.output_text, other.output_text], ["You said: two", "You said: three"])
    same(client.responses.retrieve(second.id).output_text, "You said: two")


@check("background, retrieve, and a stream that starts after an event")
def _():
    begun = client.responses.create(model="default", input="Say it in one breath.", background=True)
    assert begun.status in ("queued", "in_progress"), begun.status
    events = list(client.responses.retrieve(begun.id, stream=True))
    rest = list(client.responses.retrieve(begun.id, stream=True, starting_after=events[1].sequence_number))
    same([event.sequence_number for event in rest], [event.sequence_number for event in events[2:]])
    for _ in range(100):
        done = client.responses.retrieve(begun.id)
        if done.status == "completed":
            break
        time.sleep(0.1)
    same(rest[-1].response.output_text, done.output_text)


@check("cancel")
def _():
    begun = client.responses.create(model="default", input="Say it in one breath.", background=True)
    assert client.responses.cancel(begun.id).status in ("cancelled", "completed")


@check("a wrong token")
def _():
    try:
        openai.OpenAI(base_url=f"{URL}/v1", api_key="wrong").responses.create(model="default", input="x")
    except openai.AuthenticationError as error:
        same(error.status_code, 401)
    else:
        raise AssertionError("it was let in")


# The model does what it is told (scripted-model.ts), and `report` says what its provider was asked.

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "name": name, "description": name, "parameters": CITY} for name in ("weather", "time_in")]


def results(response, output="rain"):
    calls = [item for item in response.output if item.type == "function_call"]
    return [{"type": "function_call_output", "call_id": call.call_id, "output": output} for call in calls]


@check("tools, without a stored response, and a choice that is forced beside their results")
def _():
    said = [{"role": "user", "content": 'call weather {"city": "Oslo"}'}]
    first = client.responses.create(model="default", input=said, tools=TOOLS)
    said += [*first.output, *results(first)]
    choice = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "time_in"}]}
    second = client.responses.create(model="default", input=said, tools=TOOLS, tool_choice=choice)
    same([item.name for item in second.output], ["time_in"])
    said += [*second.output, *results(second, "noon")]
    same(client.responses.create(model="default", input=said, tools=TOOLS).output_text, "The tools answered: noon")


@check("parallel calls off")
def _():
    both = 'call weather {"city": "Oslo"}\ncall time_in {"city": "Oslo"}'
    same(len(client.responses.create(model="default", input=both, tools=TOOLS, parallel_tool_calls=False).output), 1)


@check("structured output: json_schema by parse, json_object")
def _():
    from pydantic import BaseModel

    class City(BaseModel):
        name: str
        people: int

    same(client.responses.parse(model="default", input="a city", text_format=City).output_parsed, City(name="text", people=7))
    text = {"format": {"type": "json_object"}}
    same(json.loads(client.responses.create(model="default", input='say {"any": "thing"}', text=text).output_text), {"any": "thing"})


@check("a picture of a tool, and a limit of tokens")
def _():
    first = client.responses.create(model="default", input='call weather {"city": "Bergen"}', tools=TOOLS)
    given = results(first, [{"type": "input_image", "image_url": DATA_URL}])
    asked = {"role": "user", "content": "report"}
    facts = json.loads(client.responses.create(model="default", input=[*given, asked], previous_response_id=first.id).output_text)
    same(facts["pictures"], 1)
    same(json.loads(client.responses.create(model="default", input="report", max_output_tokens=50).output_text)["tokens"], 50)


@check("items by reference, and thinking that comes back")
def _():
    said = [{"role": "user", "content": "remember this"}]
    first = client.responses.create(model="default", input=said)
    said += [{"type": "reasoning", "id": "rs_1", "summary": []}, {"type": "item_reference", "id": first.output[0].id}]
    again = client.responses.create(model="default", input=[*said, {"role": "user", "content": "and now?"}])
    same(again.output_text, "You said: and now?")
    same(again.conversation.id, first.conversation.id)


@check("what cannot be is refused, and the field named")
def _():
    for param, more in (("tools.0.type", {"tools": [{"type": "web_search"}]}), ("prompt", {"prompt": {"id": "pmpt_1"}})):
        try:
            client.responses.create(model="default", input="x", **more)
        except openai.BadRequestError as error:
            same(error.param, param)
        else:
            raise AssertionError(f"{param} was taken")
