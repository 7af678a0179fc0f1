"""What a command prints when it failed because of the session's own work, as data."""

from __future__ import annotations

import re

OWN_WORK_SIGNS = re.compile(
    r"""
      ^FAILED[ ] | \b[1-9]\d*[ ](?:tests?[ ])?fail(?:ed|ing|ures?)\b
    | \bAssertion(?:Error)?\b[^\n]*fail | \bAssertionError\b | ^E[ ]{2,}assert\b
    | ^\s*---[ ]FAIL: | \btest[ ]result:[ ]FAILED | ^not[ ]ok\b | ^FAILURES! | Failures:[ ][1-9]
    | ^\s*●[ ] | failing[ ]tests | ^\[FAIL\b
    | \btests[ ]failed[ ]out[ ]of\b | ^\s*[✕✗×✖][ ] | ^[ ]*FAIL[ ] | \bSnapshot\b.*\bmismatched | assertion[ ]`
    | \bFailed!?[ ]+-[ ] | Assert\.\w+\(\)[ ]Failure | panicked[ ]at | ^\s*Failed[ ]\w+
    | ^\s*[^\s:()]+\.\w+:\d+(?::\d+)?:?[ \t]+\S | \(\d+,\d+\):[ ](?:error|warning)\b | ^\s*\d+:\d+\s+(?:error|warning)\b
    | ^\s*-->[ ]\S+:\d+:\d+ | ^\s*┌─[ ]\S+:\d+ | \bFound[ ]\d+[ ]errors?\b | \b\d+[ ]problems?\b
    | \bwould[ ](?:be[ ])?reformat
    | ^--[ ][A-Z ]+[ ]-{3,} | ^error\[E\d+\]: | \berror\b[^\n]*:\d+:\d+ | \bline[ ]\d+(?:,[ ]column[ ]\d+)?:[ ]
    | ^error:[ ](?:could[ ]not[ ]compile|aborting[ ]due|mismatched|expected)
    | ^error:[ ]cannot[ ]find[ ](?:value|type|function|symbol)
    | \b[Tt]ype[ ]mismatch\b | \bCode[ ]style[ ]issues | \bcode[ ]has[ ]been[ ]rated
    | \b(?:Syntax|Indentation|Type|Name|Attribute|Value|Index|Key)Error\b
    | \bUndefined\w*Error\b | \bReferenceError\b | ^CONFLICT[ ] | merge[ ]conflict
    | nothing[ ]to[ ]commit | non-fast-forward
    | \[rejected\] | divergent[ ]branches | already[ ]exists | are[ ]in[ ]sync | nothing[ ]added[ ]to[ ]commit
    """,
    re.MULTILINE | re.VERBOSE,
)
FAILED_TESTS = re.compile(
    r"^FAILED | \d+ failed\b|\d+ failing\b|^\s*--- FAIL:|test result: FAILED|^not ok\b|^E {2,}assert|^\[FAIL\b",
    re.MULTILINE,
)
"""Tests that ran and failed: nothing lacks that they need."""
