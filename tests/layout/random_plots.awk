# Prints commands of `count` / 3 random plots, one a line, the same for the same seed.

function below(n) {
    state = (state * 1103515245 + 12345) % 2147483648
    return int(state / 65536) % n
}

function one(list,    parts, n) {
    n = split(list, parts, " ")
    return parts[1 + below(n)]
}

function mechanism() {
    return one("full window bigbird longformer reformer sinkhorn linear performer linformer(k=8) nystrom")
}

function quoted() {
    return "'" mechanism() "'"
}

# Measured numbers differ from run to run; the places of words must be right for all of them.
function words_of(kind) {
    if (kind == 0)
        return "figure '" mechanism() ":plot(timeline)' '" mechanism() ":plot(timeline)' -n " one("64 128 256")
    if (kind == 1)
        return "roofline " quoted() " " quoted() " " quoted() " -n " one("64 128 512")
    if (kind == 2)
        return "figure '" mechanism() ":spectrum + " mechanism() ":spectrum' '" mechanism() ":spectrum' -n " one("24 48 64")
    if (kind == 3)
        return "compare performer --vary features=8:64:x2 --plot error,flops,memory -n " one("32 64")
    if (kind == 4)
        return "compare window bigbird --vary window=1:33:+8 --plot mass,error,flops -n " one("32 64")
    if (kind == 5) # bands beside the name of a level line
        return "compare performer window bigbird --vary features=8:64:x2 --seeds 3 --plot time,error,flops -n " one("32 64 128")
    return "compare full " quoted() " --plot time,memory,flops,error -n " one("64 128")
}

BEGIN {
    state = seed
    for (i = 0; 3 * i < count; i++)
        print words_of(i % 7) " --threads 1 --theme " one("light dark print slide colour-blind") \
              " --width " one("3.25 5 6.75 8")
}
