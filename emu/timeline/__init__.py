"""Timelines: what ran when on which stream, as Chrome trace events that MindStudio and Perfetto read.

``recorder`` listens to the runtime, ``events`` writes and formats, ``reader`` loads and checks a file, ``summary`` and ``plot`` look at
one.
"""

from emu.timeline.recorder import Recorder, from_environment, trace

__all__ = ["Recorder", "from_environment", "trace"]
