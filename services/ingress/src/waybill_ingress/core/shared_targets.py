"""Finds sinks of a manifest that write to a topic or table which another pipeline writes or wrote.

Each sink is compared with those of all other pipelines. If two upsert by other keys, the manifest
is refused. Else all of these sinks need `shared: true`, or the caller permits it. What the pipeline
wrote before this change it may continue to write. Pipelines of other tenants are not named.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.events import PipelineRecord, SinkDefinition
from waybill_shared.contract.manifest.model import Manifest, Sink
from waybill_shared.contract.manifest.sink_settings import SinkSettings
from waybill_shared.contract.manifest.sinks import KINDS, SinkTarget, target_of

PERMITS: Final = "or apply it with --yes (over HTTP: allow_shared=true)"

Places = Mapping[str, str]
"""What each connection leads to, by its name. One that is missing leads to where its name says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedTargets:
    """The result. `refused` is never permitted, `undeclared` only if the caller says so. `notes`
    are no reason to refuse; `permitted` are the notes of `undeclared`.
    """

    refused: tuple[Problem, ...] = ()
    undeclared: tuple[Problem, ...] = ()
    permitted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writer:
    """A sink of another pipeline, present or deleted, as its record has it."""

    record: PipelineRecord
    sink: SinkDefinition

    @property
    def deleted(self) -> bool:
        return self.record.desired == "deleted"

    @property
    def admits_others(self) -> bool:
        return self._settings is not None and self._settings.admits_others

    @property
    def keys(self) -> frozenset[str]:
        return frozenset() if self._settings is None else self._settings.merge_keys

    @property
    def _settings(self) -> SinkSettings | None:
        """Settings from the manifest; None if the manifest would be refused today."""
        try:
            sink = self.record.manifest.model.sink(self.sink.name)
        except UserError:
            return None
        return None if sink is None else sink.settings


@dataclass(frozen=True, slots=True, kw_only=True)
class _Own:
    """A sink of the manifest. `previous_keys`: the keys by which the pipeline wrote there before;
    None if it did not.
    """

    stage: str
    sink: Sink
    path: str
    previous_keys: frozenset[str] | None

    @property
    def what(self) -> str:
        return f"{self.sink.kind} {self.sink.settings.target}"

    def note(self, said: str) -> str:
        return f"sink {self.sink.name} of stage {self.stage}: {said}"


def find_shared(
    manifest: Manifest,
    known: PipelineRecord | None,
    lives: Iterable[PipelineRecord],
    *,
    tenant: str,
    places: Places,
) -> SharedTargets:
    """Compare the sinks of `manifest` with those of `lives`. `known` is its pipeline as it
    is now.
    """
    own_uid = None if known is None else known.pipeline_uid
    others = _by_target((each for each in lives if each.pipeline_uid != own_uid), places)
    before = {} if known is None else _by_target([known], places)
    found = SharedTargets()
    for s, stage in enumerate(manifest.stages):
        for k, sink in enumerate(stage.sinks):
            target = _resolved(sink.kind, sink.settings.target, places)
            if target is None:
                continue
            path = f"stages.{s}.sinks.{k}.{sink.kind}.{KINDS[sink.kind].place}"
            previous_keys = next((each.keys for each in before.get(target, ())), None)
            own = _Own(stage=stage.name, sink=sink, path=path, previous_keys=previous_keys)
            found = _join(found, _judge(own, others.get(target, ()), tenant))
    return found


def _judge(own: _Own, writers: Sequence[_Writer], tenant: str) -> SharedTargets:
    notes = tuple(_of_deleted(own, [each for each in writers if each.deleted], tenant))
    living = [writer for writer in writers if not writer.deleted]
    if not living:
        return SharedTargets(notes=notes)
    keys = own.sink.settings.merge_keys
    differing = [writer for writer in living if keys and writer.keys and writer.keys != keys]
    if differing and own.previous_keys != keys:
        return SharedTargets(refused=(_of_keys(own, differing[0], tenant),), notes=notes)
    said = f"{own.what} is written by {_named(living, tenant, own)}, too"
    silent = [writer for writer in living if not writer.admits_others]
    if own.previous_keys is None and (silent or not own.sink.settings.admits_others):
        problem = Problem(message=said, path=own.path, hint=_hint(own, silent, tenant))
        return SharedTargets(undeclared=(problem,), permitted=(own.note(said),), notes=notes)
    return SharedTargets(notes=(own.note(said), *notes))


def _of_deleted(own: _Own, deleted: list[_Writer], tenant: str) -> Iterator[str]:
    """Name the newest deleted writer, if the pipeline starts to write there."""
    if deleted and own.previous_keys is None:
        deleted.sort(key=lambda writer: writer.record.updated_at, reverse=True)
        said = f"{own.what} was written by {_named(deleted, tenant, own)}, deleted since"
        yield own.note(f"{said}; what it wrote stays there")


def _of_keys(own: _Own, other: _Writer, tenant: str) -> Problem:
    mine = ", ".join(sorted(own.sink.settings.merge_keys))
    theirs = f"by {', '.join(sorted(other.keys))}" if other.record.tenant == tenant else "by others"
    said = f"{own.what} would be upserted by {mine}, and {_named([other], tenant, own)} does it"
    hint = "take the same keys, or another table: --yes and `shared` do not permit this"
    return Problem(message=f"{said} {theirs}", path=own.path, hint=hint)


def _hint(own: _Own, silent: list[_Writer], tenant: str) -> str:
    """Explain where `shared: true` is missing."""
    missing = [] if own.sink.settings.admits_others else ["here"]
    missing += [f"in {_name(writer, tenant)}" for writer in silent[:1]]
    if len(silent) > 1:
        missing.append(f"in {len(silent) - 1} more")
    place = KINDS[own.sink.kind].place
    return f"say `shared: true` {' and '.join(missing)}, {PERMITS}; else take another {place}"


def _named(writers: list[_Writer], tenant: str, own: _Own) -> str:
    """Name the first writer, one of the same tenant if possible, and count the others."""
    first = min(writers, key=lambda writer: writer.record.tenant != tenant)
    target = first.sink.target
    alias = first.record.tenant == tenant and target != own.sink.settings.target
    more = f" and {len(writers) - 1} more" if len(writers) > 1 else ""
    return f"{_name(first, tenant)}{f' as {target}' if alias else ''}{more}"


def _name(writer: _Writer, tenant: str) -> str:
    if writer.record.tenant != tenant:
        return "a pipeline of another tenant"
    return f"sink {writer.sink.name!r} of pipeline {writer.record.name!r}"


def _by_target(
    records: Iterable[PipelineRecord], places: Places
) -> dict[SinkTarget, list[_Writer]]:
    found: dict[SinkTarget, list[_Writer]] = {}
    for record in records:
        for stage in record.stages:
            for sink in stage.sinks:
                if (target := _resolved(sink.kind, sink.target, places)) is not None:
                    found.setdefault(target, []).append(_Writer(record=record, sink=sink))
    return found


def _resolved(kind: str, text: str, places: Places) -> SinkTarget | None:
    target = target_of(kind, text)
    if target is None:
        return None
    return replace(target, connection=places.get(target.connection, target.connection))


def _join(one: SharedTargets, other: SharedTargets) -> SharedTargets:
    return SharedTargets(
        refused=one.refused + other.refused,
        undeclared=one.undeclared + other.undeclared,
        permitted=one.permitted + other.permitted,
        notes=one.notes + other.notes,
    )
