"""Import texts: the lines of a file that somebody imports, in whatever encoding it was saved."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from app.errors import Fault, Invalid
from app.lib import encodings

# A row that goes on for longer is one whose quotation mark is not closed: no contact may be so large.
LONGEST_ROW = 256 * 1024
# In all, of rows whose quotation marks are not closed. A file could make each of its lines swallow all that follow.
MOST_READ_AGAIN = 32 * 1024 * 1024


class Lines:
    """An iterator over the lines of a text that knows the row it is in, and can go back within it.

    It ends a row of several lines that is longer than LONGEST_ROW, as at the end of the text.
    """

    def __init__(self, text: IO[str]) -> None:
        self._text = text
        self._ahead: list[str] = []
        # How many lines have been read, and those of the present row.
        self.number = 0
        self.row: list[str] = []
        self._length = self._read_again = 0  # characters of the present row, and of all that were read again
        # Whether more lines were wanted than there are, or than a row may have.
        self.is_over = False

    def __iter__(self) -> Lines:
        return self

    def __next__(self) -> str:
        if self._length <= LONGEST_ROW and (line := self.read()):
            return line
        self.is_over = True
        raise StopIteration

    def read(self, most: int = -1) -> str:
        """The next line, or its first `most` characters; "" at the end."""
        line = self._ahead.pop() if self._ahead else self._text.readline(most)
        if line:
            self.number += 1
            self.row.append(line)
            self._length += len(line)
        return line

    def begin_row(self) -> None:
        """Forgets the lines before: the next one begins a row."""
        self.row, self._length = [], 0

    def go_back(self) -> None:
        """Makes the second line of the row the next one to read. Raises Invalid if too much has been read again."""
        again = self.row[1:]
        self._read_again += sum(map(len, again))
        if self._read_again > MOST_READ_AGAIN:
            raise Invalid(Fault("", f"Too many quotation marks are not closed, such as that in line {self.number}."))
        self._ahead += reversed(again)
        self.number -= len(again)
        self.is_over = False
        self.row = self.row[:1]


def first_sign(text: IO[str]) -> str:
    """The first sign of the text that is no space, from its beginning; leaves it there."""
    found = text.read(1024).lstrip()[:1]
    text.seek(0)
    return found


@contextmanager
def opened(file: IO[bytes], errors: str = "strict") -> Iterator[IO[str]]:
    """The text of the file from its beginning. Raises Invalid if it cannot be decoded while it is read."""
    text = io.TextIOWrapper(file, encodings.of_file(file), errors=errors, newline="")
    try:
        yield text
    except UnicodeDecodeError as error:
        raise Invalid(Fault("", "The file is not text in UTF-8. Save it as 'CSV UTF-8'.")) from error
    finally:
        text.detach()  # it would close the file
