"""That Redis was emptied is seen at the next look, by each tracker for what it holds."""

from integration.redis.servers import Valkey
from waybill_shared.contract.slots import Keys
from waybill_token_tracker.adapters.redis import RedisStore


def test_an_emptied_server_is_seen_once_by_each_tracker(valkey: Valkey) -> None:
    with valkey.client() as client:
        one, other = RedisStore(client, Keys("one")), RedisStore(client, Keys("one"))
        assert one.forgot({0, 1})  # as with a server that never knew
        assert other.forgot({2})
        assert not one.forgot({0, 1})

        client.flushall()

        assert one.forgot({0, 1})
        assert other.forgot({2})
        assert not one.forgot({0, 1})
        assert one.forgot({0, 1, 3})  # a partition more
        assert not one.forgot(())
