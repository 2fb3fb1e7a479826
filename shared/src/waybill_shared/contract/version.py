"""The version of Waybill: one for all of its parts."""

from typing import Final

VERSION: Final = "0.1.0"
