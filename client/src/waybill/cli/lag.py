"""How far a pipeline's sinks are behind, as the tracker's metrics say."""

import re
from collections.abc import Mapping

from waybill.cli.session import direct
from waybill.errors import WaybillError
from waybill.questions import Question

TIMEOUT_S = 5.0
QUESTION = Question(method="GET", path="/metrics/token_tracker")
SAMPLE = re.compile(r"^waybill_lag_offsets\{(?P<labels>[^}]*)\} (?P<value>\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')  # names of pipelines, stages and sinks need no escapes

Lag = Mapping[tuple[str, str], int]
"""Offsets still to come, by stage and sink."""


def lag_of(pipeline: str) -> Lag:
    """It is good to know, never needed: an error of this question is none of the command."""
    connection = direct(TIMEOUT_S)
    try:
        return read_lag(connection.text(QUESTION), pipeline)
    except WaybillError:
        return {}
    finally:
        connection.close()


def read_lag(metrics: str, pipeline: str) -> Lag:
    found = {}
    for sample in SAMPLE.finditer(metrics):
        labels = dict(LABEL.findall(sample["labels"]))
        if labels["pipeline"] == pipeline:
            found[labels["stage"], labels["sink"]] = int(float(sample["value"]))
    return found
