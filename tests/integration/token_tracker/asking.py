"""A process that writes new consumer groups for each line that it reads, and says how many of them
Kafka did not take. At the end it asks what it may do with the last ones."""

import sys
import uuid

from waybill_shared.kafka.admin import make_admin
from waybill_token_tracker.adapters.groups import ConsumerGroups

GROUPS = 5


def main() -> None:
    kafka, topic = sys.argv[1:]
    admin = make_admin(kafka)
    groups = ConsumerGroups(admin)
    offsets: dict[str, dict[tuple[str, int], int]] = {}
    for _ in sys.stdin:
        offsets = {f"g{uuid.uuid4().hex}": {(topic, 0): 1} for _ in range(GROUPS)}
        print(len(groups.write(offsets)), flush=True)
    print(len(admin.operations("group", offsets)))


if __name__ == "__main__":
    main()
