"""Guards that are removed from drivers, their stages and their sinks."""

from typing import Final

from sim import stand_ins
from sim.mutation import Mutation
from sim.world import Rates

MUTATIONS: Final = (
    Mutation(
        name="a sink is reported before its readers see it",
        invariant="I1",
        found_by=14,
        instead={"sim.sinks.KafkaSink.await_visible": stand_ins.true},
        only=("strangers",),
    ),
    Mutation(
        name="a sink is reported before its load",
        invariant="I1",
        instead={"waybill_spark.tracking.ledger.Ledger.write": stand_ins.report_before_load},
        only=("driver",),
    ),
    Mutation(
        name="what nobody was told of when its topic went is told later",
        invariant="I1",
        found_by=42,
        instead={
            "waybill_spark.tracking.loss_reporter.LossReporter.report_topics": stand_ins.no_stops
        },
        only=("topics",),
        rates=Rates(unsure=0.5, pause=0.1),
    ),
    Mutation(
        name="a driver goes on behind a fence of a later claim",
        invariant="I4",
        found_by=674,
        instead={"waybill_spark.tracking.commits.Identity.is_before": stand_ins.false},
        only=("driver", "cutoff", "lives", "manifest"),
        rates=Rates(pause=0.08, takeover=0.2),
    ),
    Mutation(
        name="a rewind moves no position",
        invariant="I4",
        found_by=2,
        instead={"waybill_shared.contract.events.Fence.position": stand_ins.FRONTIER},
        only=("rewinds",),
    ),
    Mutation(
        name="nobody knows that a rewind is done",
        invariant="I8",
        found_by=3,
        instead={"waybill_spark.tracking.ledger.Ledger.rewind_number": stand_ins.NEVER_REWOUND},
        only=("rewinds",),
    ),
    Mutation(
        name="what was skipped comes again after a rewind",
        invariant="I4",
        found_by=2,
        instead={"waybill_spark.tracking.stage.is_set_aside": stand_ins.false},
        only=("rewinds",),
    ),
    Mutation(
        name="what died comes again after a rewind",
        invariant="I4",
        found_by=6,
        instead={"sim.graves.SimJournal.past": stand_ins.none_past},
        only=("rewinds", "deaths"),
    ),
    Mutation(
        name="what a sink has is put into a dead-letter topic",
        invariant="I4",
        instead={"waybill_spark.tracking.putting._lacks": stand_ins.true},
        only=("puts",),
    ),
    Mutation(
        name="a replay goes to all sinks",
        invariant="I5",
        instead={"waybill_spark.tracking.replaying.find_named": stand_ins.all_ledgers},
        only=("replays", "deaths"),
        found_by=7,
    ),
    Mutation(
        name="what was replayed is not in the fence",
        invariant="I5",
        instead={"waybill_spark.tracking.ledger.next_fence": stand_ins.without_replayed},
        only=("replays", "deaths", "driver"),
        found_by=2,
    ),
    Mutation(
        name="batches are skipped by their ids",
        invariant="I1",
        found_by=4,
        instead={"waybill_spark.tracking.stage.TrackedStage._decide": stand_ins.by_batch_id},
        only=("checkpoint",),
    ),
    Mutation(
        name="what can never be read is not set aside",
        invariant="I2",
        instead={"waybill_spark.tracking.loss_reporter.find_losses": stand_ins.none_found},
        only=("retention",),
    ),
    Mutation(
        name="torn sinks are not levelled",
        invariant="I2",
        found_by=36,
        instead={"waybill_spark.tracking.stage.TrackedStage._level": stand_ins.nothing},
        only=("driver", "checkpoint"),
        rates=Rates(crash=0.02, pause=0.02, takeover=0.5, unsure=0.1),
    ),
    Mutation(
        name="a deleted pipeline does not report its last batches",
        invariant="I4",
        found_by=6,
        instead={"sim.closing.report_last": stand_ins.nothing},
        only=("lives",),
        rates=Rates(facts=0.3),
    ),
    Mutation(
        name="a removed sink does not report its last batches",
        invariant="I4",
        found_by=61,
        instead={"sim.closing.report_last": stand_ins.nothing},
        only=("inputs", "manifest", "returns"),
        rates=Rates(facts=0.9),
    ),
    Mutation(
        name="a sink whose topic is gone does not report its last batches",
        invariant="I4",
        found_by=39,
        instead={"sim.closing.report_last": stand_ins.silent_of_what_is_gone},
        only=("topics", "lives"),
        rates=Rates(facts=0.9),
    ),
    Mutation(
        name="what dies is told nobody",
        invariant="I4",
        instead={
            "waybill_spark.tracking.dead_letters.triage.Triage.record_dead": stand_ins.nothing
        },
        only=("deaths",),
    ),
    Mutation(
        name="what dies is told after the sinks have its batch",
        invariant="I1",
        found_by=5,
        instead={
            "waybill_spark.tracking.batch_writer.BatchWriter.write": stand_ins.load_then_record_dead
        },
        only=("deaths", "driver"),
        rates=Rates(crash=0.02, pause=0.02, unsure=0.1),
    ),
    Mutation(
        name="commits do not say which dead they are past",
        invariant="I1",
        found_by=2,
        instead={
            "waybill_spark.tracking.batch_writer.BatchWriter._with_facts": stand_ins.past_no_dead
        },
        only=("deaths",),
        rates=Rates(letters=0.5),
    ),
    Mutation(
        name="an earlier driver can write what was buried",
        invariant="I4",
        found_by=172,
        instead={"waybill_spark.tracking.ledger.Ledger.move_claim": stand_ins.nothing},
        only=("deaths", "driver"),
        rates=Rates(pause=0.1, takeover=0.7, unsure=0.1),
    ),
    Mutation(
        name="what was buried is judged anew",
        invariant="I4",
        instead={
            "waybill_spark.tracking.dead_letters.triage.Triage.find_dead": stand_ins.no_positions
        },
        only=("deaths", "driver"),
        rates=Rates(crash=0.02, pause=0.02, unsure=0.1),
    ),
    Mutation(
        name="every batch is written",
        invariant="I5",
        instead={"waybill_spark.tracking.stage.decide": stand_ins.always_write},
        only=("driver",),
    ),
    Mutation(
        name="a claim shuts nobody out",
        invariant="I5",
        found_by=1,
        instead={"sim.sinks.KafkaSink._check_owner": stand_ins.nothing},
        only=("driver",),
        rates=Rates(pause=0.05, takeover=0.7),
    ),
    Mutation(
        name="a table is written again without a look at its fence",
        invariant="I5",
        found_by=2,
        instead={"sim.sinks.TableSink._check_fence": stand_ins.nothing},
        only=("driver",),
        rates=Rates(pause=0.05, takeover=0.7),
    ),
    Mutation(
        name="topic ids are not compared",
        invariant="I7",
        found_by=9,
        instead={
            "waybill_spark.tracking.loss_reporter.LossReporter.set_aside": stand_ins.no_stops,
            "waybill_spark.tracking.loss_reporter.LossReporter.check_topics": stand_ins.nothing,
        },
        only=("topics",),
    ),
    Mutation(
        name="a checkpoint is believed whatever the sinks hold",
        invariant="I8",
        found_by=14,
        instead={
            "waybill_spark.tracking.stage.decide": stand_ins.never_diverged,
            "waybill_spark.tracking.resuming._fits": stand_ins.true,
        },
        only=("checkpoint",),
    ),
    Mutation(
        name="an earlier driver can commit in a pause",
        invariant="I14",
        found_by=6,
        instead={"waybill_spark.tracking.stage.TrackedStage.move_claims": stand_ins.nothing},
        only=("pauses", "driver", "cutoff"),
        rates=Rates(pause=0.1, takeover=0.7),
    ),
    Mutation(
        name="a run has finished before Kafka has its commits",
        invariant="I15",
        found_by=2,
        instead={
            "waybill_spark.driver.ending.Ending.has_finished": stand_ins.finished_without_commits
        },
        only=("endings", "driver"),
        rates=Rates(facts=0.3),
    ),
)
