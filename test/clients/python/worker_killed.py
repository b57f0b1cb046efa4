"""The worker dies while this reads its answer, and another one starts."""

import os

from openai import OpenAI

client = OpenAI(base_url=os.environ["PERDURA_URL"] + "/v1", api_key=os.environ["PERDURA_TOKEN"])
pieces = 0
with client.responses.stream(model="default", input="Say it in one breath.") as stream:
    for event in stream:
        pieces += event.type == "response.output_text.delta"
    answer = stream.get_final_response()
assert pieces > 0, "nothing was streamed"
assert client.responses.retrieve(answer.id).output_text == answer.output_text
print(answer.output_text)
