"""Lets a stage replay dead letters, in a thread of its own.

The stage does it between two batches of its query, or while there is nothing to read. What fails
ends the stage as a batch that fails does: whatever runs the stage next reads the messages again,
from where the sink is that has done the fewest. No stage waits for the replays of another one.
"""

import logging
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol

from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.vectors import Vector
from waybill_spark.tracking.replaying import Replays
from waybill_spark.tracking.stopping import StageClosed

logger = logging.getLogger(__name__)

ROUND_S: Final = 1.0  # how soon a request is seen; each stage asks Kafka as often


class Messages(Protocol):
    def start(self, replayed: Sequence[Vector]) -> Replays:
        """Start where the sink is that has done the fewest. Return what comes before any letter:
        which topic it is, and which it was. Raises Retryable.
        """

    def read(self) -> Replays | None:
        """Return what is new of the pipeline; None if nothing is. Raises Retryable."""


class ReplayingStage(Protocol):
    @property
    def key(self) -> str: ...

    def replays_done(self) -> Sequence[Vector]: ...

    def replay(self, replays: Replays) -> None:
        """Bring the letters to their sinks. Raise StageClosed if no batch begins any more. What
        fails is raised, and the stage says so itself.
        """


class ReplayThread:
    """The replays of one stage. Start it when the stage is open. It ends when `stop` was called, no
    batch of the stage begins any more, or a replay has failed.
    """

    def __init__(self, stage: ReplayingStage, messages: Messages) -> None:
        self._stage = stage
        self._messages = messages
        self._stop = threading.Event()
        self._caught_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="replays", daemon=True)

    def start(self) -> None:
        """Read messages, and replay what they name, until the end."""
        self._thread.start()

    def stop(self) -> None:
        """Let no replay begin any more. One that runs ends before its stage is closed."""
        self._stop.set()

    def has_caught_up(self) -> bool:
        """Return True if once no letter was left to replay."""
        return self._caught_up.is_set()

    def join(self, timeout_s: float) -> None:
        """Wait for the end of the thread."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        started = False
        while not self._stop.is_set():
            try:
                if started:
                    found = self._messages.read()
                else:
                    found, started = self._messages.start(self._stage.replays_done()), True
            except Exception as error:
                # Whatever it is: without this thread the letters would wait, and nobody would know.
                known = isinstance(error, Retryable)
                logger.warning(
                    "replays cannot be read", extra={"reason": str(error)}, exc_info=not known
                )
                found, started = None, False
            if found is not None:
                if not self._replay(found):
                    return
                continue  # there may be more
            if started:
                self._caught_up.set()
            self._stop.wait(ROUND_S)

    def _replay(self, found: Replays) -> bool:
        """Return False if the stage replays nothing any more."""
        stage = self._stage
        mine = [each for each in found.letters if each.asked.stage == stage.key]
        try:
            stage.replay(replace(found, letters=mine))
        except StageClosed:
            return False
        except Exception as error:
            # The stage has noted it, and whatever watches the stage asks for it.
            logger.error("replay failed", extra={"stage": stage.key, "reason": str(error)})
            return False
        return True
