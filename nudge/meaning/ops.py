"""The operations on the model: which one is used, if any."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated, Any

from pydantic import Field

from nudge.core.app import App
from nudge.core.call import Call, NoParams, Params, Result
from nudge.core.errors import Invalid
from nudge.core.operation import operation
from nudge.meaning import store
from nudge.meaning.embedder import ModelUnusable, open_embedder, size_of
from nudge.meaning.store import Model


class UseModel(Params):
    directory: Annotated[str, Field(min_length=1, max_length=4_096, description="absolute")]
    name: Annotated[str, Field(max_length=256)] = ""
    revision: Annotated[str, Field(max_length=64)] = ""
    sha256: Annotated[str, Field(max_length=64)] = ""


class UseModelResult(Result):
    """`waiting`: notes that are embedded in the background; `anew`: all of them, since it is another model."""

    model: str
    dimension: int
    anew: bool
    waiting: int


class ForgetModelResult(Result):
    removed: bool
    directory: str | None


@operation(
    "nudge.semantic_use",
    tool="semantic_use",
    group="admin",
    effect="write",
    route="POST /api/v1/semantic",
    result=UseModelResult,
    listed=False,
    summary="Notes: find them by the model in a directory of this machine; only at a terminal.",
)
async def use_model(app: App, params: UseModel, call: Call) -> Any:
    """A model is loaded by native code: what it is, only the user decides."""
    _refuse_agents(call)
    if not os.path.isabs(params.directory):
        raise Invalid("must be an absolute path", field="directory")
    directory = os.path.normpath(params.directory)
    try:
        embedder = await asyncio.to_thread(open_embedder, directory)
    except ModelUnusable as error:
        raise Invalid(str(error), field="directory") from None
    name = params.name or os.path.basename(directory)
    size = await asyncio.to_thread(size_of, directory)
    model = Model(embedder.fingerprint, directory, name, params.revision, params.sha256, embedder.dimension, size)
    is_other = await app.write(call, lambda connection: store.use_model(connection, model))
    app.meaning.forget()
    await app.meaning.start()
    counts = await app.read(store.progress)
    return {"model": name, "dimension": model.dimension, "anew": is_other, "waiting": counts.waiting}


@operation(
    "nudge.semantic_off",
    tool="semantic_off",
    group="admin",
    effect="delete",
    route="DELETE /api/v1/semantic",
    result=ForgetModelResult,
    listed=False,
    summary="Notes: find them by words only, and delete the vectors of all notes; only at a terminal.",
)
async def forget_model(app: App, _params: NoParams, call: Call) -> Any:
    _refuse_agents(call)
    model = await app.read(store.read_model)
    await app.write(call, store.forget_model)
    app.meaning.forget()
    return {"removed": model is not None, "directory": None if model is None else model.directory}


def _refuse_agents(call: Call) -> None:
    if call.interface != "cli":
        raise Invalid("is done by a person at a terminal; nudge semantic --help")
