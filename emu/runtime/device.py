"""Devices: a profile, its memory, its contexts. And the machine that holds them."""

from __future__ import annotations

import os
import threading
import time
from itertools import count

from emu import config
from emu.runtime import clock, modes
from emu.runtime import context as contexts
from emu.runtime.context import Context
from emu.runtime.memory import Memory
from emu.runtime.schedule import Schedule
from emu.soc import SocProfile, profile


class Device:
    """One simulated device. ``memory`` exists from the first context until the last one is gone."""

    def __init__(self, soc: SocProfile, index: int, mode: Schedule) -> None:
        from emu.runtime import lifecycle  # it watches exit and fork from now on, and knows this module

        lifecycle.watch()
        self.profile = soc
        self.index = index
        self.schedule = mode
        self.lock = threading.RLock()
        self.contexts: list[Context] = []
        self.primary: Context | None = None
        #: aclrtSetDevice minus aclrtResetDevice.
        self.retained = 0
        self.stream_count = 0
        self.event_count = 0
        #: Overflow mode of streams made from now on.
        self.saturate = soc.saturates
        self.limits: dict[int, int] = {}
        self.peers: set[int] = set()
        self._ids = count()
        #: What event time stamps count from.
        self.boot_ns = time.perf_counter_ns()
        clock.adopt(config.current())
        self.boot_sim_ns = clock.host.ns
        self._memory: Memory | None = None

    @property
    def memory(self) -> Memory:
        """The device's memory, reserved at first use."""
        memory = self._memory
        if memory is None:
            with self.lock:
                if self._memory is None:
                    self._memory = Memory(self.profile, self.index)
                memory = self._memory
        return memory

    @property
    def has_memory(self) -> bool:
        """True when the address range is reserved."""
        return self._memory is not None

    def next_stream_id(self) -> int:
        """A number that no stream of this device had before."""
        return next(self._ids)

    def retain(self) -> Context:
        """aclrtSetDevice: one more user of the primary context. MemoryError when there is no address space."""
        with self.lock:
            if self.primary is None:
                assert self.memory is not None
                if not any(d.contexts for d in all_devices()):
                    self.schedule.restart()
                self.primary = Context(self, primary=True)
            self.retained += 1
            return self.primary

    def release(self, *, force: bool = False) -> bool:
        """aclrtResetDevice: one user fewer, or none (``force``); False when there was none."""
        with self.lock:
            if self.retained == 0:
                return False
            self.retained = 0 if force else self.retained - 1
            primary = self.primary
            if self.retained or primary is None:
                return True
            self.primary = None
        primary.destroy(wait=not force)
        for other in self.contexts:
            other.clear_fault()
        self._idle()
        return True

    def _idle(self) -> None:
        """Once no context is left: give all memory back and forget what was set."""
        with self.lock:
            if self.contexts:
                return
            self.saturate = self.profile.saturates
            self.limits.clear()
            self.peers.clear()
            if self._memory is not None:
                self._memory.reset()

    def create_context(self) -> Context:
        """An explicit context."""
        with self.lock:
            assert self.memory is not None
            return Context(self, primary=False)

    def destroy_context(self, context: Context) -> None:
        """End an explicit context."""
        context.destroy()
        self._idle()

    def shut(self, *, wait: bool = False) -> None:
        """End everything that lives here, without waiting unless told to."""
        with self.lock:
            self.retained = 0
            self.primary = None
        for context in list(self.contexts):
            context.destroy(wait=wait)
        self._idle()

    def close(self) -> None:
        """As :meth:`shut`, and give the address ranges back."""
        self.shut()
        with self.lock:
            if self._memory is not None:
                self._memory.close()
                self._memory = None
        if self in _private:
            _private.remove(self)
            self.schedule.close()

    @property
    def open(self) -> bool:
        """True from the first aclrtSetDevice to the last aclrtResetDevice."""
        return self.retained > 0


def visible(total: int, text: str | None) -> list[int]:
    """The physical devices that ASCEND_RT_VISIBLE_DEVICES leaves: a comma list, ascending, without spaces.

    Reading stops at the first item that is no such number. Not set, or empty: all of them.
    """
    if not text:
        return list(range(total))
    seen: list[int] = []
    for item in text.split(","):
        if not (item.isascii() and item.isdigit()) or int(item) >= total or (seen and int(item) <= seen[-1]):
            break
        seen.append(int(item))
    return seen


class Machine:
    """The devices that the present Config has."""

    def __init__(self, settings: config.Config, hidden: str | None) -> None:
        self.settings = settings
        self.hidden = hidden
        self.schedule = modes.make(settings.schedule)
        soc = profile(settings.soc)
        self.devices = [Device(soc, index, self.schedule) for index, _ in enumerate(visible(settings.devices, hidden))]

    def open_device(self) -> Device | None:
        """A device that is open, if any is."""
        return next((device for device in self.devices if device.open), None)

    def close(self) -> None:
        """End every device."""
        for device in self.devices:
            device.close()
        self.schedule.close()


_machine: Machine | None = None
_machine_lock = threading.RLock()
#: Devices of :func:`private`, for the end of the process.
_private: list[Device] = []


def machine() -> Machine:
    """The present machine; made anew when the Config, or (with no device open) ASCEND_RT_VISIBLE_DEVICES, has changed."""
    global _machine
    present = _machine
    if present is not None and present.open_device() is not None:
        return present
    with _machine_lock:
        hidden = os.environ.get("ASCEND_RT_VISIBLE_DEVICES")
        settings = config.current()
        if _machine is not None and (_machine.settings is not settings or _machine.hidden != hidden):
            if any(device.contexts for device in _machine.devices):
                return _machine
            _machine.close()
            _machine = None
        if _machine is None:
            _machine = Machine(settings, hidden)
        return _machine


def get(index: int) -> Device | None:
    """Device ``index`` of the machine; None when there is no such one."""
    devices = machine().devices
    return devices[index] if 0 <= index < len(devices) else None


def owner(addr: int) -> Device | None:
    """The device whose address range holds ``addr``; None for a host address."""
    context = contexts.current()
    if context is not None and context.device.memory.holds(addr):
        return context.device
    devices = _machine.devices if _machine is not None else []
    for device in (*devices, *_private):
        if device.has_memory and device.memory.holds(addr):
            return device
    return None


def private(soc: SocProfile) -> Context:
    """A context on a device of its own, outside the machine: it does not count as open and no face can name it."""
    settings = config.current()
    device = Device(soc, -1, modes.make(settings.schedule))
    _private.append(device)
    return device.create_context()


def _refuse_while_open(old: config.Config, new: config.Config) -> None:
    device = _machine.open_device() if _machine is not None else None
    if device is not None and old != new:
        raise config.device_open_error(device.index)


def _rebuild(new: config.Config) -> None:
    global _machine
    with _machine_lock:
        if _machine is not None and _machine.settings == new:
            _machine.settings = new
        elif _machine is not None:
            _machine.close()
            _machine = None


config.on_change(guard=_refuse_while_open, then=_rebuild)


def all_devices() -> list[Device]:
    """The machine's devices and the private ones."""
    return [*(_machine.devices if _machine is not None else []), *_private]


def forget_after_fork() -> bool:
    """In a forked child: drop the machine without touching its locks; True when a device or a context was in use."""
    global _machine, _machine_lock
    _machine_lock = threading.RLock()
    used = False
    for device in all_devices():
        for context in device.contexts:
            context.alive = False
            used = True
    _machine = None
    _private.clear()
    return used


def shut_all() -> None:
    """aclFinalize: end every device of the machine, queued work first."""
    if _machine is not None:
        for device in _machine.devices:
            device.shut(wait=True)
