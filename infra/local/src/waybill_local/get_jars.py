"""`python -m waybill_local.get_jars`: downloads the jars of `jars.lock`, or makes that file."""

import signal
import sys
from collections.abc import Sequence

from waybill_local import jars, shown
from waybill_local.errors import StackError
from waybill_local.java import find_java


def main(arguments: Sequence[str]) -> int:
    """Write the lock, or download the named sets; without a name, all that a stack needs."""
    if list(arguments) == ["lock"]:
        jars.write_lock()
        return 0
    if not jars.ROOTS.keys() >= set(arguments):
        print(
            f"usage: python -m waybill_local.get_jars [lock | {' | '.join(jars.ROOTS)}]",
            file=sys.stderr,
        )
        return 2
    try:
        java = find_java()
        shown.retrieve_all([jars.jar_set(name) for name in arguments or jars.NEEDED], java)
        if not arguments:
            jars.link_pyspark(jars.jar_set(jars.SPARK))
            shown.make_archive(java)
    except StackError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted: run it again; this step starts again", file=sys.stderr)
        return 128 + signal.SIGINT
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
