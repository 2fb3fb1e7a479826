"""Which commands are carried out, whatever is answered first and however often a runner ends."""

from hypothesis import given
from hypothesis import strategies as st

from waybill_stage_runner.core.pipelines.command_progress import CommandProgress

OFFSETS = tuple(range(2, 20, 3))  # the ends of transactions use offsets, too
STEPS = st.lists(st.sampled_from(["read", "read", "take over", 0, 1, 2]), min_size=20, max_size=40)


class Partition:
    """A partition of commands, and the runners that read it one after the other."""

    def __init__(self) -> None:
        self.answered: set[int] = set()
        self.open: list[int] = []
        self.committed = (0, "")
        self.take_over()

    def take_over(self) -> None:
        self.progress = CommandProgress(*self.committed)
        self.left = [offset for offset in OFFSETS if offset >= self.committed[0]]
        self.open.clear()

    def read(self) -> None:
        if not self.left:
            return
        offset = self.left.pop(0)
        assert self.progress.reach(offset) is (offset in self.answered)
        if offset not in self.answered:
            self.progress.open(offset, str(offset))
            self.open.append(offset)

    def answer(self, number: int) -> None:
        """Answer one of the open commands, and commit."""
        if self.open:
            self.answered.add(self.open.pop(number % len(self.open)))
        self.progress.close_answered({str(offset) for offset in self.open})
        self.committed = self.progress.position


@given(STEPS)
def test_a_command_is_carried_out_until_it_is_answered_and_never_again(
    steps: list[str | int],
) -> None:
    partition = Partition()
    for step in steps:
        if step == "read":
            partition.read()
        elif step == "take over":
            partition.take_over()
        else:
            partition.answer(int(step))
    partition.take_over()
    while partition.left:
        partition.read()
    assert {*partition.open} == {*OFFSETS} - partition.answered
