"""How long a pipeline may be in a phase, in a stop, or without progress, as the operator says."""

from dataclasses import dataclass
from typing import Final

from waybill_shared.contract.commands import STOP_MODES, StopMode
from waybill_shared.contract.lifecycle import PHASES, Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLimits:
    """Limits in milliseconds. `stall_ms`: so long a batch may do nothing, at least."""

    stall_ms: int = 300_000
    start_ms: int = PHASES[Phase.STARTING].limit_ms or 0
    finish_ms: int = PHASES[Phase.FINISHING].limit_ms or 0
    drain_ms: int = STOP_MODES[StopMode.DRAIN].limit_ms
    checkpoint_ms: int = STOP_MODES[StopMode.CHECKPOINT].limit_ms
    close_ms: int = 180_000  # sinks may wait a minute each, for a claim or for their readers

    def of_phase(self, phase: Phase) -> int | None:
        """Return how long the phase may last; None: as long as it needs."""
        return {Phase.STARTING: self.start_ms, Phase.FINISHING: self.finish_ms}.get(phase)

    def of_stop(self, mode: StopMode) -> int:
        """Return how long a stop may take, before it becomes a stronger one."""
        limits = {StopMode.DRAIN: self.drain_ms, StopMode.CHECKPOINT: self.checkpoint_ms}
        return limits.get(mode, STOP_MODES[mode].limit_ms)


BY_DEFAULT: Final = TimeLimits()
