"""A client that openapi-python-client makes of `/openapi.json`."""

import time

from perdura_client import AuthenticatedClient
from perdura_client.api.control import decide, list_approvals
from perdura_client.api.conversations import get_conversation, list_conversations, start_conversation
from perdura_client.api.turns import get_turn, list_entries, send_message
from perdura_client.models import Decision, DecisionDecision, Message, SendMessageMode, StartConversationBody, Submitted, TurnResult

from checks import TOKEN, URL, check, same

client = AuthenticatedClient(base_url=URL, token=TOKEN, timeout=90)
TITLE = "By a generated client"


def start():
    return start_conversation.sync(client=client, body=StartConversationBody(title=TITLE)).id


@check("start, list, send and wait, read")
def words():
    id = start()
    listed = list_conversations.sync(client=client, text=TITLE, limit=500)
    assert id in [one.id for one in listed.conversations], listed
    result = send_message.sync(id=id, client=client, body=Message(text="say hello"), wait=60)
    assert isinstance(result, TurnResult), result
    same([result.text, result.stop_reason], ["hello", "end"])
    same(get_turn.sync(id=id, turn=result.turn_id, client=client, wait=0).to_dict(), result.to_dict())
    same([one.message.role for one in list_entries.sync(id=id, client=client).entries], ["user", "assistant"])
    same(get_conversation.sync(id=id, client=client).title, TITLE)


@check("send, see what waits, approve it, read the answer")
def approval():
    id = start()
    text = 'run write_file {"path": "Makefile", "content": "all:"}'
    sent = send_message.sync(id=id, client=client, body=Message(text=text), mode=SendMessageMode.ENQUEUE)
    assert isinstance(sent, Submitted), sent
    for _ in range(120):
        waiting = list_approvals.sync(id=id, client=client).approvals
        if waiting:
            break
        time.sleep(0.25)
    same([(one.kind, one.tool, one.turn_id) for one in waiting], [("approval", "write_file", sent.turn)])
    body = Decision(call_id=waiting[0].call_id, hash_=waiting[0].hash_, decision=DecisionDecision.APPROVE)
    same(decide.sync(id=id, client=client, body=body).decision, "approve")
    ended = get_turn.sync(id=id, turn=sent.turn, client=client, wait=60)
    same([ended.tool_calls, ended.stop_reason], [1, "end"])


@check("what is not there is a typed problem")
def missing():
    answer = get_turn.sync_detailed(id=start(), turn="turn_0009", client=client, wait=0)
    same([answer.status_code.value, answer.parsed.status, answer.parsed.title], [404, 404, "not-found"])
