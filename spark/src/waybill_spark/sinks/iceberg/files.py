"""The files of one commit: which it puts into a table, and which it takes out.

Rows are written when they come, so that of a table that is rewritten one file at a time is in
memory. Nothing of it counts before the commit.
"""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal, TypeAlias, cast

import pyarrow as pa
from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.io.pyarrow import _determine_partitions
from pyiceberg.manifest import DataFile
from pyiceberg.table import FileScanTask, Table, TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update import (
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    TableRequirement,
    ValidatableTableRequirement,
)
from pyiceberg.table.update.snapshot import UpdateSnapshot, _OverwriteFiles
from pyiceberg.typedef import EMPTY_DICT, Record

from waybill_shared.contract.manifest.iceberg import IcebergSinkSettings, SortField
from waybill_spark.sinks.iceberg.ages import find_missing
from waybill_spark.sinks.iceberg.executors import SpreadFiles
from waybill_spark.sinks.iceberg.present import PresentFiles
from waybill_spark.sinks.iceberg.writing import FileWriter, remove
from waybill_spark.tracking.sink import SinkUnreachable

DELETED_HINT: Final = (
    "see who deletes files in the folder of the table, and of which age; the batch is tried again"
)
NewRows: TypeAlias = pa.Table | SpreadFiles


class _ReplaceFiles(_OverwriteFiles):
    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        """Return the summary of a replacing snapshot.

        PyIceberg counts files of an overwrite only.
        """
        counted = super()._summary(snapshot_properties)
        return Summary(operation=Operation.REPLACE, **counted.additional_properties)


class AssertProperty(ValidatableTableRequirement):
    """A requirement that a property is as it was read. PyIceberg checks it where it compares and
    swaps the metadata of a table itself; a REST catalog knows no such requirement."""

    type: Literal["assert-waybill-property"] = "assert-waybill-property"
    key: str
    text: str | None

    def validate(self, base_metadata: TableMetadata | None) -> None:  # type: ignore[override]
        found = None if base_metadata is None else base_metadata.properties.get(self.key)
        if found != self.text:
            raise CommitFailedException(f"Requirement failed: {self.key} has moved")


class CommitFiles:
    """A transaction, and the files that are its one snapshot."""

    def __init__(self, table: Table, sort_by: Sequence[SortField] | None = None) -> None:
        """Start a commit. `sort_by`: the order of rows in a file, if it is not the table's."""
        self._sort_by = sort_by
        self.transaction, now = table.transaction(), table.metadata
        # Whoever changes columns or partitions makes no snapshot, by which it would be noticed.
        self.transaction._stage(
            (),
            (
                AssertCurrentSchemaId.model_validate({"current-schema-id": now.current_schema_id}),
                AssertDefaultSpecId.model_validate({"default-spec-id": now.default_spec_id}),
            ),
        )
        self.mark = str(uuid.uuid4())
        """A mark that no other commit has."""
        self._io = table.io
        self._catalog = table.catalog
        self._metadata: TableMetadata = now
        self._writer: FileWriter | None = None
        self._added: list[DataFile] = []
        self._spread: list[DataFile] = []
        self._removed: list[DataFile] = []
        self._snapshot: Any = None

    @property
    def metadata(self) -> TableMetadata:
        return self._metadata

    @property
    def makes_snapshot(self) -> bool:
        return self._snapshot is not None

    def is_in(self, table: Table) -> bool:
        """Return whether the table has the snapshot."""
        return table.snapshot_by_id(self._snapshot.snapshot_id) is not None

    @property
    def are_none(self) -> bool:
        return not (self._added or self._spread or self._removed)

    def require_property(self, key: str) -> bool:
        """Return whether the commit is refused if the property has changed. Where it cannot be
        required, only a new snapshot refuses others."""
        if not isinstance(self._catalog, MetastoreCatalog):
            return False
        same = AssertProperty(key=key, text=self._metadata.properties.get(key))
        self.transaction._stage((), (cast(TableRequirement, same),))
        return True

    def begin(self) -> None:
        """Continue with the table as it will be after the staged changes."""
        self._metadata = self.transaction.table_metadata

    def add(self, rows: NewRows, *, in_order: bool = True) -> list[DataFile]:
        """Add rows, sorted in the order of the table unless `in_order` is False."""
        if isinstance(rows, SpreadFiles):
            files = rows.write(self._metadata, self._io, self._sort_by)
            self._spread += files
            return files
        if self._writer is None:
            self._writer = FileWriter(
                self._metadata, self._io, name=str(uuid.uuid4()), sort_by=self._sort_by
            )
        files = self._writer.write(rows, in_order=in_order)
        self._added += files
        return files

    def remove(self, file: DataFile) -> None:
        self._removed.append(file)

    def replace(self, file: DataFile, rest: pa.Table) -> None:
        """Replace a file by its rows that stay, which keep their order."""
        self.remove(file)
        self.add(rest, in_order=False)

    def upsert(self, rows: SpreadFiles, settings: IcebergSinkSettings) -> None:
        """Upsert rows that are with the executors."""
        done = rows.upsert(self._metadata, self._io, settings)
        self._removed += done.removed
        self._added += done.added

    def present(self, where: BooleanExpression | None = None) -> Iterable[FileScanTask]:
        """Return the files that may have such rows."""
        return PresentFiles(self._metadata, self._io).find(where)

    def read(self, task: FileScanTask, columns: Sequence[str] | None = None) -> pa.Table:
        return PresentFiles(self._metadata, self._io).read(task, columns)

    def partitions(self, rows: pa.Table) -> Iterator[tuple[Record, pa.Table]]:
        """Yield the rows of each partition that the table has now."""
        for each in _determine_partitions(self._metadata.spec(), self._metadata.schema(), rows):
            yield each.partition_key.partition, each.arrow_table_partition

    def stage(self, summary: dict[str, str], *, same_rows: bool = False) -> None:
        """Make the snapshot, though there may be nothing to do. `same_rows`: in other files."""
        update = self.transaction.update_snapshot(snapshot_properties=summary)
        producer = self._replacement(summary) if same_rows else self._producer(update)
        with producer as self._snapshot:
            for file in self._removed:
                self._snapshot.delete_data_file(file)
            for file in (*self._added, *self._spread):
                self._snapshot.append_data_file(file)

    def send(self) -> None:
        """Commit, if all files are there: somebody may have removed them as orphans.

        When the catalog refuses, PyIceberg would delete all manifests; but a proxy that asked twice
        may have got a yes before.
        """
        self._refuse_missing()
        self.transaction._snapshot_producers.clear()
        self.transaction.commit_transaction()

    def discard(self) -> None:
        """Delete what was written for a commit that surely was refused.

        Files that executors wrote stay, because the next commit may use them.
        """
        remove(self._io, [file.file_path for file in self._added] + self._own_manifests)

    def _refuse_missing(self) -> None:
        files = (file.file_path for file in (*self._added, *self._spread))
        deleted = find_missing(self._io, (*files, *self._own_manifests))
        if deleted:
            self.discard()
            message = f"{deleted[0]} is deleted, and was to be committed: nothing is"
            raise SinkUnreachable(message, hint=DELETED_HINT)

    @property
    def _own_manifests(self) -> list[str]:
        if self._snapshot is None:
            return []
        return [*self._snapshot._written_manifests, *self._snapshot._written_manifest_lists]

    def _producer(self, update: UpdateSnapshot) -> Any:  # noqa: ANN401 - of three classes
        if self._removed:
            overwrite = update.overwrite()
            overwrite.delete_by_predicate(AlwaysTrue())  # look for them in every manifest
            return overwrite
        merged = self._metadata.properties.get(TableProperties.MANIFEST_MERGE_ENABLED, "")
        return update.merge_append() if merged.lower() == "true" else update.fast_append()

    def _replacement(self, summary: dict[str, str]) -> Any:  # noqa: ANN401 - as `_producer`
        """Return a snapshot that replaces files.

        Followers of the table have nothing to do with it.
        """
        found = _ReplaceFiles(
            operation=Operation.OVERWRITE,
            transaction=self.transaction,
            io=self._io,
            snapshot_properties=summary,
        )
        found.delete_by_predicate(AlwaysTrue())
        return found
