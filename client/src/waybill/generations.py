"""What a client knows of its own changes: it wants no token of a pipeline as it was before them."""

from waybill.models import Operation


class Generations:
    """By pipeline, what the newest change came to that this client was told of as done."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def learn(self, operation: Operation) -> Operation:
        if operation.state == "done" and operation.action == "delete":
            self.forget(operation.pipeline)
        elif operation.state == "done" and operation.generation is not None:
            life = "" if operation.pipeline_uid is None else f"{operation.pipeline_uid}/"
            self._known[operation.pipeline] = f'"{life}{operation.generation}"'
        return operation

    def forget(self, pipeline: str) -> None:
        """What comes under its name is another pipeline."""
        self._known.pop(pipeline, None)

    def wanted(self, pipeline: str, generation: int | None = None) -> str | None:
        """What to put into If-Match; `generation` if the caller knows it better."""
        return self._known.get(pipeline) if generation is None else f'"{generation}"'
