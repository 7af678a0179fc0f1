from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import pytest

from nudge.core import limits
from nudge.core.errors import Invalid, ScopeInvalid
from nudge.security.absolute_paths import normalize_cwd
from nudge.security.patterns import (
    AnyOf,
    PatternSet,
    check_cost,
    compile_branch_glob,
    compile_glob,
    compile_regex,
    expand_braces,
    normalize_cwd_glob,
)

# Regular expressions


def _seconds(call: Callable[[str], bool], text: str) -> float:
    start = time.thread_time()
    call(text)
    return time.thread_time() - start


def test_regex_searches_anywhere() -> None:
    """A query's expression is found anywhere in the text, in its own case, across lines."""
    regex = compile_regex(r"time\w+t: \d+", "regex")
    assert regex.pattern == r"time\w+t: \d+"
    assert regex.search("the timeout: 30 s")
    assert not regex.search("the Timeout: 30 s")
    assert compile_regex("(?i)TIMEOUT", "regex").search("a\ntimeout")
    assert compile_regex("caf.$", "regex").search("un café")
    assert compile_regex("", "regex").search("")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "missing )"),
        ("a**", "bad repetition operator"),
        ("(?=a)", "invalid perl operator"),
        (r"(a)\1", "invalid escape sequence"),
        ("[z-a]", "invalid character class range"),
        ("(?:a{900}){900}", "invalid repetition size"),
        ("a{401}", "too large for a search"),
        (r"\pL", "ranges such as [a-z]"),
        ("a" * 257, "256 characters"),
        ("\ud800", "Unicode"),
    ],
)
def test_what_re2_cannot_compile_is_invalid(pattern: str, reason: str) -> None:
    """The refusal is E_INVALID with the field and RE2's own words."""
    with pytest.raises(Invalid) as caught:
        compile_regex(pattern, "regex")
    assert reason in caught.value.message
    assert caught.value.field == "regex"
    assert not isinstance(caught.value, ScopeInvalid)


def test_a_bad_regex_says_nothing_on_stderr() -> None:
    """stderr belongs to the client's terminal: RE2 must not log there."""
    program = (
        "from nudge.core.errors import Invalid\nfrom nudge.security.patterns import compile_regex\n"
        "try: compile_regex('(', 'regex')\nexcept Invalid as error: print(error.message)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "missing )" in ran.stdout
    assert ran.stderr == ""


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|aa)+$b", "(.*)(.*)(.*)(.*)b", "[ab]*a[ab]{380}b$x"])
def test_no_regex_backtracks(pattern: str) -> None:
    """Eight times the text takes about eight times as long, whatever the expression."""
    chance = random.Random(2)
    text = "".join(chance.choice("ab") for _ in range(limits.MAX_VALUE_BYTES))
    regex = compile_regex(pattern, "regex")
    whole = min(_seconds(regex.search, text) for _ in range(5))
    eighth = min(_seconds(regex.search, text[: len(text) // 8]) for _ in range(5))
    assert whole < eighth * 8 * 4 + 0.002


# Patterns of our own


def test_one_of_several_patterns_is_found_anywhere_in_a_text() -> None:
    """`^` is the beginning of a line; alternatives within one pattern stay within it; any Python text is taken."""
    any_of = AnyOf(r"^FAILED ", r"\b\d+ (?:errors|problems)\b", "┌─")
    result = ("ok\nFAILED a", "12 problems (3 fixable)", "\n  ┌─ src", "\ud800\nFAILED ")
    assert [text for text in result if not any_of.search(text)] == []
    assert not any(map(any_of.search, ("", "was FAILED ", "12 probleme", "12 \nerrors")))


def test_the_places_of_the_patterns_that_match_are_in_their_order() -> None:
    """However the text orders them."""
    patterns = PatternSet(["b", "^c", "a", "zz"])
    assert patterns.find("abc\nc") == [0, 1, 2] and patterns.find("\ud800") == []


# Globs


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        ("/home/me/api", ["/home/me/api"], ["/home/me/api2", "/home/me", "/home/me/api/src", "/home/me/API"]),
        ("**/http-proxy*", ["/w/http-proxy", "/http-proxy-2", "http-proxy"], ["/w/http-proxy/src", "/w/my-http-proxy"]),
        ("/w/*/src", ["/w/a/src", "/w/.a/src"], ["/w/src", "/w/a/b/src"]),
        ("/w/**/src", ["/w/src", "/w/a/src", "/w/a/b/src"], ["/w/a/srcs", "/x/src"]),
        ("/w/**", ["/w", "/w/a", "/w/.git/hooks"], ["/wa", "/x/w"]),
        ("**", ["/", "/a", "c:/code", "main"], []),
        ("/", ["/"], ["/a"]),
        ("/**", ["/", "/a/b"], ["a", "c:/a"]),
        ("c:/**", ["c:/", "c:/code"], ["d:/code", "/c:/code"]),
        ("c:/", ["c:/"], ["c:/a"]),
        ("*:/code", ["c:/code", "d:/code"], ["/code"]),
        ("/w/?pi", ["/w/api", "/w/épi"], ["/w/pi", "/w/aapi", "/w//pi"]),
        ("/w/[a-c]x", ["/w/ax", "/w/cx"], ["/w/dx", "/w/x", "/w//x"]),
        ("/w/[!a-c]x", ["/w/dx", "/w/.x"], ["/w/ax", "/w//x"]),
        ("/w/[+-9]x", ["/w/-x", "/w/5x"], ["/w//x", "/w/ax"]),
        ("/w/[{]x[}]", ["/w/{x}"], ["/w/x"]),
        ("/w/[[]id[]]", ["/w/[id]"], ["/w/id"]),
        ("/w/a**b", ["/w/ab", "/w/axb"], ["/w/a/b", "/w/ax/b"]),
        ("/w/{api,web/{a,b}}/src", ["/w/api/src", "/w/web/a/src", "/w/web/b/src"], ["/w/web/src", "/w/a/src"]),
        ("/w/{,old-}api", ["/w/api", "/w/old-api"], ["/w/new-api"]),
        ("/w/v{8..11}", ["/w/v8", "/w/v10", "/w/v11"], ["/w/v7", "/w/v12", "/w/v1"]),
        ("/w/v{08..10}", ["/w/v08", "/w/v10"], ["/w/v8"]),
        ("/w/{api}", ["/w/{api}"], ["/w/api"]),
        ("/w/a.b+c(d)^$|", ["/w/a.b+c(d)^$|"], ["/w/axb+c(d)^$|"]),
        ("/w/[[:alpha:]]", ["/w/a"], ["/w/1", "/w/:"]),
        ("/w/v{a..c}", ["/w/va", "/w/vc"], ["/w/vd"]),
        ("/w/api/", ["/w/api", "/w/api/"], ["/w/api/src"]),
        ("/w/日本*", ["/w/日本", "/w/日本語"], ["/w/日"]),
    ],
)
def test_globs(pattern: str, inside: list[str], outside: list[str]) -> None:
    """A wildcard stays in its segment, `**` spans any number of them, dots are ordinary, and the whole text must
    match."""
    compiled = compile_glob(pattern, "cwd_glob")
    assert compiled.pattern == pattern
    assert [text for text in inside if not compiled.matches(text)] == []
    assert [text for text in outside if compiled.matches(text)] == []


@pytest.mark.parametrize(
    ("pattern", "rule"),
    [
        ("", "empty"),
        ("/" + "a" * limits.MAX_PATTERN_CHARS, "256 characters"),
        ("/a/../b", "`..`"),
        ("..", "`..`"),
        ("/{a,..}/b", "`..`"),
        ("/a{b", "`{` is never closed"),
        ("/a{b,{c}", "`{` is never closed"),
        ("/a}b", "`}` closes nothing"),
        ("/a[b", "`[` is never closed"),
        ("/a[]", "`[` is never closed"),
        ("/a]b", "`]` closes nothing"),
        ("/[z-a]", "runs backwards"),
        ("/[a/b]", "slash"),
        ("/[!]", "`[` is never closed"),
        ("/a\\b", "backslash"),
        ("/{1..65}", "64 alternatives"),
        ("/{1..999999999}", "64 alternatives"),
        ("/" + "{a,b}" * 7, "64 alternatives"),
        ("/" + "{a,b}" * 50, "64 alternatives"),
        ("/" + "a" * 100 + "{1..60}", "2048 characters"),
        ("/**/a/**/b/**/c", "more than 2 `**`"),
        ("**/{a,b/**/c}/**/d", "more than 2 `**`"),
        ("**/{a,b,c,d}/**/e", "too long to match"),
        ("**/a/b/c/d/**/e/f/g", "too long to match"),
        ("/{1..40}/*/*", "32 patterns with wildcards"),
        ("/a\0b", "control characters"),
        ("/a\nb", "control characters"),
        ("/a\x85b", "control characters"),
        ("/a\ud800b", "control characters"),
        ("${HOME}/x", "variables"),
        *((f"/{sign}(a|b)", "extended globs") for sign in "@!+*?"),
    ],
)
def test_illegal_globs_say_what_is_wrong(pattern: str, rule: str) -> None:
    """A pattern that cannot be honored is E_SCOPE_INVALID, names its field, and says what to write instead."""
    with pytest.raises(ScopeInvalid) as caught:
        compile_glob(pattern, "meta.scope.cwd_glob[0]")
    assert rule in caught.value.message
    assert caught.value.data["field"] == "meta.scope.cwd_glob[0]"


def test_the_field_is_named_each_time() -> None:
    """A cached refusal would name the field of whoever asked first."""
    for field in ("first", "second"):
        with pytest.raises(ScopeInvalid) as caught:
            compile_glob("/a[", field)
        assert caught.value.field == field


def test_the_alternatives_of_braces() -> None:
    """Braces nest, may be empty, count, and stand for themselves without a comma."""
    assert expand_braces("a{b,{c,d}e,}f", "x") == ["abf", "acef", "adef", "af"]
    assert expand_braces("{a}{}", "x") == ["{a}{}"]
    assert expand_braces("{3..1}", "x") == ["3", "2", "1"]
    assert expand_braces("{1..7..3}", "x") == ["1", "4", "7"]


def test_deep_nesting_is_no_way_to_exhaust_the_stack() -> None:
    """As many braces as the length allows are read like any other pattern."""
    deep = "{" * 127 + "a" + "}" * 127
    assert compile_glob(deep, "x").matches(deep)


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        ("main", ["main"], ["main2", "a/main", "Main"]),
        ("feature/x.y", ["feature/x.y"], ["feature/xzy"]),
        ("hotfix/*", ["hotfix/a"], ["hotfix/a/b", "hotfix", "my-hotfix/a"]),
        ("hotfix/**", ["hotfix/a", "hotfix/a/b"], ["hotfixes/a"]),
        ("release-{1,2}.x", ["release-1.x", "release-2.x"], ["release-3.x"]),
        ("fix(parser)", ["fix(parser)"], ["fixparser"]),
    ],
)
def test_branch_globs(pattern: str, inside: list[str], outside: list[str]) -> None:
    """A branch is named exactly or by a glob with the same rules."""
    compiled = compile_branch_glob(pattern, "branch")
    assert [name for name in inside if not compiled.matches(name)] == []
    assert [name for name in outside if compiled.matches(name)] == []


def test_a_branch_glob_cannot_be_negated() -> None:
    """`!main` would silently match a branch of that very name, so it is refused."""
    with pytest.raises(ScopeInvalid, match="negated"):
        compile_branch_glob("!main", "branch")


def test_a_path_that_is_not_utf8_is_matched_by_wildcards() -> None:
    """A directory named in some old encoding still lies in its parent."""
    assert compile_glob("/w/*", "x").matches("/w/caf\udce9")
    assert not compile_glob("/w/café", "x").matches("/w/caf\udce9")


DEEP = "/a" * limits.MAX_GLOB_TEXT_NAMES
LONG = ("/" + "ab" * 3 + "a") * limits.MAX_GLOB_TEXT_NAMES
WORST_SCOPES = (
    ["**/*/**/x", "**/a*/**/*b", "/**/[!b]*/**/[!c]*x"],
    ["**/{*,a,a*}/**/x"],
    ["**/*/*/*/**/*/x"],
    ["**/" + "*a" * 60 + "/**/" + "*a" * 60 + "x"],
    [f"**/*a*/x{number}" for number in range(limits.MAX_WILD_ALTERNATIVES)],
    ["/" + "*/" * 100 + f"{number}" for number in range(limits.MAX_WILD_ALTERNATIVES)],
)


def baseline() -> None:
    """Work of about a millisecond that no change of ours makes faster or slower."""
    sum(number * number for number in range(20_000))


@pytest.mark.parametrize("patterns", WORST_SCOPES)
def test_the_worst_scope_is_compared_within_five_milliseconds(patterns: Sequence[str]) -> None:
    """Measured against work that takes a millisecond where five was measured; on the longest text that is compared."""
    check_cost(patterns, "x")
    globs = [compile_glob(pattern, "x") for pattern in patterns]
    letters = iter("defghijklmnopqrstuvwyz")

    def compare() -> None:
        last = next(letters)  # an answer is cached by its text
        assert not any(glob.matches(text[:-1] + last) for text in (DEEP, LONG) for glob in globs)

    assert _ratio(compare, baseline) < 2 * 6


def _ratio(call: Callable[[], None], baseline: Callable[[], None]) -> float:
    """Of the shortest times. They take turns: what else the processor does meanwhile slows both."""

    def seconds(run: Callable[[], None]) -> float:
        start = time.thread_time()
        run()
        return time.thread_time() - start

    times = [(seconds(call), seconds(baseline)) for _ in range(15)]
    return min(one for one, _ in times) / min(other for _, other in times)


def test_a_text_that_is_too_deep_or_too_long_matches_literal_patterns_only() -> None:
    """The limits of time hold for every text; a name that is written out needs no time."""
    for text in (DEEP + "/a", "/" + "a" * limits.MAX_GLOB_TEXT_CHARS):
        assert not compile_glob("/**", "x").matches(text)
        assert compile_glob(text[:200], "x").matches(text[:200])


def test_importing_loads_no_pattern_library() -> None:
    """A server whose scopes name repos only starts without wcmatch."""
    program = (
        "import sys\nfrom nudge.security.patterns import compile_glob\n"
        "assert compile_glob('main', 'x').matches('main')\n"
        "print(sorted({'wcmatch', 'bracex', 're2'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


@pytest.mark.parametrize(
    ("raw", "pattern"),
    [
        ("**/http-proxy*", "**/http-proxy*"),
        ("**", "**"),
        ("/", "/"),
        ("/w/**/", "/w/**"),
        ("/w//x/./y", "/w/x/y"),
        ("C:\\Code\\**", "c:/Code/**"),
        ("C:\\", "c:/"),
        ("*:/code/**", "*:/code/**"),
        ("[c-e]:/code", "[c-e]:/code"),
        ("\\\\server\\share\\**", "/server/share/**"),
        ("{/w,**/x}/src", "{/w,**/x}/src"),
        ("{c,d}:/code", "{c,d}:/code"),
    ],
)
def test_cwd_globs_take_the_same_form(raw: str, pattern: str) -> None:
    """A pattern is brought to the form a directory is compared in, so that the two can meet."""
    assert normalize_cwd_glob(raw, "cwd_glob") == pattern
    assert normalize_cwd_glob(pattern, "cwd_glob") == pattern


@pytest.mark.parametrize(
    ("glob", "cwd"),
    [
        ("C:\\Code\\**", "c:\\Code\\api"),
        ("c:/code/", "C:\\code"),
        ("\\\\server\\share\\*", "\\\\server\\share\\x"),
        ("/w/./api/", "/w//api"),
        ("**", "C:\\"),
    ],
)
def test_a_directory_meets_a_pattern_written_differently(glob: str, cwd: str) -> None:
    """Style does not decide whether a hint is eligible."""
    assert compile_glob(normalize_cwd_glob(glob, "cwd_glob"), "cwd_glob").matches(normalize_cwd(cwd))


@pytest.mark.parametrize(
    ("raw", "rule"),
    [
        ("", "start it with `/` or `**/`"),
        ("src/**", "start it with `/` or `**/`"),
        ("*/src", "start it with `/` or `**/`"),
        ("**src", "start it with `/` or `**/`"),
        ("./src", "start it with `/` or `**/`"),
        ("!/w", "start it with `/` or `**/`"),
        ("$HOME/x", "start it with `/` or `**/`"),
        ("c:code", "start it with `/` or `**/`"),
        ("{/w,src}/x", "start it with `/` or `**/`"),
        ("~/code/**", "full path"),
        ("~", "full path"),
        ("/w/../x", "`..`"),
        ("**\\..\\x", "`..`"),
        ("/w\0", "control"),
        ("/" + "a" * limits.MAX_PATTERN_CHARS, "256 characters"),
        ("{/a,/b", "never closed"),
    ],
)
def test_a_pattern_no_directory_can_match_is_refused(raw: str, rule: str) -> None:
    """A hint behind such a pattern would never be seen, so it is E_SCOPE_INVALID and says what to write."""
    with pytest.raises(ScopeInvalid) as caught:
        normalize_cwd_glob(raw, "meta.scope.cwd_glob[0]")
    assert rule in caught.value.message
    assert caught.value.data["field"] == "meta.scope.cwd_glob[0]"
