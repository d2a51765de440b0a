# Prints `count` commands that draw, one a line, the same for the same seed.

function below(n) {
    state = (state * 1103515245 + 12345) % 2147483648
    return int(state / 65536) % n
}

function one(list,    parts, n) {
    n = split(list, parts, " ")
    return parts[1 + below(n)]
}

# Overviews of layers and heads, of an input and of a model; scores, caches, swaps of a model.
function of_model(which,    text, words) {
    text = " --text sample:" one("english.txt repeated.txt") " --max-tokens " one("16 33 48")
    if (which == 0)
        return "heads sample:tales.gguf" text
    if (which == 1)
        return "cache sample:tales.gguf"
    if (which == 2)
        return "model sample:tales.gguf" text " --swap " one("window bigbird linear")
    words = "figure " one(overviews) " --overview --input sample:" \
            (below(2) ? "induction.safetensors" : "tales.gguf" text)
    if (below(3) == 0) words = words " --sort " one("previous self first entropy")
    if (below(4) == 0) words = words " --scale log"
    return words
}

BEGIN {
    state = seed
    mechanisms = "full window bigbird longformer sparse-strided reformer routing sinkhorn linear " \
                 "performer linformer nystrom entmax topk streaming-llm"
    recent = "moba:weights nsa:weights dsa:weights quest:weights retnet:weights gla:weights " \
             "gated-deltanet:weights mamba2:weights log-linear:weights " \
             "topk:weights h2o:weights snapkv:weights vertical-slash:weights"
    caches = "h2o(heavy=3,recent=3):cache h2o(heavy=3,recent=3):evicted window(window=9):cache " \
             "h2o(heavy=3,recent=3):evicted_mass streaming-llm(sinks=2,window=4):cache " \
             "snapkv(prompt=8,observation=2,keep=4):cache"
    overviews = "full:weights bigbird:weights window:connectivity linear:weights topk:weights"
    for (i = 0; i < count; i++) {
        panels = 1 + below(6)
        kind = below(6) # a sixth each: recent mechanisms, caches over time, layers and heads
        words = "figure"
        if (kind == 2)
            words = of_model(below(4))
        for (p = 0; p < panels && kind != 2; p++)
            if (kind == 0)
                words = words " " one(recent)
            else if (kind == 1)
                words = words " '" one(caches) "'"
            else
                words = words " " one(mechanisms) ":" one("weights weights auto missed spectrum reach")
        if (kind != 2) words = words " -n " one("12 16 24 33 48 64 90")
        words = words " --theme " one("light dark print slide colour-blind")
        words = words " --width " one("3.25 5 6.75 6.75 6.75 8")
        if (kind != 2 && (kind == 1 || below(3) == 0)) words = words " --causal"
        if (kind != 2 && below(4) == 0) words = words " --heads 3"
        if (kind != 2 && below(4) == 0) words = words " --shared-scale"
        if (below(5) == 0) words = words " --size " one("6pt 7pt 8pt")
        if (below(5) == 0) words = words " --no-count"
        if (below(5) == 0) words = words " --labels " one("axes ticks letters axes,ticks none")
        if (kind != 2 && below(5) == 0) words = words " --strips sums"
        if (below(6) == 0) words = words " --title A_title_that_is_long_enough_to_be_broken_into_two_lines"
        if (kind != 2 && below(6) == 0) words = words " --seed " below(100)
        print words
    }
}
