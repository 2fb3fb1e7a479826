"""Where the faults happen, and to whom: one stack, the ordinary program, pipelines of Waybill."""

from dataclasses import dataclass
from pathlib import Path

from examples.truth.bare_side import BareRun, BareSide
from examples.truth.report import Story
from examples.truth.topics import Topics, order
from examples.truth.waybill_side import WaybillSide, blocked_by
from waybill import Client, Outcome, Span
from waybill_local.stack import StackState


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    client: Client
    stack: StackState
    failpoints: Path
    topics: Topics
    bare: BareSide
    story: Story

    def both(self, topic: str) -> WaybillSide:
        """An empty topic, which the ordinary program and a pipeline are about to read."""
        self.topics.create(topic)
        return WaybillSide(self.client, self.stack, self.failpoints, topic)

    def both_took(self, topic: str, numbers: range) -> WaybillSide:
        """As `both`; they have taken these records, and were stopped then, as for a release."""
        waybill = self.both(topic)
        token = waybill.token(self.produce(topic, numbers))
        waybill.start()
        self.let_bare_run(topic)
        self.tell_waybill(waybill.wait(token))
        waybill.done(waybill.stop())
        return waybill

    def produce(self, topic: str, numbers: range) -> Span:
        return self.topics.produce(topic, map(order, numbers))

    def let_bare_run(self, topic: str, **options: str) -> BareRun:
        run = self.bare.run(topic, **options)
        self.story.tell("bare", said(run))
        return run

    def tell_truth(self, text: str) -> None:
        self.story.tell("truth", text)

    def tell_waybill(self, *facts: Outcome | str) -> None:
        parts = [fact if isinstance(fact, str) else told(fact) for fact in facts]
        self.story.tell("waybill", "; ".join(parts))


def said(run: BareRun) -> str:
    """What the program said of itself."""
    if run.error is not None:
        return f"dies: {run.error}"
    if run.warnings:
        return f"goes on; {run.warnings} warnings in Spark's log"
    return "goes on, says nothing"


def told(outcome: Outcome) -> str:
    """What Waybill says of a token."""
    facts = [f"token {outcome.kind}"]
    if blocker := blocked_by(outcome):
        facts.append(f"blocked by {blocker}")
    facts += [f"{d.reason}, {d.topic}[{d.partition}]@{d.offset}" for d in outcome.dead]
    for lost in outcome.lost:
        end = "" if lost.end is None else lost.end - 1
        facts.append(f"{lost.reason}, {lost.topic}[{lost.partition}] {lost.start} to {end}")
    return ", ".join(facts)
