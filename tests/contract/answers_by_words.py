"""Run by itself: what a server answers without a model, and what it has imported by then, as JSON.

`absent`: no library of the extra can be imported, as without `nudge-mcp[semantic]`. `installed`: they can. `off`: they
can, and a model is in use, but the tier is `keyword`. `used`: the model is used as well.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.abc import MetaPathFinder
from typing import Any
from unittest import mock

OPTIONAL = ("numpy", "tokenizers", "onnxruntime", "safetensors")
NOTES = (
    ("Amounts are whole cents", "The price is an amount in cents, never a float. Money was lost in March."),
    ("Stamps are UTC", "A stamp in the local hour gave us rows twice. The clock is UTC."),
    ("Vessel registry", "Each vessel has a number on the hull. A boat without one is not listed."),
)
PROMPTS = ("store the price as a float", "is it a boat? is it a ship?", "rename the variable", "thanks, go on")
ASKED = ("price of a vessel", "where is cash counted", "hour", "")


class _Absent(MetaPathFinder):
    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        del path, target
        if fullname.partition(".")[0] in OPTIONAL:
            raise ModuleNotFoundError(name=fullname)


async def _answers(path: str, model: str | None, tier: str) -> list[Any]:
    from nudge.core.app import App
    from nudge.core.call import Call
    from nudge.core.context import Context
    from nudge.hints.lifetime import open_in_memory
    from nudge.interfaces.operations import OPERATIONS
    from nudge.settings.config import Settings
    from nudge.storage.database import Database

    here = Call(context=Context(project="github.com/acme/shop"))
    app = App(open_in_memory(Settings({"tier": tier})), OPERATIONS)
    app.database = Database.open(path)

    async def run(name: str, **params: Any) -> Any:
        return await app.execute(f"nudge.{name}", params, here)

    if model is not None:
        terminal = Call(context=here.context, interface="cli")
        await app.execute("nudge.semantic_use", {"directory": model}, terminal)
    answers = [await run("memory_store", title=title, content=text, kind="decision") for title, text in NOTES]
    answers.append(
        await run("memory_store", title="Stamps are not UTC", content="The clock is local.", kind="decision")
    )
    await app.meaning.embedded()
    answers.append(await run("set_hint", component="api", key="test", value="pytest -q"))
    answers += [await run("memory_recall", context=text) for text in ASKED if text]
    answers += [await run("memory_explain", query=text) for text in ASKED if text]
    answers += [await run("assemble_context", query=text) for text in ASKED if text]
    answers += [await run("inject", prompt=text) for text in PROMPTS]
    answers += [await run("query", text=text, context={}) for text in ("pytest", "nothing has this")]
    answers += [await run("memory_update", id=1, content="The price is in cents."), await run("memory_get", id=1)]
    answers += [await run("memory_auto_consolidate", dry_run=True), await run("memory_list"), await run("inject")]
    shown = await run("memory_capabilities")
    answers.append(shown["features"])
    await app.tick()
    app.database.close()
    return answers


def main() -> None:
    how, path, model = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None
    if how == "absent":
        sys.meta_path.insert(0, _Absent())
    import nudge.process.primary  # noqa: F401 - what a server imports at its start

    started = sorted(sys.modules)
    with mock.patch("nudge.core.clock.Clock.now", return_value=1_800_000_000.0):
        answers = asyncio.run(_answers(path, model, "keyword" if how == "off" else "semantic"))
    print(json.dumps({"answers": answers, "started": started, "imported": sorted(sys.modules)}))


if __name__ == "__main__":
    main()
