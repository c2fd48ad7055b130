"""Queries that peewee says badly: each file holds one, named and described."""

from functools import cache
from pathlib import Path


@cache
def load(name: str) -> str:
    return (Path(__file__).parent / f"{name}.sql").read_text()
