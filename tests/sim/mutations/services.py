"""Guards that are removed from runner, tracker, status and ingress."""

from typing import Final

from sim import stand_ins
from sim.mutation import Mutation
from sim.world import Rates

WATCHED: Final = "waybill_status.app.watches.open_watches.OpenWatches"
MUTATIONS: Final = (
    Mutation(
        name="a watch is told before its token is final",
        invariant="I1",
        found_by=4,
        instead={
            "waybill_status.app.watches.watch_judge.WatchJudge.attend": stand_ins.told_at_once
        },
    ),
    Mutation(
        name="a part of the way is judged by the sinks that there are now",
        invariant="I2",
        found_by=54,
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
        found_by=106,
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
        found_by=62,
        instead={"sim.tracker.Topics.transact": stand_ins.snapshots_of_anybody},
        only=("stopped", "lives", "pair"),
    ),
    Mutation(
        name="old tokens wait for sinks that came later",
        invariant="I3",
        found_by=2,
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
        found_by=3,
        instead={
            "waybill_stage_runner.core.pipelines.driver_reports._note_paused": stand_ins.note_paused
        },
        only=("pauses",),
        rates=Rates(pause=0.1),
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
        found_by=17,
        instead={"waybill_token_tracker.core.facts._hop": stand_ins.without_gaps},
        only=("retention", "strangers"),
    ),
    Mutation(
        name="births count up to the stable end",
        invariant="I6",
        found_by=1,
        instead={"sim.clients.Ingress.ends": stand_ins.stable_ends},
        only=("strangers",),
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
        found_by=41,
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
    Mutation(
        name="a start of a run that reads is answered and forgotten",
        invariant="I15",
        found_by=20,
        instead={"waybill_stage_runner.core.pipelines.supervision.note_start": stand_ins.as_it_is},
        only=("endings",),
    ),
    Mutation(
        name="a run that has left out a stage has finished",
        invariant="I15",
        found_by=77,
        instead={
            "waybill_stage_runner.core.pipelines.finishing.fail_stopped": stand_ins.finish_anyway
        },
        only=("endings", "stops"),
    ),
    Mutation(
        name="a time of a schedule is recorded after its run is announced",
        invariant="I16",
        found_by=9,
        instead={"waybill_stage_runner.core.pipelines.moves.MOVES": stand_ins.DUE_UNRECORDED},
        only=("schedules", "runner"),
    ),
    Mutation(
        name="nobody is told that a time of a schedule is skipped",
        invariant="I16",
        found_by=9,
        instead={"waybill_stage_runner.core.pipelines.scheduling._skip": stand_ins.skip_silently},
        only=("schedules",),
    ),
    Mutation(
        name="a sink is asked for by its present name alone",
        invariant="I2",
        found_by=2,
        instead={"waybill_shared.contract.topology.is_meant": stand_ins.called_so_now},
        only=("renames",),
    ),
    Mutation(
        name="keys are made of the present name",
        invariant="I3",
        instead={"waybill_shared.contract.slots.first_name": stand_ins.present_name},
        only=("renames",),
    ),
    Mutation(
        name="a pipeline gets a name that is not reserved for it",
        invariant="I19",
        instead={"sim.naming.must_reserve": stand_ins.false},
        only=("names", "pair"),
    ),
    Mutation(
        name="a name is reserved for two",
        invariant="I19",
        found_by=36,
        instead={"waybill_stage_runner.app.changes.refuse_reserved": stand_ins.false},
        only=("names", "pair"),
    ),
    Mutation(
        name="a pipeline gets a name that was reserved for an earlier generation",
        invariant="I19",
        found_by=17,
        instead={"waybill_stage_runner.app.changes.refuse_unreserved": stand_ins.nothing},
        only=("names", "pair"),
    ),
    Mutation(
        name="a run that goes on keeps its size",
        invariant="I17",
        instead={"waybill_stage_runner.core.pipelines.supervision.is_resized": stand_ins.false},
        only=("rescales",),
    ),
    Mutation(
        name="a recovery starts a stopped stage",
        invariant="I18",
        instead={
            "waybill_stage_runner.core.pipelines.moves._start_driver": stand_ins.starts_stopped
        },
        only=("stops",),
    ),
)
