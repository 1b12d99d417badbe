"""A seeded simulation: many actors over one store, interleaved step by step, with faults.

Each history has submitters with unique and idempotency keys, workers that claim, run, report,
pause, die and come back as zombies, rescuers, operators, a clock that jumps, and a store that is
sometimes away. After a disturbed while everything heals, and every promise of `ports/store.py` and
of the lifecycle must have held at each step. A history is a pure function of its seed: a red one
can be run again, alone.

    SIM_SEED=4711 python -m tests.kit.simulation

To simulate a store of your own, give its factory: `run_history(seed, Setup(store=...))`. A store
that really waits (for a disk, a server) needs a `Drive` that runs its coroutines on an event loop.

Read in this order: `world` (time and turns), `observed` (a store with faults), `book`, `gate_book`
and `ledger` (what must be true), `actors` and `gated`, `history`.
"""

from tests.kit.simulation.history import Setup, Verdict, run_history
from tests.kit.simulation.observed import Drive

__all__ = ["Drive", "Setup", "Verdict", "run_history"]
