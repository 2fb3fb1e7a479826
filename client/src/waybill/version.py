"""The version of this client."""


def client_version() -> str:
    """Import what reads it only now: it takes as long as many a command."""
    from importlib.metadata import version

    return version("waybill-client")
