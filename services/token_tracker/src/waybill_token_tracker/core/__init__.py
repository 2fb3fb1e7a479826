"""Decides what a fact changes in a pipeline's slot. Never does I/O, never reads the clock."""

from waybill_token_tracker.core.facts import (
    Applied,
    apply_beat,
    apply_fact,
    apply_lifecycle,
)

__all__ = ["Applied", "apply_beat", "apply_fact", "apply_lifecycle"]
