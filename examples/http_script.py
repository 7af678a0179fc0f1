"""A script that speaks to Nudge over HTTP: JSON-RPC 2.0, one call, a batch, and a refusal.

Nothing here is Python's alone. Any language can ask the command line for port and token, then POST.

    .venv/bin/python examples/http_script.py
"""

from __future__ import annotations

import json
import subprocess
import sys
from http.client import HTTPConnection
from typing import Any


def nudge(*words: str) -> str:
    """The output of `nudge ...`, also where the command is not on PATH."""
    return subprocess.run([sys.executable, "-m", "nudge", *words], check=True, capture_output=True, text=True).stdout


class JsonRpc:
    """`POST /` on loopback. The token is what tells this user's programs from everybody else's."""

    def __init__(self) -> None:
        nudge("ls")  # starts a server if there is none; `status` and `token` never do
        self._port = int(json.loads(nudge("status", "--json"))["port"])
        self._headers = {"Authorization": f"Bearer {nudge('token').strip()}", "Content-Type": "application/json"}

    def post(self, message: object) -> Any:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=10)
        try:
            connection.request("POST", "/", json.dumps(message), self._headers)
            return json.load(connection.getresponse())
        finally:
            connection.close()


def request(number: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def main() -> None:
    rpc = JsonRpc()
    name = {"component": "http-script", "key": "directory"}

    # One key, one value for each system, in one batch; gone after five minutes, since your hints are real.
    places = {"linux": "/home/me/proxy", "darwin": "/Users/me/proxy", "windows": "C:\\code\\proxy"}
    variants = [
        request(
            number,
            "nudge.set_hint",
            **name,
            value={"type": "path", "abs": place},
            meta={"ttl": "PT5M", "scope": {"os": [system]}},
        )
        for number, (system, place) in enumerate(places.items())
    ]
    print("set:", *(f"v{answer['result']['hint']['version']}" for answer in rpc.post(variants)))

    # JSON-RPC adds no context of its own: the caller says where it is.
    found = rpc.post(request(10, "nudge.get_hint", **name, context={"os": "windows"}))["result"]
    print("on windows:", found["hint"]["value"]["abs"], found["match_explain"]["reasons"])

    error = rpc.post(request(11, "nudge.get_hint", **name))["error"]
    print("on nothing:", error["data"]["reason"], "-", error["data"]["why_not"][0]["reasons"][0])


if __name__ == "__main__":
    main()
