"""The version of this client."""


def client_version() -> str:
    """Return the version; import what reads it only now, because that takes as long as a
    command."""
    from importlib.metadata import version

    return version("waybill-client")
