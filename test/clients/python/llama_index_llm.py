"""LlamaIndex: its LLM of OpenAI, which has a list of the models that it knows: for another one it is told the size."""

import asyncio

from checks import PNG, TOKEN, URL, check, same
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage, ImageBlock, LLMMetadata, TextBlock
from llama_index.core.program import FunctionCallingProgram
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai import OpenAI, OpenAIResponses
from pydantic import BaseModel

SIZE = LLMMetadata(context_window=100_000, is_chat_model=True, is_function_calling_model=True, model_name="default")
SETTINGS = {"model": "default", "api_base": f"{URL}/v1", "api_key": TOKEN, "max_retries": 0}


class Chat(OpenAI):
    @property
    def metadata(self):
        return SIZE


class Responses(OpenAIResponses):
    @property
    def metadata(self):
        return SIZE


class City(BaseModel):
    name: str
    people: int


def weather(city: str) -> str:
    """Weather of a city."""
    return f"rain in {city}"


def time_in(city: str) -> str:
    """Time in a city."""
    return f"noon in {city}"


TOOLS = [FunctionTool.from_defaults(weather), FunctionTool.from_defaults(time_in)]

for name, model in (("OpenAI", Chat(**SETTINGS)), ("OpenAIResponses", Responses(**SETTINGS))):

    @check(f"{name}: chat and stream")
    def _():
        said = [ChatMessage("hello")]
        same(model.chat(said).message.content, "You said: hello")
        same(list(model.stream_chat(said))[-1].message.content, "You said: hello")

    @check(f"{name}: a call that is required, parallel calls off")
    def _():
        both = 'call weather {"city": "Oslo"}\ncall time_in {"city": "Oslo"}'
        answer = model.chat_with_tools(TOOLS, user_msg=both, tool_required=True, allow_parallel_tool_calls=False)
        same(len(model.get_tool_calls_from_response(answer)), 1)

    @check(f"{name}: structured output by a tool, and as an LLM of a class")
    def _():
        program = FunctionCallingProgram.from_defaults(output_cls=City, prompt_template_str="a city", llm=model)
        same(program(), City(name="text", people=7))
        same(model.as_structured_llm(City).chat([ChatMessage("a city")]).raw, City(name="text", people=7))

    @check(f"{name}: a picture")
    def _():
        said = [ChatMessage(blocks=[ImageBlock(image=PNG, image_mimetype="image/png"), TextBlock(text="report")])]
        content = model.chat(said).message.content
        assert '"pictures":1' in content, content

    @check(f"{name}: FunctionAgent")
    def _():
        agent = FunctionAgent(llm=model, tools=[weather])

        async def run():
            return str(await agent.run('call weather {"city": "Rome"}'))

        same(asyncio.run(run()), "The tools answered: rain in Rome")
