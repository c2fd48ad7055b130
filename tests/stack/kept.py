"""The webhooks that a receiver keeps in files, so that a verifier can be tried on them."""

from collections import deque
from pathlib import Path

from tests.stack.receiver import Received

NUMBER = 100


class Kept:
    """The latest webhooks: `<delivery>.body`, the raw bytes, and `<delivery>.signature`, written after the body."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._bodies = deque(sorted(directory.glob("*.body"), key=lambda path: path.stat().st_mtime))

    def put(self, received: Received) -> None:
        """Keep one, and forget the oldest beyond NUMBER. A retry replaces the signature. Ignores other requests."""
        if not received.delivery_id.startswith("dlv_") or not received.delivery_id[4:].isalnum():
            return
        body = self._directory / f"{received.delivery_id}.body"
        if body not in self._bodies:
            self._bodies.append(body)
        body.write_bytes(received.body)
        body.with_suffix(".signature").write_text(received.signature)
        while len(self._bodies) > NUMBER:
            oldest = self._bodies.popleft()
            oldest.unlink()
            oldest.with_suffix(".signature").unlink(missing_ok=True)
