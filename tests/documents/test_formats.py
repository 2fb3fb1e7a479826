"""Each row of FORMATS has what it names: a writer in ingress, a reader beside Spark, its keys."""

from importlib import import_module
from typing import get_args

import pytest

from waybill_ingress.core.encoders.form import form_of
from waybill_shared.contract.manifest.formats import FORMATS, FormatName, RecordKeys
from waybill_shared.contract.manifest.inputs import Input


def test_a_manifest_may_say_each_row_and_nothing_else() -> None:
    assert set(get_args(FormatName)) == set(FORMATS)


@pytest.mark.parametrize("name", get_args(FormatName))
def test_what_a_row_names_exists(name: FormatName) -> None:
    row = FORMATS[name]
    keys = {field.alias or key for key, field in Input.model_fields.items()}
    assert row.keys <= keys
    assert row.examples.keys() <= row.keys
    assert row.needs is None or row.needs in row.examples

    reader = import_module(row.reader)
    assert callable(reader.read)
    assert callable(reader.why)
    assert row.writer is None or callable(import_module(row.writer).form_of)


def test_records_of_json_are_written_as_they_were_sent() -> None:
    assert form_of(RecordKeys()) is None
