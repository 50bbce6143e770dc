"""Copies and fills: where an address lies, what may be done with it, and the tasks that do it later."""

from __future__ import annotations

from emu.runtime import clock, device, errors, hooks, host, pinned
from emu.runtime.pinned import Pinned
from emu.runtime.stream import Stream
from emu.status import AclError, Status

_INVALID = int(Status.ACL_ERROR_RT_PARAM_INVALID)
_UNSUPPORTED = int(Status.ACL_ERROR_RT_FEATURE_NOT_SUPPORT)
_DMA = int(Status.ACL_ERROR_RT_SYS_DMA)
#: Estimated nanoseconds for 1 KiB.
_NS_PER_KIB = 100


class Place:
    """One end of a copy: ``real`` is the address to use, ``pin`` the pinned block it lies in, ``device`` whose memory it is (None: the
    host's)."""

    __slots__ = ("addr", "device", "pin", "real")

    def __init__(self, addr: int, real: int, owner: device.Device | None, pin: Pinned | None) -> None:
        self.addr = addr
        self.real = real
        self.device = owner
        self.pin = pin

    @property
    def on_device(self) -> bool:
        """Whether it is device memory."""
        return self.device is not None


def place(function: str, name: str, addr: int, nbytes: int, *, write: bool) -> Place | int:
    """Where [addr, addr + nbytes) lies; 107000 when it is in no live device block, or is not mapped on the host."""
    owner = device.owner(addr)
    if owner is not None:
        memory = owner.memory
        if memory.find(addr, nbytes) is None:
            text = f"{function}: {name} {addr:#x} with {nbytes} bytes is in no live block: {memory.nearest(addr)}"
            return errors.fail(_INVALID, "EL0003", text)
        return Place(addr, addr + memory.delta, owner, None)
    if not (host.writable(addr, nbytes) if write else host.readable(addr, nbytes)):
        text = f"{function}: {name} {addr:#x} with {nbytes} bytes is no memory that the host can {'write' if write else 'read'}"
        return errors.fail(_INVALID, "EL0003", text)
    return Place(addr, addr, None, pinned.find(addr, nbytes))


Rows = tuple[int, int, int]
#: (dpitch, spitch, height) of a plain copy.
ONE_ROW: Rows = (0, 0, 1)


def ends(function: str, dst: int, src: int, nbytes: int, rows: Rows = ONE_ROW) -> tuple[Place, Place] | int:
    """Both ends of a copy of ``height`` rows of ``nbytes``, or 107000."""
    dpitch, spitch, height = rows
    to = place(function, "dst", dst, dpitch * (height - 1) + nbytes, write=True)
    if isinstance(to, int):
        return to
    of = place(function, "src", src, spitch * (height - 1) + nbytes, write=False)
    return of if isinstance(of, int) else (to, of)


def ends_async(function: str, dst: int, src: int, nbytes: int, rows: Rows = ONE_ROW) -> tuple[Place, Place] | int:
    """As :func:`ends`; 207000 when both are host memory."""
    both = ends(function, dst, src, nbytes, rows)
    if not isinstance(both, int) and not (both[0].on_device or both[1].on_device):
        return errors.fail(_UNSUPPORTED, "EE1005", f"{function}: dst and src are both host memory")
    return both


def copy(function: str, dst: int, src: int, nbytes: int, rows: Rows = ONE_ROW) -> int:
    """Copy at once; 0 or 107000. The direction comes from the addresses."""
    both = ends(function, dst, src, nbytes, rows)
    if isinstance(both, int):
        return both
    to, of = both
    began = clock.now() if hooks.active is not None else None
    for row in range(rows[2]):
        if hooks.active is not None:
            hooks.active.copied(dst + row * rows[0], src + row * rows[1], nbytes, None)
        host.move(to.real + row * rows[0], of.real + row * rows[1], nbytes)
    owner, direction = clock.direction_of(to, of)
    _took(function, clock.copy_cost(owner, direction, nbytes * rows[2]), began)
    return 0


def _took(function: str, sim_ns: int, began: tuple[int, int] | None) -> None:
    """The host was busy for so long, since ``began``."""
    clock.host.ns += sim_ns
    if began is not None and hooks.active is not None:
        hooks.active.called(function, began)


def fill(function: str, dst: int, pattern: bytes, count: int) -> int:
    """``count`` times ``pattern`` (1 or 4 bytes) at once; 0 or 107000."""
    to = place(function, "devPtr", dst, count * len(pattern), write=True)
    if isinstance(to, int):
        return to
    began = clock.now() if hooks.active is not None else None
    if hooks.active is not None:
        hooks.active.filled(dst, count * len(pattern), None)
    fill_pattern(to.real, pattern, count)
    _took(function, clock.copy_cost(to.device, "fill", count * len(pattern)), began)
    return 0


class CopyTask:
    """``height`` rows of ``nbytes`` each; a plain copy has one row."""

    __slots__ = ("cost_ns", "dpitch", "dst", "height", "issued_ns", "nbytes", "number", "pins", "spitch", "src", "stream", "work")
    name = "memcpy"
    issued_ns: int
    number: int

    def __init__(self, stream: Stream, dst: Place, src: Place, nbytes: int, rows: Rows = ONE_ROW) -> None:
        self.stream = stream
        self.dst = dst
        self.src = src
        self.nbytes = nbytes
        self.dpitch, self.spitch, self.height = rows
        owner, direction = clock.direction_of(dst, src)
        self.cost_ns = clock.copy_cost(owner, direction, nbytes * self.height)
        self.work = (nbytes * self.height >> 10) * _NS_PER_KIB
        self.pins = [end.pin for end in (dst, src) if end.pin is not None]
        for pin in self.pins:
            pinned.use(pin)

    def run(self) -> None:
        try:
            for row in range(self.height):
                self._row(row)
        finally:
            self.drop(self.stream)

    def _row(self, row: int) -> None:
        to, of = row * self.dpitch, row * self.spitch
        if hooks.active is not None:
            hooks.active.copied(self.dst.addr + to, self.src.addr + of, self.nbytes, self.stream)
        # Registered memory is the user's: it may be gone by now.
        if not self.dst.on_device and not host.writable(self.dst.real + to, self.nbytes):
            raise AclError(_DMA, f"memcpy on stream {self.stream.id}: dst {self.dst.addr + to:#x} was unmapped before the copy ran")
        if not self.src.on_device and not host.readable(self.src.real + of, self.nbytes):
            raise AclError(_DMA, f"memcpy on stream {self.stream.id}: src {self.src.addr + of:#x} was unmapped before the copy ran")
        host.move(self.dst.real + to, self.src.real + of, self.nbytes)

    def drop(self, stream: Stream) -> None:
        """Let go of the pinned memory."""
        pins, self.pins = self.pins, []
        for pin in pins:
            pinned.done(pin)


class FillTask:
    """memset in stream order: ``pattern`` of 1 or 4 bytes."""

    __slots__ = ("cost_ns", "count", "dst", "issued_ns", "number", "pattern", "stream", "work")
    name = "memset"
    issued_ns: int
    number: int

    def __init__(self, stream: Stream, dst: Place, pattern: bytes, count: int) -> None:
        self.stream = stream
        self.dst = dst
        self.pattern = pattern
        self.count = count
        self.cost_ns = clock.copy_cost(dst.device, "fill", count * len(pattern))
        self.work = (count * len(pattern) >> 10) * _NS_PER_KIB

    def run(self) -> None:
        if hooks.active is not None:
            hooks.active.filled(self.dst.addr, self.count * len(self.pattern), self.stream)
        fill_pattern(self.dst.real, self.pattern, self.count)

    def drop(self, stream: Stream) -> None:
        """Nothing is held."""


def fill_pattern(real: int, pattern: bytes, count: int) -> None:
    """``count`` times ``pattern`` from ``real`` on."""
    if len(set(pattern)) == 1:
        host.fill(real, pattern[0], count * len(pattern))
        return
    host.put(real, pattern)
    done, total = len(pattern), count * len(pattern)
    while done < total:  # double what is there
        step = min(done, total - done)
        host.move(real + done, real, step)
        done += step


def _at_once(task: CopyTask | FillTask, stream: Stream, function: str) -> int:
    """Wait for the stream, then do in this thread what the device cannot do by itself."""
    code = stream.synchronize()
    if code:
        task.drop(stream)
        return code
    began = clock.now() if hooks.active is not None else None
    try:
        task.run()
    except AclError as error:
        return errors.fail(error.code, "EL0003", f"{function}: {error}")
    _took(function, task.cost_ns, began)
    return 0


def copy_async(function: str, both: tuple[Place, Place], nbytes: int, stream: Stream, rows: Rows = ONE_ROW) -> int:
    """Queue a copy; a pageable host address makes the runtime wait for the stream and copy at once."""
    task = CopyTask(stream, *both, nbytes, rows)
    if all(end.on_device or end.pin is not None for end in both):
        stream.enqueue(task)
        return 0
    return _at_once(task, stream, function)


def fill_async(function: str, dst: int, pattern: bytes, count: int, stream: Stream) -> int:
    """Queue a fill of device memory; host memory is filled at once, after the stream."""
    to = place(function, "devPtr", dst, count * len(pattern), write=True)
    if isinstance(to, int):
        return to
    task = FillTask(stream, to, pattern, count)
    if not to.on_device:
        return _at_once(task, stream, function)
    stream.enqueue(task)
    return 0
