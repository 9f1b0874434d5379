"""The statistics of bench/convergence, without packages: Welch's t-test, and epochs and time to a target accuracy."""
import math


def mean(values):
    return math.fsum(values) / len(values)


def variance(values):
    """The unbiased one; of a single value 0."""
    if len(values) < 2:
        return 0.0
    middle = mean(values)
    return math.fsum((x - middle) ** 2 for x in values) / (len(values) - 1)


def deviation(values):
    return math.sqrt(variance(values))


# ---- Student's t distribution


def continued_fraction(a, b, x):
    """The fraction of the incomplete beta function, from the front (Lentz): terms of odd and of even index in turn."""
    tiny, value, c, d = 1e-300, 1.0, 1.0, 0.0
    for i in range(10000):
        m = i // 2
        if i == 0:
            term = 1.0
        elif i % 2 == 0:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / (1 + term * d or tiny)
        c = 1 + term / c or tiny
        value *= c * d
        if i > 0 and abs(c * d - 1) < 1e-15:
            break
    return value - 1


def incomplete_beta(a, b, x):
    """Regularised: I_x(a, b), the distribution function of Beta(a, b)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges quickly on the other side
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    return front / a * continued_fraction(a, b, x)


def two_sided(t, df):
    """The probability of a |T| of at least |t|."""
    return incomplete_beta(df / 2, 0.5, df / (df + t * t))


def quantile(probability, df):
    """The t that |T| exceeds with this probability, by bisection."""
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if two_sided(middle, df) > probability else (low, middle)
    return high


def welch(a, b, level=0.05):
    """Welch's t-test of the means of two samples: their difference, t, degrees of freedom, p, and the interval of the
    difference at 1 - level. None where a side has fewer than two values. Without any spread p is 1 or 0."""
    if len(a) < 2 or len(b) < 2:
        return None
    u, v = variance(a) / len(a), variance(b) / len(b)
    difference, error = mean(a) - mean(b), math.sqrt(u + v)
    if error == 0:
        return {"difference": difference, "t": None, "df": None, "p": 1.0 if difference == 0 else 0.0,
                "interval": [difference, difference]}
    df = (u + v) ** 2 / (u * u / (len(a) - 1) + v * v / (len(b) - 1))
    t, margin = difference / error, error * quantile(level, df)
    return {"difference": difference, "t": t, "df": df, "p": two_sided(t, df),
            "interval": [difference - margin, difference + margin]}


# ---- curves: points with epochs, accuracy, train_s and test_s, in order


def reached(curve, target):
    """Index of the first point with the target accuracy, or None."""
    return next((i for i, point in enumerate(curve) if point["accuracy"] >= target), None)


def epochs_to(curve, target, chance):
    """Epochs until the target, on the line from the evaluation before to the first that reaches it; training starts from
    `chance`. None: never."""
    i = reached(curve, target)
    if i is None:
        return None
    before = curve[i - 1] if i > 0 else {"epochs": 0.0, "accuracy": chance}
    part = (target - before["accuracy"]) / (curve[i]["accuracy"] - before["accuracy"])
    return before["epochs"] + part * (curve[i]["epochs"] - before["epochs"])


def seconds_to(curve, target):
    """Seconds of training and evaluation until the end of the evaluation that reaches the target. None: never."""
    i = reached(curve, target)
    return None if i is None else math.fsum(point["train_s"] + point["test_s"] for point in curve[:i + 1])


def middle_mean(values):
    """Mean without the best and the worst, in the manner of MLPerf. None, a target that was not reached, is the worst; the
    mean is None where another one is left, or nothing."""
    middle = sorted(values, key=lambda x: math.inf if x is None else x)[1:-1]
    return None if not middle or None in middle else mean(middle)
