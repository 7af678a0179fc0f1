"""Vendor tokens are found by their published formats, wherever they stand."""

from __future__ import annotations

import random

import pytest

from nudge.security.formats import FORMATS, SHAPES, find_tokens
from nudge.security.secrets import find_secret, redact
from tests.bench import guard_samples

ALNUM = "q7W3k9Z1m4X8c2V6b5N0p3L7"

NOT_TOKENS = (
    *(
        "ghp_",
        "echo ghp_$TOKEN",
        "use a github_pat_ token",
        "lghp_build_everything",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    ),
    *("glpat-$TOKEN", "glpat-your-token-goes-here1", "xoxb-", "xoxb-$TOKEN", "xapp-template", "dop_v1_", "whsec_..."),
    *(
        "npm_config_registry=https://r.example",
        "npm_execpath",
        "hf_hub_download",
        "npm_lifecycle_event=prepublish_only",
    ),
    *(
        "pk_live_4eC39HqLyjWDarjtT1zdp7dc"[:8],
        "sk_live_$KEY",
        "risk_live_monitoring1",
        "AIza",
        "AIzawa-san",
        "ya29.example",
    ),
    *("sk-ant-...", "task-ant-colony-optimization-runner", "sk-ant-$KEY", "sk-learn-contrib-imbalanced", "sk-..."),
    *(
        "make task-" + "runnerwithaverylongname",
        "disk-usage-report",
        "AKIA",
        "asia-northeast1-docker.pkg.dev",
        "AKIA$X",
    ),
    *(
        "EURASIA" + "IOSFODNN7EXAMPLE",
        "keyboard_shortcuts",
        "re_compile_pattern_list_v2",
        "test_everything_with_coverage_40",
    ),
    *(
        "live_reload_server_with_proxy_enabled",
        "api-gateway-controller-manager",
        "sandbox_environment_for_payments_team_1",
    ),
    *("https://hooks.slack.com/services/$SLACK_PATH", "curl https://hooks.slack.com/", "12:AA:34", "110201543:AA"),
    *("https://discord.com/api/webhooks/105264636605646234/$TOKEN", "https://x.example/api/webhooks/1"),
    *("sdk-tools-linux-4333796-and-some-more", "as-of-2024-the-build", "fc-list --format=%{file}", "b_variant_2"),
)


def test_a_token_is_found_alone_and_in_text() -> None:
    """Every published format is refused as a hint and redacted from a record, in each place where tokens turn up."""
    missed = []
    for kind, template in guard_samples.kinds():
        source = random.Random(kind)
        for place in guard_samples.PLACES:
            token = guard_samples.make(template, source)
            text = place.format(token)
            if find_secret(text) is None or token in redact(text):
                missed.append((kind, text))
    assert missed == []


def test_a_credential_without_a_format_is_found_by_its_place() -> None:
    """Headers, cookies, variables, sentences, files and commands show that a value is a credential."""
    texts = [guard_samples.make(template, random.Random(template)) for template in guard_samples.contexts()]
    assert [text for text in texts if find_secret(text) is None or redact(text) == text] == []


def test_everyday_commands_raise_no_alarm() -> None:
    """Commands, configuration and sentences with ids, digests, variables, masks and defaults are no credentials."""
    texts = guard_samples.everyday(2, random.Random(8))
    assert len(texts) >= 800
    assert [(find_secret(text), text) for text in texts if find_secret(text) is not None] == []


@pytest.mark.parametrize("text", NOT_TOKENS)
def test_what_only_starts_like_a_token_is_none(text: str) -> None:
    """Variables, masks, file names and identifiers are not tokens."""
    assert list(find_tokens(text)) == []


def test_the_table_has_about_two_hundred_vendors() -> None:
    """A format is one row; no row is there twice, and each has a fewest and a most that make sense."""
    rows = [(prefix, characters, fewest) for _, prefixes, characters, fewest, _ in FORMATS for prefix in prefixes]
    assert len({kind for kind, *_ in FORMATS} | {kind for kind, *_ in SHAPES}) >= 200
    assert len(set(rows)) == len(rows)
    assert all(fewest <= most for *_, fewest, most in FORMATS)


def test_a_token_is_redacted_whole_and_its_neighbours_stay() -> None:
    """The text around a token is kept to the byte."""
    token = "gl" + "pat-" + ALNUM[:20]
    assert redact(f"git clone https://ci:{token}@gitlab.com/a/b.git") == (
        "git clone https://ci:[REDACTED:gitlab-token]@gitlab.com/a/b.git"
    )
    assert redact(f"Use {token}.") == "Use [REDACTED:gitlab-token]."
