"""Runs the Ivy that PySpark ships, to fetch Maven artifacts into a folder.

Names no host: Ivy uses its own default repository, or the settings file that a site names.
"""

import importlib.util
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from waybill_local.errors import StackError
from waybill_local.java import Java
from waybill_local.processes import die_with
from waybill_local.trust import trust_options

SITE_SETTINGS = "WAYBILL_IVY_SETTINGS"
JARS = "jars"
FLAT = "[artifact]-[revision].[ext]"
BY_COORDINATE = "[organisation]/[artifact]/[revision].[ext]"
OUTPUT_LINES_SHOWN = 3
CORRECT_SETTINGS = f"correct the settings file that {SITE_SETTINGS} names"
CORRECT_MIRROR = (
    "check the network, and the addresses and credentials in the settings file that"
    f" {SITE_SETTINGS} names"
)
NAME_MIRROR = (
    "check the network; name a proxy in JAVA_TOOL_OPTIONS, and a company's mirror by its"
    f" Ivy settings in {SITE_SETTINGS}"
)
TRUST = "set SSL_CERT_FILE to the file with your company's certificates"
SIGNS: tuple[tuple[str, str | None], ...] = (
    ("No space left", "make room in the folder of the cache, then try again"),
    ("failed to load settings", CORRECT_SETTINGS),
    ("PKIX", TRUST),
    ("not found. url=", None),
    ("Server access error", None),
    ("://", None),
)
"""What Ivy prints when it fails, the most precise first, and the fix. None: the general fix, which
is about the network or the mirror. A line with only an address is one where Ivy found nothing. It
prints no more if a login is missing."""

_DOWNLOADED = re.compile(r"\[SUCCESSFUL \] (\S+)#(\S+);([^!]+)!")
# Where every jar is named, POMs are not needed, and sha256 proves more than the repository's own
# checksums. Without both it takes 2 s instead of 10.
_EXACT = """<ivysettings>
  <property name="ivy.checksums" value=""/>
  <settings defaultResolver="central"/>
  <resolvers>
    <ibiblio name="central" m2compatible="true" usepoms="false" useMavenMetadata="false"/>
  </resolvers>
</ivysettings>
"""
_RESOLVING = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A way to run Ivy. It puts jars into `<work>/jars`.

    `cache` keeps what an interrupted run has downloaded.
    """

    java: Java
    cache: Path
    work: Path
    transitive: bool
    pattern: str = FLAT


def retrieve(coordinates: Iterable[str], run: Run) -> Iterator[str]:
    """Fetch `coordinates`, and yield each one when it is downloaded. Raises StackError."""
    module = run.work / "ivy.xml"
    module.write_text(module_file(coordinates, transitive=run.transitive), encoding="utf-8")
    process = subprocess.Popen(
        _command(run, module),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        preexec_fn=die_with(os.getpid()),  # noqa: PLW1509 - system calls only
    )
    output: list[str] = []
    with process:
        try:
            for line in process.stdout or ():
                output.append(line.rstrip())
                if match := _DOWNLOADED.search(line):
                    yield ":".join(match.groups())
        finally:
            if process.poll() is None and not _has_ended(process):
                process.kill()
    if process.returncode != 0:
        raise _failure(output)


def module_file(coordinates: Iterable[str], *, transitive: bool) -> str:
    """Return the text of the `ivy.xml` that asks for `coordinates`."""
    lines = ['<ivy-module version="2.0">', '  <info organisation="waybill" module="jars"/>']
    lines += ['  <configurations><conf name="default"/></configurations>', "  <dependencies>"]
    for coordinate in coordinates:
        organisation, name, version = map(quoteattr, coordinate.split(":"))
        follow = quoteattr(str(transitive).lower())
        lines.append(
            f"    <dependency org={organisation} name={name} rev={version}"
            f' conf="default-&gt;default" transitive={follow}/>'
        )
    return "\n".join([*lines, "  </dependencies>", "</ivy-module>", ""])


def coordinate_of(path: Path) -> str:
    """Return the coordinate of a jar that was downloaded with the pattern BY_COORDINATE."""
    return f"{path.parent.parent.name}:{path.parent.name}:{path.stem}"


def _command(run: Run, module: Path) -> list[str]:
    named = os.environ.get(SITE_SETTINGS)
    settings = Path(named) if named else run.work / "ivysettings.xml"
    if not named:
        settings.write_text(_RESOLVING if run.transitive else _EXACT, encoding="utf-8")
    elif not settings.is_file():
        raise StackError(
            f"no Ivy settings at {settings}",
            why=f"{SITE_SETTINGS} names this file",
            fix=f"correct {SITE_SETTINGS}, or unset it to use Ivy's default repository",
        )
    return [
        str(run.java.path),
        *trust_options(run.java, run.work),
        *("-jar", str(_ivy_jar())),
        *("-settings", str(settings)),
        *("-cache", str(run.cache)),
        *("-ivy", str(module)),
        *("-retrieve", str(run.work / JARS / run.pattern)),
    ]


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    folder = Path(spec.origin).parent / "jars" if spec and spec.origin else Path()
    found = sorted(folder.glob("ivy-*.jar"))
    if not found:
        raise StackError(
            "no Ivy to download jars with",
            why=f"PySpark brings it, but there is no ivy-*.jar in {folder}",
            fix="run `make sync`",
        )
    return found[-1]


def _has_ended(process: subprocess.Popen[str]) -> bool:
    """Return True if the process ends by itself within a second after its output has ended."""
    try:
        process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        return False
    return True


def _failure(output: list[str]) -> StackError:
    said = [line.strip(" \t:") for line in output if line.strip(" \t.:")]
    sign, fix = next(
        (found for found in SIGNS if any(found[0] in line for line in said)), ("", None)
    )
    reasons = list(dict.fromkeys(_reason(line) for line in said if sign in line))
    return StackError(
        "the jars could not be downloaded",
        why="\n       ".join(reasons[-OUTPUT_LINES_SHOWN:]) or "Ivy said nothing",
        fix=fix or (CORRECT_MIRROR if os.environ.get(SITE_SETTINGS) else NAME_MIRROR),
    )


def _reason(line: str) -> str:
    return f"nothing, or nothing without a login, at {line}" if line.startswith("http") else line
