"""Online members: which members have a page of a workspace open, by the streams of this process."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from app import realtime
from app.live.listeners import Pass
from app.realtime import Sign


class OnlineMembers:
    """Counts the streams of each member. Visitors, and staff on a visit, are not counted."""

    def __init__(self) -> None:
        self._streams: Counter[tuple[str, str]] = Counter()

    def come(self, admitted: Pass) -> Sequence[Sign]:
        """Counts a new stream. Returns the sign to send if it is the member's first."""
        if not _is_member(admitted):
            return ()
        who = (admitted.workspace_id, admitted.actor_id)
        self._streams[who] += 1
        return [_sign(admitted.workspace_id, [admitted.actor_id], True)] if self._streams[who] == 1 else ()

    def go(self, admitted: Pass) -> Sequence[Sign]:
        """Counts a stream that has ended. Returns the sign to send if it was the member's last."""
        if not _is_member(admitted):
            return ()
        who = (admitted.workspace_id, admitted.actor_id)
        self._streams[who] -= 1
        if self._streams[who] > 0:
            return ()
        del self._streams[who]
        return [_sign(admitted.workspace_id, [admitted.actor_id], False)]

    def all(self) -> Sequence[Sign]:
        """Returns a sign for each workspace, with all members who are online.

        The hub sends these signs repeatedly, for listeners that are new or missed a sign.
        """
        members: dict[str, list[str]] = defaultdict(list)
        for workspace_id, member_id in self._streams:
            members[workspace_id].append(member_id)
        return [_sign(workspace_id, those, True) for workspace_id, those in members.items()]


def show(signs: Iterable[Sign]) -> None:
    """Sends the signs to the listeners of every process."""
    for sign in signs:
        realtime.show(sign)


def _is_member(admitted: Pass) -> bool:
    return admitted.actor_id.startswith("mem_")


def _sign(workspace_id: str, member_ids: list[str], online: bool) -> Sign:
    return Sign("presence", workspace_id, "member", "", {"member_ids": member_ids, "online": online})
