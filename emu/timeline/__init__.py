"""Timelines: what ran when on which stream, as Chrome trace events that MindStudio and Perfetto read.

``recorder`` listens to the runtime, ``writer`` makes lines of what it heard (``kinds``: which; ``lines``: their numbers; ``events``: the
texts and the file), ``reader`` loads and checks a file, ``summary`` and ``plot`` look at one.
"""

from emu.timeline.recorder import Recorder, from_environment, lost, trace

__all__ = ["Recorder", "from_environment", "lost", "trace"]
