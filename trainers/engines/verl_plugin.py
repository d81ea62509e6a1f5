"""What verl imports as an external module: registers our methods, where verl is what imports it.

Without verl in the process, importing this does nothing.
"""

import sys

from trainers.engines.verl import register

__all__: list[str] = []

if "verl" in sys.modules:
    register()
