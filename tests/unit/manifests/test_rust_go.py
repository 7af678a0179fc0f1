"""Cargo and Go: roots, members of workspaces and separate packages below them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.manifests.repos import commands


def test_virtual_cargo_workspace(tmp_path: Path) -> None:
    """Members by pattern, not by reach; an excluded crate and one with a workspace of its own stand alone."""
    result = commands(
        tmp_path / "repo",
        {
            "rust/Cargo.toml": '[workspace]\nmembers = ["crates/*"]\nexclude = ["crates/wasm"]\n',
            "rust/crates/core/Cargo.toml": '[package]\nname = "core"\n',
            "rust/crates/core/src/main.rs": "",
            "rust/crates/wasm/Cargo.toml": '[package]\nname = "wasm"\n',
            "rust/crates/core/fuzz/Cargo.toml": '[package]\nname = "core-fuzz"\n[workspace]\n',
        },
    )
    assert result["rust test"] == "cargo test --manifest-path rust/Cargo.toml --workspace"
    assert result["core test"] == "cargo test --manifest-path rust/Cargo.toml -p core"
    assert result["core run"] == "cargo run --manifest-path rust/Cargo.toml -p core"
    assert result["wasm test"] == "cargo test --manifest-path rust/crates/wasm/Cargo.toml"
    assert result["core-fuzz build"] == "cargo build --manifest-path rust/crates/core/fuzz/Cargo.toml"
    assert "wasm run" not in result


@pytest.mark.parametrize(
    ("manifest", "runs"),
    [
        ('[[bin]]\nname = "a"\n', True),
        ('[[bin]]\nname = "a"\n[[bin]]\nname = "b"\n', False),
        ('default-run = "a"\n[[bin]]\nname = "a"\n[[bin]]\nname = "b"\n', True),
        ("", False),
    ],
)
def test_cargo_run(tmp_path: Path, manifest: str, runs: bool) -> None:
    """`cargo run` is only given where cargo would know which program."""
    assert ("x run" in commands(tmp_path, {"Cargo.toml": f'[package]\nname = "x"\n{manifest}'})) is runs


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"main.go": ""}, {"svc run": "go run ."}),
        ({"cmd/server/main.go": ""}, {"svc run": "go run ./cmd/server"}),
        ({"cmd/a/main.go": "", "cmd/b/main.go": ""}, {}),
        ({".golangci.yml": ""}, {"svc lint": "golangci-lint run"}),
    ],
)
def test_go(tmp_path: Path, files: dict[str, str], expected: dict[str, str]) -> None:
    """The module's name without its major version; the one program; the linter that is configured."""
    usual = {
        "svc build": "go build ./...",
        "svc test": "go test ./...",
        "svc lint": "go vet ./...",
        "svc format": "go fmt ./...",
    }
    assert commands(tmp_path, {"go.mod": "module example.com/acme/svc/v2\n", **files}) == usual | expected
