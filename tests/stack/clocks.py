"""A clock that is wrong on purpose, for the processes that are started with it. Needs a C compiler."""

import shutil
import subprocess
from pathlib import Path

from tests.stack.account import let_read
from tests.stack.errors import StackError


class Clock:
    """The wall clock of processes with `environment`, whose monotonic clock stays as it is."""

    def __init__(self, directory: Path) -> None:
        if shutil.which("cc") is None:
            raise StackError("Moving a clock needs a C compiler: clock.c is compiled and preloaded.")
        directory.mkdir(parents=True)
        library, self._file = directory / "clock.so", directory / "seconds"
        source = Path(__file__).with_name("clock.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], check=True)
        self._file.write_bytes(bytes(8))
        let_read(directory)
        self.environment = {"LD_PRELOAD": str(library), "CLOCK_FILE": str(self._file)}
        self.seconds = 0

    def move(self, seconds: int) -> None:
        """Moves it by that many seconds, at once and in all running processes."""
        self.seconds += seconds
        with self._file.open("r+b") as file:  # in place: it is mapped
            file.write(self.seconds.to_bytes(8, "little", signed=True))
