"""Tests a connection to an object store: that it answers, and knows the key."""

from threading import Event
from typing import Final

from waybill_ingress.adapters.files.objects import signature_of, web_of
from waybill_ingress.adapters.files.opened import Passing
from waybill_ingress.adapters.files.patience import FetchPatience
from waybill_ingress.adapters.files.web import WebFile
from waybill_ingress.app.connector_ports import FetchFailed
from waybill_shared.connections import Connections, Connector
from waybill_shared.contract.errors import Problem, Retryable, UserError
from waybill_shared.object_stores import S3Connection

TIME_S: Final = 30.0
NOT_THIS: Final = "403 AccessDenied"
"""The key is known, but may not list buckets, which nothing here needs."""


class S3Connector:
    def reach(self, name: str, connections: Connections) -> str:
        to = connections.find(name, S3Connection)
        patience = FetchPatience(Event(), TIME_S, lambda: 0)
        try:
            signature = signature_of(name, to)
            WebFile(f"{to.place}/", web_of(name, to), patience, signature).open(0).close()
        except Passing as error:
            raise Retryable(f"connection {name}: {to.place} cannot be reached: {error}") from error
        except FetchFailed as error:
            if NOT_THIS not in str(error):
                hint = "mend the connection's file, or the rights of its key"
                message = f"connection {name}: {to.place}: {error}"
                raise UserError([Problem(message=message, hint=hint)]) from error
        finally:
            patience.end()
        return f"S3 at {to.place}"


CONNECTOR: Final[Connector] = S3Connector()
