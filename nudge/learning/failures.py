"""Why a command failed: because of its surroundings (a tool, module, variable, service... is missing), of the session's
own work (a failed test, a finding, an error of the compiler), or of nothing that can be known again.

`families` has the patterns, and whether what they name (`detail`) tells failures of one family apart.
Two failures are alike if they are of one family with the same detail, or if the lines that name their cause are equal
but for numbers, quoted texts and paths.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from nudge.learning.families import CHANCE_SIGNS, FAMILIES, family_of
from nudge.learning.moved_paths import plain_path
from nudge.learning.own_work import FAILED_TESTS, OWN_WORK_SIGNS
from nudge.security.patterns import AnyOf, PatternSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

SURROUNDINGS, OWN_WORK, CHANCE, UNKNOWN = "surroundings", "own work", "chance", "unknown"

CHANCE_FAMILY = "chance"

_SIGNS = tuple(
    (name, sign)
    for name, signs in (*((family.name, family.signs) for family in FAMILIES), (CHANCE_FAMILY, CHANCE_SIGNS))
    for sign in signs
)
_SIGN_SET = PatternSet([sign for _, sign in _SIGNS])  # one after the other takes six times as long

_CAUSE = AnyOf(
    r"\w(?:Error|Exception)\b",
    r"(?i:\b(?:error|fatal|panic|failed)\b)",
    r"(?i:\b(?:not found|no such|cannot|can't|undefined|refused|denied|missing|required?|requires|not set"
    r"|unable|unsupported)\b)",
)
# Lines that say only that something failed, or what is run.
_NOT_A_CAUSE = re.compile(
    r"\s*(?:$|Exit code \d+|[>$+] |make(?:\[\d+\])?: (?:\*\*\* |Entering|Leaving)|\[\.\.\.\]$|[╷│╵\s]*$"
    r"|Traceback \(most"
    r"|\d+ \| |(?i:fatal|error)?:? ?\[[\w-]+\]:?$"
    r"|npm (?:ERR!|error)(?: (?:code|errno|A|syscall|path)\b.*)?$|(?:error )?Command failed with exit code|.*ELIFECYCLE"
    r"|File \"|\s+at \S+ \(|error: test failed, to rerun|BUILD FAILED|FAILURE: Build failed|\* What went wrong)"
)
_BOX = re.compile(
    r"^(?:/(?:usr/)?bin/)?(?:ba|z|da|fi|k)?sh: (?:(?:line )?\d+: )?|^[\s│╷╵|>*•✖×]+|^(?:npm (?:ERR!|error) )|^E {2,}"
)
_BLANKED = re.compile(
    r"\"[^\"]*\"|(?<!\w)'[^']*'|`[^`]*`|‘[^’]*’|https?://\S+|0x[\da-f]+|\b[\da-f]{7,}\b|\d+(?:[.:]\d+)*"
    r"|(?:[\w.@+~-]*/)+[\w.@+~-]*"
)
_GENERAL = re.compile(
    r"(?:[^a-z]|\b(?:err(?:or)?s?|fail(?:ed|ures?)?|fatal|tests?|testing|suite|command|process|exit(?:ed)?|code|status|with"
    r"|build(?:ing)?|task|target|step|run(?:ning)?|the|an?|of|in|to|for|see|logs?|above|below|details|more|and|is|are|was"
    r"|were|it|not|could|passed|ok|found|while|execut(?:ing|ion)|script|returned|non|zero)\b)*"
)
"""Words of lines that say only that something failed."""
_MAX_LINES = 12


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a command failed."""

    nature: str
    family: str = ""
    detail: str = ""
    """What is missing or refused, as the output names it."""
    line: str = ""
    """The line that says most about the cause."""
    causes: tuple[str, ...] = ()
    """The lines that name a cause, with numbers, quoted texts and paths blanked."""
    sign: str = ""
    """The words of the output that its family is known by, blanked."""

    @property
    def is_known(self) -> bool:
        return self.nature == SURROUNDINGS


NOTHING = Failure(CHANCE)
_LIMITED = re.compile(r"(?i)\brate limit|too many requests|quota (?:has been |was )?exceeded")
"""A server that was asked too often answers later, whatever is asked then."""
_REMOTE = re.compile(
    r"(?i)\b(?:fetch|download|connect|request|resolv|reach|retriev|network|clon|transfer|timed? ?out)\w*\b[^\n]*"
    r"https?://(?!localhost|127\.|0\.0\.0\.0|\[::1|[\w-]+(?::\d+)?/)"
)
"""What fails at another host may work the next time."""


def diagnose(printed: str, exit_code: int | None, missing: Sequence[str] = (), typed: Collection[str] = ()) -> Failure:
    """Return why a command failed, by what it printed. `missing` are paths among its words that do not exist, `typed`
    the arguments that say on what it was to work: another call has the same error with its own."""
    text = printed.partition("\n")[2] if printed.startswith("Exit code ") else printed
    if _LIMITED.search(text):
        return NOTHING
    if not text.strip():
        return Failure(SURROUNDINGS, "timeout", "", "") if exit_code == 124 else NOTHING
    found = _path_in(text, missing) or _family_in(text)
    causes = _causes(text, typed)
    if found is None:
        line = _first_cause(text)
        if OWN_WORK_SIGNS.search(text):
            return Failure(OWN_WORK, "", "", line, _with_main(line, causes, typed))
        if exit_code == 124:
            return Failure(SURROUNDINGS, "timeout", "", line, causes)
        if not line or (_REMOTE.search(line) and not _ABSENT.search(line)):
            return NOTHING
        return Failure(UNKNOWN, "", "", line, _with_main(line, causes, typed))
    family, detail, line, sign = found
    if family == CHANCE_FAMILY:
        return Failure(CHANCE, family, "", line, causes)
    return Failure(SURROUNDINGS, family, detail, line, _with_main(line, causes, typed), sign)


def _with_main(line: str, causes: tuple[str, ...], typed: Collection[str]) -> tuple[str, ...]:
    """The causes, with the line that says most as the first."""
    main = blank(line, typed)
    return main, *(cause for cause in causes if cause != main)


def _family_in(text: str) -> tuple[str, str, str, str] | None:
    has_failed_tests = FAILED_TESTS.search(text)
    for place in _SIGN_SET.find(text):
        family, sign = _SIGNS[place]
        if has_failed_tests and not family_of(family).is_certain:
            continue
        for match in _compiled(sign).finditer(text):
            detail, line = _detail(match), _line_at(text, match.start(), match.end())
            if not _NO_NAME.fullmatch(detail) and not _IS_MENDED.search(line):
                return family, detail, line, blank(match[0])
    return None


_IS_MENDED = re.compile(r"(?i)\bwill (?:now )?be (?:installed|created|downloaded|generated|used|ignored|skipped)")
"""What a program says of a thing that is missing and that it does without."""


@cache
def _compiled(sign: str) -> re.Pattern[str]:
    """Compiled when a text has it: all of them take longer than the start of a session may."""
    return re.compile(sign, re.MULTILINE)


_ABSENT = re.compile(
    r"(?i)no such|not (?:be )?found|n[o']t (?:exist|find|found|open|read|load|locate|match)|(?:cannot|unable to|could "
    r"not|failed to) (?:find|open|read|load|stat|access)"
    r"|no (?:\w+ ){0,2}(?:files?|tests?) (?:were |was )?(?:found|match)|FileNotFound|ENOENT|did not match"
    r"|does not exist|is missing|invalid path"
)
_ABOVE = 5  # lines in which it is said that what stands below them does not exist
_DENIED = re.compile(r"(?i)permission denied|access (?:is )?denied|EACCES|not permitted")


def _path_in(text: str, missing: Sequence[str]) -> tuple[str, str, str, str] | None:
    """A path of the command that does not exist, in a line that says so."""
    for path in missing:
        for match in re.finditer(_any_beginning(plain_path(path)), text):
            line = _line_at(text, match.start(), match.end())
            above = "\n".join(text[: match.start()].splitlines()[-_ABOVE:])
            says_so = _ABSENT.search(line) or _ABSENT.search(above)
            if says_so and not _DENIED.search(line):
                return "path", path, line, "missing path"
    return None


_NO_NAME = re.compile(
    r"a|an|are|be|been|can|could|for|has|have|in|is|it|its|may|might|no|not|of|or|provided|specified|that|the|this|to|was"
    r"|were|which|will|ERROR|FAIL|FAILED|FATAL|INFO|SDK|WARN|WARNING"
)
"""Words that stand where a name may, and name nothing that is missing."""


def _any_beginning(path: str) -> str:
    """A pattern for a path or a directory above it: of `a/b/c` the error may name only `a`."""
    parts = path.split("/")
    beginnings = ("/".join(parts[:length]) for length in range(len(parts), 0, -1))
    return "|".join(rf"(?<![\w.-]){re.escape(text)}(?![\w%-]|/[\w@.])" for text in beginnings if len(text) > 1)


def _detail(match: re.Match[str]) -> str:
    groups = match.groupdict()
    return (groups.get("n") or groups.get("m") or "").strip("'\"`").rstrip(".,;:")


def _line_at(text: str, start: int, end: int) -> str:
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", max(end - 1, start))
    return _plain(text[first : last if last >= 0 else len(text)].partition("\n")[0])


def _plain(line: str) -> str:
    """The line without the frame that a tool draws around it."""
    return _BOX.sub("", line).strip()


def _first_cause(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip() and not _NOT_A_CAUSE.match(line)]
    named = next((line for line in lines if _CAUSE.search(line)), lines[0] if lines else "")
    return _plain(named)


def _causes(text: str, typed: Collection[str]) -> tuple[str, ...]:
    """The first lines that name a cause, blanked, each once."""
    causes: dict[str, None] = {}
    for line in text.splitlines():
        if len(causes) == _MAX_LINES:
            break
        if line.strip() and not _NOT_A_CAUSE.match(line):
            plain = blank(_plain(line), typed)
            if _GENERAL.fullmatch(plain):
                continue
            is_sentence = plain.count(" ") >= 5 and not OWN_WORK_SIGNS.search(line)
            if len(plain) > 8 and (is_sentence or _CAUSE.search(line)):
                causes[plain] = None
    return tuple(causes)


def blank(line: str, typed: Collection[str] = ()) -> str:
    """The line with numbers, quoted texts, URLs, paths and the words that were typed blanked, in lower case."""
    if typed:
        line = " ".join("#" if word.casefold().rstrip(".,:;") in typed else word for word in line.split())
    return _blank(line)


@lru_cache(2_000)
def _blank(line: str) -> str:
    return " ".join(_BLANKED.sub("#", line).casefold().split())


def likeness(one: Failure, other: Failure) -> float:
    """Return how alike two failures are, from 0 to 1."""
    if CHANCE in (one.nature, other.nature):
        return 0.0
    if one.family != other.family:  # the table may see one part of an output and not the other
        best = max(_most_alike(a.causes[:1], b.causes) for a, b in ((one, other), (other, one)))
        return best if best >= 0.8 else 0.0
    if one.family and one.detail and one.detail == other.detail:
        return 1.0
    best = _best_overlap(one, other)
    if one.family == "timeout":
        best = max(best, 0.8)
    if one.family and one.sign == other.sign:
        best = max(best, 0.65)
    if one.family not in ("", "connection") and best < _SAME_PHRASE and _share_phrase(one.causes, other.causes):
        best = _SAME_PHRASE
    if not tells_apart(one, other):
        return best
    return min(best, 0.85 if shares_other_cause(one, other) else 0.65)


def shares_other_cause(one: Failure, other: Failure) -> bool:
    """Whether two failures have a line in common beside the one that names what is missing."""
    return bool({*one.causes} & {*other.causes} - {*one.causes[:1], *other.causes[:1]})


def tells_apart(one: Failure, other: Failure) -> bool:
    """Whether two failures of one family are about different things: two programs, two variables."""
    is_told = family_of(one.family).tells_apart and one.family == other.family
    return is_told and bool(one.detail and other.detail) and one.detail != other.detail


def _best_overlap(one: Failure, other: Failure) -> float:
    """How alike the two most alike lines are, of all pairs."""
    return _most_alike(one.causes, other.causes)


_SAME_PHRASE = 0.75
_PHRASE = 4  # words
_SIGNIFICANT = 3  # of them, that say more than that something failed


@lru_cache(500)
def _share_phrase(lines: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Whether a phrase stands in a line of each: tools put the words of another one behind words of their own."""
    return not _phrases(lines).isdisjoint(_phrases(others))


@lru_cache(500)
def _phrases(lines: tuple[str, ...]) -> frozenset[tuple[str, ...]]:
    phrases = set()
    for line in lines:
        words = re.findall(r"[\w'#]+", line)
        for at in range(len(words) - _PHRASE + 1):
            phrase = tuple(words[at : at + _PHRASE])
            if sum("#" not in word and not _GENERAL.fullmatch(word) for word in phrase) >= _SIGNIFICANT:
                phrases.add(phrase)
    return frozenset(phrases)


@lru_cache(500)  # each command is compared several times with the failures before it
def _most_alike(lines: tuple[str, ...], others: tuple[str, ...]) -> float:
    if not set(lines).isdisjoint(others):
        return 1.0
    best = 0.0
    sets = [(words, len(words)) for words in map(_words, others)]
    for words in map(_words, lines):
        number = len(words)
        for more, count in sets:
            shared = 2 * len(words & more)
            if shared > best * (number + count):
                best = shared / (number + count)
    return best


@lru_cache(2_000)
def _words(line: str) -> frozenset[str]:
    return frozenset(line.split())


def has_failed_tests(printed: str) -> bool:
    """Whether an output reports tests that ran and failed."""
    return FAILED_TESTS.search(printed)


def has_findings(printed: str) -> bool:
    """Whether an output shows the session's own work: failed tests, findings, errors in code."""
    return diagnose(printed, None).nature == OWN_WORK


def names_command(printed: str, words: Sequence[str]) -> bool:
    """Whether an output names these words side by side, as in `run the suite with cargo nextest`."""
    plain = " ".join(re.sub(r"['\"`]", "", printed).split())
    wanted = " ".join(" ".join(words).split())
    return bool(wanted) and re.search(rf"(?<![\w-]){re.escape(wanted)}(?![\w-])", plain) is not None
