"""The functions of libopapi, two for each declared operator, made from the declarations.

``size, executor, code = aclnnXxxGetWorkspaceSize(…)`` and ``code = aclnnXxx(workspace, size, executor, stream)``.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from time import perf_counter_ns
from typing import Any

from emu import config
from emu.arguments import INT64, UINT64, integer, pointer
from emu.arguments import handle as as_handle
from emu.executor import INVALID, NULLPTR, Executor, prepare, submit, workspace_problem
from emu.objects import Tensor
from emu.opdef.catalogue import OPERATORS
from emu.opdef.spec import Operator
from emu.plan import Refused, bind
from emu.runtime import clock, handles, hooks
from emu.runtime import context as contexts
from emu.runtime import stream as streams
from emu.runtime.errors import fail_aclnn
from emu.runtime.handles import lookup, register, release
from emu.status import AclnnStatus, name_of

_ZERO = 0
_INNER = int(AclnnStatus.ACLNN_ERR_INNER)
_RUNTIME = int(AclnnStatus.ACLNN_ERR_RUNTIME_ERROR)


def phase_one(op: Operator) -> Callable[..., tuple[int, int, int]]:
    """aclnnXxxGetWorkspaceSize of an operator."""
    names = tuple(p.name for p in op.params)
    tensor_places = tuple(i for i, p in enumerate(op.params) if p.is_tensor)
    attr_places = tuple(i for i, p in enumerate(op.params) if not p.is_tensor)
    name = op.name + "GetWorkspaceSize"
    find = handles._live.get

    def get_workspace_size(*args: Any, **named: Any) -> tuple[int, int, int]:
        values = list(args) if not named else _by_name(name, names, args, named)
        if len(values) != len(names):
            raise TypeError(f"{name}() takes {', '.join(names)}: {len(names)} arguments, {len(values)} given")
        for i in attr_places:
            values[i] = integer(values[i], names[i], INT64)
        dead = None
        for i in tensor_places:
            handle = values[i]
            tensor = find(handle) if type(handle) is int else None
            if tensor.__class__ is not Tensor:
                handle = as_handle(handle, names[i])
                tensor = lookup(handle, Tensor)
                if tensor is None and handle != 0 and dead is None:
                    dead = i, handle
            values[i] = tensor
        if dead is not None:
            return _dead_tensor(name, names, tensor_places, values, dead)
        now = config.current()
        made = prepare(bind(op.name, now.soc), values, now.numerics, now.strict_products)
        if isinstance(made, Refused):
            fail_aclnn(made.code, made.text)
            return 0, 0, made.code
        return made.plan.workspace, register(made), 0

    get_workspace_size.__name__ = get_workspace_size.__qualname__ = name
    get_workspace_size.__doc__ = (
        f"Phase 1 of {op.name}: checks the arguments and returns (workspace size in bytes, executor, code); (0, 0, code) when refused.\n\n"
        f"{op.summary}"
    )
    kind = Parameter.POSITIONAL_OR_KEYWORD
    get_workspace_size.__signature__ = Signature([Parameter(n, kind) for n in names])  # type: ignore[attr-defined]
    return get_workspace_size


def _by_name(function: str, names: tuple[str, ...], args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    values = dict(zip(names, args, strict=False))
    for key, value in named.items():
        if key not in names or key in values:
            raise TypeError(f"{function}() has no free parameter {key!r}; it takes {', '.join(names)}")
        values[key] = value
    missing = [n for n in names if n not in values]
    if missing:
        raise TypeError(f"{function}() misses {', '.join(missing)}")
    return [values[n] for n in names]


def _dead_tensor(
    function: str, names: tuple[str, ...], places: tuple[int, ...], values: list[Any], dead: tuple[int, int]
) -> tuple[int, int, int]:
    """A null before everything else, then the handle that stands for nothing."""
    at, handle = dead
    for i in places:
        if values[i] is None and i < at:
            return 0, 0, fail_aclnn(NULLPTR, f"Expected a proper Tensor but got null for argument {names[i]}.")
    text = f"{function}: {handle:#x}, given for {names[at]}, is no live aclTensor (never created, or destroyed already)."
    return 0, 0, fail_aclnn(INVALID, text)


def phase_two(op: Operator) -> Callable[..., int]:
    """aclnnXxx of an operator."""
    name = op.name

    def run(workspace: Any, workspaceSize: Any, executor: Any, stream: Any) -> int:
        # The first two of most calls are 0, and a handle that is an int needs no look.
        return execute(
            name,
            workspace if workspace is _ZERO else pointer(workspace, "workspace"),
            workspaceSize if workspaceSize is _ZERO else integer(workspaceSize, "workspaceSize", UINT64),
            executor if type(executor) is int else as_handle(executor, "executor"),
            stream if type(stream) is int else as_handle(stream, "stream"),
        )

    run.__name__ = run.__qualname__ = op.name
    run.__doc__ = (
        f"Phase 2 of {op.name}: enqueues the work on the stream (0 or None: the default stream) and returns at once.\n\n"
        "0 means submitted. Null executor 161001; spent, destroyed or unknown executor 561000; null workspace with a size 161001; "
        "workspace smaller than phase 1 said 161002; no context, or a stream of another context, 361001. "
        "The executor is spent in every case."
    )
    return run


def execute(name: str, workspace: int, size: int, executor: int, stream: int) -> int:
    """Phase 2, whatever the operator: the executor knows what to run."""
    if executor == 0:
        return fail_aclnn(NULLPTR, f"{name}: the executor is null.")
    ex = lookup(executor, Executor)
    if ex is None or (not ex.repeatable and release(executor) is None):
        return fail_aclnn(
            _INNER,
            f"{name}: {executor:#x} is no live executor. One that is not repeatable serves one run of phase 2; "
            "a real library uses freed memory here.",
        )
    problem = workspace_problem(ex, workspace, size)
    if problem is not None:
        if ex.repeatable:
            release(executor)
        return fail_aclnn(problem.code, problem.text)
    ctx = contexts.current()
    if ctx is None:
        return fail_aclnn(_RUNTIME, f"{name}: this thread has no context (107002): call aclrtSetDevice or aclrtSetCurrentContext first.")
    target = streams.resolve(stream, ctx)
    if isinstance(target, int):
        return fail_aclnn(_RUNTIME, f"{name}: stream {stream:#x} cannot take the launch: {name_of(target)} ({target}).")
    hook = hooks.active
    if hook is not None:
        _reported(hook, name, ex, workspace, ctx, target)
        return 0
    if clock.issue_ns:
        clock.host.ns += clock.issue_ns
    if not ex.plan.costs:
        clock.price(ex)
    submit(ex, workspace, ctx.device.memory, target.saturate, target.enqueue)
    return 0


def _reported(hook: hooks.Hooks, name: str, ex: Executor, workspace: int, ctx: contexts.Context, target: streams.Stream) -> None:
    """The end of phase 2 while a hook listens."""
    host = clock.host  # each look at it costs: it is the thread's own
    began, began_wall = host.ns, perf_counter_ns()
    end = began + clock.issue_ns
    if end != began:
        host.ns = end
    if not ex.plan.costs:
        clock.price(ex)
    if len(ex.plan.steps) == 1:
        task = submit(ex, workspace, ctx.device.memory, target.saturate, target.put)
        assert task is not None  # of one step there is one task
        number, now = task.number, perf_counter_ns()
        hook.issued((target, task.cost, task.name, host.thread, name, number, began, began_wall, end, now))
        if not number & hooks.OFTEN or now >= hook.due:
            hook.tidy(now)
    else:
        submit(ex, workspace, ctx.device.memory, target.saturate, target.enqueue)
        hook.called(name, (began, began_wall))


FUNCTIONS: dict[str, Callable[..., Any]] = {}
for _op in OPERATORS:
    FUNCTIONS[_op.name + "GetWorkspaceSize"] = phase_one(_op)
    FUNCTIONS[_op.name] = phase_two(_op)
