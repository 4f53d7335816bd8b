"""Which cluster, how many workers, and what they are made of."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass

from core.errors import OvertonError

BACKENDS = ("auto", "transformers", "vllm")


@dataclass(frozen=True)
class RayOptions:
    """How to use Ray.

    `address` is that of a cluster (`auto` for the one of this machine); without one, a cluster of this machine alone
    begins and ends with the work. `workers` hold one copy of the model each: by default one for each graphics card,
    else one for each node. `cpus` are those of one worker: by default its share of the cluster. `backend` says what
    runs the model: `vllm`, `transformers`, or `auto` (vLLM where it is installed and there is a card).
    """

    address: str = ""
    workers: int = 0
    cpus: int = 0
    backend: str = "auto"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> RayOptions:
        """What RAY_ADDRESS, OVERTON_RAY_WORKERS, OVERTON_RAY_CPUS and OVERTON_RAY_BACKEND say."""
        counts = {name: environment.get(f"OVERTON_RAY_{name.upper()}") or "0" for name in ("workers", "cpus")}
        for name, value in counts.items():
            if not value.isdecimal():
                raise OvertonError(f"OVERTON_RAY_{name.upper()} must be a whole number, not {value!r:.40}.")
        return cls(
            address=environment.get("RAY_ADDRESS", ""),
            backend=environment.get("OVERTON_RAY_BACKEND") or "auto",
            **{name: int(value) for name, value in counts.items()},
        ).check()

    def check(self) -> RayOptions:
        """Return these options, or raise `OvertonError` that names the one that cannot be."""
        if self.workers < 0 or self.cpus < 0:
            raise OvertonError("The numbers of Ray workers and of their CPUs must not lie below 0.")
        if self.backend not in BACKENDS:
            raise OvertonError(f"There is no backend {self.backend!r}: take one of {', '.join(BACKENDS)}.")
        if self.address.startswith("ray://"):
            raise OvertonError(
                "Addresses that begin with ray:// are not supported: start the command on a machine of the cluster, "
                "with the address auto or HOST:6379 (see docs/ray.md)."
            )
        return self


def require_ray() -> None:
    """Raise `OvertonError` where Ray is not installed."""
    try:
        found = importlib.util.find_spec("ray") is not None and importlib.util.find_spec("ray.data") is not None
    except ImportError:
        found = False
    if not found:
        raise OvertonError(
            "Ray is not installed here: run `pip install -r requirements-ray.txt`, or leave out --engine ray."
        )
