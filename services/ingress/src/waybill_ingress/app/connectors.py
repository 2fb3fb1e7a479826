"""Fetches the files of connectors into their inputs.

Promise: each row of a file is written once, whatever crashes and whoever takes over. The progress
of a connector is exactly what it wrote.

One process fetches for a pipeline; Kafka fences any other one that believes so. Rows are written in
chunks, each in one transaction with the progress. After a takeover the file is read again, and as
many rows are skipped as were written.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from threading import Event
from typing import Final, NamedTuple, Protocol

from waybill_ingress.app.connector_ports import (
    ConnectorLog,
    ConnectorTransaction,
    Fetcher,
    FetchFailed,
    FileDownload,
    OwnedByAnother,
    Shares,
)
from waybill_ingress.app.ports import SealingClock
from waybill_ingress.app.registry import Registry
from waybill_ingress.core.bodies.packed import ENCODINGS, unpack
from waybill_ingress.core.connectors.limits import FileLimits
from waybill_ingress.core.connectors.progress import advanced, failed, form_of, pause_s
from waybill_ingress.core.connectors.rows import FileChunk, FileRows, read_rows
from waybill_ingress.core.inputs import find_input, row_rules
from waybill_shared.contract.connector_view import beginning
from waybill_shared.contract.connectors import ConnectorProgress
from waybill_shared.contract.errors import ContractError, Refusal, UserError
from waybill_shared.contract.events import InputDefinition, PipelineRecord, pipeline_key
from waybill_shared.contract.manifest.applied import AppliedManifest
from waybill_shared.contract.manifest.connectors import FileConnector
from waybill_shared.contract.words import ConnectorState
from waybill_shared.topic_views.connectors import KnownConnectors

logger = logging.getLogger(__name__)

LOOK_S: Final = 0.5  # between two looks for new work
AT_ONCE: Final = 4  # files that one process reads at the same time


class Living(Protocol):
    """The pipelines that are known here."""

    def everywhere(self) -> list[PipelineRecord]: ...


class Job(NamedTuple):
    """A file to fetch into an input. A new generation of the pipeline starts a new job."""

    record: PipelineRecord
    input: str
    connector: FileConnector

    @property
    def id(self) -> tuple[str, int, str, str]:
        uid, generation = self.record.pipeline_uid, self.record.generation
        return uid, generation, self.input, self.connector.name


@lru_cache(maxsize=1_000)
def _connectors_of(manifest: AppliedManifest) -> tuple[tuple[str, FileConnector], ...]:
    """Return the connectors with their inputs; none if the manifest is refused today."""
    try:
        inputs = manifest.model.inputs
    except UserError:
        return ()
    return tuple((source.name, each) for source in inputs for each in source.connectors)


def declared(record: PipelineRecord) -> list[tuple[str, FileConnector]]:
    """Return the connectors of the inputs that a stage reads."""
    found = _connectors_of(record.manifest)
    return [each for each in found if each[0] in record.root_inputs()] if found else []


class Connectors:
    def __init__(
        self,
        directory: Living,
        registry: Registry,
        known: KnownConnectors,
        mint: SealingClock,
        limits: FileLimits,
        *,
        log: ConnectorLog,
        fetcher: Fetcher,
        shares: Shares,
    ) -> None:
        self._directory = directory
        self._registry = registry
        self._known = known
        self._mint = mint
        self._limits = limits
        self._log = log
        self._fetcher = fetcher
        self._shares = shares
        self._jobs: dict[tuple[str, int, str, str], asyncio.Task[None]] = {}
        self._room = asyncio.Semaphore(AT_ONCE)
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="files")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        looking = asyncio.create_task(self._run())
        try:
            yield
        finally:
            looking.cancel()
            await asyncio.wait([looking])

    async def _run(self) -> None:
        try:
            while True:
                try:
                    self._look()
                except Exception:
                    logger.exception("what is to be fetched could not be looked at")
                await asyncio.sleep(LOOK_S)
        finally:
            for task in self._jobs.values():
                task.cancel()
            await asyncio.gather(*self._jobs.values(), return_exceptions=True)
            self._threads.shutdown(wait=False, cancel_futures=True)

    def _look(self) -> None:
        wanted = {job.id: job for job in self._wanted()}
        for known, task in [*self._jobs.items()]:
            if task.done():
                del self._jobs[known]
            elif known not in wanted and not task.cancelling():
                task.cancel()
        for new, job in wanted.items():
            if new not in self._jobs:
                self._jobs[new] = asyncio.create_task(self._fetch(job))

    def _wanted(self) -> list[Job]:
        """Return a job for each file that is not done, of pipelines that run and belong to this
        process.
        """
        return [
            Job(record, source, connector)
            for record in self._directory.everywhere()
            if record.desired == "running" and record.stages
            for source, connector in declared(record)
            if self._known.of(record, record.root_inputs()[source].topic, connector).state
            != ConnectorState.DONE
            and self._shares.has(pipeline_key(record.tenant, record.pipeline_uid))
        ]

    async def _fetch(self, job: Job) -> None:
        failures, before = 0, None
        while True:
            async with self._room:
                try:
                    await self._attempt(job, before)
                    return
                except ContractError as error:
                    reason = str(error)
                except Exception as error:
                    logger.exception("fetching a file has failed")
                    reason = f"an error of Waybill's own: {type(error).__name__}"
            failures, before = failures + 1, reason
            fields = {"pipeline": job.record.name, "input": job.input, "reason": reason}
            logger.warning("a file was not fetched", extra=fields)
            await asyncio.sleep(pause_s(failures))

    async def _attempt(self, job: Job, before: str | None) -> None:
        """Fetch the file once. `before`: why the last attempt failed, if that was not recorded
        then.
        """
        source = find_input(job.record, job.input)
        begun = beginning(job.record, source.topic, job.connector)
        async with self._log.transaction(job.record, begun) as transaction:
            progress = replace(await transaction.read() or begun, connector=job.connector.name)
            if progress.state == ConnectorState.DONE:
                return
            writing = _Writing(
                job,
                source,
                transaction=transaction,
                progress=progress,
                registry=self._registry,
                mint=self._mint,
            )
            if before is not None and progress.error is None:
                await writing.tell(failed(progress, before))
            try:
                await self._read(job, writing)
            except OwnedByAnother:
                raise
            except ContractError as error:
                if writing.sure:
                    await writing.tell(failed(writing.progress, _reason(error)))
                raise

    async def _read(self, job: Job, writing: "_Writing") -> None:
        stop, loop = Event(), asyncio.get_running_loop()

        def wait_for(step: Coroutine[None, None, None]) -> None:
            """Run a step on the event loop, and wait for it in the thread that reads."""
            asyncio.run_coroutine_threadsafe(step, loop).result()

        def read() -> None:
            download = self._fetcher.fetch(job.connector, stop)
            try:
                wait_for(writing.begin(download))
                rows = FileRows(
                    row_rules(job.record.manifest)[job.input],
                    self._limits.record_bytes_max,
                    skip=writing.progress.rows,
                    give=lambda chunk: wait_for(writing.write(chunk, download)),
                )
                read_rows(job.connector, self._unpacked(download), rows)
                wait_for(writing.end(rows.count, download))
            finally:
                download.close()

        reading = loop.run_in_executor(self._threads, read)
        try:
            await asyncio.shield(reading)
        except asyncio.CancelledError:
            stop.set()
            with suppress(Exception):
                await reading
            raise

    def _unpacked(self, download: FileDownload) -> Iterator[bytes]:
        if download.encoding not in ENCODINGS:
            raise FetchFailed(f"it is packed as {download.encoding:.60}, which is not taken")
        return unpack(download.pieces(), download.encoding, self._limits.unpacked)


class _Writing:
    """The written progress of one reading of a file."""

    def __init__(
        self,
        job: Job,
        source: InputDefinition,
        *,
        transaction: ConnectorTransaction,
        progress: ConnectorProgress,
        registry: Registry,
        mint: SealingClock,
    ) -> None:
        self._job = job
        self._source = source
        self._transaction = transaction
        self._registry = registry
        self._mint = mint
        self._dead_topic = job.record.manifest.model.dead_letter_topic(source.topic)
        self.progress = progress
        self.sure = True
        """True if it is known that `progress` is the last that was written."""

    async def begin(self, download: FileDownload) -> None:
        before, form = self.progress, form_of(self._job.connector)
        if before.rows and before.form != form:
            raise FetchFailed(
                f"how the file is read was changed when {before.rows} rows of it were taken: give"
                " the connector another name, and all of it is fetched"
            )
        note = before.note
        if before.rows and download.version != before.version:
            note = (
                f"the file has changed since its first {before.rows} rows were taken: they are left"
                " out by their number, and what comes behind them is taken as it is now"
            )
        await self.tell(
            replace(
                before,
                state=ConnectorState.FETCHING,
                form=form,
                version=download.version,
                size=download.size,
                bytes=0,
                error=None,
                note=note,
            )
        )

    async def write(self, chunk: FileChunk, download: FileDownload) -> None:
        topic = await self._registry.present(self._job.record, self._source, fresh=True)
        if any(span.topic_id != topic.topic_id for span in self.progress.spans):
            text = "the topic of the input is another one than that of its first rows"
            self.progress = replace(self.progress, note=text)
        places = await self._transaction.send(
            topic.name, chunk.records, self._dead_topic, chunk.dead
        )
        await self._registry.present(self._job.record, self._source, fresh=True)
        then = advanced(self.progress, chunk, places, topic.topic_id)
        await self._conclude(replace(then, bytes=download.taken))

    async def end(self, rows: int, download: FileDownload) -> None:
        before = self.progress
        note = before.note
        if rows < before.rows:
            note = f"the file has {rows} rows now, and {before.rows} were taken of it before"
        await self.tell(
            replace(before, state=ConnectorState.DONE, bytes=download.taken, error=None, note=note)
        )

    async def tell(self, progress: ConnectorProgress) -> None:
        """Write progress without rows."""
        await self._transaction.send(self._source.topic, [], self._dead_topic, [])
        await self._conclude(progress)

    async def _conclude(self, progress: ConnectorProgress) -> None:
        reported = replace(progress, at=self._mint.now_ms())
        self.sure = False
        await self._transaction.conclude(reported)
        self.progress, self.sure = reported, True


def _reason(error: ContractError) -> str:
    if isinstance(error, UserError | Refusal):
        return str(error).removesuffix("; nothing was taken")
    return str(error)
