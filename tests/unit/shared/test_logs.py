"""Log lines: one JSON object each, with every structured field."""

import json
import logging
import sys
from collections.abc import Iterator

import pytest

from waybill_shared.process import logs


def make_line(message: str, *args: object, **extra: object) -> logging.LogRecord:
    logger = logging.getLogger("shared.test")
    return logger.makeRecord(
        logger.name, logging.WARNING, __file__, 1, message, args, None, extra=extra
    )


def test_line_is_json_with_its_fields() -> None:
    record = make_line("stage %s", "finished", partition=3, path={"not": "a string"}, what=object)
    line = json.loads(logs.JsonFormatter("ingress").format(record))
    assert len(line.pop("at")) >= len("2026-11-21T09:00:00.123")
    assert line == {
        "level": "warning",
        "service": "ingress",
        "logger": "shared.test",
        "message": "stage finished",
        "partition": 3,
        "path": {"not": "a string"},
        "what": "<class 'object'>",
    }


def test_error_comes_with_its_trace_in_one_line() -> None:
    record = make_line("failed")
    try:
        raise ValueError("wrong")
    except ValueError:
        record.exc_info = sys.exc_info()
    (text,) = logs.JsonFormatter("ingress").format(record).splitlines()
    assert json.loads(text)["error"].endswith("ValueError: wrong")


def test_terminal_gets_plain_text() -> None:
    text = logs.ConsoleFormatter().format(make_line("will be tried again", reason="away"))
    assert text.endswith(" warning shared.test: will be tried again reason=away")


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger without handlers; they come back afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()  # or they would be closed
    yield root
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.parametrize(
    ("style", "formatter"), [("json", logs.JsonFormatter), ("console", logs.ConsoleFormatter)]
)
def test_one_handler_serves_all_loggers(
    root: logging.Logger, style: str, formatter: type[logging.Formatter]
) -> None:
    for _ in range(2):
        logs.configure("ingress", "json" if style == "json" else "console")
    (handler,) = root.handlers
    assert isinstance(handler.formatter, formatter)
    assert root.level == logging.INFO


@pytest.mark.usefixtures("root")
def test_lines_of_libraries_for_every_batch_are_left_out() -> None:
    logs.configure("stage_runner.driver", "json")
    assert not logging.getLogger("pyiceberg.io").isEnabledFor(logging.INFO)
    assert logging.getLogger("pyiceberg.catalog").isEnabledFor(logging.INFO)
