"""`python -m tests.security [--long]`: the security tests; with --long the random ones go on for much longer."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import pytest

from tests import effort

HERE = Path(__file__).resolve().parent


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.security", description="Hostile input of every kind.")
    parser.add_argument(
        "--long", action="store_true", help="fuzz for minutes, not seconds; the property tests too, at random"
    )
    if parser.parse_args().long:
        os.environ[effort.VARIABLE] = "1"
        openapi = HERE.parent / "contract" / "test_openapi.py"
        random = [
            HERE / "test_fuzz.py",
            HERE / "test_fields.py",
            HERE / "test_patterns.py",
            HERE.parent / "property",
            openapi,
        ]
        return int(pytest.main([*map(str, random), "-s", "-o", "timeout=3000"]))
    return int(pytest.main([str(HERE), "-s"]))


if __name__ == "__main__":
    sys.exit(main())
