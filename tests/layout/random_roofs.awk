# Writes `count` figures of rooflines with made-up numbers, as texts that `rerender` draws: FOLDER/1.txt, 2.txt, ...
#
# The ridge lies at the left, in the middle or at the right; a second and a third ceiling lie on the first, near it or
# far below; points lie everywhere, under the ceilings, along the slanted one or at one spot.

function below(n) {
    state = (state * 1103515245 + 12345) % 2147483648
    return int(state / 65536) % n
}

function one(list,    parts, n) {
    n = split(list, parts, " ")
    return parts[1 + below(n)]
}

function between(lo, hi) { return lo + (hi - lo) * below(1000) / 1000 }
function least(a, b) { return a < b ? a : b }
function most(a, b)  { return a > b ? a : b }
function power(x)    { return exp(x * log(10)) }

# FLOP/s of a point at this intensity, in one of the ways of the figure.
function rate_at(x, way,    roof) {
    roof = least(x * stream, peak)
    if (way == 0) return roof * power(between(-3, 0))
    if (way == 1) return roof * between(0.7, 1)
    if (way == 2) return least(x * stream * between(0.6, 1.7), peak)
    return peak * between(0.2, 0.9)
}

function add_points(name, count, way,    i, x, y, xs, ys, labels, spot) {
    spot = power(between(-1, 2.5))
    for (i = 0; i < count; i++) {
        x = way == 3 ? spot * between(0.9, 1.1) : way == 1 ? ridge * power(between(0, 1.5)) : power(between(-1, 2.5))
        y = rate_at(x, way)
        x_lo = least(x_lo, x); x_hi = most(x_hi, x); y_lo = least(y_lo, y); y_hi = most(y_hi, y)
        xs = xs (i ? "," : "") x
        ys = ys (i ? "," : "") sprintf("%.6g", y)
        labels = labels (i ? "," : "") "\"" one(stages) "\""
    }
    return "{\"name\":\"" name "\",\"mark\":\"points\",\"x\":[" xs "],\"y\":[" ys "],\"labels\":[" labels "]},"
}

function roof(name, x0, y0, x1, y1) {
    return sprintf("{\"name\":\"%s\",\"mark\":\"line\",\"x\":[%.6g,%.6g],\"y\":[%.6g,%.6g],\"guide\":true," \
                   "\"roof\":true,\"hue\":-1}", name, x0, x1, y0, y1)
}

function with_unit(rate, unit) {
    return rate < 1e12 ? sprintf("%.3g G%s", rate / 1e9, unit) : sprintf("%.3g T%s", rate / 1e12, unit)
}

function level(name, rate) {
    return "," roof(name " " with_unit(rate, "FLOP/s"), rate / stream, rate, x_hi, rate)
}

BEGIN {
    state = seed
    stages = "attend hash combine,-4-times normalise-keys project scores softmax sort route decay"
    for (k = 1; k <= count; k++) {
        file = folder "/" k ".txt"
        peak = power(between(9, 14)); ridge = power(one("-1.5 0 0.5 1 2 2.8")); stream = peak / ridge
        gemm = peak * one("1 0.99 0.95 0.85 0.6 0.34 0.1")
        x_lo = x_hi = ridge; y_lo = gemm; y_hi = peak
        x_lo = least(x_lo, gemm / stream)
        series = ""; names = 1 + below(4)
        for (i = 1; i <= names; i++)
            series = series add_points(one("Full BigBird Reformer Longformer Linear") " " i, 1 + below(5), below(4))
        x_hi *= 4
        x_lo = least(x_lo / 2.5, ridge * exp(19 / 31 * log(ridge / x_hi)))
        y_lo = least(y_lo, x_lo * stream)
        margin = exp(0.05 * log(y_hi / y_lo))
        series = series roof("memory " with_unit(stream, "B/s"), x_lo, x_lo * stream, ridge, peak) \
                 level("multiply-add", peak) level("sgemm", gemm)
        printf "Roofline\n\n# Software: attnscope\n# attnscope:version: 0\n# attnscope:command: roofline full -o %d.txt\n", k >file
        printf "# attnscope:numbers: {\"environment\":null,\"figure\":{\"panels\":1,\"legend\":true,\"theme\":\"%s\",\"width\":%s," \
               "\"letters\":1},\"panels\":[{\"panel\":0,\"title\":\"Roofline %d\",\"x\":\"FLOPs per byte\",\"y\":\"FLOP/s\"," \
               "\"measured\":\"made up\",\"series\":[%s],\"along\":{\"range\":[%.6g,%.6g],\"log\":true},\"up\":{\"range\":[%.6g,%.6g],\"log\":true}}]}\n",
               one("light light dark print colour-blind"), one("3.25 4.5 6.75"), k, series, x_lo, x_hi, y_lo / margin,
               y_hi * margin >file
        close(file)
    }
}
