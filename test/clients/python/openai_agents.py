"""OpenAI's own agents, over Chat Completions and Responses: their loop runs in the client, and each of its agents is one here."""

import asyncio

from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from checks import TOKEN, URL, check, same
from openai import AsyncOpenAI
from pydantic import BaseModel

set_tracing_disabled(True)
# Connections are of one loop.
LOOP = asyncio.new_event_loop()


class City(BaseModel):
    name: str
    people: int


@function_tool
def weather(city: str) -> str:
    """Weather of a city."""
    return f"rain in {city}"


@function_tool
def time_in(city: str) -> str:
    """Time in a city."""
    return f"noon in {city}"


for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):

    def agent(**more):
        model = kind(model="default", openai_client=AsyncOpenAI(base_url=f"{URL}/v1", api_key=TOKEN))
        return Agent(name="Guide", instructions="Be brief.", model=model, **more)

    def run(one, words):
        return LOOP.run_until_complete(Runner.run(one, words))

    @check(f"{kind.__name__}: run, and again with its history")
    def _():
        first = run(agent(), "hello")
        same(first.final_output, "You said: hello")
        same(run(agent(), [*first.to_input_list(), {"role": "user", "content": "again"}]).final_output, "You said: again")

    @check(f"{kind.__name__}: stream")
    def _():
        async def streamed():
            result = Runner.run_streamed(agent(), "in a stream")
            deltas = [e.data.delta async for e in result.stream_events() if e.type == "raw_response_event" and e.data.type.endswith("text.delta")]
            return "".join(deltas), result.final_output

        same(LOOP.run_until_complete(streamed()), ("You said: in a stream",) * 2)

    @check(f"{kind.__name__}: tools, a required call and one at a time")
    def _():
        settings = ModelSettings(tool_choice="required", parallel_tool_calls=False)
        both = 'call weather {"city": "Oslo"}\ncall time_in {"city": "Oslo"}'
        same(run(agent(tools=[weather, time_in], model_settings=settings), both).final_output, "The tools answered: rain in Oslo")

    @check(f"{kind.__name__}: an output type")
    def _():
        same(run(agent(output_type=City), "a city").final_output, City(name="text", people=7))

    @check(f"{kind.__name__}: a handoff")
    def _():
        other = agent(tools=[weather]).clone(name="Other")
        same(run(agent(handoffs=[other]), "call transfer_to_other {}").last_agent.name, "Other")
