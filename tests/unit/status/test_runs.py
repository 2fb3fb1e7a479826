"""Who reads the runs of a pipeline gets each once, with its end, on any page and process."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from unit.status.coroutines import in_a_loop
from unit.status.histories import LifeTopic, beat
from unit.status.slots import KEY, life
from waybill_shared.contract.errors import Refusal
from waybill_shared.contract.lifecycle_events import LifecycleError, RunCounts
from waybill_shared.contract.run_words import NEXT_RUN, READ_ALL, TO_BE
from waybill_shared.contract.words import HistoryGap
from waybill_status.app.pipelines import events as memory
from waybill_status.app.pipelines import history
from waybill_status.app.pipelines import runs as module
from waybill_status.app.pipelines.runs import Runs
from waybill_status.core.pipelines.runs import PipelineRun, RunsPage, compose, is_of_runs

FAULT = LifecycleError(domain="user", message="no", hint="mend", stage="s", retryable=False)
CRASH = replace(FAULT, domain="internal")


class Story:
    """Writes the changes of phase of one pipeline, one after the other."""

    def __init__(self, topic: LifeTopic | None = None) -> None:
        self.topic = topic or LifeTopic()
        self.phase = "Created"
        self.run = 0
        self.at = 0

    def go(
        self,
        phase: str,
        reason: str = "",
        *,
        actor: str = "stage_runner",
        error: LifecycleError | None = None,
        others: int = 0,
        done: RunCounts | None = None,
    ) -> "Story":
        """Change to a phase. A runner that takes over begins with `Created`."""
        if phase == "Created":
            self.phase = phase
            return self
        self.run += phase == "Starting" and self.phase not in {"Paused", "Scheduling"}
        self.at += 10
        event = replace(life(phase, at=self.at), phase_from=self.phase, run=self.run, error=error)
        self.topic.write(replace(event, reason=reason, actor=actor, done=done), others=others)
        self.phase = phase
        return self

    def starts(self, actor: str = "ann") -> "Story":
        return self.go("Starting", "started", actor=actor).go("Running")

    def runs(self) -> list[PipelineRun]:
        return compose(filter(is_of_runs, self.topic.placed))


def test_the_next_run_says_what_the_one_before_has_done() -> None:
    """A restart has no event between its stop and the next start."""
    story = Story().starts()
    first, second = (RunCounts(run=1, batches=n, rows=10 * n) for n in (3, 4))
    story.go("Restarting", "restarted", done=first).go("Starting", "started", done=second)
    assert [(run.batches, run.rows) for run in story.runs()] == [(4, 40), (None, None)]


def shown(run: PipelineRun) -> tuple[object, ...]:
    return run.run, run.end, run.ended_by, run.ended


ENDS: list[tuple[str, Callable[[Story], object], tuple[object, ...]]] = [
    (
        "stopped",
        lambda it: it.go("CheckpointStopping", f"{TO_BE}stopped", actor="bob").go("Stopped"),
        ("stopped", "bob", 40),
    ),
    (
        "deleted",
        lambda it: it.go("CheckpointStopping", f"{TO_BE}deleted", actor="bob").go("Stopped"),
        ("stopped", "bob", 40),
    ),
    (
        "restarted",
        lambda it: it.go("Restarting", "restarted", actor="bob").starts("bob"),
        ("superseded", "bob", 40),
    ),
    (
        "rescaled",
        lambda it: it.go("Rescaling", "rescaled from 1 to 4", actor="bob").starts("bob"),
        ("superseded", "bob", 40),
    ),
    (
        "rescaled, and stopped meanwhile",
        lambda it: (
            it.go("Rescaling")
            .go("CheckpointStopping", f"{TO_BE}stopped", actor="bob")
            .go("Stopped")
        ),
        ("stopped", "bob", 50),
    ),
    (
        "stopped by force, because it took too long",
        lambda it: (
            it.go("CheckpointStopping", f"{TO_BE}stopped", actor="bob")
            .go("Stopping", "force")
            .go("Stopped")
        ),
        ("stopped", "bob", 50),
    ),
    (
        "drained, and in the end stopped by force, because it took too long",
        lambda it: (
            it.go("Draining", f"{TO_BE}stopped", actor="bob")
            .go("CheckpointStopping", "checkpoint")
            .go("Stopping", "force")
            .go("Stopped")
        ),
        ("stopped", "bob", 60),
    ),
    (
        "restarted, and stopped meanwhile",
        lambda it: (
            it.go("Restarting", "restarted", actor="ann")
            .go("CheckpointStopping", f"{TO_BE}stopped", actor="bob")
            .go("Stopped")
        ),
        ("stopped", "bob", 50),
    ),
    (
        "stopped, and started before it has ended",
        lambda it: (
            it.go("CheckpointStopping", f"{TO_BE}stopped", actor="bob")
            .go("Restarting", "started", actor="cy")
            .starts("cy")
        ),
        ("stopped", "bob", 50),
    ),
    (
        "stopped, and started before it has ended, by a runner of before",
        lambda it: it.go("Stopping", f"{TO_BE}stopped", actor="bob").starts("cy"),
        ("stopped", "bob", 40),
    ),
    (
        "finished",
        lambda it: it.go("Finishing", READ_ALL).go("Finished"),
        ("finished", "stage_runner", 40),
    ),
    (
        "finished, and paused meanwhile",
        lambda it: it.go("Restarting", READ_ALL).starts(),
        ("finished", "stage_runner", 40),
    ),
    (
        "finished, and started meanwhile",
        lambda it: it.go("Restarting", NEXT_RUN).starts(),
        ("finished", "stage_runner", 40),
    ),
    ("failed", lambda it: it.go("Failed", "no", error=FAULT), ("failed", "stage_runner", 30)),
    (
        "crashed",
        lambda it: it.go("Recovering", "exit 1", error=CRASH).starts(),
        ("crashed", "stage_runner", 30),
    ),
    ("taken over", lambda it: it.go("Created").starts(), ("taken_over", None, None)),
    (
        "taken over, and stopped since",
        lambda it: it.go("Created").go("Stopped"),
        ("taken_over", None, None),
    ),
    ("at work", lambda it: it.go("Paused").go("Starting"), (None, None, None)),
    ("stopping", lambda it: it.go("CheckpointStopping", f"{TO_BE}stopped"), (None, None, None)),
]


@pytest.mark.parametrize(("ends", "end"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS])
def test_a_run_ends_for_a_reason_by_somebody_and_at_a_time(
    ends: Callable[[Story], object], end: tuple[object, ...]
) -> None:
    story = Story().starts()
    ends(story)
    first = story.runs()[0]
    assert shown(first) == (1, *end)
    assert (first.began, first.started_by) == (10, "ann")


def test_what_comes_after_the_end_of_a_run_is_not_its_end() -> None:
    story = Story().starts().go("Failed", error=FAULT).go("Stopped")
    story.go("Stopping", "definition changed").go("Stopped")  # closes a sink
    (run,) = story.runs()
    assert (run.phase, run.end, run.error) == ("Failed", "failed", FAULT)


def test_a_pipeline_that_never_ran_has_no_runs() -> None:
    assert Story().go("Stopped").runs() == []


def test_a_run_that_waits_for_a_driver_is_one_run() -> None:
    story = Story().go("Starting").go("Scheduling").go("Starting").go("Running")
    assert [(run.run, run.began) for run in story.runs()] == [(1, 10)]


def a_story(seed: int) -> Story:
    """Runs that end in all ways, long ones and short ones, with obstacles in between."""
    dice, story = random.Random(seed), Story()
    for _ in range(25):
        story.starts(dice.choice(["ann", "bob"]))
        for _ in range(dice.choice([0, 0, 3, 60])):
            story.topic.write(replace(beat(dice.choice("ab")), run=story.run), others=2)
        dice.choice(ENDS)[1](story)
        if story.phase in {"Starting", "Running"}:
            story.go("Created")
    return story


async def walk(
    topic: LifeTopic, *, after: str = "", limit: Callable[[], int], since: Callable[[], int]
) -> list[RunsPage]:
    """All pages, each from a process of its own."""
    pages = [await Runs(topic.process(since())).page(KEY, limit=limit(), after=after)]
    while (following := pages[-1].next) is not None:
        assert len(pages) < 10_000, "the pages never end"
        runs = Runs(topic.process(since()))
        pages.append(await runs.page(KEY, limit=limit(), cursor=str(following)))
    return pages


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "EVENTS_MAX", 20)
    monkeypatch.setattr(history, "OFFSETS_MAX", 40)
    monkeypatch.setattr(history, "STEP_MIN", 4)
    monkeypatch.setattr(module, "EVENTS_MAX", 7)


@pytest.mark.parametrize("searches", [1_000.0, 0.0], ids=["to the end", "one part a page"])
@pytest.mark.parametrize("seed", range(6))
@in_a_loop
async def test_pages_have_each_run_once_with_its_end(
    seed: int, searches: float, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SEARCH_S", searches)
    story, dice = a_story(seed), random.Random(seed)

    async def read(after: str = "") -> list[RunsPage]:
        return await walk(
            story.topic,
            after=after,
            limit=lambda: dice.choice([1, 2, 5]),
            since=lambda: dice.randrange(story.topic.end + 1),
        )

    whole = story.runs()
    back = await read()
    assert [run for page in back[::-1] for run in page.items] == whole
    on = await read("0")
    assert [run for page in on for run in page.items] == whole
    known = dice.choice(whole[:-1])
    rest = await read(known.id)
    assert [run for page in rest for run in page.items] == whole[whole.index(known) + 1 :]


@in_a_loop
async def test_a_run_that_began_before_what_is_kept_has_no_begin() -> None:
    story = Story().starts().go("Stopping", f"{TO_BE}stopped", actor="bob").go("Stopped").starts()
    story.topic.start_at = story.topic.placed[1].offset
    for after in ("", "0"):
        page = await Runs(story.topic.process(story.topic.start_at)).page(KEY, limit=9, after=after)
        assert [(run.run, run.began, run.end) for run in page.items] == [
            (1, None, "stopped"),
            (2, 50, None),
        ]
        assert page.items[0].started_by is None


@in_a_loop
async def test_runs_of_a_topic_that_was_created_again_are_a_gap() -> None:
    story = Story().starts()
    old = story.runs()[0].id
    again = Story(LifeTopic("topic-2")).starts()
    page = await Runs(again.topic.process(0)).page(KEY, limit=9, after=old)
    assert (len(page.items), page.gap) == (1, HistoryGap.TOPIC_RECREATED)
    back = f"before.{old}~0"
    page = await Runs(again.topic.process(0)).page(KEY, limit=9, cursor=back)
    assert (page.items, page.gap) == ((), HistoryGap.TOPIC_RECREATED)


@pytest.mark.parametrize("text", ["x", "before.t.1.1~", "before.t.1.1~x", "before.t.1.1~1~1~1"])
@in_a_loop
async def test_a_text_that_is_no_cursor_of_runs_is_refused(text: str) -> None:
    runs = Runs(LifeTopic().process(0))
    with pytest.raises(Refusal, match="no cursor of ours"):
        await runs.page(KEY, limit=1, cursor=text)
    with pytest.raises(Refusal, match="id of no run"):
        await runs.page(KEY, limit=1, after="before.t.1.1")
