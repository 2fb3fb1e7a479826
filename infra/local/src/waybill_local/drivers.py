"""Counts the Spark drivers of a local stack by the folders of its runner."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

HOMES: Final = "stage_runner/drivers/*/home.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverCount:
    running: int
    spare: int

    def __str__(self) -> str:
        return f"{self.running} at work, {self.spare} spare"


def count_drivers(folder: Path) -> DriverCount:
    """Count the drivers of the stack in `folder` by their files.

    A driver has a folder while it runs, with a file for each of its pipelines.
    """
    runs = [any(home.with_name("runs").glob("*")) for home in folder.glob(HOMES)]
    return DriverCount(running=sum(runs), spare=len(runs) - sum(runs))
