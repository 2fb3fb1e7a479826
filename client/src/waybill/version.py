"""The version of this client."""

from importlib.metadata import version


def client_version() -> str:
    return version("waybill-client")
