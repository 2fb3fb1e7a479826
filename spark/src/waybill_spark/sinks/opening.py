"""Finds the loaders of sinks in this package, by the table of kinds."""

from importlib import import_module

from waybill_shared.contract.manifest.sinks import KINDS
from waybill_spark.sinks.contract import Loader


def loader_of(kind: str) -> Loader:
    loader: Loader = import_module(KINDS[kind].loader).LOADER
    return loader
