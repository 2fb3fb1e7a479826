"""A pipeline as people see it: what its stages read and write. Values only."""

from dataclasses import dataclass, field

from waybill_shared.contract.events import StageDefinition
from waybill_shared.contract.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    id: str
    kind: str = field(metadata={"description": "input | stage | sink"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEdge:
    source: str = field(metadata={"serialization_alias": "from"})
    target: str = field(metadata={"serialization_alias": "to"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineGraph:
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]


def graph_of(stages: tuple[StageDefinition, ...]) -> PipelineGraph:
    """Return what stages read and write as a graph.

    Inputs and sinks share their names, and a stage may have the name of one of them, so ids include
    the kind.
    """
    topology = Topology(stages)
    nodes: dict[str, str] = {}
    edges: list[GraphEdge] = []
    for stage in stages:
        for source in stage.inputs:
            kind = "input" if source.root else "sink"
            writers = (f"sink/{each.sink.name}" for each in topology.writers(source))
            for node in [f"input/{source.name}"] if source.root else writers:
                nodes.setdefault(node, kind)
                edges.append(GraphEdge(source=node, target=f"stage/{stage.name}"))
        nodes[f"stage/{stage.name}"] = "stage"
        for sink in stage.sinks:
            nodes.setdefault(f"sink/{sink.name}", "sink")
            edges.append(GraphEdge(source=f"stage/{stage.name}", target=f"sink/{sink.name}"))
    return PipelineGraph(
        nodes=tuple(GraphNode(id=name, kind=kind) for name, kind in nodes.items()),
        edges=tuple(edges),
    )
