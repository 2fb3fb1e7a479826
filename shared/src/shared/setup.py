"""`python -m shared.setup`: what an installation needs before its services start.

The key ring, a file of API keys in which nobody is yet, the topics. What is there is left alone, so
it may run before every start.
"""

import logging
import sys

from pydantic import Field

from shared import logs
from shared.api_keys import ensure_file
from shared.errors import Retryable
from shared.key_ring import ensure_key_ring
from shared.process import run
from shared.settings import ServiceSettings, read_settings
from shared.topics import create_topics

logger = logging.getLogger("setup")


class SetupSettings(ServiceSettings):
    setup_replication: int = Field(default=1, description="of the waybill.* topics")


def main() -> int:
    settings = read_settings(SetupSettings)
    logs.configure("setup", settings.log_format)
    prefix, replication = settings.topic_prefix, settings.setup_replication
    try:
        ring = ensure_key_ring(settings.token_keys_file)
        keys = settings.api_keys_file is not None and ensure_file(settings.api_keys_file)
        topics = create_topics(settings.kafka, prefix, replication=replication)
    except (Retryable, OSError) as error:
        logger.error("cannot set up", extra={"reason": str(error)})
        return 1
    logger.info("set up", extra={"key_ring": ring, "api_keys_file": keys, "topics": len(topics)})
    return 0


if __name__ == "__main__":
    sys.exit(run(main))
