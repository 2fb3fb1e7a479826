"""One word per class: no two public classes of one name with two meanings."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("shared", "services", "spark", "client", "infra")
ROLES = {"KafkaTopics", "Loop", "News", "Replays", "Settings", "Topics"}
"""What several services have, each its own."""
TOLD_TO_USERS = {
    "Change", "DeadLetter", "Dropped", "InputColumn", "InputOffsets", "LostSpan", "Outcome",
    "OutcomeKind", "PartitionOffsets", "PipelineEvent", "PipelineFlow", "PipelineOffsets",
    "PipelineRun", "Receipt", "SinkFrontier", "Span", "StageBatch", "StageOffsets", "Token",
    "UnknownOffsets",
}  # fmt: skip
"""The same for the SDK, which needs nothing of the services."""
DECLARED_AND_OPENED = {"Sink"}


def public_classes(source: Path) -> Iterator[str]:
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def test_no_class_has_the_name_of_another() -> None:
    sources = [path for folder in FOLDERS for path in (ROOT / folder).rglob("src/**/*.py")]
    named = Counter(name for source in sources for name in public_classes(source))
    twice = {name for name, times in named.items() if times > 1}
    assert twice == ROLES | TOLD_TO_USERS | DECLARED_AND_OPENED
