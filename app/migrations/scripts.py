"""Scripts: splits a migration's file into the steps in which it runs."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(r"--[^\n]*|'[^']*'|\$\$.*?\$\$|[^;'$-]+|.", re.DOTALL)
_TABLE = re.compile(r"CREATE TABLE (\w+)")
_DROPPED = re.compile(r"DROP INDEX (\w+)$")
_INDEX = re.compile(r"CREATE (?P<unique>UNIQUE )?INDEX (?P<name>\w+)\s+ON (?P<table>\w+)\s*(?P<rest>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Transaction:
    """Statements that take effect together."""

    statements: list[str]


@dataclass(frozen=True, slots=True)
class Batches:
    """An UPDATE of a whole table, in transactions of some pages each."""

    update: str


@dataclass(frozen=True, slots=True)
class Index:
    """An index of a table that an earlier file created. It may replace an index of the same name."""

    name: str
    table: str
    unique: str
    rest: str  # the part of the statement after the table's name
    is_replaced: bool

    def statement(self, name: str, table: str, how: str = "") -> str:
        """Returns the statement that creates this index, under `name` on `table`. `how`: its options."""
        return f"CREATE {self.unique}INDEX {how} {name} ON {table} {self.rest}"


Step = Transaction | Batches | Index


def steps(text: str) -> list[Step]:
    """Splits a file into steps at each `COMMIT`, and at each index of an earlier file's table."""
    statements = _statements(text)
    new_tables = {match[1] for each in statements if (match := _TABLE.match(each))}
    indexes = {each: match for each in statements if (match := _INDEX.match(each)) and match["table"] not in new_tables}
    built = {match["name"] for match in indexes.values()}
    dropped = {match[1] for each in statements if (match := _DROPPED.match(each))}
    found: list[Step] = []
    together: list[str] = []
    for statement in [*statements, "COMMIT"]:
        if statement != "COMMIT" and statement not in indexes:
            if (drop := _DROPPED.match(statement)) is None or drop[1] not in built:
                together.append(statement)
            continue
        if together:
            is_update = len(together) == 1 and together[0].startswith("UPDATE ")
            found.append(Batches(together[0]) if is_update else Transaction(together))
            together = []
        if match := indexes.get(statement):
            parts = match["name"], match["table"], match["unique"] or "", match["rest"]
            found.append(Index(*parts, is_replaced=match["name"] in dropped))
    return found


def _statements(text: str) -> list[str]:
    found, statement = [], ""
    for token in _TOKEN.findall(text):
        if token == ";":
            found.append(statement.strip())
            statement = ""
        elif not token.startswith("--"):
            statement += token
    return found
