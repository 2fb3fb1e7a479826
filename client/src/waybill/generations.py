"""Remembers the changes of a client, which wants no token of a pipeline as it was before them."""

from dataclasses import dataclass

from waybill.models import Operation


@dataclass(frozen=True, slots=True)
class _Change:
    uid: str | None
    generation: int

    def __str__(self) -> str:
        life = "" if self.uid is None else f"{self.uid}/"
        return f'"{life}{self.generation}"'


class Generations:
    """The newest change of each pipeline that this client knows as done."""

    def __init__(self) -> None:
        self._known: dict[str, _Change] = {}

    def learn(self, operation: Operation) -> Operation:
        """Remember the operation if it is done, and return it.

        An older one that is asked for again does not replace a later one.
        """
        if operation.state == "done" and operation.action == "delete":
            self.forget(operation.pipeline)
        elif operation.state == "done" and operation.generation is not None:
            learnt = _Change(operation.pipeline_uid, operation.generation)
            known = self._known.get(operation.pipeline, learnt)
            if known.uid != learnt.uid or known.generation <= learnt.generation:
                self._known[operation.pipeline] = learnt
        return operation

    def forget(self, pipeline: str) -> None:
        """Forget the pipeline: the next one with its name is another pipeline."""
        self._known.pop(pipeline, None)

    def if_match(self, pipeline: str, generation: int | None = None) -> str | None:
        """Return the value for If-Match; `generation` if the caller knows it better."""
        if generation is not None:
            return str(_Change(None, generation))
        known = self._known.get(pipeline)
        return None if known is None else str(known)
