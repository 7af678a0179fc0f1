"""The verbs for recall by meaning: `nudge semantic` with on, off and status."""

from __future__ import annotations

import os
from typing import Any

import click

from nudge.cli import output, plain
from nudge.cli.app import verb, verb_group
from nudge.cli.output import EXIT_OK, EXIT_REFUSED, Console, Usage
from nudge.cli.plain import Invocation
from nudge.cli.prompts import progress
from nudge.cli.verbs import NOTES
from nudge.core import paths
from nudge.core.text import escape, format_size
from nudge.meaning.download import DEFAULT_MODEL, DownloadFailed, fetch, find_model, is_name
from nudge.meaning.embedder import ModelUnusable, open_embedder, size_of

_STATUS = "nudge.memory_capabilities"

verb_group(
    "semantic",
    __name__,
    "Words find a note that has them; a model also finds one that says the same in other words. It runs on this"
    " machine. It needs: pip install 'nudge-mcp[semantic]'",
    "nudge semantic on",
    "nudge semantic status",
    group=NOTES,
    summary="find notes also by their meaning",
)


@verb(
    "semantic on",
    "nudge semantic on",
    "nudge semantic on minishlab/potion-base-8M",
    "nudge semantic on ~/models/minilm",
    group=NOTES,
    summary="use a model for the meaning of notes",
    operations=("nudge.semantic_use",),
)
@click.argument(
    "model",
    metavar="[MODEL]",
    required=False,
    help=f"A name on the hub (default: {DEFAULT_MODEL}), or a directory.",
)
def on(invocation: Invocation, model: str | None) -> int:
    """Downloads the model, unless it is a directory, and embeds every note in the background. A directory has
    model.safetensors, tokenizer.json and config.json in the format of model2vec, or model.onnx and tokenizer.json."""
    console, wanted = invocation.console, model or DEFAULT_MODEL
    about: dict[str, str] = {}
    directory = plain.absolute_path(wanted)
    if not os.path.isdir(directory):
        if not is_name(wanted):
            raise Usage(f"{wanted!a} is neither a directory nor the name of a model", "a name is: owner/model")
        directory, about = _download(console, wanted)
    try:
        open_embedder(directory)
    except ModelUnusable as error:
        console.note(escape(str(error)))
        return EXIT_REFUSED
    used = invocation.client().call("nudge.semantic_use", {"directory": directory, **about})
    state = "every note is embedded already"
    if used["waiting"]:
        state = f"{output.count(used['waiting'], 'note')} will be embedded in the background: nudge semantic status"
    lines = [console.styler.done(f"notes are found by {escape(used['model'])}"), f"  {state}"]
    console.result({**used, "directory": directory, **about}, lines)
    return EXIT_OK


def _download(console: Console, name: str) -> tuple[str, dict[str, str]]:
    """Fetch a model unless its newest commit is there, and return its directory and what is known about it."""
    try:
        remote = find_model(name)
        directory = os.path.join(paths.data_dir(), "models", name.replace("/", "--"), remote.revision[:12])
        if not os.path.isdir(directory):
            console.note(f"{escape(name)} is {format_size(remote.size)}; it goes to {escape(directory)}")
            paths.ensure_private_dir(paths.data_dir())
            with progress(console, "download", remote.size) as advance:
                fetch(remote, directory, advance)
    except DownloadFailed as error:
        raise Usage(str(error), "see: nudge semantic on --help") from None
    return directory, {"name": name, "revision": remote.revision, "sha256": remote.sha256}


@verb(
    "semantic off",
    "nudge semantic off",
    group=NOTES,
    summary="find notes by their words only",
    operations=("nudge.semantic_off",),
)
def off(invocation: Invocation) -> int:
    """Deletes the vectors of all notes. The files of the model stay where they are."""
    console, result = invocation.console, invocation.client().call("nudge.semantic_off", {})
    directory = result["directory"]
    lines = [console.styler.done("notes are found by their words")]
    if directory is not None and os.path.isdir(directory):
        lines.append(f"  the model is still in {escape(directory)} ({format_size(size_of(directory))})")
    console.result(result, lines)
    return EXIT_OK


@verb(
    "semantic status",
    "nudge semantic status",
    group=NOTES,
    summary="show the model, and how many notes are embedded",
    operations=(_STATUS,),
)
def status(invocation: Invocation) -> int:
    """Says why notes are not found by meaning when they are not."""
    result = invocation.client().call(_STATUS, {})
    invocation.console.result(result, _status_lines(result["tier"], result["semantic"]))
    return EXIT_OK


def _status_lines(tier: str, semantic: dict[str, Any]) -> list[str]:
    reason = semantic["reason"]
    found = "their words and their meaning" if reason is None else "their words"
    lines = [f"notes are found by {found} (tier {tier})"]
    if semantic["model"] is not None:
        about = f"{semantic['dimension']} dimensions, in {escape(semantic['directory'])}"
        lines.append(f"  model     {escape(semantic['model'])}, {about}")
        lines.append(f"  embedded  {semantic['embedded']:,} of {output.count(semantic['notes'], 'note')}")
    return [*lines, f"  {escape(reason)}"] if reason is not None else lines
