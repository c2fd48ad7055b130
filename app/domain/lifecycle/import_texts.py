"""Import texts: reads the lines of an imported file in whatever encoding it was saved."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from app.errors import Fault, Invalid
from app.lib import encodings

# The longest row, in characters. No contact may be so large: a longer row has an unclosed quotation mark.
LONGEST_ROW = 256 * 1024
# The most characters that are read again because of unclosed quotation marks: a file could have one in every line.
MOST_READ_AGAIN = 32 * 1024 * 1024


class Lines:
    """An iterator over the lines of a text.

    Keeps the lines of the current row, and can go back in it. A row that exceeds LONGEST_ROW ends there, as at the end
    of the text.
    """

    def __init__(self, text: IO[str]) -> None:
        self._text = text
        self._ahead: list[str] = []
        # `number`: how many lines have been read. `row`: the lines of the current row.
        self.number = 0
        self.row: list[str] = []
        self._length = self._read_again = 0  # characters of the current row, and of all rows read again
        # Whether a line was requested after the last one of the text, or of a row at its limit.
        self.is_over = False

    def __iter__(self) -> Lines:
        return self

    def __next__(self) -> str:
        if self._length <= LONGEST_ROW and (line := self.read()):
            return line[: LONGEST_ROW + 1]  # parsing millions of cells would take seconds
        self.is_over = True
        raise StopIteration

    def read(self, most: int = -1) -> str:
        """Returns the next line, or its first `most` characters; "" at the end."""
        line = self._ahead.pop() if self._ahead else self._text.readline(most)
        if line:
            self.number += 1
            self.row.append(line)
            self._length += len(line)
        return line

    def begin_row(self) -> None:
        """Starts a new row with the next line."""
        self.row, self._length = [], 0
        self.is_over = False

    @property
    def is_too_long(self) -> bool:
        """Whether the first line of the current row alone exceeds LONGEST_ROW."""
        return len(self.row[0]) > LONGEST_ROW if self.row else False

    def go_back(self) -> None:
        """Returns to the second line of the row, to be read next. Raises Invalid above MOST_READ_AGAIN."""
        again = self.row[1:]
        self._read_again += sum(map(len, again))
        if self._read_again > MOST_READ_AGAIN:
            raise Invalid(Fault("", f"Too many quotation marks are not closed, such as that in line {self.number}."))
        self._ahead += reversed(again)
        self.number -= len(again)
        self.is_over = False
        self.row = self.row[:1]


def first_sign(text: IO[str]) -> str:
    """Returns the first character that is not a space; "" if there is none. Rewinds the text."""
    found = text.read(1024).lstrip()[:1]
    text.seek(0)
    return found


@contextmanager
def opened(file: IO[bytes], errors: str = "strict") -> Iterator[IO[str]]:
    """Opens the file as text, from its beginning. Raises Invalid if its text cannot be decoded."""
    text = io.TextIOWrapper(file, encodings.of_file(file), errors=errors, newline="")
    try:
        yield text
    except UnicodeDecodeError as error:
        raise Invalid(Fault("", "The file is not text in UTF-8. Save it as 'CSV UTF-8'.")) from error
    finally:
        text.detach()  # otherwise the wrapper would close the file
