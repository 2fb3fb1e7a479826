"""Which ports a stack takes."""

import os
import socket
import subprocess
import sys

import pytest

from waybill_local.ports import HOST, accepts, holder, pick
from waybill_local.state import StackPhase, StackState
from waybill_local.supervisor import DEFAULT_PORTS, Options, choose_ports


def test_free_port_is_kept() -> None:
    free = pick({"one": 0})["one"]
    assert pick({"one": free}) == {"one": free}


def test_taken_port_gives_another() -> None:
    with socket.create_server((HOST, 0)) as other:
        taken = other.getsockname()[1]
        assert accepts(taken)
        assert pick({"one": taken})["one"] != taken


def test_no_two_names_get_the_same_port() -> None:
    free = pick({"one": 0})["one"]
    picked = pick({"one": free, "two": free, "three": 0})
    assert len(set(picked.values())) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no server could bind beside us")
def test_picked_port_is_for_a_server_of_ours_alone() -> None:
    port = pick({"one": 0})["one"]
    for _ in range(2):  # as often as it starts
        with socket.create_server((HOST, port)):
            assert accepts(port)
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((HOST, port))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody can claim a port")
def test_a_port_that_another_stack_has_picked_and_not_opened_yet_gives_another() -> None:
    port = pick({"one": 0})["one"]
    program = f"from waybill_local.ports import pick; print(pick({{'one': {port}}})['one'])"
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert int(other.stdout) != port


def test_first_start_wants_the_usual_ports() -> None:
    wanted = choose_ports(Options(), None)
    assert {name: wanted[name] for name in DEFAULT_PORTS} == DEFAULT_PORTS
    assert wanted["stage_runner"] == 0


def test_later_start_wants_the_ports_of_the_last_one(state: StackState) -> None:
    assert state.phase is StackPhase.READY
    assert choose_ports(Options(), state)["gateway"] == state.ports["gateway"]


def test_chosen_port_wins_over_the_last_one(state: StackState) -> None:
    wanted = choose_ports(Options(gateway_port=9999, kafka_port=0), state)
    assert (wanted["gateway"], wanted["kafka"]) == (9999, 0)


def test_whoever_holds_a_port_is_named() -> None:
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
        assert holder(port).endswith(f"(pid {os.getpid()})")
    assert holder(port) == "another program"
