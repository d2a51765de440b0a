# Measures the words and matrices of one SVG drawn with --letters text.
#
# No two boxes of words overlap, none leaves the page, and frames side by side have one height, matrices
# and plots alike; with even=1 one width too (the figure's matrices have the same shape).  With together=1 all
# matrices have lines between their cells, or none has.  No line of words begins with what belongs to the line
# before: a per cent sign, an equals sign.  Prints one line for each fault.

function attribute(name,    at, rest) {
    at = index($0, " " name "=\"")
    if (!at)
        return ""
    rest = substr($0, at + length(name) + 3)
    return substr(rest, 1, index(rest, "\"") - 1)
}

/<svg / {
    split(attribute("viewBox"), page, " ")
}

# A narrow image is a colour bar: the matrices that are compared are square.
/<image / && attribute("width") * 1.5 > attribute("height") + 0 {
    images++
    left[images] = attribute("x") + 0
    top[images] = attribute("y") + 0
    image_w[images] = attribute("width") + 0
    image_h[images] = attribute("height") + 0
}

# Two rects of one x and width, one below the other, are the upper and the lower edge of a frame.
/<rect / {
    x = attribute("x") + 0; y = attribute("y") + 0; w = attribute("width") + 0; h = attribute("height") + 0
    if (h <= 6 && w > 60 && x == edge_x && w == edge_w && h == edge_h && y > edge_y) {
        frames++
        frame_x[frames] = x; frame_y[frames] = edge_y; frame_w[frames] = w; frame_h[frames] = y + h - edge_y
    }
    edge_x = x; edge_y = y; edge_w = w; edge_h = h
}

# A vertical line that is as high as the image that it is in stands between cells.
/<line / && attribute("x1") == attribute("x2") {
    for (i = 1; i <= images; i++)
        if (attribute("x1") + 0 > left[i] && attribute("x1") + 0 < left[i] + image_w[i] && attribute("y1") + 0 == top[i])
            rules[i]++
}

function differ(a, b) { return a - b > 1 || b - a > 1 }

# Words along a slanted line are as many boxes as they are high.
function slanted(x, y, angle,    parts, k, share, middle_x, middle_y, w, h) {
    parts = int(wide / size) + 1
    slants++
    for (k = 0; k < parts; k++) {
        share = (k + 0.5) / parts * wide
        middle_x = x + share * cos(angle) + 0.31 * size * sin(angle)
        middle_y = y + share * sin(angle) - 0.31 * size * cos(angle)
        w = wide / parts * cos(angle) - 0.82 * size * sin(angle)
        h = 0.82 * size * cos(angle) - wide / parts * sin(angle)
        count++
        name[count] = words
        part[count] = slants
        x0[count] = middle_x - w / 2; x1[count] = middle_x + w / 2
        y0[count] = middle_y - h / 2; y1[count] = middle_y + h / 2
    }
}

# A line of letters reaches from its descenders to the height of a capital letter.
/<text / {
    place = attribute("transform")
    match(place, /translate\([^)]*\)/)
    split(substr(place, RSTART + 10, RLENGTH - 11), at, " ")
    size = attribute("font-size")
    wide = attribute("textLength")
    words = $0
    sub(/^[^>]*>/, "", words)
    sub(/<.*/, "", words)
    if (words ~ /^ *$/)
        next
    if (match(place, /rotate\([^)]*\)/) && substr(place, RSTART + 7, RLENGTH - 8) + 0 > -89) {
        slanted(at[1], at[2], substr(place, RSTART + 7, RLENGTH - 8) * atan2(0, -1) / 180)
        next
    }
    count++
    name[count] = words
    if (place ~ /rotate/) {
        x0[count] = at[1] - 0.72 * size; x1[count] = at[1] + 0.1 * size
        y0[count] = at[2] - wide;        y1[count] = at[2]
    } else {
        x0[count] = at[1];               x1[count] = at[1] + wide
        y0[count] = at[2] - 0.72 * size; y1[count] = at[2] + 0.1 * size
    }
}

# A strip of few rows, which keeps its height beside a higher panel; frames of two strips are of one.
function flat(w, h) {
    return w > 2.4 * h
}

END {
    if (!count)
        print "no words: measured nothing"
    for (i = 1; i <= count; i++) {
        if (x0[i] < -1 || y0[i] < -1 || x1[i] > page[3] + 1 || y1[i] > page[4] + 1)
            printf "'%s' leaves the page\n", name[i]
        if (name[i] ~ /^[%=]/)
            printf "'%s' begins a line\n", name[i]
        for (k = 1; k < i; k++)
            if (!(i in part && part[i] == part[k]) && x0[i] < x1[k] - 1 && x0[k] < x1[i] - 1 && y0[i] < y1[k] - 1 && y0[k] < y1[i] - 1)
                printf "'%s' overlaps '%s'\n", name[i], name[k]
    }
    for (i = 2; i <= frames; i++)
        for (k = 1; k < i; k++)
            if (frame_x[i] != frame_x[k] && !differ(frame_y[i], frame_y[k]) &&
                ((differ(frame_h[i], frame_h[k]) &&
                  flat(frame_w[i], frame_h[i]) == flat(frame_w[k], frame_h[k])) || (even && differ(frame_w[i], frame_w[k]))))
                printf "frames of a row: %s x %s and %s x %s\n", frame_w[i], frame_h[i], frame_w[k], frame_h[k]
    for (i = 2; together && i <= images; i++)
        if (!rules[i] != !rules[1])
            printf "%d and %d lines between cells\n", rules[1], rules[i]
    for (i = 2; even && i <= images; i++)
        for (k = 1; k < i; k++)
            if (top[i] == top[k] && (differ(image_w[i], image_w[k]) || (differ(image_h[i], image_h[k]) &&
                                     flat(image_w[i], image_h[i]) == flat(image_w[k], image_h[k]))))
                printf "matrices of a row: %s x %s and %s x %s\n", image_w[i], image_h[i],
                       image_w[k], image_h[k]
}
