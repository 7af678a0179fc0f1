"""`python -m tests.meaning`: what recall by meaning finds, tells and costs, with real models; says which floor is
missed."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from nudge.meaning.embedder import open_embedder
from nudge.telling.closest import LEAST
from tests.bench import decisions, report
from tests.bench.report import Row
from tests.meaning import cost, oracle, recall, told
from tests.meaning.models import make_minilm, make_wordllama
from tests.meaning.recall import OWN, Figures, Method
from tests.meaning.stores import Cached

STATIC, LARGE = "WordLlama", "MiniLM"
_KEYWORD = "keyword"

FLOORS: dict[tuple[str, str], tuple[str, float]] = {
    (_KEYWORD, "LongMemEval, 48 notes"): ("any_5", 95.4),
    (_KEYWORD, "LongMemEval, pooled"): ("any_5", 90.0),
    (STATIC, "LongMemEval, 48 notes"): ("any_5", 96.5),
    (STATIC, "LongMemEval, pooled"): ("any_5", 92.0),
    (LARGE, "LongMemEval, 48 notes"): ("any_5", 96.5),
    (LARGE, "LongMemEval, pooled"): ("any_5", 92.0),
    (STATIC, "decisions, paraphrase"): ("any_3", 50.0),
    (LARGE, "decisions, paraphrase"): ("any_3", 75.0),
    (STATIC, "fieldwork, paraphrase"): ("any_3", 50.0),
    (LARGE, "fieldwork, paraphrase"): ("any_3", 75.0),
}
"""Of which figure, and how much at least, in percent."""
TOLD, FALSE = 25.0, 3.0  # % of paraphrases with the larger model, and of the prompts where silence is due
GIVEN = ("decisions", "own_decisions")
HELD_OUT = (*GIVEN, "fieldwork")
MOST_MB, MOST_RATIO, MOST_DIFFERENCE = 70.0, 2.0, 2.0
MOST_START, MOST_STARTED_MB = 1.1, 2.0  # the model is loaded with the first question


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.meaning")
    parser.add_argument("--quick", action="store_true", help="without LongMemEval and the costs")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory() as scratch:
        rows = list(_measure(Path(scratch), quick=quick))
    missed = [row for row in rows if not row.ok]
    print(report.table(rows))
    print(f"{len(missed)} of {len(rows)} missed" if missed else f"all {len(rows)} kept")
    return 1 if missed else 0


def _measure(scratch: Path, *, quick: bool) -> Iterator[Row]:
    directories = {STATIC: make_wordllama(scratch / "wordllama"), LARGE: make_minilm(scratch / "minilm")}
    difference = oracle.largest_difference(directories[STATIC], scratch / "quantized")
    yield Row("loader", "largest difference to model2vec, in thousandths", 1e3 * difference, MOST_DIFFERENCE, "x")
    difference = oracle.largest_difference_of_onnx(directories[STATIC], scratch / "graph")
    yield Row("loader", "largest difference to an ONNX graph, in thousandths", 1e3 * difference, MOST_DIFFERENCE, "x")
    embedders = {name: Cached(open_embedder(str(directory))) for name, directory in directories.items()}
    methods = recall.methods(embedders)
    found = {name: dict(_recall(name, method, quick=quick)) for name, method in methods.items()}
    _print_recall(found)
    for (name, what), (figure, floor) in FLOORS.items():
        if what in found[name]:
            measured = getattr(found[name][what], figure)
            label = f"{name}: {what}, any@{figure.removeprefix('any_')}"
            yield Row("recall", label, measured, floor - 0.05, "%", at_least=True)
    yield from _told(methods)
    if not quick:
        yield from _costs(directories[STATIC], scratch)


def _recall(name: str, method: Method, *, quick: bool) -> Iterator[tuple[str, Figures]]:
    if not quick:
        yield from recall.long_memory(method)
    yield from recall.decided(method, "decisions", decisions.DATA / "decisions.json")
    yield from recall.decided(method, "fieldwork", OWN)
    documents, amended = recall.conversations(method)
    yield from documents
    of = amended.of
    print(
        f"{name}: the amendment before what it replaces {amended.first} of {of}, what it replaces is named when it is"
        f" stored {amended.named} of {of}, first in a context once that is resolved {amended.resolved} of {of}"
    )


def _print_recall(found: Mapping[str, Mapping[str, Figures]]) -> None:
    print(f"\n{'set':<26}{'n':>5}  {'method':<10}{'any@1':>7}{'any@3':>7}{'any@5':>7}{'any@10':>8}{'MRR':>7}{'ms':>8}")
    for what in found[_KEYWORD]:
        for name, sets in found.items():
            one = sets[what]
            shares = f"{one.any_1:7.1f}{one.any_3:7.1f}{one.any_5:7.1f}{one.any_10:8.1f}{one.mrr:7.1f}{one.ms:8.1f}"
            print(f"{what:<26}{one.questions:>5}  {name:<10}{shares}")
    print()


def _told(methods: Mapping[str, Method]) -> Iterator[Row]:
    counted = {name: dict(told.on_prompts(method)) for name, method in methods.items()}
    for name, method in methods.items():
        for what, counts in counted[name].items():
            kinds = [kind.removesuffix(" of") for kind in counts if kind.endswith(" of")]
            shown = ", ".join(
                f"{kind} {counts[f'{kind} right']} right of {counts[f'{kind} told']} told of {counts[f'{kind} of']}"
                for kind in kinds
                if kind != "silent"
            )
            print(f"told, {name}, {what}: {shown}; silent {counts['silent told']} of {counts['silent of']}")
        for what, share, of in told.carried(method):
            print(f"told, {name}, deciding words carried, {what}: {share:.1f} % of {of}")
    _print_curve(methods[LARGE])
    words, large = counted[_KEYWORD], counted[LARGE]
    for label, sets in {"decisions": ("decisions",), "held out": HELD_OUT}.items():
        one = _total(large, sets)
        yield _told_row(f"{LARGE}: paraphrases told right, {label}", one, "paraphrase right", TOLD, at_least=True)
    for label, sets in {"decisions": ("decisions",), "given and own": GIVEN}.items():
        yield _told_row(f"{LARGE}: told where silence is due, {label}", _total(large, sets), "silent told", FALSE)
    for name in (STATIC, LARGE):
        total, by_words = _total(counted[name]), _total(words)
        beyond = Counter(total)
        beyond["silent told"] -= by_words["silent told"]
        yield _told_row(f"{name}: told by its meaning where silence is due, all", beyond, "silent told", FALSE)
        allowed = _share(by_words, "direct right")
        yield _told_row(f"{name}: direct prompts told right, all", total, "direct right", allowed, at_least=True)


def _total(counted: Mapping[str, Counter[str]], sets: Iterable[str] = told.SETS) -> Counter[str]:
    return sum((counted[name] for name in sets), Counter[str]())


def _print_curve(method: Method) -> None:
    """What another limit would tell: paraphrases right, wrong, and prompts where silence is due."""
    print(f"\ntold by {LARGE} at other limits (now {LEAST})")
    for least in told.CURVE:
        counted = dict(told.on_prompts(method, least))
        shown = []
        for label, sets in {"tuned with": told.TUNED, "held out": HELD_OUT}.items():
            one = _total(counted, sets)
            right, of, silent = one["paraphrase right"], one["paraphrase of"], one["silent told"]
            wrong = one["paraphrase told"] - right
            shown.append(f"{label}: {right} right and {wrong} wrong of {of}, {silent} of {one['silent of']} silent")
        print(f"  {least:.2f}  {'; '.join(shown)}")
    print()


def _share(counts: Counter[str], what: str) -> float:
    return 100 * counts[what] / counts[f"{what.partition(' ')[0]} of"]


def _told_row(label: str, counts: Counter[str], what: str, budget: float, *, at_least: bool = False) -> Row:
    note = f"{counts[what]} of {counts[what.partition(' ')[0] + ' of']}"
    return Row("told", label, _share(counts, what), budget, "%", note=note, at_least=at_least)


def _costs(directory: Path, scratch: Path) -> Iterator[Row]:
    if sys.platform == "linux":
        plain, meant = cost.servers(directory, scratch, 400)
        ratio, more = meant.start / plain.start, meant.started - plain.started
        note = f"{1e3 * meant.start:.0f} ms of processor time, {1e3 * plain.start:.0f} ms without"
        yield Row("cost", f"{STATIC}: start of a server in relation to none", ratio, MOST_START, "x", note=note)
        yield Row("cost", f"{STATIC}: memory of a server that has started", more, MOST_STARTED_MB, "MB")
        yield Row("cost", f"{STATIC}: memory of a server that was asked", meant.asked - plain.asked, MOST_MB, "MB")
    one = cost.latency(directory)
    note = f"{one.meaning:.1f} ms for {one.words:.1f} ms by words, {one.vectors:,} vectors"
    yield Row("cost", f"{STATIC}: recall in relation to words, 10,000 notes", one.ratio, MOST_RATIO, "x", note=note)


if __name__ == "__main__":
    sys.exit(main())
