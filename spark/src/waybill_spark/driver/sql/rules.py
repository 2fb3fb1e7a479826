"""The rules of a pipeline's inputs, checked as its steps are: before anything runs."""

from collections.abc import Iterator

from pyspark.sql import SparkSession

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.manifest.model import Manifest
from waybill_spark.driver.reading.inputs import describe_input
from waybill_spark.driver.sql.schema_streams import schema_stream
from waybill_spark.guard.judge import Allowed
from waybill_spark.guard.predicates import refuse_no_predicate


def wrong_rules(spark: SparkSession, manifest: Manifest, lists: Allowed) -> Iterator[Problem]:
    """Yield what is wrong with the rules, each with its place."""
    session = spark.newSession()
    for number, source in enumerate(manifest.inputs):
        if not source.expectations:
            continue
        frame = schema_stream(session, describe_input(source))
        for at, rule in enumerate(source.expectations):
            path = f"inputs.{number}.expectations.{at}.expect"
            try:
                refuse_no_predicate(frame, rule.expect, path, lists)
            except UserError as error:
                yield from error.problems
