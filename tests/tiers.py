"""The tiers of tests: what each may take, in which order they run, and how workers share them.

`contracts` is no tier: it holds one suite per port, which `unit` runs on its fakes, `sim` on its
stand-ins and `integration` on the real thing. `documents` holds schemas, documents and examples.
"""

from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

TESTS = Path(__file__).parent
OWN_STACKS = ("integration/local_stack", "e2e/existing_clusters")
TIERS = ("unit", "documents", "integration", "e2e", "sim")
BUDGET_S = {"unit": 160, "documents": 40, "integration": 800, "e2e": 550, "sim": 90}
"""Seconds that the tests of a tier take in all, on 2 quiet cores with 2 workers, which share them.
With the set-up this is a quarter of an hour. A tier that takes a fifth more is warned of at the end
of a run."""
DEEP = {
    "e2e/existing_clusters/test_existing_clusters.py": ("",),
    "e2e/test_big_batches.py": ("",),
    "e2e/test_big_batches_under_faults.py": ("",),
    "e2e/test_browser.py": (
        "a_bad_edit",
        "killed_is_seen",
        "keyboard_alone",
        "a_copied_manifest",
        "what_has_changed",
        "log_of_the_driver",
        "stopping_and_deleting",
        "without_status",
        "each_view_fits",
        "a_dead_letter_is_looked_at",
    ),
    "e2e/test_browser_bad_days.py": ("",),
    "e2e/test_browser_bad_tokens.py": ("",),
    "e2e/test_changes.py": (
        "a_sink_that_is_added",
        "comes_after_a_refused_change",
        "of_a_deleted_ones_name",
        "in_the_middle_of_its_batch",
        "a_stage_that_is_added",
        "not_fit_a_changed_type",
        "a_stage_that_is_removed",
    ),
    "e2e/test_checkpoints.py": (
        "that_a_crash_left_apart",
        "[damage_last_plan]",
        "[commit_as_another_driver]",
        "[forget_last_batch]",
        "of_an_earlier_moment",
        "whose_fence_is_gone",
    ),
    "e2e/test_checks.py": ("outlives_the_driver",),
    "e2e/test_console.py": ("",),
    "e2e/test_crashes.py": (
        "before_load of",
        "before_commit of",
        "after_commit of the postgres",
        "after_commit of the iceberg",
        "after_copy of",
        "after_event of",
    ),
    "e2e/test_dead_letters.py": (
        "[!dead.before_commit]",
        "[both.after_journal]",
        "[iceberg.after_commit]",
        "[postgres.after_commit]",
        "[violates a rule]",
        "[too large]",
        "what_was_refused_once",
        "when_redis_and_tracker",
        "behind_a_hop",
        "beyond_its_budget",
        "[postgres]",
        "[fails in the query]",
    ),
    "e2e/test_deletion.py": ("",),
    "e2e/test_ending_pipelines.py": (
        "of_whatever_size",
        "killed_in_a_batch",
        "killed_in_its_second_batch",
        "that_is_drained",
    ),
    "e2e/test_feldera.py": (
        "what_is_pushed",
        "[more]",
        "stopped_and_started",
        "a_frame_of_pandas",
    ),
    "e2e/test_first_hour.py": (
        "changed_without_fear",
        "misspelt_fields",
    ),
    "e2e/test_formats.py": (
        "the_command[values-",
        "the_command[files-",
    ),
    "e2e/test_four_upserts.py": ("",),
    "e2e/test_iceberg.py": (
        "[closed-other",
        "[last-after_commit]",
        "[days-before_load]",
        "partitions_it_anew",
        "while_it_is_written",
        "a_query_gets_a_column",
    ),
    "e2e/test_kafka_sink.py": (
        "[more]",
        "when_its_topic_was_created_anew",
    ),
    "e2e/test_lag.py": (
        "lag_of_a_stopped",
        "leaves_no_group",
    ),
    "e2e/test_leftovers.py": ("",),
    "e2e/test_maintenance.py": (
        "killed_in_the_middle",
        "when_somebody_asks",
        "its_version_is_gone",
    ),
    "e2e/test_maintenance_under_load.py": ("",),
    "e2e/test_never_a_lie.py": ("[all faults]",),
    "e2e/test_one_table.py": ("",),
    "e2e/test_openapi.py": ("[all-",),
    "e2e/test_partitions.py": ("",),
    "e2e/test_pausing.py": ("does_not_allow",),
    "e2e/test_pieces.py": ("",),
    "e2e/test_postgres.py": (
        "killed_in_a_batch",
        "that_is_dropped",
        "that_is_away",
    ),
    "e2e/test_returns.py": ("",),
    "e2e/test_schedules.py": ("",),
    "e2e/test_sdk.py": ("ten_thousand_tokens",),
    "e2e/test_second_day.py": ("",),
    "e2e/test_services.py": ("",),
    "e2e/test_shapes.py": ("",),
    "e2e/test_stop_modes.py": ("stops_under_load",),
    "e2e/test_stranger_alters.py": ("",),
    "e2e/test_strangers.py": (
        "until_it_ends[abort]",
        "on_the_last_topic",
        "[by the last stage]",
        "a_compacted_input",
        "starts_at_latest",
    ),
    "e2e/test_supply_chain.py": ("",),
    "e2e/test_switch.py": ("",),
    "e2e/test_through_changes.py": ("",),
    "e2e/test_tokens.py": ("before_a_stage_began",),
    "e2e/test_topics.py": (
        "while_ingress_produces",
        "inner_topic_created_anew",
        "at_the_latest_record",
        "between_the_check_and_the_read",
        "that_retention_removed_unread",
    ),
    "e2e/test_truth.py": ("",),
    "e2e/test_two_drivers.py": ("",),
    "e2e/test_two_runners.py": ("",),
    "e2e/test_validate.py": ("many_at_once",),
    "e2e/test_watches.py": ("faults_of_all_parts",),
    "integration/ingress/test_bodies.py": ("gigabyte_of_zeros",),
    "integration/ingress/test_connectors.py": (
        "servers_that_drip",
        "odd_servers_are_refused",
    ),
    "integration/ingress/test_connectors_under_faults.py": (
        "[0-before_commit]",
        "[0-after_commit]",
        "[1-after_commit]",
        "[2-before_commit]",
        "[3-before_commit]",
        "[3-after_commit]",
        "[2-after_commit]",
        "was_paused_adds_nothing",
    ),
    "integration/ingress/test_keys_on_a_cluster.py": ("",),
    "integration/ingress/test_repeats_under_faults.py": (
        "[request.before_commit]",
        "[request.after_commit]",
        "many_clients_with_few_keys",
        "waits_for_the_end_of_a_command",
    ),
    "integration/ingress/test_repeats_without_kafka.py": ("",),
    "integration/ingress/test_sending.py": (
        "[rows.ndjson]",
        "[rows.json]",
        "[rows.csv]",
        "as_json_are_sent",
        "end_of_a_damaged_file",
    ),
    "integration/local_stack/test_again.py": ("",),
    "integration/local_stack/test_big_batches_on_a_cluster.py": ("",),
    "integration/local_stack/test_first_pipeline.py": ("",),
    "integration/local_stack/test_first_start.py": (
        "records_are_accepted_while",
        "that_never_come",
    ),
    "integration/local_stack/test_hanging_batch.py": ("",),
    "integration/local_stack/test_installed.py": (
        "with_a_keys_file",
        "modules_of_any_name",
    ),
    "integration/local_stack/test_killed_broker.py": ("",),
    "integration/local_stack/test_life.py": (
        "what_outlived_its_supervisor",
        "in_a_session_of_its_own",
        "second_ctrl_c",
        "while_a_stack_starts_in_the_background",
        "tied_stack",
        "end_of_kafka_is_the_end",
        "ctrl_c_while_starting",
        "ends_while_starting_is_named",
    ),
    "integration/local_stack/test_spark_cluster.py": ("",),
    "integration/local_stack/test_trusted.py": ("",),
    "integration/local_stack/test_two_million_rows.py": ("",),
    "integration/redis/test_loss.py": (
        "a_replica_that_lags",
        "back_to_a_primary",
        "that_the_tracker_has_left",
    ),
    "integration/spark/test_decode_report.py": (
        "dropped_where_the_input_says_so[spread]",
        "end_the_stage_where_the_input_says_so[spread]",
        "[spread-warn",
        "first_that_applies[spread]",
        "is_counted_once[spread]",
        "does_not_see_what_breaks_a_rule[spread]",
        "what_is_known_of_a_record[spread]",
        "[spread-1 = 0]",
        "[spread-order_id <> order_id]",
        "[spread-amount > 3",
        "[here-order_id <> order_id]",
        "[spread-100 / order_id",
        "[spread-order_id * ",
    ),
    "integration/spark/test_distributed_rows.py": ("whole]",),
    "integration/spark/test_guard.py": (
        "can_stand[1]",
        "can_stand[2]",
    ),
    "integration/spark/test_hostile.py": ("",),
    "integration/spark/test_iceberg_catalogs.py": tuple(
        edge.format(catalog)
        for catalog in ("sql", "glue", "hive")
        for edge in (
            "there_is_no_fence[{}]",
            "without_rows_too[{}]",
            "behind_the_one_before[{}]",
            "is_refused[{}-no rows]",
            "before_its_first_batch_is_refused[{}]",
            "behind_what_stands_there[{}]",
            "a_fence_of_its_own[{}]",
            "is_not_written[{}-",
            "leave_nothing[{}]",
            "is_done_with[{}]",
        )
    ),
    "integration/spark/test_iceberg_kills.py": (
        "[append to partitions]",
        "[overwrite]",
        "[upsert]",
        "[expireSnapshots]",
        "[rewriteManifests]",
    ),
    "integration/spark/test_iceberg_modes.py": ("partitioned]",),
    "integration/spark/test_iceberg_strangers.py": (
        "several_pipelines_upsert",
        "whatever_strangers_do",
    ),
    "integration/spark/test_journal.py": ("paused_in_its_transaction",),
    "integration/spark/test_topic_source.py": ("ten_thousand_positions",),
    "integration/status/test_history.py": (
        "pages_have_each_event",
        "created_again",
    ),
    "integration/status/test_watches.py": ("stands_still_while",),
    "integration/test_brokers.py": ("",),
    "integration/test_kafka_admin.py": ("heard_of_no_brokers",),
    "integration/token_tracker/test_replaced.py": ("stood_still_saves_nothing",),
    "integration/token_tracker/test_silent_kafka.py": ("",),
    "sim/test_invariants.py": tuple(f"holds[{first}]" for first in range(450, 1000, 50)),
    "unit/ingress/test_idempotency.py": tuple(
        f"answered_the_same[{seed}-" for seed in range(100, 300)
    ),
    "unit/status/test_hub.py": tuple(f"of_its_token[{seed}]" for seed in range(8, 30)),
}
"""Left to `make test-deep`: what takes more than a minute and is shown by the simulation or in part
by others too, and of a promise at many edges those that show it once more. By file, what stands in
the names of its tests. How long they take is in tests/deep_parts.py."""


class ByFile(LoadScopeScheduling):
    """Files in the order of collection, each to one worker, because its tests share what they made.

    Scenarios of the simulation share nothing: one by one, and last, they fill up the workers.
    """

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if tier(nodeid) == "sim" else nodeid.partition("::")[0]


def tier(nodeid: str) -> str:
    return Path(nodeid.partition("::")[0]).parts[1]


def file_of(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).as_posix()


def is_deep(item: pytest.Item) -> bool:
    return any(text in item.name for text in DEEP.get(file_of(item), ()))


def is_wholly_deep(file: str, test: str) -> bool:
    """Return True if each case of the function `test` of `file` is left to `make test-deep`."""
    return any(text in test for text in DEEP.get(file, ()))


def has_own_stack(item: pytest.Item) -> bool:
    return any(item.path.is_relative_to(TESTS / folder) for folder in OWN_STACKS)


def needs_stack(item: pytest.Item) -> bool:
    names = getattr(item, "fixturenames", ())
    return "stack" in names or ("servers" in names and not item.config.getoption("containers"))


def place(item: pytest.Item) -> tuple[bool, int]:
    """First what starts stacks of its own, so that each worker has one at a time."""
    return not has_own_stack(item), TIERS.index(item.path.relative_to(TESTS).parts[0])
