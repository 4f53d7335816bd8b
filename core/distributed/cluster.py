"""The connection to a Ray cluster: opened by the first piece of work, and how its resources are shared out."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from core.distributed.options import RayOptions, require_ray
from core.errors import OvertonError

ROOT = Path(__file__).resolve().parents[2]
_SENT = ("core", "data")  # what workers on other machines need of the project
_STORE = 256 * 2**20  # bytes of shared memory for a local cluster: texts are small

_LOCK = threading.Lock()
_address: str | None = None  # of the cluster that was opened here


@dataclass(frozen=True)
class Cluster:
    """An open connection: `workers`, with `cpus` and `gpus` (0 or 1) each."""

    workers: int
    cpus: int
    gpus: int


def connected(options: RayOptions, cancel: Event) -> Cluster | None:
    """Connect, and say how the cluster is shared out; None where `cancel` was set before the connection stood.

    Raises `OvertonError` where Ray is not installed or the cluster cannot be reached. A connection that is there
    already is used; one that is opened here stays until the process ends.
    """
    require_ray()
    opening = _Opening(options)
    threading.Thread(target=opening.run, name="ray connection", daemon=True).start()
    while not opening.over.wait(0.05):
        if cancel.is_set():
            return None
    if opening.failed is not None:
        raise opening.failed
    return _cluster(options)


class _Opening:
    """Opens the connection in a thread of its own, so that nobody has to wait for it who was asked to stop."""

    def __init__(self, options: RayOptions) -> None:
        self.options = options
        self.over = Event()
        self.failed: BaseException | None = None

    def run(self) -> None:
        opened = False
        try:
            with _LOCK:
                opened = self._open()
        except BaseException as error:  # raised again where somebody waits
            self.failed = error
        self.over.set()
        # On Linux the processes of a local cluster end with the thread that has started them.
        while opened and _is_open():
            time.sleep(1)

    def _open(self) -> bool:
        global _address
        import ray

        if not ray.is_initialized():
            _open(ray, self.options)
            _address = self.options.address
            return True
        if _address is not None and _address != self.options.address:
            raise OvertonError("This process is connected to another Ray cluster already: start it anew.")
        return False


def _is_open() -> bool:
    import ray

    return bool(ray.is_initialized())


def _cluster(options: RayOptions) -> Cluster:
    import ray

    return shares(ray.cluster_resources(), sum(node["Alive"] for node in ray.nodes()), options)


def shares(resources: dict[str, float], nodes: int, options: RayOptions) -> Cluster:
    """How the resources of a cluster are shared out. Raises `OvertonError` where they do not suffice."""
    cpus, cards = int(resources.get("CPU", 0)), int(resources.get("GPU", 0))
    gpus = 1 if cards else 0
    workers = options.workers or cards or min(nodes, cpus) or 1
    each = options.cpus or max(1, cpus // workers)
    if workers * each > cpus or (gpus and workers > cards):
        raise OvertonError(
            f"The Ray cluster has {cpus} CPUs and {cards} graphics cards, too few for {workers} workers with {each} "
            f"CPUs{' and a card' if gpus else ''} each: ask for fewer."
        )
    return Cluster(workers, each, gpus)


def _open(ray: Any, options: RayOptions) -> None:
    for name, value in (("RAY_USAGE_STATS_ENABLED", "0"), ("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")):
        os.environ.setdefault(name, value)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "include_dashboard": None}
    try:
        if options.address and options.address != "local":
            del quiet["include_dashboard"]
            _reach(options.address)
            ray.init(options.address, runtime_env=_sent(), **quiet)
            return
        quiet["include_dashboard"] = False
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
        wanted = options.workers * options.cpus or None
        ray.init(
            "local",
            num_cpus=max(wanted, os.cpu_count() or 1) if wanted else None,
            object_store_memory=_STORE,
            runtime_env={"env_vars": {**_passed(), "PYTHONPATH": _path()}},
            **quiet,
        )
    except Exception as error:  # it raises many types: connection, version, value, runtime
        where = f"The Ray cluster at {options.address}" if options.address else "A Ray cluster on this machine"
        first = next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".")
        raise OvertonError(
            f"{where} cannot be used ({first:.300}): check the address, that it runs, and that it has the same "
            "versions of Python and Ray."
        ) from error


def _reach(address: str) -> None:
    """Raise `OSError` where nothing answers at HOST:PORT, for which Ray itself would look for many minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()


def _path() -> str:
    return os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))


def _passed() -> dict[str, str]:
    """Switches that workers share with this process; never a key."""
    names = ("OVERTON_FAKE_GENERATOR", "OVERTON_FAKE_DELAY")
    return {name: os.environ[name] for name in names if name in os.environ}


def _sent() -> dict[str, Any]:
    """The code and the shipped data, for machines that do not have them; nothing else of this folder leaves it."""
    others = [f"/{path.name}" for path in ROOT.iterdir() if path.name not in _SENT]
    return {"working_dir": str(ROOT), "excludes": [*others, "__pycache__"], "env_vars": _passed()}
