"""What clients ask about pipelines that run; `Client` and `AsyncClient` have these methods."""

from abc import abstractmethod

from waybill import questions
from waybill.fields import Fields
from waybill.flows import PipelineFlow, flows_in
from waybill.manifest_versions import ManifestVersion, versions_in
from waybill.questions import Question

LINES = 200


class PipelineCalls:
    @abstractmethod
    def _ask(self, question: Question) -> Fields: ...

    def flow(self) -> tuple[PipelineFlow, ...]:
        """How much came into each pipeline, and how much of it has arrived."""
        return flows_in(self._ask(questions.flow()))

    def manifests(self, name: str) -> tuple[ManifestVersion, ...]:
        """That of a pipeline and up to ten before it, newest first; NotFound: no such pipeline."""
        return versions_in(self._ask(questions.manifests(name)))

    def logs(self, name: str, lines: int = LINES) -> tuple[str, ...]:
        """The newest lines of the log of its driver, at most a thousand; NotFound: no pipeline."""
        return self._ask(questions.logs(name, lines)).texts("lines")


class AsyncPipelineCalls:
    @abstractmethod
    async def _ask(self, question: Question) -> Fields: ...

    async def flow(self) -> tuple[PipelineFlow, ...]:
        """As `Client.flow`."""
        return flows_in(await self._ask(questions.flow()))

    async def manifests(self, name: str) -> tuple[ManifestVersion, ...]:
        """As `Client.manifests`."""
        return versions_in(await self._ask(questions.manifests(name)))

    async def logs(self, name: str, lines: int = LINES) -> tuple[str, ...]:
        """As `Client.logs`."""
        return (await self._ask(questions.logs(name, lines))).texts("lines")
