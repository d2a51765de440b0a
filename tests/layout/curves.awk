# Measures the words inside plots of one SVG drawn with --letters text against its curves.
#
# No word lies on a curve or on a line that leads to another, and each word stands near what has its colour: a curve, a point, a guide
# or the thin line that leads to it, which is at most LEAD lines of words long. No word lies on another
# curve's band while there is a free place near it, or is struck out by the grid.  Prints one line
# for each fault.

BEGIN {
    LEAD = 10
}

function attribute(name,    at, rest) {
    at = index($0, " " name "=\"")
    if (!at)
        return ""
    rest = substr($0, at + length(name) + 3)
    return substr(rest, 1, index(rest, "\"") - 1)
}

function least(a, b) { return a < b ? a : b }
function most(a, b)  { return a > b ? a : b }

function value_of(digits) {
    return 16 * index("123456789abcdef", substr(digits, 1, 1)) + index("123456789abcdef", substr(digits, 2))
}

function is_grey(colour,    r, g, b) {
    r = value_of(substr(colour, 2, 2)); g = value_of(substr(colour, 4, 2)); b = value_of(substr(colour, 6, 2))
    return most(r, most(g, b)) - least(r, least(g, b)) < 20
}

# Two rects of one x and width, one below the other, are the upper and the lower edge of a frame.
/<rect / {
    x = attribute("x") + 0; y = attribute("y") + 0; w = attribute("width") + 0; h = attribute("height") + 0
    fill = attribute("fill")
    if (h <= 6 && w > 100 && x == edge_x && w == edge_w && h == edge_h && y > edge_y) {
        fields++
        left[fields] = x + h; right[fields] = x + w - h; top[fields] = edge_y + h; bottom[fields] = y
        thin = h
    }
    edge_x = x; edge_y = y; edge_w = w; edge_h = h
    rects++
    rx0[rects] = x; ry0[rects] = y; rx1[rects] = x + w; ry1[rects] = y + h; rfill[rects] = fill
}

/<line / {
    lines++
    x0[lines] = attribute("x1") + 0; y0[lines] = attribute("y1") + 0
    x1[lines] = attribute("x2") + 0; y1[lines] = attribute("y2") + 0
    width[lines] = attribute("stroke-width") + 0; stroke[lines] = attribute("stroke")
    opacity[lines] = attribute("stroke-opacity")
}

/<(path|polygon|polyline) / {
    shapes++
    sfill[shapes] = attribute("fill")
    points = attribute("points")
    if (points == "")
        points = attribute("d")
    gsub(/[A-Za-z,]/, " ", points)
    corners = split(points, number, " ")
    if (attribute("fill-opacity") != "" && corners == 8) {
        bands++
        bfill[bands] = attribute("fill")
        for (c = 1; c <= 8; c++)
            corner[bands, c] = number[c] + 0
    }
    sx[shapes] = number[1] + 0; sy[shapes] = number[2] + 0
}

/<text / {
    place = attribute("transform")
    if (place ~ /rotate/)
        next
    match(place, /translate\([^)]*\)/)
    split(substr(place, RSTART + 10, RLENGTH - 11), at, " ")
    size = attribute("font-size") + 0
    words = $0
    sub(/^[^>]*>/, "", words)
    sub(/<.*/, "", words)
    if (words ~ /^ *$/ || attribute("fill") ~ /#(000000|ffffff)/) # a number in a cell
        next
    count++
    name[count] = words; font[count] = size; ink[count] = attribute("fill")
    tx0[count] = at[1] + 0; tx1[count] = at[1] + attribute("textLength")
    ty0[count] = at[2] - 0.72 * size; ty1[count] = at[2] + 0.1 * size
}

# Whether some part of line k lies in the box: Liang and Barsky.
function crosses(k, bx0, by0, bx1, by1,    dx, dy) {
    dx = x1[k] - x0[k]; dy = y1[k] - y0[k]
    return clip(-dx, x0[k] - bx0) && clip(dx, bx1 - x0[k]) && clip(-dy, y0[k] - by0) &&
           clip(dy, by1 - y0[k])
}

function clip(p, q) {
    if (first) { low = 0; high = 1; first = 0 }
    if (p == 0)
        return q >= 0
    q = q / p
    if (p < 0) { if (q > high) return 0; if (q > low) low = q }
    else       { if (q < low) return 0;  if (q < high) high = q }
    return 1
}

# Distance of the box of word i from a box.
function away(i, ax0, ay0, ax1, ay1,    dx, dy) {
    dx = most(0, most(ax0 - tx1[i], tx0[i] - ax1))
    dy = most(0, most(ay0 - ty1[i], ty0[i] - ay1))
    return sqrt(dx * dx + dy * dy)
}

# Distance of word i from line k, at 40 places of the line.
function line_away(i, k,    s, best, px, py, d) {
    best = 1e9
    for (s = 0; s <= 40; s++) {
        px = x0[k] + s / 40 * (x1[k] - x0[k]); py = y0[k] + s / 40 * (y1[k] - y0[k])
        d = away(i, px, py, px, py)
        best = least(best, d)
    }
    return best
}

# Whether the point lies in band k: of two stretches of a curve, at its left and its right end.
function in_band(k, x, y,    t, high, low) {
    if (x < corner[k, 1] || x > corner[k, 3] || corner[k, 3] <= corner[k, 1])
        return 0
    t = (x - corner[k, 1]) / (corner[k, 3] - corner[k, 1])
    high = corner[k, 2] + t * (corner[k, 4] - corner[k, 2])
    low = corner[k, 8] + t * (corner[k, 6] - corner[k, 8])
    return y > high + 1 && y < low - 1
}

function on_band(i, bx0, by0, bx1, by1,    k, px, py) {
    for (k = 1; k <= bands; k++)
        for (px = 0; px <= 10; px++)
            for (py = 0; py <= 2; py++)
                if (bfill[k] != ink[i] && in_band(k, bx0 + px / 10 * (bx1 - bx0), by0 + py / 2 * (by1 - by0)))
                    return 1
    return 0
}

# Nothing lies in the box but what word i may lie on.
function is_clear(i, bx0, by0, bx1, by1,    k) {
    for (k = 1; k <= lines; k++) {
        first = 1
        if (!is_grey(stroke[k]) && crosses(k, bx0, by0, bx1, by1))
            return 0
    }
    for (k = 1; k <= count; k++)
        if (k != i && tx0[k] < bx1 && bx0 < tx1[k] && ty0[k] < by1 && by0 < ty1[k])
            return 0
    return !on_band(i, bx0, by0, bx1, by1)
}

# Field f has a place for word i with air around it, on no curve and no band, near its height.
function has_room(i, f,    air, w, h, px, py, x, y) {
    air = 0.9 * font[i]; w = tx1[i] - tx0[i] + 2 * air; h = ty1[i] - ty0[i] + 2 * air
    for (py = 0; py <= 30; py++)
        for (px = 0; px <= 10; px++) {
            x = left[f] + px / 10 * (right[f] - left[f] - w); y = top[f] + py / 30 * (bottom[f] - top[f] - h)
            if (x >= left[f] && y >= top[f] && most(y - ty1[i], ty0[i] - y) < 2 * font[i] && is_clear(i, x, y, x + w, y + h))
                return 1
        }
    return 0
}

# Paper was put below word i.
function is_cleared(i,    k) {
    for (k = 1; k <= rects; k++)
        if (is_grey(rfill[k]) && rx0[k] <= tx0[i] && rx1[k] >= tx1[i] && ry0[k] <= ty0[i] + font[i] / 4 &&
            ry1[k] >= ty1[i] && ry1[k] - ry0[k] < 2 * font[i])
            return 1
    return 0
}

function check(i, f,    k, near, lead) {
    for (k = 1; k <= lines; k++) {
        first = 1
        if (is_grey(stroke[k]) && stroke[k] != ink[i] && y0[k] == y1[k] &&
            crosses(k, tx0[i], ty0[i] + 2, tx1[i], ty1[i] - 2) && !is_cleared(i)) {
            printf "a line of the grid goes through '%s'\n", name[i]
            break
        }
    }
    if (on_band(i, tx0[i], ty0[i], tx1[i], ty1[i]) && has_room(i, f))
        printf "'%s' lies on a band\n", name[i]

    near = 1e9
    for (k = 1; k <= lines; k++) {
        first = 1
        if (width[k] > 1.5 * thin && !is_grey(stroke[k]) && (opacity[k] == "" || opacity[k] > 0.5) &&
            crosses(k, tx0[i] + 1, ty0[i] + 1, tx1[i] - 1, ty1[i] - 1)) {
            printf "'%s' lies on a curve\n", name[i]
            break
        }
    }
    for (k = 1; k <= lines; k++)
        if (stroke[k] == ink[i]) {
            lead = sqrt((x1[k] - x0[k]) ^ 2 + (y1[k] - y0[k]) ^ 2)
            if (width[k] < thin && line_away(i, k) < 2 && lead > LEAD * font[i])
                printf "'%s' is led to over %d lines of words\n", name[i], lead / font[i]
            near = least(near, line_away(i, k))
        }
    for (k = 1; k <= lines; k++) {
        first = 1
        if (width[k] < thin && !is_grey(stroke[k]) &&
            crosses(k, tx0[i] + 1, ty0[i] + 1, tx1[i] - 1, ty1[i] - 1)) {
            printf "a thin line crosses '%s'\n", name[i]
            break
        }
    }
    for (k = 1; k <= rects; k++)
        if (rfill[k] == ink[i] || (is_grey(ink[i]) && !is_grey(rfill[k]))) # beside a bar
            near = least(near, away(i, rx0[k], ry0[k], rx1[k], ry1[k]))
    for (k = 1; k <= shapes; k++)
        if (sfill[k] == ink[i])
            near = least(near, away(i, sx[k], sy[k], sx[k], sy[k]))
    if (near > 1.5 * font[i])
        printf "'%s' stands %.1f lines of words from what it names\n", name[i], near / font[i]
}

END {
    for (i = 1; i <= count; i++)
        for (f = 1; f <= fields; f++)
            if (tx0[i] >= left[f] && tx1[i] <= right[f] && ty0[i] >= top[f] && ty1[i] <= bottom[f]) {
                inside++
                check(i, f)
            }
    if (all)
        printf "%d words in plots, %d lines\n", inside, lines
}
