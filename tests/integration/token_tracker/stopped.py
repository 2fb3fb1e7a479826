"""A process that stands still between two steps of a tracker: it has applied facts, stops itself,
and saves them when it is told to go on."""

import os
import signal
import sys

from integration.conftest import Surroundings
from integration.token_tracker.member import Member, reached
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.sealing import KeyRing

REFUSED = 3


def main() -> int:
    kafka, prefix, uid, taken = sys.argv[1:]
    ring = KeyRing(active=1, keys={1: bytes(32)})
    member = Member(Surroundings(kafka=kafka, redis="", prefix=prefix, ring=ring, environment={}))
    member.feed_until(lambda: reached(member, uid) == int(taken))
    os.kill(os.getpid(), signal.SIGSTOP)
    try:
        member.tracker.save(whole=True)
    except Retryable as error:
        print(error)
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main())
