import pytest

from builders import make_definition, make_fact
from unit.token_tracker.line import Bench, commit


@pytest.fixture
def bench() -> Bench:
    """A tracker whose slot stands in the store, with one commit in it."""
    bench = Bench()
    bench.append(make_fact(make_definition()), commit(1, sequence=0))
    bench.feed()
    bench.tracker.flush()
    bench.tracker.flush()
    return bench
