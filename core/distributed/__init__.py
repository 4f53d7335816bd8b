"""Work on a Ray cluster: how to reach it, and how results stream back. Ray itself is imported at first use."""

from core.distributed.options import RayOptions

__all__ = ["RayOptions"]
