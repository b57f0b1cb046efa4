"""Each check is printed as a line of JSON, whatever becomes of it."""

import json
import os

URL = os.environ["PERDURA_URL"]
TOKEN = os.environ["PERDURA_TOKEN"]


def check(name):
    def run(act):
        try:
            act()
            outcome = {"check": name, "result": "passed"}
        except Exception as error:
            outcome = {"check": name, "result": "failed", "why": f"{type(error).__name__}: {error}"[:500]}
        print(json.dumps(outcome), flush=True)

    return run


def same(found, expected):
    assert found == expected, f"{found!r} is not {expected!r}"
