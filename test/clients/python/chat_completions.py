import openai
from checks import TOKEN, URL, check, same

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
