"""Phases of a pipeline and the moves between them: one table, from which the docs are drawn."""

from enum import StrEnum


class Phase(StrEnum):
    CREATED = "Created"
    SCHEDULING = "Scheduling"
    STARTING = "Starting"
    RUNNING = "Running"
    RECOVERING = "Recovering"
    STOPPING = "Stopping"
    STOPPED = "Stopped"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


TRANSITIONS: dict[Phase, frozenset[Phase]] = {
    Phase.CREATED: frozenset({Phase.STARTING, Phase.STOPPING, Phase.STOPPED}),
    Phase.SCHEDULING: frozenset(
        {Phase.STARTING, Phase.RECOVERING, Phase.FAILED, Phase.STOPPING, Phase.STOPPED}
    ),
    Phase.STARTING: frozenset(
        {Phase.SCHEDULING, Phase.RUNNING, Phase.RECOVERING, Phase.FAILED, Phase.STOPPING}
    ),
    Phase.RUNNING: frozenset({Phase.STOPPING, Phase.RECOVERING, Phase.FAILED, Phase.STARTING}),
    Phase.RECOVERING: frozenset({Phase.STARTING, Phase.STOPPING, Phase.STOPPED, Phase.FAILED}),
    Phase.STOPPING: frozenset({Phase.STOPPED, Phase.STARTING}),
    Phase.STOPPED: frozenset({Phase.STARTING, Phase.STOPPING}),
    Phase.FAILED: frozenset({Phase.STARTING, Phase.STOPPING, Phase.STOPPED}),
    Phase.UNKNOWN: frozenset(),  # said by readers when the runner is silent, never entered
}
HEARTBEAT_INTERVAL_MS = 2_000
HEARTBEAT_AGE_MS_MAX = 10_000  # five beats: one late beat is no alarm
