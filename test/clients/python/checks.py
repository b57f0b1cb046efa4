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


def cannot(name, why):
    """What is there with this library alone, or not with what stands behind this gateway."""
    print(json.dumps({"check": name, "result": "apart", "why": why}), flush=True)


# A picture of one pixel.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
DATA_URL = f"data:image/png;base64,{PNG}"


def same(found, expected):
    """Some libraries make classes of their own of those that they are given."""
    found, expected = (one.model_dump() if hasattr(one, "model_dump") else one for one in (found, expected))
    assert found == expected, f"{found!r} is not {expected!r}"
