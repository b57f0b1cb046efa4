import anthropic
from checks import TOKEN, URL, check, same

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
