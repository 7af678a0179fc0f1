"""What a call does when it is allowed: every operation on hints, every value type, every field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nudge.core import limits
from tests.contract.steps import (
    HERE,
    SIGNED,
    TOKEN,
    Case,
    Step,
    exported,
    gives,
    is_set,
    named,
    payload,
    refuses,
    setting,
)
from tests.contract.ways import Params

VALUES = {
    "a string": "docker compose build router",
    "a string of several lines": "größe → ok\n\tline 2",
    "a string like a flag": "--verbose",
    "a command": {"type": "command", "cmd": "make build"},
    "a command for a shell": {"type": "command", "shell": "powershell", "cmd": "Get-ChildItem | Sort-Object"},
    "a path": {"type": "path", "abs": "/home/me/api"},
    "a path of some systems": {"type": "path", "abs": "C:\\code\\api", "os": ["windows"]},
    "a template": {"type": "template", "format": "jinja", "body": "{{ name }}:{{ port }}"},
    "a template with defaults": {
        "type": "template",
        "format": "interpolate",
        "body": "${H}",
        "defaults": {"H": "localhost", "P": ""},
    },
    "JSON data": {"type": "json", "data": {"ports": [8080, 0.25, None, True], "name": "größe"}},
    "JSON null": {"type": "json", "data": None},
}

EVERY_META: dict[str, Any] = {
    "reason": "the router needs its own image",
    "tags": ["build", "docker"],
    "priority": 7,
    "confidence": 0.8,
    "ttl": "PT2H",
    "sensitivity": "normal",
    "source": "tool-output",
    "added_by": "agent:codex",
    "scope": {
        "cwd_glob": ["/srv/**", "**/http-proxy*"],
        "repo": ["git@host:Org/Repo.git", "git:org/other"],
        "branch": ["dev", "hotfix/*"],
        "os": ["linux", "darwin"],
        "env_required": ["CI_MARK"],
        "env_match": {"STAGE": ["test", "dev"], "ZONE": ["eu"]},
    },
}
KEPT_SCOPE = {
    "cwd_glob": ["**/http-proxy*", "/srv/**"],
    "repo": ["git:host/org/repo", "git:org/other"],
    "branch": ["dev", "hotfix/*"],
    "os": ["darwin", "linux"],
    "env_required": ["CI_MARK"],
    "env_match": {"STAGE": ["dev", "test"], "ZONE": "eu"},
}
FITTING = {
    **HERE,
    "repo": "https://host/org/repo",
    "branch": "hotfix/9",
    "env": {"CI_MARK": "", "STAGE": "dev", "ZONE": "eu"},
}
FITTING_REASONS = [
    "cwd matched **/http-proxy*",
    "repo git:host/org/repo matched",
    "branch=hotfix/9 allowed",
    "os=linux allowed",
    "env CI_MARK set",
    "env STAGE, ZONE matched",
    "priority 7",
]

ON_LINUX, ON_DARWIN, ON_WINDOWS = ({"os": [name]} for name in ("linux", "darwin", "windows"))
THREE_SYSTEMS = (
    is_set("directory", "/home/dev/api", scope=ON_LINUX),
    is_set("directory", "/Users/dev/api", scope=ON_DARWIN),
    is_set("directory", "c:\\code\\api", scope=ON_WINDOWS),
)

SCOPES: dict[
    str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]
] = {  # scope, where it fits, where not, why not
    "cwd_glob": ({"cwd_glob": ["/srv/**"]}, {}, {"cwd": "/opt/x"}, "cwd=/opt/x, needs /srv/**"),
    "repo": (
        {"repo": "git:org/repo"},
        {"repo": "git@h:org/repo.git"},
        {"repo": "git:org/x"},
        "repo=git:org/x, needs git:org/repo",
    ),
    "repo, unknown": ({"repo": "git:org/repo"}, {"repo": "git:org/repo"}, {}, "repo unknown, needs git:org/repo"),
    "branch": ({"branch": ["hotfix/*"]}, {"branch": "hotfix/1"}, {"branch": "main"}, "branch=main, needs hotfix/*"),
    "branch, unknown": ({"branch": ["dev", "main"]}, {"branch": "dev"}, {}, "branch unknown, needs dev or main"),
    "os": ({"os": ["linux"]}, {}, {"os": "darwin"}, "os=darwin, needs linux"),
    "env_required": ({"env_required": ["CI_MARK"]}, {"env": {"CI_MARK": "x"}}, {"env": {}}, "env CI_MARK not set"),
    "env_match": (
        {"env_match": {"STAGE": "a"}},
        {"env": {"STAGE": "a"}},
        {"env": {"STAGE": "b"}},
        "env STAGE has another value",
    ),
}


def _writing() -> Iterator[Case]:
    for what, value in VALUES.items():
        yield Case(
            f"set and get give {what} back as it was",
            (
                gives("set_hint", setting(value=value), {"hint": {"value": value, "version": 1, "meta": SIGNED}}),
                gives("get_hint", named(), {"hint": {"value": value}, "match_explain": {"matched": True}}),
            ),
        )
    yield Case(
        "every field of meta is kept, its scope in normal form",
        (
            gives("set_hint", setting(**EVERY_META), {"hint": {"meta": {**EVERY_META, "scope": KEPT_SCOPE}}}),
            gives("get_hint", named(context=FITTING), {"match_explain": {"reasons": FITTING_REASONS}}),
        ),
    )
    yield Case(
        "null in meta is not given, whoever sends it",
        (
            gives("set_hint", setting(scope=None, reason=None, tags=None), {"hint": {"value": "make", "meta": SIGNED}}),
            gives("get_hint", named(), {"match_explain": {"reasons": ["no scope: applies everywhere"]}}),
        ),
        typeable=False,
    )
    for source in ("user", "agent", "tool-output", "file-import"):
        yield Case(
            f"a hint may come from {source}",
            (
                gives(
                    "set_hint", setting(source=source), {"hint": {"meta": {"source": source, "added_by": "contract"}}}
                ),
            ),
        )
    for ttl in ("session", "P1W", "P1DT12H", "PT0.5S"):
        yield Case(
            f"a hint may live for {ttl}", (gives("set_hint", setting(ttl=ttl), {"hint": {"meta": {"ttl": ttl}}}),)
        )
    yield Case(
        "a set replaces value and meta whole, and keeps what the hint has earned",
        (
            is_set(reason="first", tags=["a"]),
            gives("bump", named(), {"hint": {"use_count": 1}}),
            gives(
                "set_hint",
                setting(value="ninja"),
                {"hint": {"value": "ninja", "meta": SIGNED, "version": 2, "use_count": 1}},
            ),
            gives("get_hint", named(), {"hint": {"value": "ninja", "version": 2}}),
        ),
    )
    yield Case(
        "if_match_version guards a write",
        (
            refuses("set_hint", setting(version=3), "E_CONFLICT", expected=3, actual=0),
            gives("set_hint", setting(version=0), {"hint": {"version": 1}}),
            refuses("set_hint", setting(version=0), "E_CONFLICT", expected=0, actual=1),
            refuses("set_hint", setting(version=2), "E_CONFLICT", expected=2, actual=1),
            gives("set_hint", setting(value="ninja", version=1), {"hint": {"value": "ninja", "version": 2}}),
            refuses("set_hint", setting(version=1), "E_CONFLICT", expected=1, actual=2),
            gives("get_hint", named(), {"hint": {"value": "ninja", "version": 2}}),
        ),
    )
    yield Case(
        "versions belong to a variant",
        (
            is_set(),
            is_set(),
            gives("set_hint", setting(version=0, scope=ON_LINUX), {"hint": {"version": 1}}),
            refuses("set_hint", setting(version=2, scope=ON_LINUX), "E_CONFLICT", expected=2, actual=1),
            gives("set_hint", setting(version=2), {"hint": {"version": 3}}),
        ),
    )


def _scoping() -> Iterator[Case]:
    yield Case(
        "each system gets its own variant",
        (
            *THREE_SYSTEMS,
            gives("get_hint", named("directory", context=HERE), {"hint": {"value": "/home/dev/api"}}),
            gives(
                "get_hint", named("directory", context={**HERE, "os": "darwin"}), {"hint": {"value": "/Users/dev/api"}}
            ),
            gives(
                "get_hint", named("directory", context={**HERE, "os": "windows"}), {"hint": {"value": "c:\\code\\api"}}
            ),
        ),
    )
    for what, (scope, here, there, why) in SCOPES.items():
        yield Case(
            f"a scope's {what} lets a hint be seen where it fits and only there",
            (
                is_set(scope=scope),
                gives("get_hint", named(context={**HERE, **here}), {"match_explain": {"matched": True}}),
                refuses(
                    "get_hint",
                    named(context={**HERE, **there}),
                    "E_NOT_FOUND",
                    why_not=[{"scope": scope, "reasons": [why]}],
                ),
            ),
        )


def _reading() -> Iterator[Case]:
    yield Case(
        "the more specific variant wins, and a score says so",
        (
            is_set(value="anywhere"),
            is_set(value="here", scope=ON_LINUX),
            gives(
                "get_hint",
                named(context=HERE),
                {
                    "hint": {"value": "here"},
                    "match_explain": {
                        "score": 0.34,
                        "components": {
                            "frecency": 0.0,
                            "priority": 0.5,
                            "confidence": 0.5,
                            "specificity": 0.2,
                            "recency": 1.0,
                        },
                        "reasons": ["os=linux allowed", "best of 2 variants that apply"],
                    },
                },
            ),
            gives("get_hint", named(context={**HERE, "os": "darwin"}), {"hint": {"value": "anywhere"}}),
        ),
    )
    yield Case(
        "confidence 0 is a value, not a default",
        (
            is_set(confidence=0),
            gives("get_hint", named(), {"hint": {"meta": {"confidence": 0}}, "match_explain": {"score": 0.2}}),
        ),
    )
    yield Case(
        "a miss says what there is instead",
        (
            refuses("get_hint", named(), "E_NOT_FOUND", component="api", key="build", why_not=[]),
            is_set("test", "pytest"),
            refuses("get_hint", named(), "E_NOT_FOUND", known_keys=["test"], why_not=[]),
            is_set(scope={"branch": ["main"], "os": ["darwin"]}),
            is_set(scope=ON_DARWIN),
            refuses(
                "get_hint",
                named(context=HERE),
                "E_NOT_FOUND",
                why_not=[
                    {"scope": ON_DARWIN, "reasons": ["os=linux, needs darwin"]},
                    {
                        "scope": {"branch": ["main"], "os": ["darwin"]},
                        "reasons": ["branch unknown, needs main", "os=linux, needs darwin"],
                    },
                ],
            ),
        ),
    )
    yield Case(
        "components are listed with their counts, a component with every variant and whether it applies",
        (
            gives("list_components", {}, {"components": []}),
            *THREE_SYSTEMS,
            is_set("run", "make run", component="web"),
            gives(
                "list_components",
                {},
                {"components": [{"name": "api", "hint_count": 3}, {"name": "web", "hint_count": 1}]},
            ),
            gives(
                "list_components",
                {"component": "api", "context": HERE},
                {
                    "components": [{"name": "api", "hint_count": 3}],
                    "hints": [
                        {
                            "key": "directory",
                            "hint": {"value": "/Users/dev/api"},
                            "eligible": False,
                            "reasons": ["os=linux, needs darwin"],
                        },
                        {
                            "key": "directory",
                            "hint": {"value": "/home/dev/api"},
                            "eligible": True,
                            "reasons": ["os=linux allowed"],
                        },
                        {
                            "key": "directory",
                            "hint": {"value": "c:\\code\\api"},
                            "eligible": False,
                            "reasons": ["os=linux, needs windows"],
                        },
                    ],
                },
            ),
            gives("list_components", {"component": "nowhere"}, {"components": [], "hints": []}),
        ),
    )
    yield Case(
        "a hint expires by itself",
        (
            gives(
                "import",
                {"payload": payload(api={"build": exported(meta={"ttl": "PT1S"})})},
                {"imported": 0, "skipped": 1, "reasons": [{"component": "api", "key": "build", "reason": "expired"}]},
            ),
            refuses("get_hint", named(), "E_NOT_FOUND"),
        ),
    )


QUERIED = (
    is_set("build", "docker compose build router", tags=["build", "docker"], priority=9, reason="own image"),
    is_set("test", "pytest -q", tags=["test"]),
    is_set("run", "make run", component="web", tags=["run"], scope=ON_DARWIN),
    is_set("build", "npm run build", component="web", tags=["build"]),
)


def _finds(what: str, params: Params, *found: tuple[str, str]) -> Case:
    entries = [{"component": component, "key": key, "match_explain": {"matched": True}} for component, key in found]
    return Case(f"query {what}", (*QUERIED, gives("query", {"context": HERE, **params}, {"hints": entries})))


def _searching() -> Iterator[Case]:
    yield _finds("finds all that apply here, the best first", {}, ("api", "build"), ("web", "build"), ("api", "test"))
    yield _finds("by component", {"component": "api"}, ("api", "build"), ("api", "test"))
    yield _finds("by a component that does not exist finds nothing", {"component": "nowhere"})
    yield _finds("by keys takes any of them", {"keys": ["test", "run", "x"]}, ("api", "test"))
    yield _finds("by tags takes any of them", {"tags": ["test", "docker"]}, ("api", "build"), ("api", "test"))
    yield _finds("by regex looks into the value", {"regex": "dock.*build"}, ("api", "build"))
    yield _finds("by regex looks into the reason", {"regex": "^own image$"}, ("api", "build"))
    yield _finds("by regex looks into tags", {"regex": "^test$"}, ("api", "test"))
    yield _finds("by regex looks into names", {"regex": "(?i)WEB"}, ("web", "build"))
    yield _finds(
        "takes all filters together",
        {"component": "web", "keys": ["build"], "tags": ["build"], "regex": "npm"},
        ("web", "build"),
    )
    yield _finds("gives as many as asked for", {"limit": 1}, ("api", "build"))
    yield _finds(
        "sees what applies in the context", {"tags": ["run"], "context": {**HERE, "os": "darwin"}}, ("web", "run")
    )
    yield Case(
        "query that finds nothing says what keeps away what would match",
        (
            *QUERIED,
            gives(
                "query",
                {"context": HERE, "tags": ["run"]},
                {"hints": [], "why_not": [{"component": "web", "key": "run", "reasons": ["os=linux, needs darwin"]}]},
            ),
        ),
    )
    yield Case(
        "query refuses what it cannot mean",
        (
            refuses("query", {"regex": "(?=x)"}, "E_INVALID", "regex"),
            refuses("query", {"limit": limits.MAX_QUERY_LIMIT + 1}, "E_INVALID", "limit"),
        ),
    )


NOT_WORKING = "it worked no more often than it failed: set it right or delete it"


def _crediting() -> Iterator[Case]:
    yield Case(
        "a bump counts successes, a negative one failures",
        (
            is_set(),
            gives("bump", named(), {"hint": {"use_count": 1, "version": 1, "last_used_at": "<now>"}}),
            gives("bump", named(delta=4), {"hint": {"use_count": 5}}),
            gives("bump", named(delta=-2), {"hint": {"use_count": 5, "failure_count": 2}}),
            gives(
                "get_hint",
                named(),
                {
                    "match_explain": {
                        "components": {"frecency": 0.259},
                        "reasons": [
                            "no scope: applies everywhere",
                            "recently used (now)",
                            "worked 5 times, last now",
                            "failed 2 times",
                        ],
                    }
                },
            ),
            gives("bump", named(delta=-3), {"hint": {"version": 1, "failure_count": 5}, "note": NOT_WORKING}),
            gives(
                "get_hint",
                named(),
                {
                    "match_explain": {
                        "components": {"frecency": 0.0},
                        "reasons": ["no scope: applies everywhere", "worked 5 times, last now", "failed 5 times"],
                    }
                },
            ),
            refuses("bump", named(delta=0), "E_INVALID", "delta"),
            refuses("bump", named(delta=limits.MAX_BUMP + 1), "E_INVALID", "delta"),
            refuses("bump", named("other"), "E_NOT_FOUND", known_keys=["build"]),
        ),
    )
    yield Case(
        "a bump credits the variant that get would give",
        (
            *THREE_SYSTEMS,
            gives(
                "bump",
                named("directory", context={**HERE, "os": "darwin"}),
                {"hint": {"value": "/Users/dev/api", "use_count": 1}},
            ),
            gives("get_hint", named("directory", context=HERE), {"match_explain": {"components": {"frecency": 0.0}}}),
        ),
    )


def _deleting() -> Iterator[Case]:
    yield Case(
        "delete takes one variant, then all that are left",
        (
            *THREE_SYSTEMS,
            gives(
                "delete_hint",
                named("directory", scope=ON_WINDOWS),
                {"deleted": True, "previous": {"value": "c:\\code\\api"}},
            ),
            refuses("delete_hint", named("directory", scope=ON_WINDOWS), "E_NOT_FOUND", scopes=[ON_DARWIN, ON_LINUX]),
            gives(
                "delete_hint",
                named("directory"),
                {"deleted": True, "previous": [{"value": "/Users/dev/api"}, {"value": "/home/dev/api"}]},
            ),
            refuses("delete_hint", named("directory"), "E_NOT_FOUND", component="api", key="directory"),
            gives("list_components", {}, {"components": []}),
        ),
    )
    yield Case(
        "delete with an empty scope takes the variant that is for everywhere",
        (
            is_set(value="anywhere"),
            is_set(value="here", scope=ON_LINUX),
            gives("delete_hint", named(scope={}), {"previous": {"value": "anywhere"}}),
            gives("delete_hint", named(), {"previous": {"value": "here"}}),
        ),
    )


FULL_PAYLOAD: dict[str, Any] = {
    "schema_version": "1.0",
    "created_at": "2020-01-01T00:00:00.000000Z",
    "session_id": "earlier",
    "components": {
        "api": {
            "hints": {
                "build": exported(
                    {"type": "command", "cmd": "make", "shell": "bash"},
                    version=7,
                    use_count=4,
                    last_used_at="2020-02-03T04:05:06.000000Z",
                    meta={"priority": 3, "tags": ["b", "a"]},
                ),
                "directory": [
                    exported("/Users/dev/api", meta={"scope": ON_DARWIN}),
                    exported("/home/dev/api", meta={"scope": ON_LINUX}),
                ],
            }
        },
        "web": {
            "hints": {
                "ports": exported({"type": "json", "data": {"http": 80}}, created_at="2019-12-31T00:00:00.000000Z")
            }
        },
    },
}
OLDER, NEWER = "2020-01-01T00:00:00.000000Z", "2020-02-01T00:00:00.000000Z"


def _imports(hints: Params, mode: str, imported: int, *skipped: str) -> Step:
    reasons = [
        {"component": "api", "key": key, "reason": reason}
        for key, reason in (entry.split(": ", 1) for entry in skipped)
    ]
    wanted = {"imported": imported, "skipped": len(skipped), "reasons": reasons}
    return gives("import", {"payload": payload(api=dict(hints)), "mode": mode}, wanted)


def _moving() -> Iterator[Case]:
    held = _imports({"build": exported(at="2020-01-15T00:00:00.000000Z"), "test": exported("pytest")}, "merge", 2)
    both = {"build": exported("older", at=OLDER), "test": exported("newer", at=NEWER)}
    for mode in ("merge", "replace", "skip"):
        yield Case(
            f"what was exported comes back unchanged: {mode}",
            (
                gives("import", {"payload": FULL_PAYLOAD, "mode": mode}, {"imported": 4, "skipped": 0, "reasons": []}),
                gives(
                    "export",
                    {"format": "json"},
                    {"payload": {"schema_version": "1.1", "components": FULL_PAYLOAD["components"]}},
                ),
                gives(
                    "export",
                    {"component": "web"},
                    {"payload": {"components": {"web": FULL_PAYLOAD["components"]["web"]}}},
                ),
            ),
        )
    yield Case(
        "merge: the newer wins",
        (
            held,
            _imports(both, "merge", 1, "build: not newer than the one here"),
            gives("get_hint", named(), {"hint": {"value": "make"}}),
            gives("get_hint", named("test"), {"hint": {"value": "newer"}}),
        ),
    )
    yield Case(
        "skip: what is here stays",
        (
            held,
            _imports({**both, "run": exported("go")}, "skip", 1, "build: already here", "test: already here"),
            gives("get_hint", named("run"), {"hint": {"value": "go"}}),
            gives("get_hint", named("test"), {"hint": {"value": "pytest"}}),
        ),
    )
    yield Case(
        "replace: only the payload remains",
        (
            held,
            is_set("run", component="web"),
            _imports({"build": exported("older", at=OLDER)}, "replace", 1),
            gives("list_components", {}, {"components": [{"name": "api", "hint_count": 1}]}),
            gives("get_hint", named(), {"hint": {"value": "older"}}),
        ),
    )
    yield Case(
        "replace keeps the secrets that an export names without their value",
        (
            is_set("token", TOKEN, sensitivity="secret"),
            is_set("run", component="web"),
            gives(
                "import",
                {"payload": payload(api={"token": {"redacted": True}}), "mode": "replace"},
                {"imported": 0, "skipped": 1, "removed": 1},
            ),
            gives("get_hint", named("token"), {"hint": {"value": TOKEN}}),
        ),
    )
    yield Case(
        "merge: a hint without a time, written by hand, replaces the one here",
        (
            is_set(value="mine"),
            _imports({"build": {"value": "theirs"}}, "merge", 1),
            gives("get_hint", named(), {"hint": {"value": "theirs"}}),
        ),
    )
    yield Case(
        "an imported hint without times and version starts now",
        (
            _imports({"build": {"value": "make"}}, "merge", 1),
            gives(
                "get_hint",
                named(),
                {"hint": {"value": "make", "version": 1, "created_at": "<now>", "updated_at": "<now>"}},
            ),
        ),
    )
    yield Case(
        "an imported time from the future is now",
        (
            _imports({"build": exported(at="2199-01-01T00:00:00.000000Z")}, "merge", 1),
            gives("get_hint", named(), {"hint": {"created_at": "<now>", "updated_at": "<now>"}}),
        ),
    )
    yield Case(
        "a secret leaves without its value, and does not come back without it",
        (
            is_set("token", TOKEN, sensitivity="secret"),
            gives(
                "export",
                {},
                {"payload": {"components": {"api": {"hints": {"token": {"redacted": True, "version": 1}}}}}},
            ),
            gives(
                "export", {"reveal": True}, {"payload": {"components": {"api": {"hints": {"token": {"value": TOKEN}}}}}}
            ),
            _imports({"other": {"redacted": True}}, "merge", 0, "other: redacted: it was exported without its value"),
        ),
    )
    yield Case(
        "an import passes the secret guard hint by hint",
        (
            gives(
                "import",
                {"payload": payload(api={"token": exported(TOKEN), "build": exported()})},
                {"imported": 1, "skipped": 1},
            ),
        ),
    )


FOUND = {"component": "api", "key": "test", "value": {"type": "command", "cmd": "make test"}, "reason": "Makefile:3"}


def _scanning() -> Iterator[Case]:
    scan = {"repo": "https://host/org/api.git", "commands": [FOUND]}
    in_repo = {**HERE, "repo": "git:org/api"}
    yield Case(
        "a scan sets what it found, and takes away what vanished",
        (
            gives("scan", {**scan, "dry_run": True}, {"added": [FOUND]}),
            gives("scan", scan, {"added": [FOUND], "updated": [], "removed": [], "kept": [], "unchanged": 0}),
            gives("scan", scan, {"added": [], "unchanged": 1}),
            gives(
                "get_hint",
                named("test", context=in_repo),
                {"hint": {"value": FOUND["value"], "meta": {"scope": {"repo": "git:host/org/api"}}}},
            ),
            *(
                gives("scan", {**scan, "commands": [], "unread": [path]}, {"removed": [], "unchanged": 1})
                for path in ("Makefile", "a.toml", ".")
            ),
            gives(
                "scan",
                {**scan, "commands": [], "unread": ["services/api/Makefile"]},
                {"removed": [FOUND], "unchanged": 0},
            ),
            gives("scan", scan, {"added": [FOUND]}),
            gives("scan", {**scan, "commands": []}, {"removed": [FOUND], "unchanged": 0}),
            refuses("get_hint", named("test", context=in_repo), "E_NOT_FOUND"),
        ),
        typeable=False,
    )


ALLOWED = [*_writing(), *_reading(), *_scoping(), *_searching(), *_crediting(), *_deleting(), *_moving(), *_scanning()]
