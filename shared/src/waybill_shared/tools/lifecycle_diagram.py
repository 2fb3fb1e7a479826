"""Draws the phases of a pipeline from their table.

Prints docs/lifecycle.md; decides nothing about phases.
"""

from waybill_shared.contract.commands import STOP_MODES
from waybill_shared.contract.lifecycle import (
    HEARTBEAT_AGE_MS_MAX,
    MOVES,
    PHASES,
    STOP_HAPPENINGS,
    Phase,
    PhaseRow,
)
from waybill_shared.contract.run_words import DegradedCause

MODES = "\n".join(
    (
        "| mode | what it does | phase | for at most | then |",
        "|---|---|---|---|---|",
        *(
            f"| `{mode}` | {row.meaning} | `{MOVES[Phase.RUNNING, STOP_HAPPENINGS[mode]].target}` |"
            f" {row.limit_ms // 1000} s | `{row.then}` |"
            for mode, row in STOP_MODES.items()
        ),
    )
)

CAUSES = "\n".join(
    ("| cause | meaning |", "|---|---|", *(f"| `{c}` | {c.meaning} |" for c in DegradedCause))
)


def _phase_row(phase: Phase, row: PhaseRow) -> str:
    then = "" if row.then is None else f", then `{row.then}`"
    limit = "" if row.limit_ms is None else f"; at most {row.limit_ms // 1000} s{then}"
    allowed = ", ".join(f"`{action}`" for action in row.allowed)
    return f"| `{phase}` | {row.meaning} | {row.moved_by}{limit} | {allowed} |"


PHASE_TABLE = "\n".join(
    (
        "| phase | meaning | who ends it | allowed |",
        "|---|---|---|---|",
        *(_phase_row(phase, PHASES[phase]) for phase in Phase),
    )
)
SCHEDULE_TABLE = """| when a time of the schedule comes, the pipeline is | then |
|---|---|
| `Finished` | the next run begins; the actor is `schedule` |
| `Running` | `forbid`: the time is skipped, which is an event; `replace`: the run is stopped as \
`checkpoint` does, and the next one begins |
| `Scheduling`, `Starting`, `Recovering` or `Paused` | the time is skipped, which is an event |
| in a phase that ends its driver | it waits until the pipeline is in another phase |
| `Stopped` or `Failed` | there are no times, until somebody starts the pipeline |"""
INTRODUCTION = f"""# The life of a pipeline

<!-- Made by `python -m waybill_shared.tools.lifecycle_diagram > docs/lifecycle.md`. Change
     `PHASES` and `MOVES` in `waybill_shared.contract.lifecycle`, not this file. -->

`waybill.pipelines` contains what a person wants: `running`, `paused`, `stopped` or `deleted`, and
who asked for it. The phase says what the pipeline really does. Only `stage_runner` decides it, in
`core.pipelines.supervision`, and it writes every change of phase to `waybill.lifecycle`.
`{Phase.UNKNOWN}` is not written there: readers show it when the runner has been silent for
{HEARTBEAT_AGE_MS_MAX // 1000} s.

{PHASE_TABLE}

`allowed_actions` of a pipeline lists what is allowed now: of `pause` and `resume` only one is.
Other changes fail with `not_allowed_now`. A change that asks for what is wanted already, such as a
stop of a stopped pipeline, is done at once, except in `{Phase.FAILED}`: that needs a `start`.

Each driver that starts the stages of a pipeline begins a *run*. Runs are numbered, and events carry
the number. A *generation* is a change of the definition: a new manifest, or a topic that was
created again. A restart alone makes a new run, and no new generation.

A pause lets the running batch of each stage end; no other begins, and no driver of an earlier run
can commit one. The driver stays, so that `resume` takes a fraction of a second. Records are
accepted meanwhile, and their tokens say `blocked_by: paused`. A paused pipeline stays paused when
it is changed or restarted, and when it gets another driver, until `resume`. Its connectors fetch
nothing.

A pipeline may [end by itself](manifest.md#pipelines-that-end). When all that its inputs contained
is in every sink, it is `{Phase.FINISHING}` until its driver has ended, then `{Phase.FINISHED}`.
That is written down, so that a new runner, or an `apply` without a change, starts nothing. `start`,
`restart` and a change begin the next run. A `start` that comes while a run goes on lets the next
one follow it, because that run may leave later records unread.

So does its [schedule](manifest.md#schedules). The record has the next time. When it comes, the
record gets the one after it in the same transaction as what this time does, so that no time counts
twice, whatever becomes of the runner. Of times that nobody was there for, one run is made up.

{SCHEDULE_TABLE}

A stop has a mode, and a phase of its own while it goes on. If the run has not ended in time, the
stop becomes a stronger one, and its phase the next one. A person can ask for a stronger one at any
time; a weaker one changes nothing, and the same one joins the first.

{MODES}

These limits, and those of phases, are settings of the runner: `WAYBILL_STAGE_RUNNER_START_LIMIT_S`,
`…_FINISH_LIMIT_S`, `…_DRAIN_LIMIT_S`, `…_CHECKPOINT_LIMIT_S`, and `…_CLOSE_LIMIT_S` for a driver
that closes sinks. `escalates_at` of a pipeline says when its stop becomes a stronger one.

When a pipeline is to be deleted, or a stage or sink is to be removed, its driver ends first. Then
the pipeline is `{Phase.STOPPING}`: the sinks that will be removed report a last time what they
contain, and only then the change is reported. If they cannot, the change is refused, and the
pipeline continues as before.

`rescale` gives a pipeline a driver of another size ([manifest.md](manifest.md#parallelism)). In
`{Phase.RESCALING}` its batch ends as by `checkpoint`, with the same limit and the same warning.
Then the next run begins, of the same generation. A stop, a restart or a change overtakes it. Where
no driver is there, the number is for the next start, and nothing starts.

In `{Phase.RESTARTING}` a run ends because another one follows: after a restart, a change, a time of
the schedule, or a start that was sent while the run ended. `restart --mode safe` ends it as
`checkpoint` does, with its limit; `--mode force` kills the driver at once. A stop overtakes it: the
phase becomes that of the stop. In the same way a `start` overtakes a stop, and a drain becomes a
stop by `checkpoint` then.

The driver reports that all is drained, and that the run has ended in good order. Without that
report a stop or restart is done all the same, and its answer has a warning. The cause may be a
killed driver, a stop that became a stronger one, a run that finished just then, or another runner
that took over.

A driver that failed is started again after 0.5 s; each further time it takes twice as long, up to
60 s. Each wait is up to a quarter shorter, so that pipelines that failed together do not start
together. After it has run well for two minutes, this begins again. If the cause was outside (Kafka,
a catalog, a Spark cluster), this has no end: everything continues by itself when the cause has
ended. After other failures there are 20 attempts, and none if a person must repair something: then
the pipeline is `{Phase.FAILED}`. If all attempts have failed at the same stage, [that
stage](#when-one-stage-has-failed) is stopped instead. The same is true of the driver that closes
sinks, with one exception. After 20 crashes a deletion is finished all the same, with an error in
the log of the runner.

## When one stage has failed

A stage may fail by itself: more records die than its budget allows, the manifest says `fail` for
one, its query or a sink refuses what comes, or its table was dropped. That stage is stopped, and
the others go on. The pipeline stays `{Phase.RUNNING}`, and is degraded. The tokens of the stage say
`blocked_by: stage_failed`. The record of the pipeline says since when it is stopped and why, so
that a recovery, another runner, a rescale, a pause, or a change elsewhere does not start it.

`waybill start NAME` starts all stopped stages, `--stage` one of them. The driver does it while the
other stages go on. A stage that cannot be started, also because its sink is away, is stopped again
with the new reason, and the command fails. `restart` starts all, and an `apply` those that it
changes: the stage itself, an input that it reads, a stage before it, or `deadLetter`.

If every stage is stopped, the pipeline is `{Phase.FAILED}`. One that ends by itself is so, too,
when its other stages have read all that there was; a start begins the next run. If a topic is lost,
a later driver has its claims, or its driver dies, that concerns all stages.

## When a pipeline is degraded

`conditions` of a pipeline lists what is wrong with it next to its phase. Their kind is `degraded`,
and they name the stage, the cause, since when, and what to do:

{CAUSES}

The least time is a setting of the runner, `WAYBILL_STAGE_RUNNER_STALL_S`, five minutes; a fifth of
it for `no_commit`. What is usual is the middle of the last 20 batches of the run.

A batch makes progress when its rows are read, when a sink accepts it or a piece of it, and when a
task of Spark for it ends, or reads or writes records. So a batch that works may take as long as it
needs. What waits for a sink alone is not started again either: another driver would wait there,
too, and the driver has limits of its own for a server that does not answer.

If nothing happens for twice that time, the run is stopped by force. Its threads, those of Python
and those of Java, are written into its log before: `waybill logs NAME`. Then the run is started
again as after a crash. It repeats its batch, and each row is there once.
"""


def render() -> str:
    """Render the complete document."""
    order = list(Phase)
    moves = [
        f"    {source} --> {row.target}: {happening}"
        for (source, happening), row in sorted(
            MOVES.items(), key=lambda move: (order.index(move[0][0]), order.index(move[1].target))
        )
        if source is not row.target
    ]
    lines = ["stateDiagram-v2", f"    [*] --> {Phase.CREATED}", *moves]
    return "\n".join([INTRODUCTION, "```mermaid", *lines, "```", ""])


if __name__ == "__main__":
    print(render(), end="")
