"""Writes tests/golden/verdict/statistics.json: the tests and intervals behind gates, computed by independent
implementations. Also checks the coverage of the intervals.

Usage: python3 tests/oracle/verdict_golden.py tests/golden/verdict/statistics.json

Made with scipy 1.17, statsmodels 0.15, numpy 2. These have no implementation of Tango's interval. So the
constrained maximum of the multinomial likelihood is found numerically and the bounds by root finding, and the
procedure is checked against published figures (PUBLISHED).
"""

import json
import math
import random
import sys

import numpy as np
from scipy import optimize, stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

# (lost, gained, pairs, two-sided level, bounds, digits, source)
PUBLISHED = [
    (1, 7, 21, 0.95, (-0.517, -0.026), 3,
     "Fagerland, Lydersen and Laake 2014, Stat. Med. 33:2850, airway hyper-responsiveness"),
    (28, 25, 618, 0.90, (-0.0148, 0.0247), 4, "R, PropCIs::scoreci.mp(25, 28, 618, 0.90)"),
]


def log_likelihood(q, drop, lost, gained, pairs):
    """Multinomial log-likelihood with P(gained) = q and P(lost) = q + drop."""
    rest = 1 - 2 * q - drop
    total = 0.0
    for count, probability in ((lost, q + drop), (gained, q), (pairs - lost - gained, rest)):
        if count:
            total += count * math.log(probability) if probability > 0 else -1e300
    return total


def tango_score(drop, lost, gained, pairs):
    low, high = max(0.0, -drop), (1 - drop) / 2
    found = optimize.minimize_scalar(lambda q: -log_likelihood(q, drop, lost, gained, pairs),
                                     bounds=(low, high), method="bounded", options={"xatol": 1e-14})
    # The likelihood is flat to 1e-8 near its maximum, so the search ends on its derivative.
    def slope(q):
        return ((lost / (q + drop) if lost else 0) + (gained / q if gained else 0)
                - 2 * (pairs - lost - gained) / (1 - 2 * q - drop))
    q = found.x
    left, right = max(low + 1e-15, q - 1e-4), min(high - 1e-15, q + 1e-4)
    if pairs > lost + gained and left < right and slope(left) > 0 > slope(right):
        q = optimize.brentq(slope, left, right, xtol=1e-16)
    else:
        q = max((low, high, q), key=lambda x: log_likelihood(x, drop, lost, gained, pairs))
    variance = pairs * (2 * q + drop - drop * drop)
    difference = lost - gained - pairs * drop
    if variance <= 1e-13:
        return math.copysign(1e9, difference) if difference else 0.0
    return difference / math.sqrt(variance)


def tango_bound(error, upper, lost, gained, pairs):
    level = stats.norm.ppf(error) if upper else stats.norm.ppf(1 - error)
    estimate = (lost - gained) / pairs
    low, high = (estimate, 1 - 1e-12) if upper else (-1 + 1e-12, estimate)
    f = lambda drop: tango_score(drop, lost, gained, pairs) - level
    if f(low) * f(high) > 0:
        return float(round(high if upper else low))
    return optimize.brentq(f, low, high, xtol=1e-13)


def check_published():
    for lost, gained, pairs, level, expected, digits, where in PUBLISHED:
        error = (1 - level) / 2
        found = tuple(round(tango_bound(error, upper, lost, gained, pairs), digits) for upper in (False, True))
        assert found == expected, (where, found)
        print(f"Tango, {where}: {found}")


def tango_cases():
    draw = random.Random(1)
    tables = [(1, 0, 44), (0, 0, 80), (40, 20, 160), (0, 9, 60), (9, 0, 60), (5, 5, 10), (250, 231, 14042)]
    tables += [(lost, gained, pairs) for lost, gained, pairs, *_ in PUBLISHED]
    for _ in range(40):
        pairs = draw.choice([5, 20, 80, 164, 500, 1319])
        lost = draw.randint(0, pairs // 2)
        tables.append((lost, draw.randint(0, pairs - lost), pairs))
    for lost, gained, pairs in tables:
        case = {"lost": lost, "gained": gained, "pairs": pairs, "bounds": [], "p": []}
        for error in (0.05, 0.025, 0.05 / 7):
            case["bounds"].append({"error": error, "lower": tango_bound(error, False, lost, gained, pairs),
                                   "upper": tango_bound(error, True, lost, gained, pairs)})
        for margin in (0.01, 0.02, 0.05, 0.3):
            z = tango_score(margin, lost, gained, pairs)
            case["p"].append({"margin": margin, "above": stats.norm.sf(z), "below": stats.norm.cdf(z)})
        case["mcnemar"] = stats.binomtest(lost, lost + gained, 0.5, "greater").pvalue if lost + gained else 1.0
        yield case


def wilson_cases():
    for right, total in ((0, 10), (10, 10), (62, 80), (1, 80), (900, 1319), (7000, 14042)):
        for error in (0.05, 0.01):
            low, high = proportion_confint(right, total, alpha=2 * error, method="wilson")
            yield {"right": right, "total": total, "error": error, "lower": low, "upper": high}


def holm_cases():
    draw = np.random.default_rng(2)
    for size in (1, 2, 3, 8, 20):
        for scale in (0.01, 0.1, 1.0):
            p = (draw.random(size) * scale).tolist()
            reject, adjusted, _, _ = multipletests(p, alpha=0.05, method="holm")
            yield {"p": p, "rejected": reject.tolist(), "adjusted": adjusted.tolist()}


def bootstrap_cases():
    draw = np.random.default_rng(3)
    mean = lambda x, axis: np.mean(x, axis=axis)
    for name, values in (("normal", draw.normal(0.3, 1, 60)), ("skewed", draw.exponential(1, 100) - 0.8),
                         ("thirds", draw.integers(-3, 4, 200) / 3), ("large", draw.normal(0, 0.2, 1500))):
        case = {"name": name, "values": values.tolist(), "bounds": []}
        for error in (0.05, 0.01):
            found = stats.bootstrap((values,), mean, confidence_level=1 - 2 * error, n_resamples=100_000,
                                    method="BCa", batch=1000, rng=np.random.default_rng(4))
            case["bounds"].append({"error": error, "lower": found.confidence_interval.low,
                                   "upper": found.confidence_interval.high})
        case["standard_error"] = found.standard_error
        yield case
    # Two strata of different sizes, and the plain mean of their means (a group that is not weighted).
    a, b = draw.exponential(1, 40), draw.normal(-0.5, 2, 90)
    found = stats.bootstrap((a, b), lambda x, y, axis: (np.mean(x, axis=axis) + np.mean(y, axis=axis)) / 2,
                            confidence_level=0.9, n_resamples=100_000, method="BCa", vectorized=True, batch=1000,
                            rng=np.random.default_rng(5))
    yield {"name": "strata", "values": a.tolist(), "second": b.tolist(), "standard_error": found.standard_error,
           "bounds": [{"error": 0.05, "lower": found.confidence_interval.low,
                       "upper": found.confidence_interval.high}]}


def coverage():
    """The probability that a one-sided 95 % bound of Tango's covers the true drop. Exact, over all tables."""
    worst = 1.0
    for pairs in (40, 80, 164):
        for p_lost, p_gained in ((0.02, 0.02), (0.05, 0.01), (0.1, 0.1), (0.2, 0.05), (0.3, 0.3)):
            covered_low = covered_high = 0.0
            true = p_lost - p_gained
            for lost in range(pairs + 1):
                for gained in range(pairs + 1 - lost):
                    chance = stats.multinomial.pmf([lost, gained, pairs - lost - gained], pairs,
                                                   [p_lost, p_gained, 1 - p_lost - p_gained])
                    if chance < 1e-9:
                        continue
                    # The bound covers the true drop if the score test there does not reject.
                    z = closed_score(true, lost, gained, pairs)
                    covered_low += chance * (z <= stats.norm.ppf(0.95))
                    covered_high += chance * (z >= stats.norm.ppf(0.05))
            worst = min(worst, covered_low, covered_high)
            print(f"Tango coverage, {pairs} pairs, P(lost) {p_lost}, P(gained) {p_gained}: "
                  f"lower bound {covered_low:.4f}, upper bound {covered_high:.4f}")
    assert worst > 0.92, worst
    draw = np.random.default_rng(6)
    for name, sample, true in (("normal", lambda n: draw.normal(0.1, 1, n), 0.1),
                               ("exponential", lambda n: draw.exponential(1, n), 1.0)):
        for n in (30, 100):
            low = high = 0
            for _ in range(1000):
                found = stats.bootstrap((sample(n),), np.mean, confidence_level=0.9, n_resamples=999,
                                        method="BCa", rng=draw).confidence_interval
                low += found.low <= true
                high += found.high >= true
            print(f"BCa coverage, {n} {name} documents: lower bound {low / 1000:.3f}, upper bound {high / 1000:.3f}")
            assert min(low, high) > 880, (name, n, low, high)


def closed_score(drop, lost, gained, pairs):
    """The score, with the constrained maximum as the root of its quadratic. The form is fast; it is checked here."""
    b = -lost - gained + (2 * pairs - lost + gained) * drop
    c = -gained * drop * (1 - drop)
    q = (math.sqrt(max(0, b * b - 8 * pairs * c)) - b) / (4 * pairs)
    variance = pairs * (2 * max(q, -drop, 0) + drop * (1 - drop))
    if variance <= 1e-13:
        return 0.0
    return (lost - gained - pairs * drop) / math.sqrt(variance)


def main():
    check_published()
    golden = {"published": [dict(zip(("lost", "gained", "pairs", "level", "bounds", "digits", "where"), row))
                            for row in PUBLISHED],
              "tango": list(tango_cases()), "wilson": list(wilson_cases()), "holm": list(holm_cases()),
              "bootstrap": list(bootstrap_cases())}
    for case in golden["tango"]:
        for row in case["p"]:
            z = closed_score(row["margin"], case["lost"], case["gained"], case["pairs"])
            assert abs(stats.norm.cdf(z) - row["below"]) < 1e-7, case
    with open(sys.argv[1], "w") as out:
        json.dump(golden, out, indent=1)
        out.write("\n")
    coverage()


if __name__ == "__main__":
    main()
