"""The files of `schemas/`, as links, so that an installed package has them too."""

from importlib.resources import files
from typing import Final

SCHEMAS: Final = files(__name__)
