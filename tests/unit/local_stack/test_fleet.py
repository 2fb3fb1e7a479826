"""How long a crashing service waits before it is started again."""

from hypothesis import given
from hypothesis import strategies as st

from waybill_local.fleet import (
    HEALTHY_AFTER_S,
    RESTART_DELAY_S_MAX,
    RESTART_DELAY_S_MIN,
    next_delay_s,
)


def test_wait_doubles_while_it_keeps_crashing() -> None:
    delays = [0.0]
    for _ in range(9):
        delays.append(next_delay_s(delays[-1], ran_s=1.0))
    assert delays[1:5] == [0.5, 1.0, 2.0, 4.0]
    assert delays[-1] == RESTART_DELAY_S_MAX


def test_long_run_earns_a_quick_restart() -> None:
    assert next_delay_s(RESTART_DELAY_S_MAX, ran_s=HEALTHY_AFTER_S) == RESTART_DELAY_S_MIN


@given(last=st.floats(0, 1e6), ran=st.floats(0, 1e6))
def test_wait_stays_within_its_bounds(last: float, ran: float) -> None:
    assert RESTART_DELAY_S_MIN <= next_delay_s(last, ran_s=ran) <= RESTART_DELAY_S_MAX
