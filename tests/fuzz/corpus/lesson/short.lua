return { title = "A", summary = "b", minutes = 1, recap = "Seen.", steps = {
    { title = "One", text = "Words.\n\n- a\n- b", show = { "full", n = 8 }, task = "press p",
        done = function(s) return s[1].n > 8 end, solution = { "full", n = 9 },
        ask = { "Which?", choices = { { "a", "no" }, { "b", "yes" } }, answer = 2 }, hint = "B." },
    { title = "Two", text = function(s) return percent(0.5) .. count(12) .. bytes(9) end,
        runs = { r = { "full", n = 8, measure = true } },
        ask = { "How many?", answer = 64, within = 0.1, unit = "FLOPs" }, explain = "So." } } }
