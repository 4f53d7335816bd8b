"""How much memory there is: of the device, or of this machine and the container it is in."""

from __future__ import annotations

import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def available(device: str = "cpu") -> int:
    """Bytes that can be taken now without swapping, on `cpu`, `mps` (which shares it) or a `cuda` device."""
    if device.startswith("cuda"):
        import torch

        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # torch gives it out again
        return int(torch.cuda.mem_get_info(device)[0] + cached)
    import psutil

    limits = [int(psutil.virtual_memory().available)]
    try:  # a container may be allowed less than the machine has
        allowed = (_CGROUP / "memory.max").read_text(encoding="ascii").strip()
        if allowed != "max":
            used = int((_CGROUP / "memory.current").read_text(encoding="ascii"))
            limits.append(int(allowed) - used + _reclaimable())
    except (OSError, ValueError):
        pass
    return max(0, min(limits))


def _reclaimable() -> int:
    """Bytes that count as used by the container but hold only copies of files."""
    lines = (_CGROUP / "memory.stat").read_text(encoding="ascii").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("inactive_file ")), 0)


def resident() -> int:
    """Bytes of memory that this process holds now."""
    import psutil

    return int(psutil.Process(os.getpid()).memory_info().rss)
