-- Where a lesson runs: where the session does, but for what names its device.
local function place(run)
    return run.device .. " " .. run.precision
end

return {
    title = "Here or there",
    summary = "The pane, a run beside it, and one that says where.",
    minutes = 1,
    steps = {
        {
            title = "Three places",
            text = "Each says where it ran.",
            show = { "full:weights", n = 8, d = 4 },
            runs = {
                beside = { "full", n = 16, d = 4, measure = true },
                host = { "full", n = 16, d = 4, device = "cpu" },
            },
            now = function(s)
                return ("pane: %s\nbeside: %s\nhost: %s"):format(place(s[1]), place(s.beside),
                    place(s.host))
            end,
        },
        {
            title = "The pane's own",
            text = "This one stays here.",
            show = { "full(device=cpu):weights", n = 8, d = 4 },
            now = function(s) return "own: " .. place(s[1]) end,
        },
    },
}
