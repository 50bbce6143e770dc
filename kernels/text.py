"""Numbers into lines of text that are otherwise fixed: thousands of a trace's events at a time."""

from __future__ import annotations

from typing import Any

from .bits import inline, load, offset, pointer, store
from .loops import body_of, guarded
from .vectors import copy_line

#: Bytes that may be read after a template's last one, and written after a line's: lines are copied in pieces of 64.
SLACK = 64
#: Words of a template (where its text begins, its width, its first slot, behind its last slot) and of a slot (where in the line its number
#: ends, the row of its values, the first value that is too large for it, whether it is written with three decimals).
TEMPLATE, SLOT = 4, 4


def lines(name: str) -> Any:
    """The kernel that writes lines; args as in `build.lines`, the range is lines."""
    put, word, put_word = store["u8"], load["i64"], store["i64"]

    @inline
    def digits(text, end, value):  # type: ignore[no-untyped-def]
        """The digits of a value, the last one before `end`; none for 0."""
        while value > 0:
            rest = value // 10
            end -= 1
            put(text, end, 48 + value - 10 * rest)
            value = rest

    @inline
    def fits(first, last, slots, values, stride, i):  # type: ignore[no-untyped-def]
        ok = True
        for s in range(first, last):
            value = word(values, word(slots, SLOT * s + 1) * stride + i)
            ok &= 0 <= value < word(slots, SLOT * s + 2)
        return ok

    def body(args, start, stop):  # type: ignore[no-untyped-def]
        out, texts, templates, slots = pointer(args[0]), pointer(args[1]), pointer(args[2]), pointer(args[3])
        codes, values, done, stride = pointer(args[4]), pointer(args[5]), pointer(args[6]), args[7]
        at = 0
        i = start
        while i < stop:
            t = TEMPLATE * word(codes, i)
            begin, width = word(templates, t), word(templates, t + 1)
            first, last = word(templates, t + 2), word(templates, t + 3)
            if not fits(first, last, slots, values, stride, i):
                break
            line = offset(out, at)
            for k in range(0, width, 64):
                copy_line(offset(line, k), offset(texts, begin + k))
            for s in range(first, last):
                end, value = word(slots, SLOT * s), word(values, word(slots, SLOT * s + 1) * stride + i)
                if word(slots, SLOT * s + 3):
                    whole = value // 1000
                    part = value - 1000 * whole
                    for k in range(1, 4):
                        rest = part // 10
                        put(line, end - k, 48 + part - 10 * rest)
                        part = rest
                    digits(line, end - 4, whole)
                else:
                    digits(line, end, value)
            at += width
            i += 1
        put_word(done, 0, i)
        put_word(done, 1, at)

    return guarded(body_of(name + "_body", body))
