"""Asks Redis, when a process starts, whether the process may do there what it must.

As `access.kafka` does with Kafka: what a person has to mend ends the process, and a Redis that does
not answer is waited for.
"""

import logging
from typing import Final, cast

import redis
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError, ResponseError

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.contract.grants import CONNECTING, PREFIX, REDIS_GRANTS
from waybill_shared.redis.server import RedisServer

logger = logging.getLogger(__name__)

GRANT_HINT: Final = "`python -m waybill_shared.setup --print-acls` prints the rules that it needs"
LOGIN_HINT: Final = "see the user and the password in WAYBILL_REDIS"
TRUST_HINT: Final = "see WAYBILL_REDIS_SSL_CA_FILE: it holds the authority of Redis' certificate"
# The server looks into its own rules; the command itself is not carried out.
MAY: Final = "return redis.acl_check_cmd(unpack(ARGV)) and 1 or 0"


def require_redis(server: RedisServer, service: str, prefix: str, *, timeout_s: float) -> None:
    """Raise UserError if `service` lacks rights; it names all that is missing.

    If Redis does not answer, log a warning and go on.
    """
    with server.client(timeout_s=timeout_s) as client:
        try:
            client.ping()
            missing = _find_missing(client, service, prefix)
        except AuthenticationError as error:
            raise _refusal(server, str(error), LOGIN_HINT) from error
        except NoPermissionError as error:
            raise _refusal(server, str(error), GRANT_HINT) from error
        except RedisError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise _refusal(server, str(error), TRUST_HINT) from error
            logger.warning("redis does not answer", extra={"reason": str(error)})
            return
    if missing:
        raise _refusal(server, f"no right to {', '.join(missing)}", GRANT_HINT)


def _find_missing(client: redis.Redis, service: str, prefix: str) -> list[str]:
    """Return the commands that this user may not use.

    The list is empty if the server is too old to answer this question.
    """
    grant = REDIS_GRANTS[service]
    key, channel = (text.replace(PREFIX, prefix, 1) for text in (grant.keys, grant.channel))
    may = client.register_script(MAY)
    missing = []
    for command in grant.commands:
        if command in CONNECTING:
            continue
        of = channel if command in {"publish", "subscribe"} else key
        words = ["evalsha", "", "1", key] if command == "evalsha" else [*command.split("|"), of]
        try:
            allowed = bool(cast(int, may(args=words)))
        except NoPermissionError:
            raise
        except ResponseError:
            return []
        if not allowed:
            missing.append(command)
    return missing


def _refusal(server: RedisServer, reason: str, hint: str) -> UserError:
    return UserError([Problem(message=f"redis, as user {server.user}: {reason}", hint=hint)])
