"""A model from the hub that models are shared on: which files it needs, how large they are, and fetching them.

What is fetched is one commit, and each file has the size, and each large one the hash, that the hub names for it. A
directory is there with all of its files, or not at all.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import shutil
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any

from nudge.core.limits import GIB, KIB, MIB
from nudge.meaning.embedder import CONFIG, FILES, GRAPH, ONNX, STATIC, TOKENIZER, WEIGHTS

DEFAULT_MODEL = "minishlab/potion-retrieval-32M"
_HUB, _HUB_VARIABLE = "https://huggingface.co", "HF_ENDPOINT"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_SHA = re.compile(r"[0-9a-f]{7,64}")
_STATIC_TAGS = frozenset(("model2vec", "static-embeddings"))
_PLACES = {WEIGHTS: (WEIGHTS,), TOKENIZER: (TOKENIZER,), CONFIG: (CONFIG,), GRAPH: (GRAPH, f"onnx/{GRAPH}")}
_TIMEOUT = 30.0  # seconds without a byte
_MAX_LISTING, _MAX_BYTES, _CHUNK = 8 * MIB, 4 * GIB, 256 * KIB
_LOOPBACK = frozenset(("127.0.0.1", "localhost", "::1"))


class DownloadFailed(Exception):
    """Why a model cannot be fetched, as a sentence."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a model on the hub: its path there, its name here, and what it must be."""

    path: str
    name: str
    size: int
    sha256: str | None


@dataclass(frozen=True, slots=True)
class RemoteModel:
    name: str
    revision: str
    files: tuple[RemoteFile, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def sha256(self) -> str:
        """The hash of the weights."""
        largest = max(self.files, key=lambda file: file.size)
        return largest.sha256 or ""


def is_name(text: str) -> bool:
    """Whether a text is the name of a model on the hub: `owner/model`."""
    return _NAME.fullmatch(text) is not None and ".." not in text


def find_model(name: str, environ: Mapping[str, str] = os.environ) -> RemoteModel:
    """Ask the hub for the newest commit of a model and its files; raises DownloadFailed."""
    url = f"{_hub(environ)}/api/models/{name}/revision/main?blobs=true"
    with _open(url) as answer:
        listing = _parse(answer.read(_MAX_LISTING + 1), name)
    held = {str(file.get("rfilename")): file for file in listing["siblings"] if isinstance(file, dict)}
    tags = {str(tag) for tag in listing.get("tags") or ()} | {str(listing.get("library_name"))}
    kind = STATIC if tags & _STATIC_TAGS else ONNX
    files = tuple(_file(held, wanted, name) for wanted in FILES[kind])
    model = RemoteModel(name, listing["sha"], files)
    if model.size > _MAX_BYTES:
        raise DownloadFailed(f"{name} is larger than {_MAX_BYTES // GIB} GB")
    return model


def fetch(
    model: RemoteModel, directory: str, advance: Callable[[int], None], environ: Mapping[str, str] = os.environ
) -> None:
    """Fetch the files of a model into a directory, which is replaced as a whole; raises DownloadFailed. `advance` gets
    the number of bytes of each part."""
    unfinished = f"{directory}.part"
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        os.makedirs(unfinished, mode=0o700)
        for file in model.files:
            url = f"{_hub(environ)}/{model.name}/resolve/{model.revision}/{urllib.parse.quote(file.path)}"
            _fetch_file(url, file, os.path.join(unfinished, file.name), advance)
        shutil.rmtree(directory, ignore_errors=True)
        os.rename(unfinished, directory)
    except OSError as error:
        raise DownloadFailed(f"{directory} cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _fetch_file(url: str, file: RemoteFile, path: str, advance: Callable[[int], None]) -> None:
    digest, size = hashlib.sha256(), 0
    with _open(url) as answer, open(path, "xb") as target:
        for part in _parts(answer, file.name):
            size += len(part)
            if size > file.size:
                break
            digest.update(part)
            target.write(part)
            advance(len(part))
        target.flush()
        os.fsync(target.fileno())
    if size != file.size:
        raise DownloadFailed(f"{file.name} has another size than the hub says; try again")
    if file.sha256 is not None and digest.hexdigest() != file.sha256:
        raise DownloadFailed(f"{file.name} is not what the hub says it is: its hash differs")


def _parts(answer: IO[bytes], name: str) -> Iterator[bytes]:
    while True:
        try:
            part = answer.read(_CHUNK)
        except (OSError, http.client.HTTPException):
            raise DownloadFailed(f"the connection broke during {name}; try again") from None
        if not part:
            return
        yield part


def _parse(raw: bytes, name: str) -> dict[str, Any]:
    try:
        listing = json.loads(raw) if len(raw) <= _MAX_LISTING else None
    except ValueError:
        listing = None
    held = listing if isinstance(listing, dict) else {}
    if isinstance(held.get("siblings"), list) and _SHA.fullmatch(str(held.get("sha"))):
        return held
    raise DownloadFailed(f"the hub's answer about {name} cannot be understood")


def _file(held: Mapping[str, Mapping[str, Any]], wanted: str, name: str) -> RemoteFile:
    path = next((path for path in _PLACES[wanted] if path in held), None)
    if path is None:
        raise DownloadFailed(f"{name} has no {wanted}; a model needs the format of model2vec, or an ONNX graph")
    large = held[path].get("lfs")
    size = (large or held[path]).get("size")
    if not isinstance(size, int) or size <= 0:
        raise DownloadFailed(f"the hub does not say how large {path} is")
    sha256 = large.get("sha256") if isinstance(large, dict) else None
    return RemoteFile(path, wanted, size, sha256 if isinstance(sha256, str) else None)


def _hub(environ: Mapping[str, str]) -> str:
    address = environ.get(_HUB_VARIABLE, "").rstrip("/") or _HUB
    _check_address(address)
    return address


def _check_address(address: str) -> None:
    """Refuse an address that others on the way could answer for."""
    parts = urllib.parse.urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise DownloadFailed(f"{address} is not an https address")


class _Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> urllib.request.Request | None:
        _check_address(str(args[-1] if args else kwargs["newurl"]))
        return super().redirect_request(*args, **kwargs)


def _open(url: str) -> IO[bytes]:
    request = urllib.request.Request(url, headers={"User-Agent": "nudge"})  # noqa: S310 - https or loopback
    try:
        answer: IO[bytes] = urllib.request.build_opener(_Redirects).open(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        missing = "there is no such model" if error.code in (401, 404) else f"it answered {error.code}"
        raise DownloadFailed(f"{url.partition('?')[0]}: {missing}") from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        host = urllib.parse.urlsplit(url).netloc
        raise DownloadFailed(f"{host} cannot be reached ({reason}); name a directory that has the model") from None
    return answer
