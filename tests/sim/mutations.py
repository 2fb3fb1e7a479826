"""Guards taken out of the product, one at a time: each must be missed by the invariant it serves.

A mutation replaces what is a guard; it says which invariant must turn red, and by which faults.
"""

from typing import Final

from sim import stand_ins
from sim.mutation import Mutation
from sim.world import Rates

WATCHED: Final = "waybill_status.app.watches.open_watches.OpenWatches"
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
        found_by=134,
        instead={"waybill_spark.tracking.ledger.Ledger._is_superseded": stand_ins.false},
        only=("driver", "cutoff", "lives", "manifest"),
        rates=Rates(pause=0.08, takeover=0.2),
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
        name="a watch is told before its token is final",
        invariant="I1",
        instead={
            "waybill_status.app.watches.watch_judge.WatchJudge.attend": stand_ins.told_at_once
        },
    ),
    Mutation(
        name="a part of the way is judged by the sinks that there are now",
        invariant="I2",
        found_by=56,
        instead={"waybill_status.core.outcomes.judge._judge_named": stand_ins.named_now},
    ),
    Mutation(
        name="nobody waits for what other pipelines read",
        invariant="I1",
        found_by=70,
        instead={"waybill_status.core.outcomes.through.written": stand_ins.none_found},
        only=("pair", "driver"),
    ),
    Mutation(
        name="of what nobody knows whether it was told all is told again",
        invariant="I3",
        found_by=28,
        instead={
            f"{WATCHED}._find_out": stand_ins.not_found_out,
            "waybill_shared.topic_views.watches.WatchBook.is_open": stand_ins.true,
        },
    ),
    Mutation(
        name="nobody who waits is asked for when sinks come farther",
        invariant="I2",
        found_by=12,
        instead={"waybill_status.core.outcomes.needs.Index.take": stand_ins.nobody},
    ),
    Mutation(
        name="nobody who waits hears of more than sinks that come farther",
        invariant="I2",
        instead={"waybill_status.app.outcomes.feeds.alike": stand_ins.true},
        only=("lives",),
    ),
    Mutation(
        name="only what is published wakes those who wait",
        invariant="I2",
        found_by=6,
        instead={"waybill_status.app.outcomes.feeds.Feeds.look": stand_ins.looks_away},
        only=("status",),
    ),
    Mutation(
        name="a lost slot is written before all facts are applied again",
        invariant="I3",
        found_by=2,
        instead={"sim.tracker.TrackerProcess.end": stand_ins.from_the_beginning},
        only=("power",),
    ),
    Mutation(
        name="of two pipelines the last one answers for both",
        invariant="I1",
        found_by=9,
        instead={"waybill_status.core.outcomes.outcome.kind_of": stand_ins.last_kind},
        only=("pair",),
    ),
    Mutation(
        name="an older tracker may write over a newer one",
        invariant="I3",
        found_by=7,
        instead={"sim.redis_server.is_newer": stand_ins.false},
        only=("tracker",),
    ),
    Mutation(
        name="snapshots of a tracker that was replaced stay",
        invariant="I3",
        found_by=107,
        instead={"sim.tracker.Topics.transact": stand_ins.snapshots_of_anybody},
        only=("stopped", "lives", "pair"),
    ),
    Mutation(
        name="old tokens wait for sinks that came later",
        invariant="I3",
        instead={"waybill_stage_runner.app.changes.define": stand_ins.since_ever},
        only=("manifest",),
    ),
    Mutation(
        name="a runner that lost its partition is not shut out",
        invariant="I13",
        found_by=3,
        instead={"sim.runner.RunnerProcess._shut_out": stand_ins.false},
        only=("cutoff", "lives"),
    ),
    Mutation(
        name="a pause is answered by the report of an earlier order",
        invariant="I14",
        found_by=2,
        instead={
            "waybill_stage_runner.core.pipelines.driver_reports._note_paused": stand_ins.note_paused
        },
        only=("pauses",),
        rates=Rates(pause=0.1),
    ),
    Mutation(
        name="a deleted pipeline does not report its last batches",
        invariant="I4",
        found_by=5,
        instead={"sim.driver.report_last": stand_ins.nothing},
        only=("lives",),
        rates=Rates(facts=0.3),
    ),
    Mutation(
        name="a removed sink does not report its last batches",
        invariant="I4",
        found_by=61,
        instead={"sim.driver.report_last": stand_ins.nothing},
        only=("inputs", "manifest", "returns"),
        rates=Rates(facts=0.9),
    ),
    Mutation(
        name="a sink whose topic is gone does not report its last batches",
        invariant="I4",
        found_by=39,
        instead={"sim.driver.report_last": stand_ins.silent_of_what_is_gone},
        only=("topics", "lives"),
        rates=Rates(facts=0.9),
    ),
    Mutation(
        name="what is lost behind a hop takes all that was ever written there",
        invariant="I4",
        found_by=9,
        instead={"waybill_token_tracker.core.losses.overlap": stand_ins.all_of_the_first},
        only=("retention",),
    ),
    Mutation(
        name="what others wrote between two batches is the second one's",
        invariant="I4",
        found_by=3,
        instead={"waybill_token_tracker.core.facts._hop": stand_ins.without_gaps},
        only=("retention", "strangers"),
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
        name="births count up to the stable end",
        invariant="I6",
        found_by=1,
        instead={"sim.clients.Ingress.ends": stand_ins.stable_ends},
        only=("strangers",),
    ),
    Mutation(
        name="topic ids are not compared",
        invariant="I7",
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
        name="a hop counts before its reader is past it",
        invariant="I9",
        found_by=16,
        instead={"waybill_token_tracker.core.graph.covers": stand_ins.true},
    ),
    Mutation(
        name="the seal does not bind the tenant",
        invariant="I10",
        found_by=6,
        instead={"waybill_shared.contract.sealing._associate": stand_ins.unbound},
    ),
    Mutation(
        name="the last commit wins",
        invariant="I11",
        instead={"waybill_token_tracker.core.facts.join": stand_ins.the_later},
    ),
    Mutation(
        name="a slot of another server counts",
        invariant="I12",
        found_by=48,
        instead={"waybill_status.core.outcomes.views.usable_slot": stand_ins.any_server},
        only=("redis",),
    ),
    Mutation(
        name="the age of a slot does not count",
        invariant="I12",
        instead={"waybill_shared.contract.slots.NON_FINAL_AGE_MS_MAX": 2**62},
        only=("tracker",),
    ),
    Mutation(
        name="a slot that is behind a token's generation counts",
        invariant="I12",
        found_by=7,
        instead={"waybill_status.app.outcomes.tokens.view_of": stand_ins.every_generation},
        only=("manifest",),
    ),
)
