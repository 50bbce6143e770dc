"""Show the emulated devices as npu-smi would; what an emulator cannot know is shown as "-"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from emu import __version__
from emu.cli._common import AsJson, Soc, print_json, settings

if TYPE_CHECKING:
    from emu.config import Config

_WIDTHS = (27, 15, 54)
_MB = 1 << 20

Devices = Annotated[int | None, typer.Option("--devices", help="How many devices the machine has [EMU_DEVICES].")]


Watch = Annotated[bool, typer.Option("--watch", help="Look at a running process that was started with EMU_WATCH=1.")]
Pid = Annotated[int | None, typer.Option("--pid", help="Which process to watch; needed only when there are several.")]
Interval = Annotated[float, typer.Option("--interval", min=0.05, help="Seconds between two looks.")]
Count = Annotated[int | None, typer.Option("--count", min=1, help="How many looks. Default: until the process ends.")]


def command(
    soc: Soc = None,
    devices: Devices = None,
    as_json: AsJson = False,
    watch: Watch = False,
    pid: Pid = None,
    interval: Interval = 1.0,
    count: Count = None,
) -> None:
    """Show the emulated devices as npu-smi would; what an emulator cannot know is shown as "-"."""
    if watch:
        from emu.cli._watch import follow

        follow(pid, interval, count, as_json)
        return
    config = settings(soc=soc, devices=devices)
    found = describe()
    if as_json:
        print_json({"emulated": True, "version": __version__, "soc": config.soc, "devices": found, "processes": []})
        return
    print("\n".join(table(config, found)))


def describe() -> list[dict[str, Any]]:
    """The devices that ASCEND_RT_VISIBLE_DEVICES leaves, by their number in a program."""
    from emu.runtime.device import machine

    found = []
    for device in machine().devices:
        soc = device.profile
        found.append(
            {
                "device": device.index,
                "name": soc.name,
                "product": soc.product,
                "arch": soc.arch,
                "health": "OK",
                "power_w": None,
                "temperature_c": None,
                "hugepages": None,
                "bus_id": None,
                "aicore_percent": None,
                "memory_mb": None,
                "hbm_used_mb": device.memory.used // _MB if device.has_memory else 0,
                "hbm_total_mb": soc.hbm_bytes // _MB,
                "ai_cores": soc.ai_cores,
                "vector_cores": soc.vector_cores,
                "clock_mhz": soc.core_mhz,
            }
        )
    return found


def _line(*cells: str) -> str:
    return "|" + "|".join(f" {cell:<{width - 2}} " for cell, width in zip(cells, _WIDTHS, strict=True)) + "|"


def _wide(text: str) -> str:
    return f"| {text:<{sum(_WIDTHS)}} |"


def _rule(sign: str) -> str:
    return "+" + "+".join(sign * width for width in _WIDTHS) + "+"


def table(config: Config, found: list[dict[str, Any]]) -> list[str]:
    """The lines of the table."""
    lines = ["+" + "-" * (sum(_WIDTHS) + 2) + "+"]
    lines.append(_wide(f"EMULATED by aclnn-emu {__version__}: no NPU is read.   Product: {config.soc}"))
    lines.append(_rule("-"))
    lines.append(_line("NPU   Name", "Health", f"{'Power(W)':<12}{'Temp(C)':<19}Hugepages-Usage(page)"))
    lines.append(_line("Chip  Device", "Bus-Id", f"{'AICore(%)':<12}{'Memory-Usage(MB)':<19}HBM-Usage(MB)"))
    lines.append(_rule("="))
    for d in found:
        lines.append(_line(f"{d['device']:<6}{d['name'].removeprefix('Ascend')}", d["health"], f"{'-':<12}{'-':<19}- / -"))
        lines.append(_line(f"{0:<6}{d['device']}", "-", f"{'-':<12}{'- / -':<19}{d['hbm_used_mb']} / {d['hbm_total_mb']}"))
        lines.append(_rule("-"))
    if not found:
        lines.append(_wide("No device is visible: see ASCEND_RT_VISIBLE_DEVICES."))
        lines.append(_rule("-"))
    lines.append(_line("NPU   Chip", "Process id", f"{'Process name':<31}Process memory(MB)"))
    lines.append(_rule("="))
    lines.append(_wide("Each process has emulated devices of its own: those of others are not seen from here."))
    lines.append("+" + "-" * (sum(_WIDTHS) + 2) + "+")
    return lines
