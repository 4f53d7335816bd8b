"""Datasets in bulk: a specification, its plan, an engine that carries it out, and a journal that loses nothing."""

from core.bulk.engines import ENGINES, Done, Engine, LocalEngine, engine_named
from core.bulk.fields import SpecError
from core.bulk.journal import Past, past_runs
from core.bulk.planning import Batch, Cell, Plan, plan
from core.bulk.progress import Progress
from core.bulk.run import BulkRun, start
from core.bulk.spec import Spec, load_spec
from core.bulk.systems import System

__all__ = [
    "ENGINES",
    "Batch",
    "BulkRun",
    "Cell",
    "Done",
    "Engine",
    "LocalEngine",
    "Past",
    "Plan",
    "Progress",
    "Spec",
    "SpecError",
    "System",
    "engine_named",
    "load_spec",
    "past_runs",
    "plan",
    "start",
]
