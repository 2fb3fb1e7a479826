"""Figures in the documents are those of the code: a row for each, its page and its sentence."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import BaseModel

import waybill.connection
import waybill.waiting
import waybill_ingress.adapters.files.patience as fetching
import waybill_ingress.adapters.http.manifests as validation
import waybill_ingress.core.connectors.rows as chunks
import waybill_spark.driver.app as driver
import waybill_spark.guard.judge as guard
import waybill_status.adapters.webhooks as receivers
from bench import first_minute
from waybill.cli import send
from waybill.contexts import CONTEXT_VARIABLE
from waybill.target import KEY_VARIABLE, URL_VARIABLE
from waybill_ingress.adapters.http.watch_models import LABELS_BYTES_MAX
from waybill_ingress.adapters.kafka import samples
from waybill_ingress.app import connectors, merges, watches
from waybill_ingress.core import keys, proposals, rows
from waybill_ingress.core.bodies import avro_schema
from waybill_ingress.core.connectors import progress
from waybill_ingress.settings import Settings as Ingress
from waybill_local.gateway import Settings as Gateway
from waybill_shared.contract import sealing, slots, token_views, webhooks
from waybill_shared.contract.manifest import connectors as written
from waybill_shared.contract.manifest.dead_letter_settings import BUDGET_MAX, DeadLetterSettings
from waybill_shared.contract.manifest.iceberg import LOCAL
from waybill_shared.contract.manifest.inputs import KafkaInput
from waybill_shared.contract.manifest.model import Stage
from waybill_shared.contract.manifest.sinks import KINDS, ConsoleSinkSettings
from waybill_shared.contract.manifest.yaml_source import SIZE_BYTES_MAX
from waybill_shared.contract.token_life import TOKEN_LIFE
from waybill_shared.setup import SetupSettings
from waybill_spark.driver.reading import ignored
from waybill_spark.kafka import topic_ids
from waybill_stage_runner.app import admission
from waybill_stage_runner.core.pipelines import attempts, supervision
from waybill_stage_runner.settings import Settings as Runner
from waybill_status.app import event_log
from waybill_status.app.watches import host_permits
from waybill_status.core.outcomes import dead_letters
from waybill_status.core.watches import deliveries
from waybill_status.settings import Settings as Status
from waybill_token_tracker.core import hops
from waybill_token_tracker.settings import Settings as Tracker

DOCS: Final = Path(__file__).parents[2] / "docs"
MAKEFILE: Final = (DOCS.parent / "Makefile").read_text(encoding="utf-8")
MB: Final = 1_000_000
PAGES: Final = (*sorted(DOCS.glob("*.md")), DOCS.parent / "README.md")
VARIABLE: Final = re.compile(r"WAYBILL_[A-Z0-9_]*[A-Z0-9]")
SETTINGS: Final = (Ingress, Runner, Status, Tracker, SetupSettings, Gateway)
OF_CLIENTS: Final = (URL_VARIABLE, KEY_VARIABLE, CONTEXT_VARIABLE)
EXAMPLES: Final = ("WAYBILL_NAME",)  # of a variable with a password
IN_WORDS: Final = {2: "two", 4: "four", 6: "six", 10: "ten", 200: "200"}


def default(model: type[BaseModel], name: str) -> Any:  # noqa: ANN401 - of any field
    return model.model_fields[name].default


def most(model: type[BaseModel], name: str) -> int:
    """What a field must not be greater than."""
    return next(found for each in model.model_fields[name].metadata if (found := _le(each)))


def _le(metadata: object) -> int | None:
    return getattr(metadata, "le", None)


def _time_of(target: str) -> str:
    """How long the help of the Makefile says that it takes."""
    (line,) = (each for each in MAKEFILE.splitlines() if each.startswith(f"{target}:"))
    return line.rpartition("(")[2].rstrip(")")


CLAIMS: Final[list[tuple[str, str]]] = [
    ("manifest", f"of at most {SIZE_BYTES_MAX // 1024} KiB"),
    ("manifest", f"keeps its partitions | {default(KafkaInput, 'partitions')} partitions |"),
    ("manifest", f"at most {most(Stage, 'max_offsets_per_trigger'):,}; [how large"),
    ("manifest", f"(big-batches.md) | {default(Stage, 'max_offsets_per_trigger'):,} |"),
    ("manifest", f"at most {BUDGET_MAX:,} records). If more"),
    ("manifest", f"followed by `.dlq`; `{default(DeadLetterSettings, 'budget')}` |"),
    ("manifest", f"rows of a batch are printed | {default(ConsoleSinkSettings, 'rows')} |"),
    ("manifest", f"{KINDS['iceberg'].interval_ms // 1000} seconds with an Iceberg sink"),
    ("manifest", f"its connection](iceberg.md#catalogs); `schema.table` | `{LOCAL}`"),
    ("manifest", f"warns of the first {ignored.NAMES_MAX} names"),
    ("manifest", f"at most {proposals.RECORDS_MAX} and for at most {samples.READ_S:g} seconds"),
    ("manifest", f"takes longer than {validation.WAIT_S:g} seconds, it is 202"),
    ("manifest", f"longer than {default(Runner, 'stage_runner_check_timeout_s'):g} seconds to"),
    ("manifest", f"- {admission.VALIDATIONS_MAX} manifests wait at most"),
    ("big-batches", f"at most {default(Runner, 'stage_runner_batch_rows_max'):,} records of a"),
    ("big-batches", f"or {default(Runner, 'stage_runner_batch_bytes_max') >> 20} MiB of them"),
    ("big-batches", f"_ROWS_MAX` | {default(Runner, 'stage_runner_batch_rows_max'):,} |"),
    ("big-batches", f"_BYTES_MAX` | {default(Runner, 'stage_runner_batch_bytes_max') >> 20} MiB |"),
    ("big-batches", f"`SPARK_DRIVER_MEMORY` | `{default(Runner, 'spark_driver_memory')}` |"),
    ("big-batches", f"(at most {most(Stage, 'max_offsets_per_trigger'):,})"),
    ("spark-cluster", f"| `MASTER` | `{default(Runner, 'spark_master')}` |"),
    ("spark-cluster", f"| `CORES_MAX` | {default(Runner, 'spark_cores_max')} |"),
    ("spark-cluster", f"`EXECUTOR_MEMORY` | `{default(Runner, 'spark_executor_memory')}` |"),
    ("connectors", f"A chunk of {chunks.CHUNK_ROWS:,} rows"),
    ("connectors", f"up to {IN_WORDS[int(progress.LAST_PAUSE_S // 60)]} minutes"),
    ("connectors", f"unpacked | {default(Ingress, 'connectors_bytes_max') // 10**9} GB |"),
    ("connectors", f"| {IN_WORDS[default(Ingress, 'connectors_time_s') // 3600]} hours |"),
    ("connectors", f"fewer than {fetching.SLOWEST:,} bytes a second"),
    ("connectors", f"reads {IN_WORDS[connectors.AT_ONCE]} files at a time"),
    ("connectors", ", ".join(f"`{each}://`" for each in written.SCHEMES[:-1])),
    ("formats", f"as it is sent | {default(Ingress, 'ingress_body_bytes_max') // MB} MB |"),
    ("formats", f"{default(Ingress, 'ingress_unpacked_bytes_max') // MB} MB, and"),
    ("formats", f"{default(Ingress, 'ingress_unpacked_ratio_max')} times its packed size"),
    ("formats", f"records in a body | {default(Ingress, 'ingress_records_max'):,} |"),
    ("formats", f"with its key | {default(Ingress, 'ingress_record_bytes_max') // MB} MB |"),
    ("formats", f"{rows.WHOLE_RECORDS_MAX:,} records and {rows.WHOLE_BYTES_MAX // MB} MB of"),
    ("formats", f"At most {rows.REJECTED_MAX:,} records"),
    ("formats", f"a block of more than {avro_schema.BLOCK_BYTES_MAX // MB} MB"),
    (
        "repeating",
        f"remembered for {default(Ingress, 'ingress_keys_kept_h')} hours, up to a million",
    ),
    ("repeating", f"for up to {default(Ingress, 'ingress_key_patience_s')} seconds"),
    ("repeating", f"1 to {keys.CHARACTERS_MAX} printable characters"),
    ("repeating", f"so `K` has {send.KEY_CHARACTERS_MAX} characters"),
    ("feldera", f"{default(Status, 'status_feldera_hold_s'):g} seconds at most"),
    ("backup", f"A ring has at most {sealing.KEYS_MAX} keys"),
    ("backup", f"A token is valid for {TOKEN_LIFE}"),
    ("delivery", f"`waybill.commits` is kept for {TOKEN_LIFE}"),
    ("delivery", f"older than {TOKEN_LIFE} with 410"),
    ("dead-letters", f"What was replayed is remembered for {TOKEN_LIFE}"),
    ("iceberg", f"`olderThan` is {TOKEN_LIFE}, the life of a token"),
    ("delivery", f"only after {default(Runner, 'stage_runner_topic_absent_s'):g} seconds, and"),
    ("delivery", f"created again only after {topic_ids.OTHER_ID_S:g} seconds"),
    ("delivery", f"up to a lag of {hops.HOP_OFFSETS_MAX // 3:,} / `n` batches"),
    ("words", f"for more than {IN_WORDS[driver.SLOW_LOAD_MS // 1000]} seconds"),
    ("lifecycle", f"again after {attempts.BACKOFF_MS_FIRST / 1000:g} s"),
    ("lifecycle", f"{attempts.BACKOFF_MS_MAX // 1000} s. Each wait is up to"),
    ("lifecycle", f"well for {IN_WORDS[supervision.HEALTHY_MS // 60_000]} minutes"),
    ("lifecycle", f"there are {attempts.CRASHES_MAX} attempts"),
    ("sdk", f"lists {dead_letters.ENTRIES_MAX:,} entries at most"),
    ("sdk", f"up to {merges.TOKENS_MAX:,} tokens"),
    ("sdk", f"`Client(repeat_s={waybill.waiting.REPEAT_S:g})` seconds"),
    ("sdk", f"`Client(timeout_s={waybill.waiting.TIMEOUT_S:g})` seconds"),
    ("sdk", f"connecting ends after {waybill.connection.CONNECT_TIMEOUT_S:g}\nseconds"),
    ("sdk", f"(at most {proposals.RECORDS_MAX})"),
    ("watches", f"One may be for {merges.TOKENS_MAX:,} tokens"),
    ("watches", f"the newest {event_log.NEWEST_MAX} events"),
    ("watches", f"Up to {token_views.PIPELINES_MAX} may be named"),
    ("watches", f"the newest {slots.HISTORY_LENGTH_MAX:,} of each sink"),
    ("watches", f"it expires, {TOKEN_LIFE} old"),
    ("watches", f"{watches.WATCHES_MAX:,} open watches at most"),
    ("watches", f"Labels have {LABELS_BYTES_MAX:,} bytes"),
    ("watches", f"or nothing for {receivers.SILENCE_S:g} s | it is tried"),
    ("watches", f"tried again for {deliveries.TRIED_MS // 3_600_000} hours"),
    ("watches", f"after {deliveries.FIRST_PAUSE_MS // 1000} s, then twice"),
    ("watches", f"sends {host_permits.AT_ONCE + host_permits.SILENT_AT_ONCE} requests at once"),
    ("watches", f"at most, {host_permits.SILENT_AT_ONCE} of them"),
    ("watches", f"an answer, {receivers.ANSWER_BYTES_MAX >> 10} kB are read"),
    ("watches", "({} and {})".format(*sorted(webhooks.HTTPS_PORTS))),
    ("watches", f"that is {event_log.EVENTS_MAX:,} events late"),
    ("first-steps", f"`make test-fast` runs in {_time_of('test-fast')} what needs no stack"),
    ("first-steps", f"at one more edge: {_time_of('test-deep')}"),
    ("sql", f"{guard.TEXT_CHARACTERS_MAX:,} characters"),
]
"""Pages, and what they say: each figure is taken from the code."""


@pytest.mark.parametrize(("page", "sentence"), CLAIMS)
def test_a_figure_in_a_page_is_that_of_the_code(page: str, sentence: str) -> None:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    assert " ".join(sentence.split()) in " ".join(text.split())


def test_the_readme_counts_the_ratios_as_the_bench_has_them() -> None:
    page = (DOCS.parent / "bench/README.md").read_text(encoding="utf-8")
    ratios = re.findall(r"^\| R\d+[a-z]* \|.*\| [≤≥].*$", page, re.MULTILINE)
    missed = [line for line in ratios if ", missed" in line]
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert f"of its {len(ratios)} ratios" in readme
    assert f"{len(missed)} miss their target" in readme


def test_the_first_minute_has_the_rows_that_are_measured() -> None:
    page = (DOCS / "first-steps.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| [^|]* \| [^|]* \|$", page, re.MULTILINE)
    assert [name for name in rows if name in first_minute.ROWS] == [*first_minute.ROWS]
    (moved,) = re.findall(rf"^\| {first_minute.MOVED} \| (\d+) \|", page, re.MULTILINE)
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    (told,) = re.findall(r"downloads (\d+) MB", readme)
    assert abs(int(told) - int(moved)) < 50


def test_the_claims_are_of_different_sentences() -> None:
    assert len({*CLAIMS}) == len(CLAIMS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS.parent)))
def test_every_variable_that_a_page_names_is_there(page: Path) -> None:
    """`WAYBILL_INGRESS_…` stands for those that begin so."""
    known = {f"WAYBILL_{name.upper()}" for each in SETTINGS for name in each.model_fields}
    known |= {*OF_CLIENTS, *EXAMPLES}
    named = {*VARIABLE.findall(page.read_text(encoding="utf-8"))}
    begun = {name for name in named if any(each.startswith(f"{name}_") for each in known)}
    assert named - known - begun == set()
