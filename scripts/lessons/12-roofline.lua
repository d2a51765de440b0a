-- Reading a roofline: two ceilings, and where a stage stands under them.
return {
    title = "Reading a roofline",
    summary = "A machine has two limits: arithmetic, and moving data. "
        .. "Which one holds a stage back?",
    recap = [[
        A stage is limited by moving data or by arithmetic: the slope and the flat part of the
        roof. Long exact attention is limited by arithmetic. Points far below the roof have
        other troubles.
    ]],
    minutes = 5,
    steps = {
        {
            title = "Two limits",
            text = [[
                A processor does so many operations (FLOPs) in a second at most, and moves so many
                bytes. A stage of an algorithm needs some of both.

                Its intensity is FLOPs for each byte moved. The plot has intensity to the right and
                speed upward. Both ceilings were measured on this machine; that takes seconds.
            ]],
            show = { "full:plot(roofline)", input = "synthetic:normal", n = 512, d = 64 },
            ask = {
                "The roof has a slope and a flat part. What is the slope?",
                choices = {
                    { "the limit by moving data", "Twice the FLOPs for a byte: twice the speed." },
                    { "the limit by arithmetic", "That is flat: it does not depend on bytes." },
                    { "the age of the machine", "It is the same at each intensity." },
                },
                answer = 1,
            },
            hint = "Speed = FLOPs for a byte × bytes in a second.",
            explain = [[
                Left of the corner a stage waits for data, right of it for arithmetic. The lower
                flat line is what one large matrix product reaches here. No stage is faster than
                the processor: points above the flat roof say that the machine was busy while the
                roof was measured.
            ]],
        },
        {
            title = "Intensity of attention",
            text = [[
                Exact attention in tiles reads Q, K, V and writes the output. Counted once, these
                bytes grow with n. Its FLOPs grow with n². So its intensity grows with n.
            ]],
            now = function(s)
                return ("%s FLOP, %s moved"):format(count(s[1].flops), bytes(s[1].bytes))
            end,
            ask = {
                "What is its intensity, in FLOPs for a byte?",
                answer = function(s) return s[1].flops / s[1].bytes end,
                within = 0.05,
            },
            hint = "Divide. 1 MiB is 1048576 bytes, 1 KiB is 1024.",
            explain = "Right of the corner of most machines: long exact attention is limited by "
                .. "arithmetic. On a real machine the intensity levels off once K and V no longer "
                .. "fit in the cache: each tile of queries then reads them from memory again.",
        },
        {
            title = "A sparse pattern",
            text = [[
                A window reads and writes nearly as much, but computes far fewer pairs. Its
                intensity is lower: it stands further left.
            ]],
            show = { "full:plot(roofline)", "window(window=9):plot(roofline)",
                input = "synthetic:normal", n = 512, d = 64 },
            now = function(s)
                return ("full: %.3g FLOP a byte\nwindow: %.3g FLOP a byte"):format(
                    s[1].flops / s[1].bytes, s[2].flops / s[2].bytes)
            end,
            ask = {
                "Further left means",
                choices = {
                    { "a lower roof above it", "The slope falls to the left." },
                    { "a higher roof above it", "To the right the slope rises." },
                    { "it must be slower in all", "It has less to do, too." },
                },
                answer = 1,
            },
            hint = "Follow the slope to the left.",
            explain = [[
                It reaches fewer FLOPs in a second. But it needs far fewer, so it may be done
                sooner. Speed in FLOP/s is not the goal; time is.
            ]],
        },
        {
            title = "Far below the roof",
            text = [[
                Here are the stages of Reformer. A point on the roof uses the machine fully. A
                point far below has another trouble: many small pieces, jumps in memory, functions
                like exp, threads that wait.
            ]],
            show = { "reformer(block=16):plot(roofline)", input = "synthetic:normal", n = 512,
                d = 64 },
            ask = {
                "A stage stands on the slope, at the roof. What makes it faster?",
                choices = {
                    { "moving fewer bytes",
                      "Fewer bytes for the same FLOPs move it to the right." },
                    { "a faster multiplier", "It waits for data, not for arithmetic." },
                    { "more FLOPs", "More work does not get done sooner." },
                },
                answer = 1,
            },
            hint = "What does it wait for?",
            explain = "That is why fused kernels help: what stays in fast memory is not moved.",
        },
        {
            title = "Look yourself",
            text = [[
                Press v for the next plot, or V for the one before: costs, memory over time,
                quality. Press Tab for the panes, where r measures; look around, and Tab comes back.

                To get this as a file: attnscope roofline full reformer -n 4096 --plot -o roof.png
            ]],
            ask = {
                "Two methods: one has 90 % of the peak speed, the other 20 %. Which is better?",
                choices = {
                    { "the first", "It may do ten times the work." },
                    { "the second", "It may still take longer." },
                    { "this does not say it", "Time and error decide." },
                },
                answer = 3,
            },
            hint = "How much has each of them to do?",
            explain = "A roofline says what holds a program back. It does not say whether the work "
                .. "was needed.",
        },
    },
}
