"""The transactional producer of a simulated runner, which may lose the answer to a commit."""

from collections.abc import Callable

from sim.runner_world import Around
from waybill_shared.contract.errors import Retryable


class RunnerProducer:
    """Commits one transaction at a time; of an uncertain one it learns the end with the next."""

    def __init__(self, world: Around) -> None:
        self._world = world
        self._uncertain: Callable[[], None] | None = None

    def commit(self, append: Callable[[], None], what: str, *, reachable: bool) -> None:
        """Append a transaction, or raise Retryable where nobody knows whether it is there."""
        if not reachable or self._world.stuck():
            self._lose(append, reachable=reachable)
            raise Retryable(f"the {what} is not acknowledged")
        self.settle()
        append()

    def settle(self) -> None:
        """Append the uncertain transaction, as brokers do before anything else of its producer."""
        if self._uncertain is not None:
            append, self._uncertain = self._uncertain, None
            append()

    def _lose(self, append: Callable[[], None], *, reachable: bool) -> None:
        """Drop a transaction, commit it later when its producer is reachable, or commit it now."""
        if reachable:
            self.settle()
        fate = self._world.pick(3)
        if fate == 1 and reachable:
            append()
        elif fate and self._uncertain is None:
            self._uncertain = append
