"""The phases of a pipeline, as `waybill get` prints them and a person may name them."""

from enum import StrEnum


class PipelinePhase(StrEnum):
    CREATED = "Created"
    SCHEDULING = "Scheduling"
    STARTING = "Starting"
    RUNNING = "Running"
    PAUSED = "Paused"
    RECOVERING = "Recovering"
    RESCALING = "Rescaling"
    RESTARTING = "Restarting"
    DRAINING = "Draining"
    CHECKPOINT_STOPPING = "CheckpointStopping"
    STOPPING = "Stopping"
    STOPPED = "Stopped"
    FINISHING = "Finishing"
    FINISHED = "Finished"
    FAILED = "Failed"
    UNKNOWN = "Unknown"
