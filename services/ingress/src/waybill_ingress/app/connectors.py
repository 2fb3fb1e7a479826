"""Fetches the files of connectors into their inputs, and again after a failure.

One process fetches for a pipeline; Kafka fences any other one that believes so. A file job writes
the rows, each once.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import lru_cache, partial
from typing import Final, NamedTuple, Protocol

from waybill_ingress.app.connector_ports import ConnectorLog, Fetcher, OwnedByAnother, Shares
from waybill_ingress.app.file_job import FileJob
from waybill_ingress.app.ports import SealingClock
from waybill_ingress.app.registry import Registry
from waybill_ingress.core.connectors.limits import FileLimits
from waybill_ingress.core.connectors.progress import fail, pause_s
from waybill_ingress.core.inputs import find_input
from waybill_ingress.core.rows import NOTHING_WRITTEN
from waybill_shared.contract.connector_view import beginning
from waybill_shared.contract.errors import ContractError, Refusal, UserError
from waybill_shared.contract.events import PipelineRecord, pipeline_key
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


class WantedFile(NamedTuple):
    """A file to fetch into an input. A new generation of the pipeline fetches it for itself."""

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


def connectors_of(record: PipelineRecord) -> list[tuple[str, FileConnector]]:
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
        self._tasks: dict[tuple[str, int, str, str], asyncio.Task[None]] = {}
        self._room = asyncio.Semaphore(AT_ONCE)
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="files")

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
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
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            self._threads.shutdown(wait=False, cancel_futures=True)

    def _look(self) -> None:
        wanted = {each.id: each for each in self._jobs_to_run()}
        for known, task in [*self._tasks.items()]:
            if task.done():
                del self._tasks[known]
            elif known not in wanted and not task.cancelling():
                task.cancel()
        for new, file in wanted.items():
            if new not in self._tasks:
                self._tasks[new] = asyncio.create_task(self._fetch(file))

    def _jobs_to_run(self) -> list[WantedFile]:
        """Return each file that is not done, of pipelines that run and belong to this
        process.
        """
        return [
            WantedFile(record, source, connector)
            for record in self._directory.everywhere()
            if record.desired == "running" and record.stages
            for source, connector in connectors_of(record)
            if self._known.of(record, record.root_inputs()[source].topic, connector).state
            != ConnectorState.DONE
            and self._shares.has(pipeline_key(record.tenant, record.pipeline_uid))
        ]

    async def _fetch(self, wanted: WantedFile) -> None:
        failures, before = 0, None
        while True:
            async with self._room:
                try:
                    await self._attempt(wanted, before)
                    return
                except ContractError as error:
                    reason = str(error)
                except Exception as error:
                    logger.exception("fetching a file has failed")
                    reason = f"an error of Waybill's own: {type(error).__name__}"
            failures, before = failures + 1, reason
            fields = {"pipeline": wanted.record.name, "input": wanted.input, "reason": reason}
            logger.warning("a file was not fetched", extra=fields)
            await asyncio.sleep(pause_s(failures))

    async def _attempt(self, wanted: WantedFile, before: str | None) -> None:
        """Fetch the file once. `before`: why the last attempt failed, if that was not recorded
        then.
        """
        source = find_input(wanted.record, wanted.input)
        initial = beginning(wanted.record, source.topic, wanted.connector)
        async with self._log.transaction(wanted.record, initial) as transaction:
            progress = replace(await transaction.read() or initial, connector=wanted.connector.name)
            if progress.state == ConnectorState.DONE:
                return
            job = FileJob(
                wanted.record,
                source,
                wanted.connector,
                transaction=transaction,
                progress=progress,
                registry=self._registry,
                mint=self._mint,
                limits=self._limits,
            )
            if before is not None and progress.error is None:
                await job.report(fail(progress, before))
            try:
                await job.run(partial(self._fetcher.fetch, wanted.connector), self._threads)
            except OwnedByAnother:
                raise
            except ContractError as error:
                if job.certain:
                    await job.report(fail(job.progress, _reason(error)))
                raise


def _reason(error: ContractError) -> str:
    if isinstance(error, UserError | Refusal):
        return str(error).removesuffix(f"; {NOTHING_WRITTEN}")
    return str(error)
