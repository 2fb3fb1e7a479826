"""The questions of a client about pipelines: change them, and see what they do."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from urllib.parse import quote

from waybill import change_questions, plans, questions
from waybill.aio.asking import AsyncAsking
from waybill.batches import StageBatch, batch_pages
from waybill.dead_letters import RecordLocation
from waybill.flows import PipelineFlow, flows_in
from waybill.histories import PipelineEvent, PipelineRun, event_pages, run_pages
from waybill.manifest_versions import ManifestVersion, versions_in
from waybill.models import Operation, RestartMode, RestartState, StartFrom, StopMode
from waybill.offsets import PipelineOffsets
from waybill.pipelines import Pipeline
from waybill.topics import GrownTopic
from waybill.waiting import ANSWER_WAIT_S, MOMENT_S_MAX, NAME_GRACE_S, WAIT_TIMEOUT_S

LINES = 200


class AsyncPipelineCalls(AsyncAsking):
    async def apply(
        self,
        manifest_text: str,
        name: str | None = None,
        *,
        allow_shared: bool = False,
        wait_s: float = ANSWER_WAIT_S,
    ) -> Operation:
        """Create or change a pipeline; Invalid names line and column of what is wrong.

        Conflict: another pipeline writes to the topic or table of a sink. With `allow_shared` that
        is only a warning, unless both upsert by other keys.

        As with every change, the operation is `done` or `failed` if that happens within `wait_s`,
        which is 10 at most. Else it is `pending`: ask for it with `operation` later.
        """
        return await self._change(
            questions.apply(manifest_text, name, allow_shared=allow_shared), wait_s
        )

    async def maintain(
        self, name: str, sink: str, *, dry_run: bool = False, wait_s: float = ANSWER_WAIT_S
    ) -> Operation:
        """Maintain the table of a sink at once: do the tasks that its manifest names.

        `result` of the operation says what was done, or with `dry_run` what would be done.
        NotFound: there is no such pipeline.
        """
        return await self._change(change_questions.maintain(name, sink, dry_run=dry_run), wait_s)

    async def start(
        self, name: str, *, stage: str | None = None, wait_s: float = ANSWER_WAIT_S
    ) -> Operation:
        """Start a stopped or failed pipeline; NotFound when there is none.

        If single stages of a pipeline that runs have failed, these start, or only `stage`, and no
        other stops. The operation fails if one cannot be started; its warnings say how many records
        each had put aside.
        """
        return await self._change(change_questions.start(name, stage), wait_s)

    async def stop(
        self, name: str, mode: StopMode = "checkpoint", *, wait_s: float = ANSWER_WAIT_S
    ) -> Operation:
        """Stop a pipeline; what it has not processed waits. NotFound when there is none.

        `checkpoint` lets its running batch end. `drain` lets all that its inputs contain now reach
        every sink before. `force` kills its driver at once, and the next run repeats that batch;
        each row is there once all the same.
        """
        return await self._change(change_questions.stop(name, mode), wait_s)

    async def pause(self, name: str, *, wait_s: float = ANSWER_WAIT_S) -> Operation:
        """Pause a pipeline: its running batch ends, no other begins, and its driver stays.

        A paused pipeline stays paused when it is changed or gets another driver.
        """
        return await self._change(change_questions.pause(name), wait_s)

    async def resume(self, name: str, *, wait_s: float = ANSWER_WAIT_S) -> Operation:
        """Let a paused pipeline continue."""
        return await self._change(change_questions.resume(name), wait_s)

    async def restart(
        self,
        name: str,
        start_from: StartFrom | None = None,
        *,
        mode: RestartMode = "safe",
        state: RestartState | None = None,
        stage: str | None = None,
        yes: bool = False,
        wait_s: float = ANSWER_WAIT_S,
    ) -> Operation:
        """Restart a pipeline with a new driver, which continues from the positions of its sinks.

        `start_from` says where to start in topics that were deleted and created again. If there are
        none, stages begin there (`stage`: only this one): they write rows again, or skip what they
        have not read. The state `fresh` lets them begin again where the manifest says; `resume` is
        as without it. Whatever rewinds needs `yes`: without it, the operation fails with the
        problem `rewind_not_confirmed`, and its errors say which records these are. `safe` lets the
        running batch end first; if it fails, the operation is done with a warning. `force` kills
        the driver at once.
        """
        question = change_questions.restart(
            name, start_from, mode, state=state, stage=stage, yes=yes
        )
        return await self._change(question, wait_s)

    async def set_offsets(
        self,
        name: str,
        start_from: StartFrom,
        *,
        stage: str | None = None,
        yes: bool = False,
        wait_s: float = ANSWER_WAIT_S,
    ) -> Operation:
        """Let the next run of a pipeline begin there, as `restart` does, and start nothing.

        Only where no run goes on, as in Stopped: else it fails with `not_allowed_now`. `offsets`
        shows it as `pending` until a run has done it. It needs `yes` as `restart` does.
        """
        question = change_questions.set_offsets(name, start_from, stage=stage, yes=yes)
        return await self._change(question, wait_s)

    async def reset_offsets(self, name: str, *, wait_s: float = ANSWER_WAIT_S) -> Operation:
        """Take back what is pending: the next run begins where the sinks are."""
        return await self._change(change_questions.reset_offsets(name), wait_s)

    async def rescale(
        self, name: str, parallelism: int, *, wait_s: float = ANSWER_WAIT_S
    ) -> Operation:
        """Set how many tasks of a pipeline run at once: it continues with a driver of that size.

        One that is paused stays paused. If it does not run, the number is for its next start.
        """
        body = {"parallelism": parallelism}
        return await self._change(change_questions.change(name, "rescale", body), wait_s)

    async def rename(self, name: str, to: str, *, wait_s: float = ANSWER_WAIT_S) -> Operation:
        """Call a pipeline otherwise: its tokens, fences and offsets stay, and a new run begins.

        Former names still count in tokens and in `through`; elsewhere they raise Renamed. Conflict:
        another pipeline has the name, or had it. The operation is one of `to`.
        """
        return await self._change(change_questions.change(name, "rename", {"to": to}), wait_s)

    async def put_dead_letter(
        self,
        name: str,
        record: RecordLocation,
        reason: str,
        *,
        stage: str | None = None,
        wait_s: float = ANSWER_WAIT_S,
    ) -> Operation:
        """Put a record into its dead-letter topic before a batch reads it; it ends the driver, say.

        The driver is killed, and the next one does it before its first batch; `reason` and who asks
        are in the message of the letter. A pipeline that does not run does it at its next start;
        a failed one is started. `stage`: the only one that is meant. The operation fails if the
        record was processed before, or is not in Kafka any more.
        """
        body = {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "reason": reason,
        }
        if stage is not None:
            body["stage"] = stage
        return await self._change(change_questions.change(name, "dead-letters", body), wait_s)

    async def grow_topic(
        self, pipeline: str, input: str, partitions: int, *, yes: bool = False
    ) -> GrownTopic:
        """Let the topic of an input have so many partitions, never less than now.

        From then on, records of a key may go to another partition than earlier ones. That needs
        `yes`: without it, Invalid says so. To ask again changes nothing.
        """
        what = f"inputs/{quote(input, safe='')}/grow"
        question = change_questions.change(pipeline, what, {"partitions": partitions})
        if yes:
            question = replace(question, params={"yes": "true"})
        return GrownTopic.read(await self._ask(question))

    async def delete(self, name: str, *, wait_s: float = ANSWER_WAIT_S) -> Operation:
        """Delete a pipeline: what it has not processed ends `lost`."""
        operation = await self._change(change_questions.delete(name), wait_s)
        self._generations.forget(name)
        return operation

    async def operation(self, id: str, wait_s: float = 0.0) -> Operation:
        """Return the operation as soon as it is no longer pending, or as it is after `wait_s`."""
        found = await self._run(plans.operation(id, self._patience(wait_s), self._has_answered))
        return self._generations.learn(found)

    async def pipelines(
        self, *, phases: Sequence[str] = (), tags: Sequence[str] = ()
    ) -> tuple[Pipeline, ...]:
        """Return all pipelines, without the details that `pipeline` returns.

        With `phases`, return those in one of them; with `tags`, those with all of these. Invalid:
        there is no such phase.
        """
        return await self._run(plans.pipelines(self._patience(MOMENT_S_MAX), phases, tags))

    async def pipeline(self, name: str) -> Pipeline:
        """Return one pipeline with its details; NotFound when there is none."""
        return Pipeline.read(await self._ask(questions.pipeline(name)))

    async def wait_pipeline(
        self,
        name: str,
        phase: str = "Running",
        timeout_s: float = WAIT_TIMEOUT_S,
        *,
        somebody_acts: bool = True,
    ) -> Pipeline:
        """Wait until the pipeline is in the phase, and return it. One that ends by itself may be
        Finished already instead of Running.

        PipelineFailed: it is Failed instead. PhaseNotReached: `timeout_s` is over. With
        `somebody_acts=False`, PhaseOutOfReach: it is stopped, paused or finished, and only a
        command lets it go on. Use that when no command is on its way.
        """
        grace = self._patience(min(NAME_GRACE_S, timeout_s))
        wait = plans.phase(
            name,
            phase,
            self._patience(timeout_s),
            grace,
            self._has_answered,
            somebody_acts=somebody_acts,
        )
        return await self._run(wait)

    async def flow(self) -> tuple[PipelineFlow, ...]:
        """Return how much was written to each pipeline, and how much of it has arrived."""
        return flows_in(await self._ask(questions.flow()))

    async def offsets(self, name: str) -> PipelineOffsets:
        """Return where each stage is in each partition that it reads, in every phase.

        What is not known now is None, and `unknown` says why. NotFound: there is no such pipeline.
        """
        return PipelineOffsets.read(await self._ask(questions.offsets(name)))

    async def manifests(self, name: str) -> tuple[ManifestVersion, ...]:
        """Return the manifest of a pipeline and up to ten earlier ones, the newest first.

        NotFound: there is no such pipeline.
        """
        return versions_in(await self._ask(questions.manifests(name)))

    async def history(
        self, name: str, *, after: str | None = None, limit: int | None = None
    ) -> AsyncIterator[PipelineEvent]:
        """Yield what happened to a pipeline in the last 30 days, the newest first.

        With `after`, the id of an event, yield what happened after it, the oldest first; "0" means
        all. Yield at most `limit` events. `gap` of the first event says why events before it may be
        missing. Ids are valid after any restart of Waybill. NotFound: there is no such pipeline.
        """
        pages = event_pages(name, after, limit)
        while (question := pages.next()) is not None:
            for event in pages.read(await self._ask(question)):
                yield event

    async def runs(
        self, name: str, *, after: str | None = None, limit: int | None = None
    ) -> AsyncIterator[PipelineRun]:
        """Yield the runs that a pipeline had in the last 30 days, the newest first.

        Each says when and by whom it was started, and when, why and by whom it was ended. With
        `after`, the id of a run, yield those that began after it, the oldest first; "0" means all.
        NotFound: there is no such pipeline.
        """
        pages = run_pages(name, after, limit)
        while (question := pages.next()) is not None:
            for run in pages.read(await self._ask(question)):
                yield run

    async def batches(
        self, name: str, stage: str, *, after: str | None = None, limit: int | None = None
    ) -> AsyncIterator[StageBatch]:
        """Yield the batches that a stage had in the last 30 days, the newest first.

        Each says what it read, and for each sink its rows, when they were committed, and what the
        sink calls its version. With `after`, the id of a batch, yield those after it, the oldest
        first; "0" means all. A batch that failed is not among them: see the error of its run.
        NotFound: there is no such pipeline or stage.
        """
        pages = batch_pages(name, stage, after, limit)
        while (question := pages.next()) is not None:
            for batch in pages.read(await self._ask(question)):
                yield batch

    async def logs(self, name: str, lines: int = LINES) -> tuple[str, ...]:
        """Return the newest lines of the log of its driver, at most 1,000.

        NotFound: there is no such pipeline.
        """
        log = await self._ask(questions.logs(name, lines))
        return log.texts("lines")
