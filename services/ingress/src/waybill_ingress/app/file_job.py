"""A file job writes the rows of one file into an input, each row once.

A thread reads the file. It cuts the rows into chunks, and the event loop writes each chunk in one
transaction with the progress. The progress is exactly what was written: whoever does the job again
leaves out as many rows of the file as it counts. A fetched file is one source of such a job.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from threading import Event

from waybill_ingress.app.connector_ports import ConnectorTransaction, FetchFailed, FileDownload
from waybill_ingress.app.ports import SealingClock
from waybill_ingress.app.registry import Registry
from waybill_ingress.core.bodies.packed import ENCODINGS, unpack
from waybill_ingress.core.connectors.limits import FileLimits
from waybill_ingress.core.connectors.progress import advance, form_of
from waybill_ingress.core.connectors.rows import FileChunk, FileRows, read_rows
from waybill_ingress.core.inputs import row_rules
from waybill_shared.contract.connectors import ConnectorProgress
from waybill_shared.contract.events import InputDefinition, PipelineRecord
from waybill_shared.contract.manifest.connectors import FileConnector
from waybill_shared.contract.words import ConnectorState


class FileJob:
    """One attempt to write the rest of a file, with the exclusive right to do so."""

    def __init__(
        self,
        record: PipelineRecord,
        source: InputDefinition,
        connector: FileConnector,
        *,
        transaction: ConnectorTransaction,
        progress: ConnectorProgress,
        registry: Registry,
        mint: SealingClock,
        limits: FileLimits,
    ) -> None:
        self._record = record
        self._source = source
        self._connector = connector
        self._transaction = transaction
        self._registry = registry
        self._mint = mint
        self._limits = limits
        self._dead_topic = record.manifest.model.dead_letter_topic(source.topic)
        self.progress = progress
        self.certain = True
        """True if it is known that `progress` is the last that was written."""

    async def run(self, open_file: Callable[[Event], FileDownload], threads: Executor) -> None:
        """Write what is left of the file that `open_file` opens in a thread.

        Its event is set when nobody waits for the file any more.
        """
        stop, loop = Event(), asyncio.get_running_loop()

        def wait_for(step: Coroutine[None, None, None]) -> None:
            """Run a step on the event loop, and wait for it in the thread that reads."""
            asyncio.run_coroutine_threadsafe(step, loop).result()

        def read() -> None:
            file = open_file(stop)
            try:
                wait_for(self._begin(file))
                rows = FileRows(
                    row_rules(self._record.manifest)[self._source.name],
                    self._limits.record_bytes_max,
                    skip=self.progress.rows,
                    give=lambda chunk: wait_for(self._write(chunk, file)),
                )
                read_rows(self._connector, self._unpack(file), rows)
                wait_for(self._end(rows.count, file))
            finally:
                file.close()

        reading = loop.run_in_executor(threads, read)
        try:
            await asyncio.shield(reading)
        except asyncio.CancelledError:
            stop.set()
            with suppress(Exception):
                await reading
            raise

    async def report(self, progress: ConnectorProgress) -> None:
        """Write progress without rows."""
        await self._transaction.send(self._source.topic, [], self._dead_topic, [])
        await self._conclude(progress)

    def _unpack(self, file: FileDownload) -> Iterator[bytes]:
        if file.encoding not in ENCODINGS:
            raise FetchFailed(f"it is packed as {file.encoding:.60}, which is not accepted")
        return unpack(file.pieces(), file.encoding, self._limits.unpacked)

    async def _begin(self, file: FileDownload) -> None:
        before, form = self.progress, form_of(self._connector)
        if before.rows and before.form != form:
            raise FetchFailed(
                f"how the file is read was changed when {before.rows} rows of it were written: give"
                " the connector another name, and all of it is fetched"
            )
        note = before.note
        if before.rows and file.version != before.version:
            note = (
                f"the file has changed since its first {before.rows} rows were written: they are"
                " left out by their number, and what comes after them is read as it is now"
            )
        await self.report(
            replace(
                before,
                state=ConnectorState.FETCHING,
                form=form,
                version=file.version,
                size=file.size,
                bytes=0,
                error=None,
                note=note,
            )
        )

    async def _write(self, chunk: FileChunk, file: FileDownload) -> None:
        topic = await self._registry.present(self._record, self._source, fresh=True)
        if any(span.topic_id != topic.topic_id for span in self.progress.spans):
            text = "the topic of the input is another one than that of its first rows"
            self.progress = replace(self.progress, note=text)
        places = await self._transaction.send(
            topic.name, chunk.records, self._dead_topic, chunk.dead
        )
        await self._registry.present(self._record, self._source, fresh=True)
        then = advance(self.progress, chunk, places, topic.topic_id)
        await self._conclude(replace(then, bytes=file.bytes_read))

    async def _end(self, rows: int, file: FileDownload) -> None:
        before = self.progress
        note = before.note
        if rows < before.rows:
            note = f"the file has {rows} rows now, and {before.rows} were written of it before"
        await self.report(
            replace(before, state=ConnectorState.DONE, bytes=file.bytes_read, error=None, note=note)
        )

    async def _conclude(self, progress: ConnectorProgress) -> None:
        reported = replace(progress, at=self._mint.now_ms())
        self.certain = False
        await self._transaction.conclude(reported)
        self.progress, self.certain = reported, True
