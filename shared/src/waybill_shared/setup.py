"""`python -m waybill_shared.setup`: makes what an installation needs before its services start.

That is the key ring, a file of API keys with no key in it, and the topics. What exists stays as it
is, so this may run before every start.
"""

import argparse
import logging
import sys
from typing import Final

from pydantic import Field

from waybill_shared.access.acl_commands import acl_commands
from waybill_shared.access.api_keys import ensure_file
from waybill_shared.access.kafka import require_access
from waybill_shared.access.key_ring import ensure_key_ring
from waybill_shared.contract.errors import Retryable
from waybill_shared.contract.grants import PipelineTopics
from waybill_shared.contract.manifest.model import DEAD_LETTER_SUFFIX
from waybill_shared.kafka.admin import make_admin
from waybill_shared.kafka.topics import create_topics
from waybill_shared.process import logs
from waybill_shared.process.lifetime import run
from waybill_shared.settings.service import ServiceSettings, read_settings

logger = logging.getLogger("setup")


OF_PIPELINES: Final = {
    "input": "records go into",
    "output": "Kafka sinks write",
    "dead-letters": "takes dead letters, if it is not the default one of a topic above",
}


class SetupSettings(ServiceSettings):
    setup_replication: int = Field(default=1, description="of the waybill.* topics")


def main() -> int:
    arguments = _arguments()
    settings = read_settings(SetupSettings)
    if arguments.print_acls:
        topics = _topics(arguments)
        commands = acl_commands(settings.kafka, settings.topic_prefix, arguments.user, topics)
        print("\n".join(commands))
        return 0
    return _set_up(settings)


def _set_up(settings: SetupSettings) -> int:
    logs.configure("setup", settings.log_format)
    prefix, replication = settings.topic_prefix, settings.setup_replication
    admin = make_admin(settings.kafka_cluster())
    require_access(admin, "setup", prefix)  # before anything is made
    try:
        ring = ensure_key_ring(settings.token_keys_file)
        keys = settings.api_keys_file is not None and ensure_file(settings.api_keys_file)
        topics = create_topics(admin.cluster, prefix, replication=replication)
    except (Retryable, OSError) as error:
        logger.error("cannot set up", extra={"reason": str(error)})
        return 1
    logger.info("set up", extra={"key_ring": ring, "api_keys_file": keys, "topics": len(topics)})
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m waybill_shared.setup",
        description="Makes the key ring, the file of API keys and Waybill's topics, if they are"
        " not there, and checks topics that are. Settings come from WAYBILL_*.",
    )
    parser.add_argument(
        "--print-acls",
        action="store_true",
        help="make nothing: print the commands that give each service the rights that it needs",
    )
    parser.add_argument(
        "--user",
        default="waybill-{service}",
        help="who a service logs in as (%(default)s)",
    )
    for name, owner in OF_PIPELINES.items():
        parser.add_argument(
            f"--{name}",
            action="append",
            default=[],
            metavar="TOPIC",
            help=f"a topic that {owner}, or PREFIX* for all that begin so; may be repeated",
        )
    return parser.parse_args()


def _topics(arguments: argparse.Namespace) -> PipelineTopics:
    """Return the topics of pipelines.

    Dead-letter topics that are not given get a name made from that of their topic.
    """
    read = [*arguments.input, *arguments.output]
    default = [name if name.endswith("*") else name + DEAD_LETTER_SUFFIX for name in read]
    return PipelineTopics(
        inputs=arguments.input,
        outputs=arguments.output,
        dead_letters=arguments.dead_letters or default,
    )


if __name__ == "__main__":
    sys.exit(run(main))
