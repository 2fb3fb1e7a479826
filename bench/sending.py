"""What `waybill send` adds to a plain upload of the same file: its own start, requests that are
written once each, and one token for all of them."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.contest import Contest, Turns
from bench.ingress import PATH, ready_ingress
from bench.surroundings import Surroundings

ROWS = 100_000
HEADER = b"order_id,customer,amount,note\n"
WAYBILL = Path(sys.executable).with_name("waybill")


@contextmanager
def against_curl(around: Surroundings) -> Iterator[Turns]:
    file = around.folder / "orders.csv"
    rows = (b"%d,ada lovelace,12.5,%s\n" % (number, b"x" * 120) for number in range(ROWS))
    file.write_bytes(HEADER + b"".join(rows))
    with ready_ingress(around) as url:
        curl = ("curl", "--silent", "--show-error", "--fail", "--header", "Content-Type: text/csv")
        plain = (*curl, "--data-binary", f"@{file}", f"{url}{PATH}")
        ours = (str(WAYBILL), "send", "orders", "orders", str(file), "--url", url)
        yield Turns(ours=lambda: seconds(ours), theirs=lambda: seconds(plain))


def seconds(command: Sequence[str]) -> float:
    """Measure from the start of the command to its end, which is that of all it sends."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


R14 = Contest(
    key="R14",
    what=f"a CSV file of {ROWS:,} rows sent, until its token is there",
    ours="`waybill send`",
    theirs="curl, one request without a key",
    unit="s",
    target=1.3,
    begin=against_curl,
)
