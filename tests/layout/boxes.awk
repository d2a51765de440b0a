# Measures the words and matrices of one SVG drawn with --letters text.
#
# No two boxes of words overlap, none leaves the page, and matrices side by side have one size
# (even=1: the figure's matrices all have the same entries).  Prints one line for each fault.

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
    top[images] = attribute("y")
    image_w[images] = attribute("width")
    image_h[images] = attribute("height")
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

END {
    if (!count)
        print "no words: measured nothing"
    for (i = 1; i <= count; i++) {
        if (x0[i] < -1 || y0[i] < -1 || x1[i] > page[3] + 1 || y1[i] > page[4] + 1)
            printf "'%s' leaves the page\n", name[i]
        for (k = 1; k < i; k++)
            if (x0[i] < x1[k] - 1 && x0[k] < x1[i] - 1 && y0[i] < y1[k] - 1 && y0[k] < y1[i] - 1)
                printf "'%s' overlaps '%s'\n", name[i], name[k]
    }
    for (i = 2; even && i <= images; i++)
        for (k = 1; k < i; k++)
            if (top[i] == top[k] && (image_w[i] - image_w[k] > 1 || image_w[k] - image_w[i] > 1 ||
                                     image_h[i] - image_h[k] > 1 || image_h[k] - image_h[i] > 1))
                printf "matrices of a row: %s x %s and %s x %s\n", image_w[i], image_h[i],
                       image_w[k], image_h[k]
}
