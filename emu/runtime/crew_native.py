"""What the helpers of the simulated cores and their caller run together, as LLVM text: nothing in Python, Numba included, offers atomics.

They share an array of 64-bit words; each one that several threads write has a cache line of its own. Whoever is about to sleep on a
semaphore says so in a word, looks once more, and sleeps; whoever has something for him takes the word back and posts. So the semaphore
is posted exactly once for each sleep, and a thread that is awake costs its waker no system call.
"""

from __future__ import annotations

import ctypes
import platform
from functools import cache
from typing import Any

# Words of the shared array.
_GENERATION, _NEXT, _INSIDE, _OPEN, _WAITING, _KERNEL, _ARGS, _TOTAL, _BLOCK, STOP, DONE = 0, 8, 16, 24, 32, 40, 41, 42, 43, 48, 56
#: A helper's words: its sleeping flag and, a line further, its semaphore.
HELPERS, HELPER_WORDS, SEMAPHORE = 64, 16, 8
_PAUSE = {"x86_64": "pause", "aarch64": "yield"}

_SOURCE = """
declare i32 @clock_gettime(i32, ptr)
declare i32 @sem_wait(ptr)
declare i32 @sem_post(ptr)

define internal i64 @now() {
  %spec = alloca [2 x i64], align 8
  %r = call i32 @clock_gettime(i32 1, ptr %spec)
  %s = load i64, ptr %spec
  %p = getelementptr i64, ptr %spec, i64 1
  %n = load i64, ptr %p
  %m = mul i64 %s, 1000000000
  %t = add i64 %m, %n
  ret i64 %t
}

; Look at a word until it differs from %old, for at most %limit ns; returns its value.
define internal i64 @spin(ptr %word, i64 %old, i64 %limit) {
entry:
  %first = load atomic i64, ptr %word acquire, align 8
  %same = icmp eq i64 %first, %old
  br i1 %same, label %start, label %out
start:
  %t0 = call i64 @now()
  br label %round
round:
  br label %look
look:
  %k = phi i64 [ 0, %round ], [ %k1, %again ]
  call void asm sideeffect "PAUSE", ""()
  %v = load atomic i64, ptr %word acquire, align 8
  %eq = icmp eq i64 %v, %old
  br i1 %eq, label %again, label %out
again:
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, 32
  br i1 %more, label %look, label %clock
clock:
  %t = call i64 @now()
  %d = sub i64 %t, %t0
  %over = icmp ugt i64 %d, %limit
  br i1 %over, label %out, label %round
out:
  %value = phi i64 [ %first, %entry ], [ %v, %look ], [ %old, %clock ]
  ret i64 %value
}

; Sleep on a semaphore; signals do not end it.
define internal void @sleep(ptr %semaphore) {
entry:
  br label %again
again:
  %r = call i32 @sem_wait(ptr %semaphore)
  %interrupted = icmp ne i32 %r, 0
  br i1 %interrupted, label %again, label %out
out:
  ret void
}

; Give up the announcement of a sleep; true when nobody has answered it yet (else a post is on its way).
define internal i1 @withdraw(ptr %flag) {
  %pair = cmpxchg ptr %flag, i64 1, i64 0 seq_cst seq_cst
  %won = extractvalue { i64, i1 } %pair, 1
  ret i1 %won
}

; Answer the announcement of a sleep, if there is one.
define internal void @rouse(ptr %flag, ptr %semaphore) {
entry:
  %seen = load atomic i64, ptr %flag seq_cst, align 8
  %any = icmp eq i64 %seen, 1
  br i1 %any, label %claim, label %out
claim:
  %was = atomicrmw xchg ptr %flag, i64 0 seq_cst
  %mine = icmp eq i64 %was, 1
  br i1 %mine, label %post, label %out
post:
  %r = call i32 @sem_post(ptr %semaphore)
  br label %out
out:
  ret void
}

; Claim blocks and run them until none is left.
define internal void @take(ptr %shared) {
entry:
  %pkernel = getelementptr i64, ptr %shared, i64 KERNEL
  %pargs = getelementptr i64, ptr %shared, i64 ARGS
  %ptotal = getelementptr i64, ptr %shared, i64 TOTAL
  %pblock = getelementptr i64, ptr %shared, i64 BLOCK
  %pnext = getelementptr i64, ptr %shared, i64 NEXT
  %kernel = load ptr, ptr %pkernel
  %args = load ptr, ptr %pargs
  %total = load i64, ptr %ptotal
  %block = load i64, ptr %pblock
  br label %claim
claim:
  %start = atomicrmw add ptr %pnext, i64 %block seq_cst
  %left = icmp slt i64 %start, %total
  br i1 %left, label %run, label %out
run:
  %end = add i64 %start, %block
  %inner = icmp slt i64 %end, %total
  %stop = select i1 %inner, i64 %end, i64 %total
  call void %kernel(ptr %args, i64 %start, i64 %stop)
  br label %claim
out:
  ret void
}

; A helper's life. Whoever is counted in "inside" when "open" is 1 may read the job; the caller leaves its launch when nobody is.
define void @help(ptr %shared, ptr %mine, i64 %limit) {
entry:
  %pinside = getelementptr i64, ptr %shared, i64 INSIDE
  %popen = getelementptr i64, ptr %shared, i64 OPEN
  %pwaiting = getelementptr i64, ptr %shared, i64 WAITING
  %pstop = getelementptr i64, ptr %shared, i64 STOP
  %pdone = getelementptr i64, ptr %shared, i64 DONE
  %semaphore = getelementptr i64, ptr %mine, i64 SEMAPHORE
  br label %wait
wait:
  %seen = phi i64 [ 0, %entry ], [ %seen, %slept ], [ %gen, %leave ], [ %gen, %last ]
  %spun = call i64 @spin(ptr %shared, i64 %seen, i64 %limit)
  %came = icmp ne i64 %spun, %seen
  br i1 %came, label %work, label %announce
announce:
  %x = atomicrmw xchg ptr %mine, i64 1 seq_cst
  %again = load atomic i64, ptr %shared seq_cst, align 8
  %late = icmp ne i64 %again, %seen
  br i1 %late, label %back, label %slept
back:
  %alone = call i1 @withdraw(ptr %mine)
  br i1 %alone, label %work, label %slept
slept:
  call void @sleep(ptr %semaphore)
  br label %wait
work:
  %gen = phi i64 [ %spun, %wait ], [ %again, %back ]
  %ending = load atomic i64, ptr %pstop seq_cst, align 8
  %end = icmp ne i64 %ending, 0
  br i1 %end, label %out, label %enter
enter:
  %y = atomicrmw add ptr %pinside, i64 1 seq_cst
  %opened = load atomic i64, ptr %popen seq_cst, align 8
  %may = icmp ne i64 %opened, 0
  br i1 %may, label %join, label %leave
join:
  call void @take(ptr %shared)
  br label %leave
leave:
  %were = atomicrmw sub ptr %pinside, i64 1 seq_cst
  %only = icmp eq i64 %were, 1
  br i1 %only, label %last, label %wait
last:
  call void @rouse(ptr %pwaiting, ptr %pdone)
  br label %wait
out:
  ret void
}

; Wake %count helpers. The word "generation" is the first of the array.
define void @wake(ptr %shared, i64 %count) {
entry:
  %g = atomicrmw add ptr %shared, i64 1 seq_cst
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %one ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %one, label %out
one:
  %k0 = mul i64 %k, HELPER_WORDS
  %at = add i64 %k0, HELPERS
  %flag = getelementptr i64, ptr %shared, i64 %at
  %semaphore = getelementptr i64, ptr %flag, i64 SEMAPHORE
  call void @rouse(ptr %flag, ptr %semaphore)
  %k1 = add i64 %k, 1
  br label %next
out:
  ret void
}

; A launch: offer it, take part, and leave when every block has run.
define void @launch(ptr %shared, ptr %kernel, ptr %args, i64 %total, i64 %block, i64 %count, i64 %limit) {
entry:
  %pkernel = getelementptr i64, ptr %shared, i64 KERNEL
  %pargs = getelementptr i64, ptr %shared, i64 ARGS
  %ptotal = getelementptr i64, ptr %shared, i64 TOTAL
  %pblock = getelementptr i64, ptr %shared, i64 BLOCK
  %pnext = getelementptr i64, ptr %shared, i64 NEXT
  %pinside = getelementptr i64, ptr %shared, i64 INSIDE
  %popen = getelementptr i64, ptr %shared, i64 OPEN
  %pwaiting = getelementptr i64, ptr %shared, i64 WAITING
  %pdone = getelementptr i64, ptr %shared, i64 DONE
  store ptr %kernel, ptr %pkernel
  store ptr %args, ptr %pargs
  store i64 %total, ptr %ptotal
  store i64 %block, ptr %pblock
  store atomic i64 0, ptr %pnext seq_cst, align 8
  store atomic i64 1, ptr %popen seq_cst, align 8
  call void @wake(ptr %shared, i64 %count)
  call void @take(ptr %shared)
  store atomic i64 0, ptr %popen seq_cst, align 8
  br label %check
check:
  %inside = load atomic i64, ptr %pinside seq_cst, align 8
  %none = icmp eq i64 %inside, 0
  br i1 %none, label %out, label %look
look:
  %t0 = call i64 @now()
  br label %turn
turn:
  %some = phi i64 [ %inside, %look ], [ %value, %clock ]
  %value = call i64 @spin(ptr %pinside, i64 %some, i64 %limit)
  %left = icmp eq i64 %value, 0
  br i1 %left, label %out, label %clock
clock:
  %t = call i64 @now()
  %d = sub i64 %t, %t0
  %over = icmp ugt i64 %d, %limit
  br i1 %over, label %announce, label %turn
announce:
  %x = atomicrmw xchg ptr %pwaiting, i64 1 seq_cst
  %now = load atomic i64, ptr %pinside seq_cst, align 8
  %gone = icmp eq i64 %now, 0
  br i1 %gone, label %back, label %slept
back:
  %alone = call i1 @withdraw(ptr %pwaiting)
  br i1 %alone, label %out, label %slept
slept:
  call void @sleep(ptr %pdone)
  br label %check
out:
  ret void
}
"""


def source(machine: str) -> str:
    """The functions as LLVM text for a kind of CPU, "x86_64" and the like."""
    words = {
        "PAUSE": _PAUSE.get(machine, ""), "HELPER_WORDS": HELPER_WORDS, "HELPERS": HELPERS, "SEMAPHORE": SEMAPHORE, "NEXT": _NEXT,
        "INSIDE": _INSIDE, "OPEN": _OPEN, "WAITING": _WAITING, "KERNEL": _KERNEL, "ARGS": _ARGS, "TOTAL": _TOTAL, "BLOCK": _BLOCK,
        "STOP": STOP, "DONE": DONE,
    }  # fmt: skip
    text = _SOURCE
    for word, value in words.items():
        text = text.replace(f"i64 {word}\n", f"i64 {value}\n").replace(f'"{word}"', f'"{value}"').replace(f", {word}\n", f", {value}\n")
    return text


LIBC = ctypes.CDLL(None)


@cache
def functions() -> tuple[Any, Any, Any]:
    """help, wake and launch, compiled when a launch is split for the first time; ctypes releases the GIL around help and launch."""
    from llvmlite import binding  # type: ignore[import-untyped, unused-ignore]

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    binding.initialize_native_asmparser()
    module = binding.parse_assembly(source(platform.machine()))
    module.verify()
    # Not optimised: a few instructions for each block, and four times faster to compile.
    target = binding.Target.from_default_triple().create_target_machine(opt=0)
    for name in ("clock_gettime", "sem_wait", "sem_post"):
        binding.add_symbol(name, ctypes.cast(getattr(LIBC, name), ctypes.c_void_p).value)
    engine = binding.create_mcjit_compiler(module, target)
    engine.finalize_object()
    get = engine.get_function_address
    addresses = [get(name) for name in ("help", "wake", "launch")]
    engine.detach()  # the helpers are in its code until the process has gone
    p, i = ctypes.c_void_p, ctypes.c_int64
    return (
        ctypes.CFUNCTYPE(None, p, p, i)(addresses[0]),
        ctypes.PYFUNCTYPE(None, p, i)(addresses[1]),
        ctypes.CFUNCTYPE(None, p, p, p, i, i, i, i)(addresses[2]),
    )
