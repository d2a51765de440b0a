# Measures the names of the ceilings of one roofline, drawn as SVG with --letters text.
#
# Each of the three has a name.  That of a level ceiling stands behind its right end, at its height or with a line
# to it.  That of the slanted one stands along it, or near it, and crosses no ceiling, no point, no word.  No word of a
# point lies across a ceiling.  Prints one line for each fault.

BEGIN {
    NEAR = 1.2   # lines of words from the slanted ceiling to its name
    LEVEL = 1.3  # from the height of a level one to the middle of its name, without a line
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

/<rect / {
    x = attribute("x") + 0; y = attribute("y") + 0; w = attribute("width") + 0; h = attribute("height") + 0
    if (h <= 6 && w > 100 && x == edge_x && w == edge_w && h == edge_h && y > edge_y) {
        left = x + h; right = x + w - h; top = edge_y + h; bottom = y; thin = h
    }
    edge_x = x; edge_y = y; edge_w = w; edge_h = h
    if (h > 6 && w < 40 && attribute("fill") !~ /#(ffffff|121212)/) {
        marks++
        mx0[marks] = x; mx1[marks] = x + w; my0[marks] = y; my1[marks] = y + h
    }
}

/<line / {
    lines++
    x0[lines] = attribute("x1") + 0; y0[lines] = attribute("y1") + 0
    x1[lines] = attribute("x2") + 0; y1[lines] = attribute("y2") + 0
    width[lines] = attribute("stroke-width") + 0; stroke[lines] = attribute("stroke")
}

/<text / {
    place = attribute("transform")
    match(place, /translate\([^)]*\)/)
    split(substr(place, RSTART + 10, RLENGTH - 11), at, " ")
    turn = 0
    if (match(place, /rotate\([^)]*\)/))
        turn = substr(place, RSTART + 7, RLENGTH - 8) + 0
    words = $0
    sub(/^[^>]*>/, "", words)
    sub(/<.*/, "", words)
    if (words ~ /^ *$/)
        next
    texts++
    name[texts] = words; font[texts] = attribute("font-size") + 0; long[texts] = attribute("textLength") + 0
    tx[texts] = at[1] + 0; ty[texts] = at[2] + 0; angle[texts] = turn * atan2(0, -1) / 180; ink[texts] = attribute("fill")
}

function clip(p, q) {
    if (p == 0)
        return q >= 0
    q = q / p
    if (p < 0) { if (q > high) return 0; if (q > low) low = q }
    else       { if (q < low) return 0;  if (q < high) high = q }
    return 1
}

function crosses(k, bx0, by0, bx1, by1,    dx, dy) {
    low = 0; high = 1
    dx = x1[k] - x0[k]; dy = y1[k] - y0[k]
    return clip(-dx, x0[k] - bx0) && clip(dx, bx1 - x0[k]) && clip(-dy, y0[k] - by0) && clip(dy, by1 - y0[k])
}

# A dash of a ceiling: in the field, as thick as the frame, in the colour of its name.
function is_dash(k) {
    return width[k] == thin && stroke[k] == roof_ink && x0[k] >= left - 1 && x1[k] <= right + 1 &&
           least(y0[k], y1[k]) >= top - 1 && most(y0[k], y1[k]) <= bottom + 1
}

function is_slanted(k) { return is_dash(k) && y1[k] < y0[k] - 0.01 }

# The middle of letters at a share of text i.
function middle_x(i, share) { return tx[i] + share * long[i] * cos(angle[i]) + 0.36 * font[i] * sin(angle[i]) }
function middle_y(i, share) { return ty[i] + share * long[i] * sin(angle[i]) - 0.36 * font[i] * cos(angle[i]) }

# Distance of a place from dash k.
function away(k, x, y,    s, dx, dy) {
    dx = x1[k] - x0[k]; dy = y1[k] - y0[k]
    s = most(0, least(1, ((x - x0[k]) * dx + (y - y0[k]) * dy) / (dx * dx + dy * dy + 1e-9)))
    return sqrt((x0[k] + s * dx - x) ^ 2 + (y0[k] + s * dy - y) ^ 2)
}

function check_slanted(i,    s, k, x, y, d, near, r) {
    near = 1e9
    r = 0.3 * font[i]
    for (s = 0; s <= 20; s++) {
        x = middle_x(i, s / 20); y = middle_y(i, s / 20)
        if (x < left || x > right || y < top || y > bottom)
            printf "'%s' leaves the field\n", name[i]
        for (k = 1; k <= lines; k++)
            if (is_dash(k)) {
                d = away(k, x, y)
                if (d < r)
                    fault[i] = "crosses a ceiling"
                if (is_slanted(k))
                    near = least(near, d)
            }
        for (k = 1; k <= marks; k++)
            if (x + r > mx0[k] && x - r < mx1[k] && y + r > my0[k] && y - r < my1[k])
                fault[i] = "lies on a point"
        for (k = 1; k <= texts; k++)
            if (k != i && !angle[k] && x + r > tx[k] && x - r < tx[k] + long[k] && y + r > ty[k] - 0.72 * font[k] && y - r < ty[k])
                fault[i] = "lies on '" name[k] "'"
    }
    if (i in fault)
        printf "'%s' %s\n", name[i], fault[i]
    if (near - 0.36 * font[i] > NEAR * font[i])
        printf "'%s' stands %.1f lines of words from its ceiling\n", name[i], near / font[i]
}

# The height of the level ceiling whose dashes end at the right edge.
function check_level(i,    k, y, at, best, led) {
    if (tx[i] < right) {
        printf "'%s' stands in the field\n", name[i]
        return
    }
    y = middle_y(i, 0) + (name[i + 1] ~ /^[0-9.]+ .*LOP.s$/ ? 0.575 * font[i] : 0)
    best = 1e9
    for (k = 1; k <= lines; k++)
        if (is_dash(k) && !is_slanted(k) && right - x1[k] < 40)
            best = least(best, sqrt((y0[k] - y) ^ 2))
    for (k = 1; k <= lines; k++)
        if (x0[k] >= right - 1 && x0[k] <= right + thin + 1 && sqrt((y1[k] - y) ^ 2) < 0.6 * font[i])
            led = 1
    if (!led && best > LEVEL * font[i])
        printf "'%s' stands %.1f lines of words from its ceiling\n", name[i], best / font[i]
}

END {
    for (i = 1; i <= texts; i++) {
        if (name[i] ~ /^memory/) { slope = i; roof_ink = ink[i] }
        if (name[i] ~ /^(multiply-add|sgemm)/) levels++
    }
    if (levels != 2 || !slope)
        printf "%d names of level ceilings, %d of the slanted one\n", levels, slope != 0
    if (slope)
        check_slanted(slope)
    for (i = 1; i <= texts; i++) {
        if (name[i] ~ /^(multiply-add|sgemm)/)
            check_level(i)
        if (i == slope || tx[i] < left || tx[i] > right || ty[i] < top || ty[i] > bottom || angle[i])
            continue
        for (k = 1; k <= lines; k++)
            if (is_dash(k) && crosses(k, tx[i] + 1, ty[i] - 0.72 * font[i] + 1, tx[i] + long[i] - 1, ty[i] - 1)) {
                printf "a ceiling crosses '%s'\n", name[i]
                break
            }
    }
}
