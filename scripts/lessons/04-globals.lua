-- Global tokens: a few that see all and are seen by all.
return {
    title = "Global tokens",
    summary = "A few tokens that see all and are seen by all join everything in two steps, where "
        .. "nothing is masked.",
    recap = [[
        A global token is a row and a column: about 2 n pairs. Without a causal mask it joins
        every pair of tokens in two layers. It keeps a sink that a window loses. All that is far
        passes through it.
    ]],
    minutes = 5,
    steps = {
        {
            title = "One token for all",
            text = [[
                Longformer adds global tokens to a window. Here token 0 is global: a classifier
                token, say. Everyone looks at it, and it looks at everyone.
            ]],
            show = { "longformer(window=5,global=1):components", input = "synthetic:sink", n = 64,
                d = 32 },
            ask = {
                "What does a global token look like in the picture?",
                choices = {
                    { "a full row and a full column",
                      "It reads all (row) and all read it (column)." },
                    { "only a full column", "Then it would be read, but read nobody." },
                    { "a band along the diagonal", "That is the window." },
                },
                answer = 1,
            },
            hint = "Rows are queries: who looks. Columns are keys: who is looked at.",
            explain = "Together they are a cross. Here it lies at the upper and left edge.",
        },
        {
            title = "What it costs",
            text = [[
                A global token adds one row and one column of n cells. A few of them change little
                in the work, which stays proportional to n.
            ]],
            show = { "longformer(window=5,global=1):components{notes=0:*:one row|*:0:one column}",
                input = "synthetic:sink", n = 64, d = 32 },
            runs = { window = { "window(window=5)", input = "synthetic:sink", n = 64, d = 32 } },
            now = function(s)
                return ("window alone: %d pairs\nwith one global token: %d pairs"):format(
                    s.window.pairs, s[1].pairs)
            end,
            ask = {
                "How many pairs does the global token add?",
                answer = function(s) return s[1].pairs - s.window.pairs end,
                within = 0,
            },
            hint = "Subtract.",
            explain = "Nearly 2 n: a row and a column, less the cells that the window had already.",
        },
        {
            title = "What it gains",
            text = [[
                In this input all queries attend to the first token. Trained models often do
                so: it is called an attention sink. A window loses it; a global token keeps it.
            ]],
            runs = { window = { "window(window=5)", input = "synthetic:sink", n = 64, d = 32 } },
            now = function(s)
                return ("mass kept by the window: %s\nwith the global token: %s"):format(
                    percent(s.window.mass), percent(s[1].mass))
            end,
            ask = {
                "Which change to the window alone would keep as much?",
                choices = {
                    { "a window of 9", "The last query is 63 tokens away from the first." },
                    { "one that reaches over all the text", "That is full attention again." },
                    { "a dilated window",
                      "It reaches further, but not from each token to token 0." },
                },
                answer = 2,
            },
            hint = "How far is query 63 from key 0?",
            explain = "One column does what a window could do only by being the whole matrix.",
        },
        {
            title = "Two steps to anywhere",
            text = [[
                Any token reads the global one, and the global one has read any other. So, without
                a causal mask, two layers join every pair of tokens.
            ]],
            show = { "longformer(window=5,global=1):reach", "window(window=5):reach",
                input = "synthetic:sink", n = 64, d = 32, layers = 40 },
            ask = {
                "Pane 2 (Tab twice) is the window alone. After how many layers does key 63 reach "
                    .. "query 1 there?",
                answer = function(s) return s[2].value("reach", 1, 63) end,
                within = 0,
            },
            hint = "62 tokens to go, 2 in each layer.",
            explain = function(s)
                return ("%d layers with the window alone, %d with one global token. In a causal "
                    .. "run a global token hands on only what stands before it: token 0 is then "
                    .. "a sink, no more."):format(s[2].value("reach", 1, 63),
                    s[1].value("reach", 1, 63))
            end,
        },
        {
            title = "All through one door",
            text = [[
                Two steps are few, but everything far has to pass through the global tokens.
                A vector of d numbers holds only so much. Longer texts take more of them.

                BigBird adds random pairs as well: other paths, past the door.
            ]],
            show = { "bigbird(window=3,global=1,random=2):components", input = "synthetic:sink",
                n = 64, d = 32 },
            task = "press p, set random to 0, and look what is gone",
            done = function(s) return s[1].mechanism == "bigbird" and s[1].params.random == 0 end,
            solution = { "bigbird(window=3,global=1,random=0)", input = "synthetic:sink", n = 64,
                d = 32 },
            now = function(s)
                return ("random %d: %d pairs, %s of all"):format(s[1].params.random, s[1].pairs,
                    percent(s[1].density))
            end,
            hint = "p opens the form on random. Type 0, then press Enter.",
            explain = "Scattered cells are gone, two in each row. Were there no global token, "
                .. "random links would still keep paths short, together with the window.",
        },
    },
}
