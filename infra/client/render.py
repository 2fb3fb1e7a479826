"""Makes `waybill.sync` from `waybill.aio`: the same clients, without an event loop.

`python -m infra.client.render` does it; a test holds the committed files to what this makes. To
change a client, change `aio`. Documentation is made, too (unasync
renames only code): what only one of both says is in TEXTS.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parents[2] / "client/src/waybill"
SOURCE: Final = PACKAGE / "aio"
MADE: Final = PACKAGE / "sync"
HEAD: Final = "# Made by `python -m infra.client.render` from waybill/aio: change that.\n"
TEXTS: Final = (
    (" from an event loop; use it as an asynchronous context", "; use it as a context"),
    ("Tasks may share", "Threads may share"),
    (", for an event loop.", "."),
    ("`produce` does not wait and is not awaited. While", "`produce` does not wait. While"),
    ("callbacks run in a thread.", "callbacks run."),
    ("an `Async", "a `Async"),
)
CODE: Final = (
    (r"await asyncio\.to_thread\(([\w.]+), ", r"\1("),
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\b__a(enter|exit)__\b", r"__\1__"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\ba(close|read|iter_bytes)\(", r"\1("),
    (r"\bAsync([A-Z]\w*)", r"\1"),
    (r"\bwaybill\.aio\b", "waybill.sync"),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"^import asyncio\n", ""),
)


def render(text: str) -> str:
    """Return the module without an event loop for the source of one with it."""
    for old, new in TEXTS:
        text = text.replace(old, new)
    for pattern, by in CODE:
        text = re.sub(pattern, by, text, flags=re.MULTILINE)
    return _ruff("format", _ruff("check", HEAD + text, "--select", "I", "--fix-only"))


def modules() -> Iterator[tuple[Path, str]]:
    """Yield each made file, and what it must contain."""
    for source in sorted(SOURCE.glob("*.py")):
        text = source.read_text(encoding="utf-8")
        yield MADE / source.name, render(text) if text else ""


def _ruff(command: str, text: str, *options: str) -> str:
    """Return the text as ruff orders its imports or formats it."""
    name = f"--stdin-filename={MADE / 'made.py'}"
    line = [sys.executable, "-m", "ruff", command, "--quiet", *options, name, "-"]
    made = subprocess.run(line, input=text, capture_output=True, text=True, check=True)
    return made.stdout


if __name__ == "__main__":
    for path, content in modules():
        path.write_text(content, encoding="utf-8")
