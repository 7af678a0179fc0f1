"""An interpreter that has imported the command line already, and runs each command in a fork of itself.

`harness.PreparedCli` runs this file as a script, with the number of a socket. To start Python and to import click is
most of the processor time of a command, and the suite runs a thousand of them. From a command's first line on all is as
ever: a process of its own, with its environment, directory and descriptors.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import sys
import threading
import traceback
from typing import NoReturn

# No command needs the MCP SDK, aiohttp or a model, and no server at once.
_NOT_IMPORTED = ("nudge.server.", "nudge.__main__", "nudge.meaning.static", "nudge.meaning.onnx", "nudge.meaning.index")


def import_commands() -> None:
    import nudge

    for module in pkgutil.walk_packages(nudge.__path__, "nudge."):
        if not module.name.startswith(_NOT_IMPORTED):
            importlib.import_module(module.name)
    for name in ("nudge.process.primary", "nudge.process.role", "nudge.__main__"):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


class Commands:
    """Takes commands from `control` until its other end is closed; tells each one's exit status on its own socket."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        self._running: dict[int, tuple[int, socket.socket]] = {}
        """The pid of each, and who waits for it, by the descriptor that tells its end."""

    def serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if self._selector.get_map().get(key.fd) != key:
                    continue  # the command ended and was taken off in this very round
                if key.fd in self._running:
                    self._finish(key.fd)
                elif key.fileobj is not self._control:
                    os.kill(key.data, signal.SIGKILL)  # nobody waits any more
                    self._selector.unregister(key.fileobj)
                elif not self._start():
                    return self._end()

    def _start(self) -> bool:
        mark, descriptors, _, _ = socket.recv_fds(self._control, 1, 4)
        if not mark:
            return False
        answers = socket.socket(fileno=descriptors[0])
        with answers.makefile("rb") as lines:
            line = lines.readline()
        if not line:  # who asked was gone at once
            for descriptor in descriptors[1:]:
                os.close(descriptor)
            answers.close()
            return True
        command = json.loads(line)
        pid = os.fork()
        if pid == 0:
            self._selector.close()
            self._control.close()
            answers.close()
            run(command, descriptors[1:])
        for descriptor in descriptors[1:]:
            os.close(descriptor)
        end = os.pidfd_open(pid)
        self._running[end] = pid, answers
        self._selector.register(end, selectors.EVENT_READ)
        self._selector.register(answers, selectors.EVENT_READ, pid)
        return True

    def _end(self) -> None:
        for pid, _ in self._running.values():
            os.kill(pid, signal.SIGKILL)

    def _finish(self, end: int) -> None:
        pid, answers = self._running.pop(end)
        _, status = os.waitpid(pid, 0)
        self._selector.unregister(end)
        os.close(end)
        if answers in self._selector.get_map():
            self._selector.unregister(answers)
        with answers, contextlib.suppress(OSError):  # who asked may be gone
            answers.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def run(command: dict[str, object], descriptors: list[int]) -> NoReturn:
    """Become this command, and end as an interpreter does."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    os.environ.clear()
    os.environ.update(command["environ"])  # type: ignore[call-overload]
    os.chdir(str(command["cwd"]))
    os.setsid()
    sys.argv = list(command["argv"])  # type: ignore[call-overload]
    os._exit(_exit_code())


def _exit_code() -> int:
    from nudge.__main__ import main

    try:
        try:
            code = main()
        except SystemExit as ending:
            code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        return 1
    return code


if __name__ == "__main__":
    import_commands()
    Commands(socket.socket(fileno=int(sys.argv[1]))).serve()
