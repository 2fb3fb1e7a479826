"""Decides if a token lost records together with the topic of a sink. This matters after the readers
of that topic were removed.

1. A stage writes to a topic through its sink, and other stages read it. The token waits for them.
2. The topic is deleted, and the tracker reports its records as lost for the sink.
3. The readers may have read them before. While the readers exist, `reached` shows that.
4. Then the readers are removed, and the sink becomes one that the token waits for.
5. `judge` calls `as_read`, which ignores such losses below the position that the readers had.
"""

from dataclasses import replace

from waybill_shared.contract.slots import Removal
from waybill_shared.contract.topology import Topology, removals_since
from waybill_shared.contract.vectors import Vector, nearer
from waybill_status.core.outcomes.views import View


def as_read(view: View, topology: Topology, generation: int) -> View:
    """Return the view in which records that a sink lost with its topic are not lost for tokens of
    `generation` if their readers had them. Those tokens waited for the readers. So this stays true
    after the readers are removed and the sink is the last one."""
    removals = removals_since(view.removals, generation)
    if not removals or not view.losses:
        return view
    topology = topology.with_removed(removals)
    read: dict[str, Vector] = {}
    for removal in removals:  # the last counts: then nobody waited for earlier ones any more
        read |= _read_by(removal, generation, topology, view)
    losses = {key: each.where_unread(read.get(key, {})) for key, each in view.losses.items()}
    return replace(view, losses=losses)


def _read_by(
    removal: Removal, generation: int, topology: Topology, view: View
) -> dict[str, Vector]:
    """Return by sink how far all its removed readers were that the token waited for."""
    read: dict[str, Vector] = {}
    for reader in Topology(removal.stages).at(generation).sinks:
        reached = view.reached.get(reader.key, {})
        for writer in (w for source in reader.stage.inputs for w in topology.writers(source)):
            read[writer.key] = nearer(read.get(writer.key, reached), reached)
    return read
