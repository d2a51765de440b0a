-- A lesson with mistakes: functions that do not end or fail, and a view that does not exist.
local show = { "window(window=5):weights", input = "synthetic:local", n = 16, d = 4, heads = 2 }

return {
    title = "Own mistakes",
    summary = "What a lesson's mistakes look like.",
    recap = "This is the end of it.",
    minutes = 5,
    steps = {
        {
            title = "No end",
            text = "Type a number.",
            show = show,
            ask = { "How much?", answer = function() while true do end end, unit = "%" },
        },
        {
            title = "A task",
            text = "It fails.",
            show = show,
            task = "press p and set window to 7",
            done = function(s) return s[1].windw > 6 end,
            solution = { "window(window=7):weights", input = "synthetic:local", n = 16, d = 4,
                         heads = 2 },
        },
        {
            title = "No such view",
            text = "It cannot be shown.",
            show = { "window(window=5):weihgts", input = "synthetic:local", n = 16, d = 4 },
        },
        {
            title = "Per cent",
            text = "The pane has two heads.",
            show = show,
            ask = {
                "Which share is it?",
                answer = function(s) return 72.7804 + s[1].head end,
                within = 0.001,
                unit = "%",
            },
        },
    },
}
