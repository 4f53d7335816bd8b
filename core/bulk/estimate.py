"""What a plan would cost, before anything is generated."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from core.bulk.planning import Cell, Plan


@dataclass(frozen=True)
class Cost:
    """One system: counts, tokens and time of what is missing, and its first context.

    `context_tokens` are read once for each prompt with missing samples; `new_tokens` is the most that can come.
    `seconds` is None where the journal knows no rate. `equal`: at temperature 0
    all samples of a prompt are the same.
    """

    system: str
    model: str
    strategy: str
    samples: int
    done: int
    missing: int
    context_tokens: int
    exact: bool
    new_tokens: int
    seconds: float | None
    equal: bool
    first_prompt: str
    first_context: str
    too_long: int


def costs(plan: Plan) -> list[Cost]:
    """The cost of each system, in the order of the specification."""
    cells: dict[str, list[Cell]] = {system.name: [] for system in plan.spec.systems}
    for cell in plan.cells:
        cells[cell.system.name].append(cell)
    return [_cost(plan, own) for own in cells.values() if own]


def _cost(plan: Plan, cells: list[Cell]) -> Cost:
    system = cells[0].system
    lacking = {c.place: len(plan.missing[c.place]) for c in cells}
    missing, samples = sum(lacking.values()), system.samples * len(cells)
    spent, count = plan.seconds.get(system.name, (0.0, 0))
    return Cost(
        system=system.name,
        model=system.identity,
        strategy=system.strategy,
        samples=samples,
        done=samples - missing - sum(c.system.samples for c in cells if c.too_long),
        missing=missing,
        context_tokens=sum(c.tokens for c in cells if lacking[c.place]),
        exact=all(c.exact for c in cells),
        new_tokens=missing * system.sampling.max_new_tokens,
        seconds=spent / count * missing if count and spent else None,
        equal=system.sampling.temperature == 0 and system.samples > 1,
        first_prompt=cells[0].prompt.prompt_id,
        first_context=cells[0].context,
        too_long=sum(bool(c.too_long) for c in cells),
    )


def summary(plan: Plan) -> dict[str, Any]:
    """All counts and costs as plain values, for JSON."""
    found = costs(plan)
    known = [cost.seconds for cost in found if cost.missing]
    return {
        "name": plan.spec.name,
        "prompts": len(plan.prompts),
        "samples": plan.total,
        "done": plan.reused,
        "missing": plan.lacking,
        "left": plan.left,
        "context_tokens": sum(cost.context_tokens for cost in found),
        "exact": all(cost.exact for cost in found),
        "new_tokens": sum(cost.new_tokens for cost in found),
        "seconds": sum(s for s in known if s is not None) if all(s is not None for s in known) else None,
        "systems": [asdict(cost) for cost in found],
    }
