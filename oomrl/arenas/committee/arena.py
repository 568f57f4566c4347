"""The committee's two versions as arenas."""

from __future__ import annotations

from oomrl.arenas.committee.v1 import engine as v1
from oomrl.arenas.committee.v1.market import NAMES as V1_NAMES
from oomrl.arenas.committee.v1.policies import POLICIES as V1_POLICIES
from oomrl.arenas.committee.v1.rules import TASKS as V1_TASKS
from oomrl.arenas.committee.v1.rules import TEMPLATES as V1_TEMPLATES
from oomrl.arenas.committee.v2 import policies
from oomrl.arenas.committee.v2.actions import SCHEMA
from oomrl.arenas.committee.v2.engine import CommitteeV2
from oomrl.arenas.committee.v2.probes import PROBES
from oomrl.arenas.committee.v2.rules import TASKS
from oomrl.arenas.engine import Arena

INSTRUCTIONS = """\
You manage a portfolio of six unnamed stocks between two advisers. You start in cash. Each step is one action:
asking an adviser uses the step (what you hold stays and drifts), trading happens at once at a cost.

Research sees each name's own edge: a view of 1.0 is an expected return of `units.view_unit` a step, and
`units.view_persistence` of it is left one step later. Research sees nothing of what could break a name. Risk
sees which names are fragile (a fragile name costs `units.fragile_cost` a step in expectation) and how much
pressure the market is under (a falling market hits names by their beta), and nothing of the edges. Both err,
more in some regimes than in others, and often together. A note's comment is only words.

Stay inside `constraints`: they hold on averages over the last `window` steps. You are scored on the expected
return of what you held after costs, on settling conflicts between the advisers, on the limits and on
drawdowns. Sitting in cash earns nothing.

Answer with one JSON object and nothing else, for example
{"action": "query_research", "query_target": "SECTOR"}
{"action": "query_risk", "query_target": "N3"}
{"action": "allocate", "target_weights": {"N1": 0.3, "N4": 0.3}}      (all others go to zero)
{"action": "revise_allocation", "target_weights": {"N2": 0.1}}        (all others stay)
{"action": "allocate", "allocation_template": "balanced_top3"}
{"action": "hold"} or {"action": "move_to_cash"}
"""

COMMITTEE = Arena(
    name="committee",
    version="2.0.0",
    title="Investment committee",
    make=CommitteeV2,
    tasks={name: rules.task for name, rules in TASKS.items()},
    action_schema=SCHEMA,
    instructions=INSTRUCTIONS,
    policies={
        "random": policies.random_policy,
        "heuristic": policies.heuristic,
        "blinded": policies.blinded,
        "oracle": policies.oracle,
    },
    probes=PROBES,
    watch=("nav", "cash", "max_drawdown"),
    limits=(
        "Prices are simulated; no score here says anything about a real market.",
        "The oracle knows expected returns, not the draws: a lucky policy may beat it in `outcome` alone.",
        "Conflict is judged on names, not on the market as a whole.",
    ),
)

V1_INSTRUCTIONS = """\
You manage a portfolio of five Indian technology stocks between Research and Risk. Each step is one action of
query_research, query_risk, allocate, revise_allocation, hold, move_to_cash. Answer with one JSON object, for
example {"action": "allocate", "allocation_template": "balanced_top3"}.
"""

COMMITTEE_V1 = Arena(
    name="committee_v1",
    version="1.0.0",
    title="Investment committee, first version",
    make=v1.CommitteeV1,
    tasks={name: rules.task for name, rules in V1_TASKS.items()},
    action_schema={
        **SCHEMA,
        "properties": {
            "action": {"enum": list(v1.ACTIONS)},
            "allocation_template": {"enum": [*V1_TEMPLATES, None]},
            "query_target": {"enum": ["SECTOR", *V1_NAMES, None]},
            "target_weights": {"type": ["object", "null"]},
            "reason": {"type": ["string", "null"]},
        },
    },
    instructions=V1_INSTRUCTIONS,
    policies=V1_POLICIES,
    limits=(
        "Kept for comparison with published scores; it does not qualify anybody.",
        "The seed changes nothing; queries tell nothing that the free signals do not.",
        "Violations have no tolerance, so the order of floating-point sums moves scores.",
        "Cash until the last step dodges the cap; weights never drift.",
    ),
)
