-- A lesson with a mistake: its first step's cursor is on no cell.
return {
    title = "A cursor outside",
    summary = "The view has 8 queries.",
    minutes = 1,
    steps = {
        {
            title = "Outside",
            text = "There is no query 8.",
            show = { "full:weights", input = "synthetic:normal", n = 8, d = 4, cursor = { 8, 3 } },
        },
        {
            title = "Inside",
            text = "There is a query 7.",
            show = { "window:weights", input = "synthetic:normal", n = 8, d = 4,
                     cursor = { 7, 3 } },
        },
    },
}
