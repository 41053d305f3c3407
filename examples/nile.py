"""The Nile at Aswan: a century of annual flows, and a reservoir that has to live on them.

Flows are in units of 10⁸ m³ a year, 1871 to 1970, as published by Cobb (1978, Biometrika 65) and
used since in most books on time series; statsmodels ships the same hundred numbers.

A dam stores up to 100 km³. At the beginning of a year the water of that year is promised; then the
flood comes, the promise is kept as far as there is water, and the rest is stored, or lost above
100 km³. A year costs the cube of what is short of the demand, in units of 5 km³: a shortage that is
twice as large hurts eight times as much.

    given = min(promise, storage + flow),   next storage = min(storage + flow − given, 100 km³)

Each decade is a kernel: the law of the flows of its ten years.
"""

import numpy as np

import drmdp

FIRST = 1871
FLOWS = np.array(
    [
        *(1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960),
        *(1180, 799, 958, 1140, 1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694),
        *(940, 833, 701, 916, 692, 1020, 1050, 969, 831, 726, 456, 824, 702, 1120, 1100, 832, 764),
        *(
            821,
            768,
            845,
            864,
            862,
            698,
            845,
            744,
            796,
            1040,
            759,
            781,
            865,
            845,
            944,
            984,
            897,
            822,
        ),
        *(1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890, 744, 749, 838, 1050),
        *(918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740),
    ]
)
UNIT = 5  # km³, which is 50 units of the record
LARGEST = 28  # flows of 0 … 28 units
FULL = 20
PROMISES = np.arange(10, FULL + 1)


def flows(first, last):
    """The annual flows of some years, in units of 5 km³."""
    years = FLOWS[first - FIRST : last - FIRST + 1]
    return np.rint(years / (10 * UNIT)).astype(int)


def year(storage, promise, flow, demand):
    """The next storage and the cost, where a promise is an index into `PROMISES`."""
    water = storage + flow
    given = np.minimum(PROMISES[promise], water)
    return np.minimum(water - given, FULL), np.maximum(demand - given, 0.0) ** 3


def reservoir(first, last, demand=95):
    """The decision problem of these years, a kernel for each decade; the demand is in km³."""
    decades = flows(first, last).reshape(-1, 10)
    return drmdp.Model.from_events(
        FULL + 1,
        [f"promise {UNIT * a}" for a in PROMISES],
        LARGEST + 1,
        lambda s, a, flow: year(s, a, flow, demand / UNIT),
        [np.bincount(decade, minlength=LARGEST + 1) / 10 for decade in decades],
        discount=0.95,
        names=[f"storage {UNIT * s}" for s in range(FULL + 1)],
        kernel_names=[f"{begin} to {begin + 9}" for begin in range(first, last, 10)],
    )


def replay(policy, first, last, demand=95):
    """The years as they came, from every storage: cost (starts, years) of a deterministic
    policy.
    """
    storage, costs = np.arange(FULL + 1), []
    for flow in flows(first, last):
        storage, cost = year(storage, policy.argmax(axis=1)[storage], flow, demand / UNIT)
        costs.append(cost)
    return np.stack(costs, axis=1)
