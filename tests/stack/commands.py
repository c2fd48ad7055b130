"""Runs `python -m app …` often: one process imports the commands, and forks for each that is asked for.

Most of what a command costs is the start of Python and the imports, about a second.
"""

import json
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO


class Commands:
    """The commands of the code in the folder `root`, in that environment. Safe to use from several threads."""

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        self._root = root
        self._environment = environment
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def run(self, arguments: Sequence[str], input: str) -> tuple[int, str, str]:
        """Runs a command to its end; returns its exit code, and what it wrote to standard output and error."""
        with self._lock:
            process = self._process = self._process or self._start()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps([arguments, input]) + "\n")
            process.stdin.flush()
            code, output, errors = json.loads(process.stdout.readline())
        return int(code), str(output), str(errors)

    def stop(self) -> None:
        """Ends the process. Safe to repeat."""
        with self._lock:
            if self._process is not None:
                self._process.communicate()
                self._process = None

    def _start(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, __file__],
            cwd=self._root,
            env=dict(self._environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )


def _serve() -> None:
    """Answers each line of standard input, until it ends."""
    sys.path[0] = os.getcwd()
    import app.commands.main

    for line in sys.stdin:
        arguments, given = json.loads(line)
        with TemporaryFile("w+") as input, TemporaryFile("w+") as output, TemporaryFile("w+") as errors:
            input.write(given)
            input.seek(0)
            if (pid := os.fork()) == 0:
                for number, file in enumerate((input, output, errors)):
                    os.dup2(file.fileno(), number)
                _end(partial(app.commands.main.main, arguments, prog_name="python -m app"))
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            print(json.dumps([code, _said(output), _said(errors)]), flush=True)


def _end(command: Callable[[], None]) -> None:
    """Runs the command and ends the process as Python would, without what belongs to the process that forked."""
    code = 1
    try:
        command()
        code = 0
    except SystemExit as asked:
        code = asked.code if isinstance(asked.code, int) else int(asked.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _said(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


if __name__ == "__main__":
    _serve()
