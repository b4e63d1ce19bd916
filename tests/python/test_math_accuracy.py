"""The mathematical functions of device/math against mpmath, over all exponents.

Errors are in units in the last place (ulp) of the format at the true value. Infinity counts as the power of two that
follows the largest number, so overflowing one number too early or too late is an error of one or two ulp.
"""

import math
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import mpmath
import numpy as np
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PROBE = Path(os.environ.get("AE_BUILD_DIR", REPOSITORY / "build")) / "ae_math_probe"

# The context's precision is set per format below; results of mpmath's functions are relatively accurate to it.
CONTEXT = mpmath.mp.clone()

UNARY: dict[str, Callable] = {
    "exp": CONTEXT.exp,
    "exp2": lambda x: CONTEXT.power(2, x),
    "expm1": CONTEXT.expm1,
    "log": CONTEXT.log,
    "log2": lambda x: CONTEXT.log(x) / CONTEXT.ln2,
    "log10": lambda x: CONTEXT.log(x) / CONTEXT.ln10,
    "log1p": CONTEXT.log1p,
    "sin": CONTEXT.sin,
    "cos": CONTEXT.cos,
    "tan": CONTEXT.tan,
    "asin": CONTEXT.asin,
    "acos": CONTEXT.acos,
    "atan": CONTEXT.atan,
    "sinh": CONTEXT.sinh,
    "cosh": CONTEXT.cosh,
    "tanh": CONTEXT.tanh,
    "erf": CONTEXT.erf,
    "erfc": CONTEXT.erfc,
    "sigmoid": lambda x: 1 / (1 + CONTEXT.exp(-x)),
    "sqrt": CONTEXT.sqrt,
}


def log_erfc(x: mpmath.mpf) -> mpmath.mpf:
    """The logarithm of erfc, also where erfc is too small a number to be one."""
    return CONTEXT.log(CONTEXT.erfc(x)) if x < 20 else log_erfcx(x) - x * x


def log_erfcx(x: mpmath.mpf) -> mpmath.mpf:
    """The logarithm of e^(x^2) erfc(x) by its continued fraction, for large x."""
    fraction = x
    for k in range(60, 0, -1):
        fraction = x + CONTEXT.mpf(k) / 2 / fraction
    return -CONTEXT.log(fraction * CONTEXT.sqrt(CONTEXT.pi))


def normal_quantile(p: mpmath.mpf) -> mpmath.mpf:
    """The number below which a normal variable is with probability p, by Newton's method on log p."""
    if p > 0.5:
        return -normal_quantile(1 - p)
    goal = CONTEXT.log(2 * p)
    x = CONTEXT.sqrt(-goal)
    for _ in range(100):
        slope = -2 / CONTEXT.sqrt(CONTEXT.pi) * CONTEXT.exp(-x * x - log_erfc(x))
        step = (log_erfc(x) - goal) / slope
        x -= step
        if abs(step) < CONTEXT.ldexp(abs(x) + CONTEXT.mpf(2) ** -40, 20 - CONTEXT.prec):
            break
    return -x * CONTEXT.sqrt(2)


SPECIAL: dict[str, Callable] = {
    "asinh": CONTEXT.asinh,
    "acosh": CONTEXT.acosh,
    "atanh": CONTEXT.atanh,
    "erfinv": lambda x: CONTEXT.sign(x) * -normal_quantile((1 - abs(x)) / 2) / CONTEXT.sqrt(2),
    "erfcx": lambda x: CONTEXT.exp(x * x + log_erfc(x)),
    "lgamma": lambda x: CONTEXT.log(abs(CONTEXT.gamma(x))) if x < 30 else CONTEXT.loggamma(x),
    "digamma": CONTEXT.digamma,
    "trigamma": lambda x: CONTEXT.polygamma(1, x),
    "i0": lambda x: CONTEXT.besseli(0, x),
    "i0e": lambda x: CONTEXT.exp(-abs(x)) * CONTEXT.besseli(0, x),
    "i1": lambda x: CONTEXT.besseli(1, x),
    "i1e": lambda x: CONTEXT.exp(-abs(x)) * CONTEXT.besseli(1, x),
    "ndtri": normal_quantile,
    "log_ndtr": lambda x: (
        log_erfc(-x / CONTEXT.sqrt(2)) - CONTEXT.ln2 if x < 0 else CONTEXT.log1p(-CONTEXT.erfc(x / CONTEXT.sqrt(2)) / 2)
    ),
}

# Where special functions are tried, and how far off they may be: in ulp, for doubles of numbers of at least 1, since
# zeros inside of the range lose digits. (log_ndtr of doubles: erfc's argument is rounded, which its slope enlarges.)
RANGE: dict[str, tuple[float, float]] = {
    "asinh": (-1e30, 1e30),
    "acosh": (1, 1e30),
    "atanh": (-1, 1),
    "erfinv": (-1, 1),
    "erfcx": (-9, 1e6),
    "lgamma": (-60, 1e6),
    "digamma": (-60, 1e6),
    "trigamma": (-20, 1e6),
    "i0": (-80, 80),
    "i0e": (-1e4, 1e4),
    "i1": (-80, 80),
    "i1e": (-1e4, 1e4),
    "ndtri": (0, 1),
    "log_ndtr": (-1e4, 5),
}
SPECIAL_BOUND = {"f32": 1.0, "f64": 8.0}
BINARY: dict[str, Callable] = {
    "pow": CONTEXT.power,
    "atan2": CONTEXT.atan2,
    "hypot": CONTEXT.hypot,
}

# Where a function's value is a real number.
DOMAIN: dict[str, tuple[float, float]] = {
    "log": (0, math.inf),
    "log2": (0, math.inf),
    "log10": (0, math.inf),
    "sqrt": (0, math.inf),
    "log1p": (-1, math.inf),
    "asin": (-1, 1),
    "acos": (-1, 1),
}

# Beyond, the function has reached 0, 1 or infinity: there one point an exponent is enough.
SATURATED: dict[str, float] = {"f32": 180.0, "f64": 1200.0}
SATURATING = {"exp", "exp2", "expm1", "sinh", "cosh", "tanh", "erf", "erfc", "sigmoid"}

BOUND = {
    "f32": {name: 1.0 if name in {"exp", "log", "sqrt", "tanh", "erf", "sigmoid"} else 2.0 for name in UNARY | BINARY},
    "f64": dict.fromkeys(UNARY | BINARY, 2.0),
}
TYPES = {"f32": np.float32, "f64": np.float64}


def probe(name: str, kind: str, inputs: np.ndarray) -> np.ndarray:
    """The function's values by our code; binary functions take rows of two."""
    if not PROBE.exists():
        pytest.fail(f"{PROBE} is missing: build the target ae_math_probe, or set AE_BUILD_DIR to the build folder")
    result = subprocess.run([PROBE, name, kind], input=inputs.tobytes(), capture_output=True, check=True)
    return np.frombuffer(result.stdout, inputs.dtype)


def random_mantissas(kind: str, exponents: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Positive numbers with the given binary exponents (subnormal ones below the smallest) and random mantissas."""
    with np.errstate(over="ignore", under="ignore"):
        x = np.ldexp(rng.uniform(1.0, 2.0, exponents.size), exponents).astype(TYPES[kind])
    return x[np.isfinite(x)]


def samples(name: str, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Inputs of a function of one argument: all exponents, many around 1, and places where results are delicate."""
    info = np.finfo(TYPES[kind])
    lowest = info.minexp - info.nmant
    everywhere = np.repeat(np.arange(lowest, info.maxexp), 4 if kind == "f32" else 1)
    active = np.repeat(np.arange(-14, 11), 200)
    parts = [random_mantissas(kind, np.concatenate([everywhere, active]), rng)]
    # Next to 1, and to other numbers where a formula changes or a result vanishes.
    steps = np.ldexp(rng.uniform(1.0, 2.0, 20 * info.nmant), np.tile(-np.arange(1, info.nmant + 1), 20))
    parts += [np.abs(1 + steps), np.abs(1 - steps), 0.5 + steps / 2]
    if name in {"sin", "cos", "tan"}:
        parts.append(np.arange(1, 1000) * (math.pi / 2))
        parts.append(np.floor(np.ldexp(rng.uniform(1.0, 2.0, 100), rng.integers(8, 52, 100))) * (math.pi / 2))
    if name in SATURATING:
        parts.append(rng.uniform(0, 110 if kind == "f32" else 750, 4000))
    x = np.concatenate([part.astype(TYPES[kind]) for part in parts])
    x = np.concatenate([x, -x])
    low, high = DOMAIN.get(name, (-math.inf, math.inf))
    return x[(x > low) & (x < high)]


def pairs(name: str, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Rows of two inputs: exponents of both over all of their range, and many of about the same size."""
    info = np.finfo(TYPES[kind])
    lowest = info.minexp - info.nmant
    count = 8000

    def numbers(low: int, high: int) -> np.ndarray:
        sizes = np.ldexp(rng.uniform(1.0, 2.0, count), rng.integers(low, high, count))
        return (sizes * rng.choice([-1.0, 1.0], count)).astype(TYPES[kind])

    if name != "pow":
        with np.errstate(under="ignore"):
            x, y = numbers(lowest, info.maxexp), numbers(lowest, info.maxexp)
            near = (x * rng.uniform(0.01, 1.0, count)).astype(TYPES[kind])
        return np.stack([np.concatenate([x, x]), np.concatenate([y, near])], axis=1)
    # Powers within the range of numbers: choose the result's logarithm, then the exponent that leads there.
    x = np.abs(np.concatenate([numbers(lowest, info.maxexp), numbers(-3, 3)]))
    close = np.abs(1 + np.ldexp(rng.uniform(-1.0, 1.0, count), -rng.integers(1, info.nmant - 2, count)))
    x = np.concatenate([x, close.astype(TYPES[kind])])
    x = x[(x != 1) & (x > 0)]
    target = rng.uniform(lowest - 2, info.maxexp + 1, x.size)
    with np.errstate(over="ignore", under="ignore"):
        y = (target / np.log2(x.astype(np.float64))).astype(TYPES[kind])
    rows = np.stack([x, y], axis=1)
    return rows[np.isfinite(y) & (y != 0)]


def errors_in_ulp(kind: str, got: np.ndarray, wanted: list[mpmath.mpf]) -> np.ndarray:
    """Distances of the values from the true ones."""
    info = np.finfo(TYPES[kind])
    beyond = CONTEXT.ldexp(1, int(info.maxexp))
    smallest = int(info.minexp) - int(info.nmant)
    errors = np.empty(len(wanted))
    for i, (value, truth) in enumerate(zip(got.tolist(), wanted, strict=True)):
        if math.isnan(value):
            errors[i] = math.inf
            continue
        exact = max(-beyond, min(beyond, truth))
        number = CONTEXT.mpf(value) if math.isfinite(value) else math.copysign(1, value) * beyond
        exponent = CONTEXT.mag(exact) - 1 if exact != 0 else smallest
        unit = max(min(exponent, int(info.maxexp) - 1) - int(info.nmant), smallest)
        errors[i] = abs(CONTEXT.ldexp(number - exact, -unit))
    return errors


def check(name: str, kind: str, inputs: np.ndarray, wanted: list[mpmath.mpf]) -> None:
    """Assert the function's bound, naming the worst input."""
    errors = errors_in_ulp(kind, probe(name, kind, inputs), wanted)
    worst = int(np.argmax(errors))
    place = ", ".join(float(x).hex() for x in np.atleast_1d(inputs[worst]))
    print(f"{name} {kind}: {errors[worst]:.3f} ulp at {place}, {len(errors)} points")
    assert errors[worst] <= BOUND[kind][name], f"{name}({place}) in {kind} is {errors[worst]:.3f} ulp off"


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_argument_are_within_their_bounds(name: str, kind: str) -> None:
    rng = np.random.default_rng(11)
    CONTEXT.prec = 70 if kind == "f32" else 120
    x = samples(name, kind, rng)
    if name in SATURATING:
        inside = np.abs(x) < SATURATED[kind]
        x = np.concatenate([x[inside], x[~inside][:: max(1, int((~inside).sum()) // 200)]])
    # Beyond the thresholds the true value only has to be known to be far away.
    limit = 4 * SATURATED[kind] if name in SATURATING else math.inf
    wanted = [UNARY[name](CONTEXT.mpf(max(-limit, min(limit, value)))) for value in x.tolist()]
    check(name, kind, x, wanted)


def special_samples(name: str, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Inputs within a special function's range: many near its ends, at zero and between whole numbers."""
    low, high = RANGE[name]
    sizes = np.ldexp(rng.uniform(1.0, 2.0, 400), rng.integers(-30, 14, 400))
    ends = [edge + sign * np.ldexp(1.0, -rng.integers(2, 23, 60)) for edge in (low, high) for sign in (-1, 1)]
    x = np.concatenate([sizes, -sizes, rng.uniform(max(low, -30), min(high, 30), 1200), *ends]).astype(TYPES[kind])
    x = x[(x > low) & (x < high)]
    return x[(x > 0) | (x != np.rint(x))] if name in {"lgamma", "digamma", "trigamma"} else x


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions_are_within_their_bounds(name: str, kind: str) -> None:
    CONTEXT.prec = 120
    x = special_samples(name, kind, np.random.default_rng(13))
    wanted = [SPECIAL[name](CONTEXT.mpf(value)) for value in x.tolist()]
    got = probe(name, kind, x)
    errors = errors_in_ulp(kind, got, wanted)
    if kind == "f64":  # of numbers below 1: in units of 1's last place
        errors = np.minimum(
            errors, [float(abs(CONTEXT.mpf(v) - w)) * 2.0**52 for v, w in zip(got, wanted, strict=True)]
        )
    worst = int(np.argmax(errors))
    print(f"{name} {kind}: {errors[worst]:.3f} ulp at {float(x[worst])}, {len(x)} points")
    bound = 300.0 if (name, kind) == ("log_ndtr", "f64") else SPECIAL_BOUND[kind]
    assert errors[worst] <= bound, f"{name}({float(x[worst]).hex()}) in {kind} is {errors[worst]:.3f} ulp off"


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arguments_are_within_their_bounds(name: str, kind: str) -> None:
    rng = np.random.default_rng(12)
    CONTEXT.prec = 70 if kind == "f32" else 120
    rows = pairs(name, kind, rng)
    wanted = [BINARY[name](CONTEXT.mpf(a), CONTEXT.mpf(b)) for a, b in rows.tolist()]
    check(name, kind, rows, wanted)
