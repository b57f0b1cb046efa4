"""LangChain's models: Chat Completions, Responses and Messages behind one interface."""

import json

from checks import DATA_URL, PNG, TOKEN, URL, check, same
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

SETTINGS = {"model": "default", "api_key": TOKEN, "max_retries": 0}
MODELS = {
    "ChatOpenAI": ChatOpenAI(base_url=f"{URL}/v1", **SETTINGS),
    "ChatOpenAI, Responses": ChatOpenAI(base_url=f"{URL}/v1", use_responses_api=True, **SETTINGS),
    "ChatAnthropic": ChatAnthropic(base_url=URL, max_tokens=1000, **SETTINGS),
}
PICTURES = {
    "ChatOpenAI": {"type": "image_url", "image_url": {"url": DATA_URL}},
    "ChatOpenAI, Responses": {"type": "input_image", "image_url": DATA_URL},
    "ChatAnthropic": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
}


class City(BaseModel):
    """A city."""

    name: str
    people: int


@tool
def weather(city: str) -> str:
    """Weather of a city."""
    return f"rain in {city}"


@tool
def time_in(city: str) -> str:
    """Time in a city."""
    return f"noon in {city}"


def words(message):
    return message.text if isinstance(message.text, str) else message.text()


for name, model in MODELS.items():

    @check(f"{name}: invoke and stream")
    def _():
        same(words(model.invoke("hello")), "You said: hello")
        same("".join(words(chunk) for chunk in model.stream("in a stream")), "You said: in a stream")

    @check(f"{name}: tools, and a choice beside their results")
    def _():
        said = [HumanMessage('call weather {"city": "Oslo"}')]
        first = model.bind_tools([weather, time_in]).invoke(said)
        said += [first, *(weather.invoke(call) for call in first.tool_calls)]
        second = model.bind_tools([weather, time_in], tool_choice="time_in").invoke(said)
        same([call["name"] for call in second.tool_calls], ["time_in"])
        said += [second, *(time_in.invoke(call) for call in second.tool_calls)]
        same(words(model.bind_tools([weather, time_in]).invoke(said)), "The tools answered: noon in text")

    @check(f"{name}: tool_choice any, parallel calls off")
    def _():
        both = 'call weather {"city": "Oslo"}\ncall time_in {"city": "Oslo"}'
        bound = model.bind_tools([weather, time_in], tool_choice="any", parallel_tool_calls=False)
        same(len(bound.invoke(both).tool_calls), 1)

    for method in ("function_calling", "json_mode", "json_schema"):
        if name == "ChatAnthropic" and method == "json_mode":
            continue

        @check(f"{name}: structured output by {method}")
        def _():
            asked = 'say {"name": "text", "people": 7}' if method == "json_mode" else "a city"
            same(model.with_structured_output(City, method=method).invoke(asked), City(name="text", people=7))

    @check(f"{name}: pictures of the user and of a tool")
    def _():
        said = [HumanMessage([{"type": "text", "text": 'call weather {"city": "Bergen"}'}, PICTURES[name]])]
        first = model.bind_tools([weather]).invoke(said)
        said += [first, *(ToolMessage([PICTURES[name]], tool_call_id=call["id"]) for call in first.tool_calls), HumanMessage("report")]
        same(json.loads(words(model.bind_tools([weather]).invoke(said)))["pictures"], 2)


for name in ("ChatOpenAI", "ChatAnthropic"):

    @check(f"{name}: stop texts")
    def _():
        same(words(MODELS[name].invoke("say Thought. Observation: made up", stop=["Observation:"])).strip(), "Thought.")


for name, model in MODELS.items():

    @check(f"{name}: create_agent, with an answer by a tool")
    def _():
        from langchain.agents import create_agent
        from langchain.agents.structured_output import ToolStrategy

        agent = create_agent(model, [weather], response_format=ToolStrategy(City))
        state = agent.invoke({"messages": [HumanMessage('call weather {"city": "Rome"}')]})
        same(state["structured_response"], City(name="text", people=7))
