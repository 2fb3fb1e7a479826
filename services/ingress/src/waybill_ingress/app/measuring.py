"""Counts what ingress accepts. Makes no decisions."""

from typing import Literal

from waybill_shared.process import metrics


def count_records(pipeline: str, input: str, *, accepted: int, rejected: int) -> None:
    """Count the records of one request, and its token."""
    count_token("records")
    labels = {"pipeline": pipeline, "input": input}
    metrics.count("waybill_records_accepted_total", accepted, **labels)
    metrics.count("waybill_records_rejected_total", rejected, **labels)


def count_token(born: str) -> None:
    metrics.count("waybill_tokens_issued_total", born=born)


def count_keyed(result: Literal["carried_out", "repeated", "running", "reused"]) -> None:
    metrics.count("waybill_keyed_requests_total", result=result)


def forget(pipeline: str) -> None:
    """Drop the series of a deleted pipeline."""
    metrics.forget(pipeline)
