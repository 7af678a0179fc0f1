"""Two ways in which Nudge can be installed: as the running environment has it, and as a plain `pip install` leaves it.

An editable installation puts a finder into the start of every interpreter, which may cost more than all of `nudge get`.
It weighs on
the baseline as well, and so makes every ratio look better than what a user sees.
"""

from __future__ import annotations

import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

from tests.harness import ROOT

_SCRIPT = """#!{python}
import sys
from nudge.__main__ import main
if __name__ == "__main__":
    sys.exit(main())
"""


@dataclass(frozen=True, slots=True)
class Installation:
    label: str
    python: str
    nudge: str

    @property
    def bare(self) -> list[str]:
        """An interpreter that does nothing: the baseline of everything that starts one."""
        return [self.python, "-c", "pass"]


def running() -> Installation:
    folder = Path(sys.executable).parent
    return Installation("this environment", sys.executable, str(folder / "nudge"))


def plain(folder: Path) -> Installation:
    """A fresh environment that borrows the packages of the running one, by path alone."""
    venv.create(folder, symlinks=True, with_pip=False)
    site = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    (site / "borrowed.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
    python, script = folder / "bin" / "python", folder / "bin" / "nudge"
    script.write_text(_SCRIPT.format(python=python))
    script.chmod(0o755)
    return Installation("plain install", str(python), str(script))
