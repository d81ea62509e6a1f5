"""Other projects' formats: their instance files read, our splits written for their programs."""

from npbench.interop.exports import FORMATS, ExportSummary, export_split
from npbench.interop.instances import read_instance, read_instances
from npbench.interop.records import ForeignInstance

__all__ = [
    "FORMATS",
    "ExportSummary",
    "ForeignInstance",
    "export_split",
    "read_instance",
    "read_instances",
]
