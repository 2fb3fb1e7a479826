"""PyIceberg's REST catalog, which would wait for ever for a server that stands still."""

from typing import Any

from pyiceberg.catalog.rest import RestCatalog
from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter

from waybill_shared.databases import CONNECT_TIMEOUT_S, SILENCE_S


class PatientRestCatalog(RestCatalog):
    def _config_headers(self, session: Session) -> None:
        """The first that is done with a session; even its token is asked for after that."""
        super()._config_headers(session)
        for scheme in ("http://", "https://"):
            session.mount(scheme, _Patience())


class _Patience(HTTPAdapter):
    def send(self, request: PreparedRequest, *args: Any, **kwargs: Any) -> Response:  # noqa: ANN401
        kwargs["timeout"] = kwargs.get("timeout") or (CONNECT_TIMEOUT_S, SILENCE_S)
        return super().send(request, *args, **kwargs)
