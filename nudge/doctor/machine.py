"""The disk under the runtime directory."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from shlex import quote

from nudge import limits
from nudge.doctor.files import nearest
from nudge.doctor.finding import Finding, Patient, fail, ok, warn
from nudge.usecases.measures import size


def check_disk(patient: Patient) -> Iterator[Finding]:
    where = nearest(patient.directory)
    free = shutil.disk_usage(where).free
    if free < limits.DISK_FULL_BYTES:
        yield fail("disk", f"{size(free)} free: changes will soon be refused", f"df -h {quote(where)}")
    elif free < limits.DISK_LOW_BYTES:
        yield warn("disk", f"{size(free)} free", f"df -h {quote(where)}")
    else:
        yield ok("disk", f"{size(free)} free")
