"""pydantic-ai: agents over each of its models of OpenAI and Anthropic."""

import base64

from checks import PNG, TOKEN, URL, check, same
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

openai = OpenAIProvider(base_url=f"{URL}/v1", api_key=TOKEN)
MODELS = {
    "OpenAIChatModel": OpenAIChatModel("default", provider=openai),
    "OpenAIResponsesModel": OpenAIResponsesModel("default", provider=openai),
    # What a model can do the library knows by its name.
    "AnthropicModel": AnthropicModel(
        "default",
        provider=AnthropicProvider(base_url=URL, api_key=TOKEN),
        profile=ModelProfile(supports_json_schema_output=True),
    ),
}


class City(BaseModel):
    name: str
    people: int


def weather(city: str) -> str:
    """Weather of a city."""
    return f"rain in {city}"


def photo(city: str) -> BinaryContent:
    """A photo of a city."""
    return BinaryContent(base64.b64decode(PNG), media_type="image/png")


for name, model in MODELS.items():

    @check(f"{name}: run, and again with its history")
    def _():
        agent = Agent(model, instructions="Be brief.")
        first = agent.run_sync("hello")
        same(first.output, "You said: hello")
        same(agent.run_sync("again", message_history=first.all_messages()).output, "You said: again")

    @check(f"{name}: stream")
    def _():
        result = Agent(model).run_stream_sync("in a stream")
        same(list(result.stream_text())[-1], "You said: in a stream")

    @check(f"{name}: tools")
    def _():
        result = Agent(model, tools=[weather]).run_sync('call weather {"city": "Oslo"}')
        same(result.output, "The tools answered: rain in Oslo")

    @check(f"{name}: output by a tool, after a call of another")
    def _():
        agent = Agent(model, tools=[weather], output_type=ToolOutput(City))
        same(agent.run_sync('call weather {"city": "Oslo"}\ncall final_result {"name": "text", "people": 7}').output.people, 7)
        same(Agent(model, output_type=City).run_sync("a city").output, City(name="text", people=7))

    @check(f"{name}: output by the provider")
    def _():
        same(Agent(model, output_type=NativeOutput(City)).run_sync("a city").output, City(name="text", people=7))

    @check(f"{name}: output by a prompt")
    def _():
        asked = 'say {"name": "text", "people": 7}'
        same(Agent(model, output_type=PromptedOutput(City)).run_sync(asked).output, City(name="text", people=7))

    @check(f"{name}: a picture of the user, and of a tool")
    def _():
        agent = Agent(model, tools=[photo])
        answer = agent.run_sync(['call photo {"city": "Oslo"}', BinaryContent(base64.b64decode(PNG), media_type="image/png")])
        seen = agent.run_sync("report", message_history=answer.all_messages()).output
        assert '"pictures":2' in seen, seen
