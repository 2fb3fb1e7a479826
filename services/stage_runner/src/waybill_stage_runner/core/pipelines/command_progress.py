"""Keeps which commands of a partition are answered, also for the runner that comes next.

The committed offset is that of the oldest open command. Others after it may be answered already,
and `waybill.replies` keeps their answers for an hour only. So the metadata of the committed offset
list those that are open. A runner that takes over reads them again, and carries out no others.
Never does I/O.
"""

import re
from collections.abc import Set
from itertools import accumulate, pairwise
from typing import Final

OPEN_MAX: Final = 400  # with gaps of nine digits they fit into 4096 bytes, the limit of Kafka
WRITTEN_BY_US: Final = re.compile(r"\d+(,\d+)*")  # tools that move a group write their own words
READ_AGAIN: Final = ""  # in place of an id: the command is open, and still to be read


class CommandProgress:
    """Progress in one partition: the commands that are open, and `end`, which is after all that
    were read.
    """

    def __init__(self, committed: int = 0, metadata: str = "") -> None:
        """Continue after the runner that committed this offset with these metadata."""
        self._start = self._end = committed
        self._open: dict[int, str] = {}
        if WRITTEN_BY_US.fullmatch(metadata):
            length, *gaps = (int(number) for number in metadata.split(","))
            self._end = committed + length
            self._open = dict.fromkeys(accumulate(gaps, initial=committed), READ_AGAIN)

    @property
    def position(self) -> tuple[int, str]:
        """The offset to commit, and its metadata: how many offsets were read from there on, and the
        gaps between those that are open.
        """
        offsets = sorted(self._open)
        if not offsets:
            return self._end, ""
        gaps = (later - earlier for earlier, later in pairwise(offsets))
        return offsets[0], ",".join(str(number) for number in (self._end - offsets[0], *gaps))

    def has_room_for(self, offset: int) -> bool:
        """Return True if one more may be open. One that is open already stays so."""
        return offset in self._open or len(self._open) < OPEN_MAX

    def reach(self, offset: int) -> bool:
        """Note that the message at `offset` comes next. Return True if it was answered before.

        Messages come in order: what was to be read again and comes no more is gone from the topic.
        """
        if offset < self._start:  # somebody has moved the group back, or the topic is another
            self._start, self._end, self._open = offset, offset, {}
        gone = [at for at, name in self._open.items() if name == READ_AGAIN and at < offset]
        for at in gone:
            del self._open[at]
        return offset < self._end and offset not in self._open

    def open(self, offset: int, command_id: str) -> None:
        """Note that the command is read, and to be answered."""
        self._open[offset] = command_id
        self._end = max(self._end, offset + 1)

    def skip(self, offset: int) -> None:
        """Note that the message is read, and that nobody waits for an answer."""
        self._open.pop(offset, None)
        self._end = max(self._end, offset + 1)

    def read_again(self, offset: int) -> None:
        """Note that the command is to be read a second time."""
        self._open[offset] = READ_AGAIN

    def close_answered(self, unanswered: Set[str]) -> None:
        """Note that all commands but these and those that are still to be read are answered."""
        keep = unanswered | {READ_AGAIN}
        self._open = {at: name for at, name in self._open.items() if name in keep}
