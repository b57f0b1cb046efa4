"""instructor: each of its modes that OpenAI's and Anthropic's protocols have."""

from typing import Iterable

import instructor
from anthropic import Anthropic
from checks import TOKEN, URL, check, same
from openai import OpenAI
from pydantic import BaseModel


class City(BaseModel):
    name: str
    people: int


JSON = 'say {"name": "text", "people": 7}'
openai = OpenAI(base_url=f"{URL}/v1", api_key=TOKEN)
anthropic = Anthropic(base_url=URL, api_key=TOKEN)
MODES = [
    (instructor.Mode.TOOLS, "a city"),
    (instructor.Mode.TOOLS_STRICT, "a city"),
    (instructor.Mode.JSON, JSON),
    (instructor.Mode.JSON_SCHEMA, "a city"),
    (instructor.Mode.MD_JSON, JSON),
    (instructor.Mode.RESPONSES_TOOLS, "a city"),
    (instructor.Mode.ANTHROPIC_TOOLS, "a city"),
    (instructor.Mode.ANTHROPIC_JSON, JSON),
]

for mode, words in MODES:

    @check(mode.name)
    def _():
        more = {}
        if mode.name.startswith("ANTHROPIC"):
            client = instructor.from_anthropic(anthropic, mode=mode)
            more = {"max_tokens": 1000}
        else:
            client = instructor.from_openai(openai, mode=mode)
        said = [{"role": "user", "content": words}]
        same(client.create(model="default", messages=said, response_model=City, max_retries=1, **more), City(name="text", people=7))


@check("PARALLEL_TOOLS")
def _():
    client = instructor.from_openai(openai, mode=instructor.Mode.PARALLEL_TOOLS)
    call = 'call City {"name": "text", "people": 7}'
    said = [{"role": "user", "content": f"{call}\n{call}"}]
    same([city.people for city in client.create(model="default", messages=said, response_model=Iterable[City])], [7, 7])


@check("a partial answer, streamed")
def _():
    client = instructor.from_openai(openai, mode=instructor.Mode.TOOLS)
    pieces = client.create_partial(model="default", messages=[{"role": "user", "content": "a city"}], response_model=City)
    same(list(pieces)[-1].model_dump(), {"name": "text", "people": 7})


@check("an answer that does not fit is asked for again")
def _():
    client = instructor.from_openai(openai, mode=instructor.Mode.JSON)
    said = [{"role": "user", "content": 'say {"name": "text"}'}]
    try:
        client.create(model="default", messages=said, response_model=City, max_retries=2)
    except Exception as error:
        assert "people" in str(error), error
    else:
        raise AssertionError("it was taken")
