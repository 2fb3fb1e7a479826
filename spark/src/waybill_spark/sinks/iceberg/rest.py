"""PyIceberg's REST catalog, with limits: by itself it would wait for ever for a server that hangs,
and would do whatever that server says.
"""

from typing import Any, Final
from urllib.parse import urlsplit

from pyiceberg.catalog.rest import RestCatalog, TableResponse
from pyiceberg.io import load_file_io
from pyiceberg.table import Table
from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter

from waybill_shared.contract.errors import Problem, UserError
from waybill_shared.databases import CONNECT_TIMEOUT_S, SILENCE_S
from waybill_spark.sinks.iceberg.file_access import OF_CATALOG

OF_SERVER: Final = OF_CATALOG | {
    "prefix",
    "namespace-separator",
    "rest-page-size",
    "view-endpoints-supported",
    "uri",
}
"""Properties that a server may set when a catalog is opened: no code, key or other address of it.
"""
ADDRESS: Final = ("s3.endpoint", "s3.force-virtual-addressing")
"""Properties of a store that no server changes if the connection sets them."""


class PatientRestCatalog(RestCatalog):
    def _config_headers(self, session: Session) -> None:
        """Set limits of time. This is the first call with a session; even its token is asked for
        after it.
        """
        super()._config_headers(session)
        for scheme in ("http://", "https://"):
            session.mount(scheme, _Patience())

    def _fetch_config(self) -> None:
        own = dict(self.properties)
        super()._fetch_config()
        said = {name: value for name, value in self.properties.items() if name in OF_SERVER}
        self._address: dict[str, Any] = {name: own[name] for name in ADDRESS if name in own}
        self.properties = {**own, **said, **self._address}
        if _origin(self.uri) != _origin(own["uri"]):
            message = f"the catalog at {own['uri']} sends its clients to {self.uri}"
            hint = "if that is right, write it as the uri of the connection"
            raise UserError([Problem(message=message, hint=hint)])

    def _response_to_table(
        self, identifier_tuple: tuple[str, ...], table_response: TableResponse
    ) -> Table:
        """Open files with the keys that the catalog gives for this table, if it gives any."""
        table = super()._response_to_table(identifier_tuple, table_response)
        place = table_response.metadata_location
        keys = self._resolve_storage_credentials(table_response.storage_credentials, place)
        said = {**table_response.config, **keys}
        given = {name: said[name] for name in OF_CATALOG & said.keys()}
        table.io = load_file_io({**self.properties, **given, **self._address}, place)
        return table


def _origin(uri: str) -> tuple[str, str]:
    parts = urlsplit(uri)
    return parts.scheme, parts.netloc


class _Patience(HTTPAdapter):
    def send(self, request: PreparedRequest, *args: Any, **kwargs: Any) -> Response:  # noqa: ANN401
        kwargs["timeout"] = kwargs.get("timeout") or (CONNECT_TIMEOUT_S, SILENCE_S)
        return super().send(request, *args, **kwargs)
