from pathlib import Path

import pytest

from unit.waybill_spark.bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)
