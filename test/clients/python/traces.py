"""What Phoenix has of one conversation, read with its client."""

import json
import os
import time

from phoenix.client import Client

from checks import check

CONVERSATION = os.environ["CONVERSATION"]
TURNS = 8
client = Client(base_url=os.environ["PHOENIX_URL"])


def all_spans():
    """Waits until the turns and the sub-agent's are there: they are sent in batches."""
    spans = []
    for _ in range(240):
        spans = client.spans.get_spans(project_identifier="default", limit=1000)
        agents = [one for one in spans if one["span_kind"] == "AGENT"]
        if len(agents) >= TURNS + 1 and any(one["name"] == "compaction" for one in spans):
            return spans
        time.sleep(0.5)
    raise AssertionError(f"after two minutes there are only {sorted(one['name'] for one in spans)}")


spans = all_spans()


def mine(kind=None, name=None):
    return [one for one in spans if (kind is None or one["span_kind"] == kind) and (name is None or one["name"] == name)]


def attribute(span, name):
    return span["attributes"].get(name)


def turn(number):
    (found,) = [
        one
        for one in mine("AGENT")
        if attribute(one, "perdura.turn") == f"turn_{number:04d}" and attribute(one, "gen_ai.conversation.id") == CONVERSATION
    ]
    return found


def below(parent):
    children = [one for one in spans if one["parent_id"] == parent["context"]["span_id"]]
    return sorted(children, key=lambda one: one["start_time"])


def kinds(parent):
    return [one["span_kind"] for one in below(parent)]


@check("nothing is of an unknown kind")
def known_kinds():
    unknown = [one["name"] for one in spans if one["span_kind"] not in ("AGENT", "LLM", "TOOL", "CHAIN")]
    assert unknown == [], unknown


@check("a turn with a tool is AGENT, with LLM, TOOL, LLM below it, in one trace")
def tree():
    assert kinds(turn(1))[:3] == ["LLM", "TOOL", "LLM"], kinds(turn(1))
    assert {one["context"]["trace_id"] for one in below(turn(1))} == {turn(1)["context"]["trace_id"]}
    assert turn(1)["parent_id"] is None


@check("an approval is a CHAIN between the call and its TOOL")
def approval():
    names = [one["name"] for one in below(turn(2))]
    assert names == ["chat claude-sonnet-4-5", "approval write_file", "execute_tool write_file", "chat claude-sonnet-4-5"], names
    (asked,) = mine(name="approval write_file")
    assert attribute(asked, "output.value") == "as you like", asked


@check("delegate is a TOOL with the task and the answer; the sub-agent is an AGENT in the same session")
def delegated():
    (tool,) = mine(name="execute_tool delegate")
    assert tool["parent_id"] == turn(3)["context"]["span_id"]
    assert json.loads(attribute(tool, "input.value"))["task"] == "Find the opening hours."
    assert attribute(tool, "output.value") == "From nine to five."
    (clerk,) = mine(name="invoke_agent clerk")
    assert attribute(clerk, "input.value") == "Find the opening hours.", attribute(clerk, "input.value")
    assert attribute(clerk, "output.value") == "From nine to five."
    assert attribute(clerk, "session.id") == CONVERSATION
    assert kinds(clerk) == ["LLM"]


@check("a compaction is a CHAIN, with the model that it asks below it")
def compacted():
    (made,) = mine(name="compaction")
    assert made["span_kind"] == "CHAIN" and "LLM" in kinds(made), kinds(made)
    assert attribute(made, "perdura.compaction.tokens_before") > 0


@check("every AGENT, LLM and TOOL has its input and its output")
def contents():
    bare = [
        (one["name"], name)
        for one in spans
        for name in ("input.value", "output.value")
        if one["span_kind"] in ("AGENT", "LLM", "TOOL") and not attribute(one, name)
    ]
    assert bare == [], bare
    assert attribute(turn(1), "input.value") == "What time is it?"
    assert attribute(turn(1), "output.value") == "That is done."
    first = below(turn(1))[0]
    assert attribute(first, "llm.input_messages.0.message.role") == "system", sorted(first["attributes"])
    assert "get_time" in json.dumps(first["attributes"])


@check("every LLM has model, provider, tokens with what a cache took and had, and its finish reason")
def tokens():
    for one in mine("LLM"):
        assert attribute(one, "llm.model_name") == "claude-sonnet-4-5", one
        assert attribute(one, "llm.provider") == "anthropic"
        assert attribute(one, "llm.token_count.prompt") == 180, one["attributes"]
        assert attribute(one, "llm.token_count.completion") == 20
        assert attribute(one, "llm.token_count.prompt_details.cache_read") == 50
        assert attribute(one, "llm.token_count.prompt_details.cache_write") == 30
        assert attribute(one, "llm.finish_reason") in ("stop", "tool_call"), attribute(one, "llm.finish_reason")
        assert attribute(one, "server.address") == "127.0.0.1"
        assert attribute(one, "gen_ai.response.id")


def query(text, **variables):
    response = client._client.post("graphql", json={"query": text, "variables": variables})
    body = response.json()
    assert "errors" not in body, body
    return body["data"]


@check("Phoenix's cost of the session is ours, and its tokens are those of the model calls, once")
def cost():
    data = query(
        """{ projects { edges { node { name sessions(first: 50) { edges { node {
             sessionId numTraces tokenUsage { total } costSummary { total { cost } } } } } } } } }"""
    )
    (project,) = [edge["node"] for edge in data["projects"]["edges"] if edge["node"]["name"] == "default"]
    sessions = [edge["node"] for edge in project["sessions"]["edges"]]
    assert [one["sessionId"] for one in sessions] == [CONVERSATION], sessions
    (session,) = sessions
    ours = sum(attribute(one, "llm.cost.total") for one in mine("LLM"))
    assert abs(session["costSummary"]["total"]["cost"] - ours) < 1e-6, (session, ours)
    assert session["tokenUsage"]["total"] == 200 * len(mine("LLM")), session


@check("the session has all turns, in their order")
def session():
    turns = client.sessions.get_session_turns(session_id=CONVERSATION)
    asked = [(one.get("input") or {}).get("value") for one in turns]
    expected = ["What time is it?", "Write it down.", "Let the clerk look it up.", "And 4?", "And 5?", "And 6?", "And 7?", "And now?"]
    assert [one for one in asked if one in expected] == expected, asked

