"""The program `waybill`. Without the extra [cli], which it needs, it says so."""

import sys

LIBRARIES = ("rich", "typer")


def main() -> None:
    try:
        from waybill.cli.main import app
    except ModuleNotFoundError as error:
        if error.name not in LIBRARIES:
            raise
        sys.exit(f"error: `waybill` needs {error.name}: pip install 'waybill-client[cli]'")
    app()
