"""The fence of a sink in its table: a property, which moves in the commit of the rows; and which
snapshots are of this sink.

A snapshot says in its summary which batch made it, and which the one before. A batch that changes
no file may make none: then the one before has its rows, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from waybill_shared.contract import codec
from waybill_shared.contract.events import Fence
from waybill_spark.sinks.iceberg.files import CommitFiles

FENCE: Final = "waybill.fence."
SEQUENCE: Final = "waybill.sequence."
"""The sequence of the batch that made a snapshot; as a property, of the last one that made any."""
MARK: Final = "waybill.mark."
"""The mark of the last commit without a snapshot: no other commit has the same."""
BEFORE: Final = "waybill.before."
"""The sequence of the batch that made the snapshot before. One of an earlier release has none."""


@dataclass(frozen=True, slots=True)
class TableFence:
    key: str

    def read(self, table: Table) -> Fence | None:
        text = table.properties.get(FENCE + self.key)
        return None if text is None else codec.from_json(Fence, text)

    def snapshot_of(self, table: Table, fence: Fence) -> Snapshot | None:
        """Return the one that has the rows of the fence's batch, and of all before; None once it
        has been expired."""
        wanted = self._last(table, fence)
        newest_first = reversed(table.metadata.snapshots)
        return next((each for each in newest_first if self._sequence(each) == wanted), None)

    def versions_from(self, table: Table, fence: Fence) -> int:
        """Return the first batch after the last snapshot that was deleted.

        A tag may keep an older snapshot, and nobody can say which. Snapshots of others do not
        count.
        """
        before = {self._sequence(each): self._before(each) for each in table.metadata.snapshots}
        least, sequence = fence.batch.sequence + 1, self._last(table, fence)
        while sequence is not None and sequence in before:
            least, sequence = sequence, before[sequence]
        return least

    def move(self, files: CommitFiles, table: Table, fence: Fence, *, may_stay: bool) -> None:
        """Stage it, with a snapshot for the files. `may_stay`: the one before has all rows."""
        key, sequence, seen = FENCE + self.key, SEQUENCE + self.key, self.read(table)
        last = None if seen is None else self._last(table, seen)
        properties = {key: codec.to_json(fence)}
        if files.require_property(key) and may_stay:
            properties |= {sequence: str(last), MARK + self.key: files.mark}
            files.transaction.set_properties(properties)
            return
        made = {sequence: str(fence.batch.sequence)}
        files.transaction.set_properties(properties | made)
        files.stage(made | ({} if last is None else {BEFORE + self.key: str(last)}))

    def has(self, table: Table, files: CommitFiles) -> bool:
        """Return whether the table has this commit: its snapshot is there, or its mark."""
        if files.makes_snapshot:
            return files.is_in(table)
        return table.properties.get(MARK + self.key) == files.mark

    def _last(self, table: Table, fence: Fence) -> int | None:
        """Return the newest sequence with a snapshot.

        An earlier release does not write the property.
        """
        made = {self._sequence(each) for each in table.metadata.snapshots}
        noted = _number(table.properties, SEQUENCE + self.key)
        return fence.batch.sequence if fence.batch.sequence in made else noted

    def _sequence(self, snapshot: Snapshot) -> int | None:
        return _number(_summary(snapshot), SEQUENCE + self.key)

    def _before(self, snapshot: Snapshot) -> int | None:
        before, own = _number(_summary(snapshot), BEFORE + self.key), self._sequence(snapshot)
        return own - 1 if before is None and own is not None else before


def _summary(snapshot: Snapshot) -> Mapping[str, str]:
    return {} if snapshot.summary is None else snapshot.summary.additional_properties


def _number(texts: Mapping[str, str], key: str) -> int | None:
    text = texts.get(key, "")
    return int(text) if text.isdigit() else None
