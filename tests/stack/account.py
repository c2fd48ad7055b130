"""The account that a server runs under when root starts it, and the permissions it needs."""

import os
import pwd
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SEARCH, READ = 0o001, 0o004


@dataclass(frozen=True)
class Account:
    """An unprivileged account, so that a compromised server gains no rights of root."""

    uid: int
    gid: int

    def own(self, directory: Path) -> None:
        """Make the account the owner of the directory and let it traverse the parents."""
        shutil.chown(directory, self.uid, self.gid)
        let_pass(directory)

    def popen_arguments(self) -> dict[str, Any]:
        """Arguments that make subprocess.Popen run a command as the account."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


def unprivileged() -> Account | None:
    """`nobody` if this process is root, otherwise None: keep the current account."""
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam("nobody")
    return Account(entry.pw_uid, entry.pw_gid)


def let_pass(path: Path) -> None:
    """Let every account traverse the directories above the path, without listing them."""
    for directory in path.resolve().parents:
        _add(directory, SEARCH)


def let_read(tree: Path) -> None:
    """Let every account reach, read and execute the files in the tree."""
    let_pass(tree)
    for path in (tree, *tree.rglob("*")):
        if not path.is_symlink():
            runs = path.is_dir() or path.stat().st_mode & 0o100
            _add(path, READ | SEARCH if runs else READ)


def _add(path: Path, bits: int) -> None:
    mode = path.stat().st_mode
    if mode & bits != bits:
        path.chmod(mode & 0o7777 | bits)
