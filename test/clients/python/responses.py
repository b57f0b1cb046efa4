import time

import openai
from checks import TOKEN, URL, check, same

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
