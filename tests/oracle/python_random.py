"""Writes tests/golden/metrics/python_random.json: draws of CPython's random.Random.

Usage: python3 tests/oracle/python_random.py > tests/golden/metrics/python_random.json
"""

import json
import random


def draws(seed):
    r = random.Random(seed)
    out = {"seed": seed}
    out["random"] = [r.random().hex() for _ in range(5)]
    out["bits"] = [[k, str(r.getrandbits(k))] for k in (1, 5, 31, 32, 33, 40, 63, 64)]
    out["below"] = [[n, r._randbelow(n)] for n in (1, 2, 3, 10, 1000, 2**31 + 7, 2**40 + 1)]
    out["randrange"] = [[a, b, r.randrange(a, b)] for a, b in ((0, 7), (-5, 5), (100, 2**35))]
    out["sample"] = [
        [n, k, r.sample(range(n), k)]
        for n, k in ((5, 5), (21, 5), (22, 5), (85, 6), (86, 6), (7473, 5), (100, 16), (3000, 300), (1, 1), (9, 0))
    ]
    items = list(range(50))
    r.shuffle(items)
    out["shuffle"] = items
    out["choices"] = r.choices(range(37), k=20)
    # Enough draws for several refills of the state.
    for _ in range(2000):
        r.random()
    out["late"] = r.random().hex()
    return out


print(json.dumps([draws(s) for s in (0, 1, 42, 1234, -1234, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1)]))
