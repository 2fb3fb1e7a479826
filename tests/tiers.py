"""The tiers of tests: what each may take, in which order they run, and how workers share them.

`contracts` is no tier: it holds one suite per port, which `unit` runs on its fakes, `sim` on its
stand-ins and `integration` on the real thing. `contract` holds schemas, documents and examples.
"""

from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

TESTS = Path(__file__).parent
OWN_STACKS = ("integration/local_stack", "e2e/existing_clusters")
TIERS = ("unit", "contract", "integration", "e2e", "sim")
BUDGET = "unit and contract 4 min, integration 20 min, e2e 30 min, sim 3 min"
"""On 2 quiet cores with 2 workers, most of it for starts of Spark."""
DEEP = {
    "e2e/test_big_batches.py": ("before_commit of", "after_commit of", "in_share of warehouse"),
    "e2e/test_changes.py": ("comes_after_a_refused_change", "of_a_deleted_ones_name"),
    "e2e/test_checkpoints.py": (
        "[damage_last_plan]",
        "[commit_as_another_driver]",
        "of_an_earlier_moment",
        "whose_fence_is_gone",
    ),
    "e2e/test_crashes.py": (
        "before_load of",
        "before_commit of the kafka",
        "before_commit of the postgres",
        "after_copy of",
        "after_event of",
    ),
    "e2e/test_dead_letters.py": (
        "[!dead.before_commit]",
        "[both.after_journal]",
        "[iceberg.after_commit]",
        "[postgres.after_commit]",
    ),
    "e2e/test_deletion.py": ("[kill_driver]",),
    "e2e/test_feldera.py": ("what_is_pushed",),
    "e2e/test_first_hour.py": ("changed_without_fear",),
    "e2e/test_four_upserts.py": ("",),
    "e2e/test_lag.py": ("leaves_no_group",),
    "e2e/test_partitions.py": ("that_the_input_gets",),
    "e2e/test_pieces.py": ("[iceberg]",),
    "e2e/test_services.py": (
        "[ingress]",
        "[token_tracker]",
        "[status]",
        "[gateway]",
        "[stage_runner]",
    ),
    "e2e/test_switch.py": ("[between record and switch]", "[after the end of the old run]"),
    "e2e/test_topics.py": ("while_ingress_produces", "inner_topic_created_anew"),
    "e2e/test_truth.py": ("",),
    "e2e/test_two_drivers.py": (
        "[kafka.before_commit]",
        "[iceberg.before_commit]",
        "paused_between_batches",
    ),
    "e2e/test_two_runners.py": ("",),
    "e2e/test_upkeep.py": ("killed_in_the_middle",),
    "e2e/test_validate.py": ("many_at_once",),
    "e2e/test_watches.py": ("faults_of_all_parts",),
    "integration/ingress/test_keys_on_a_cluster.py": ("",),
    "integration/local_stack/test_again.py": ("",),
    "integration/local_stack/test_big_batches_on_a_cluster.py": ("[warehouse]",),
    "integration/local_stack/test_installed.py": ("with_a_keys_file",),
    "integration/local_stack/test_spark_cluster.py": ("",),
    "integration/local_stack/test_two_million_rows.py": ("",),
}
"""Left to `make test-deep`: what takes more than a minute and is shown by the simulation or in part
by others too, and of a promise at many edges those that show it once more. By file, what stands in
the names of its tests."""


class ByFile(LoadScopeScheduling):
    """Files in the order of collection, each to one worker, because its tests share what they made.

    Scenarios of the simulation share nothing: one by one, and last, they fill up the workers.
    """

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if tier(nodeid) == "sim" else nodeid.partition("::")[0]


def tier(nodeid: str) -> str:
    return Path(nodeid.partition("::")[0]).parts[1]


def is_deep(item: pytest.Item) -> bool:
    texts = DEEP.get(item.path.relative_to(TESTS).as_posix(), ())
    return any(text in item.name for text in texts)


def has_own_stack(item: pytest.Item) -> bool:
    return any(item.path.is_relative_to(TESTS / folder) for folder in OWN_STACKS)


def needs_stack(item: pytest.Item) -> bool:
    names = getattr(item, "fixturenames", ())
    return "stack" in names or ("servers" in names and not item.config.getoption("containers"))


def place(item: pytest.Item) -> tuple[bool, int]:
    """First what starts stacks of its own, so that each worker has one at a time."""
    return not has_own_stack(item), TIERS.index(item.path.relative_to(TESTS).parts[0])
