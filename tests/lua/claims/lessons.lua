-- Sentences of lessons that hold a number or an order; what lessons compute is checked with them.
local claims = require "support.claims"
local rows, sum, rank, energy = claims.rows, claims.sum, claims.rank, claims.energy

-- As the lessons run: 64 tokens of 32 numbers, seed 0.
local function run(text, options)
  local o = { n = 64, d = 32 }
  for name, value in pairs(options or {}) do o[name] = value end
  local result, message = attn.run(text, o)
  return assert(result, message)
end

local function flops(text, options) return run(text, options).stats.flops.total end

local function quality(text, options)
  local o = { quality = true }
  for name, value in pairs(options or {}) do o[name] = value end
  return run(text, o).stats.quality
end

-- Mean share of the largest weights of a row.
local function kept(r, count)
  local total, all = 0, rows(r, "weights")
  for _, row in ipairs(all) do
    table.sort(row, function(a, b) return a > b end)
    total = total + sum { table.unpack(row, 1, count) }
  end
  return total / #all
end

local groups = "synthetic:clusters(clusters=8,spread=0.3,match=6,seed=3)"
local fuzzy = "synthetic:clusters(clusters=8,spread=0.3)"
local features = "synthetic:clusters(match=4)"

-- The small model that comes with the program, on its first 64 tokens of a story or of words that
-- are said three times, or on all of them.
local tales, story, again = assert(attn.model("sample:tales.gguf")), "sample:english.txt",
  "sample:repeated.txt"

local function tales_head(layer, head, text, most)
  for _, row in ipairs(tales:heads(tales:read(text, most))) do
    if row.layer == layer and row.head == head then return row end
  end
end

-- What a swap costs it, in nats a token.
local function tales_cost(word, text, options)
  local o = { swap = word }
  for name, value in pairs(options or {}) do o[name] = value end
  return assert(tales:run(tales:read(text, 256), o)).delta
end

-- In causal order, as all of that lesson.
local function lsh(rounds, around, seed)
  return quality(("reformer(block=8,rounds=%d,exclude_self=false%s)"):format(rounds, around or ""),
    { input = groups, seed = seed or 1, causal = true }).mass_mean
end

-- Keys of a row in causal order, from the first: all up to the row's own.
local function back(text, query)
  local row = run(text, { n = 96, causal = true }):pattern():row(query)
  return row[1], row[#row]
end

-- Layer 1 of the trained model; head 1 looks for what followed a word.
local function induction(text)
  local input = assert(attn.load("sample:induction.safetensors", { layer = 1 }))
  return assert(attn.run(text, { input = input, quality = true }))
end

-- Share of head 1's exact weights, the mean of its rows.
local function head_mass(result)
  local total, pattern = 0, result:pattern()
  for q, row in ipairs(rows(induction("full"), "weights", 1)) do
    for _, key in ipairs(pattern:row(q - 1, 1)) do total = total + row[key + 1] / 96 end
  end
  return total
end

return {
  { "01-n-squared", "4 d for each cell, so 4 n² d in all", function(is)
    is(flops("full") / (4 * 64 * 64 * 32), "<", 1.05)
  end },
  { "01-n-squared", "Twice the length is four times the work", function(is)
    is(flops("full", { n = 128 }) / flops("full"), "~", 4)
  end },
  { "01-n-squared", "it holds four times as many pairs", function(is)
    is(run("full", { n = 128 }):pattern().nnz / run("full"):pattern().nnz, "==", 4)
  end },
  { "01-n-squared", "Here it is near, so a window loses little", function(is)
    is(quality("window(window=9)", { n = 128, input = "synthetic:local" }).mass_mean, ">", 0.9)
  end },
  { "02-sparsity", "A row has one bright cell", function(is)
    is(kept(run("full", { input = "synthetic:previous" }), 1), ">", 0.99)
  end },
  { "02-sparsity", "Another normaliser, entmax, gives exact zeros", function(is)
    local zeros = 0
    for _, row in ipairs(rows(run("entmax", { input = fuzzy }), "weights")) do
      for _, weight in ipairs(row) do zeros = zeros + (weight == 0 and 1 or 0) end
    end
    is(zeros, ">", 0)
    for _, row in ipairs(rows(run("full", { input = fuzzy }), "weights")) do
      for _, weight in ipairs(row) do is(weight, ">", 0) end
    end
  end },
  { "02-sparsity", "about 8 of 64 keys matter in each row", function(is)
    local r = run("full", { input = fuzzy })
    is(kept(r, 8), ">", 0.9)
    is(kept(r, 4), "<", 0.9)
  end },
  { "02-sparsity", "A larger factor makes rows sharper, a smaller one flatter. The order stays.",
    function(is)
      local sharp, usual, flat = run("full(scale=0.5)"), run("full"), run("full(scale=0.02)")
      is(kept(sharp, 4), ">", kept(usual, 4))
      is(kept(usual, 4), ">", kept(flat, 4))
      for q = 0, 63 do
        is(sharp:cell(q, 5).rank, "==", flat:cell(q, 5).rank)
      end
    end },
  { "02-sparsity", "Column 0 is where attention goes that finds nothing: a sink", function(is)
    local r = assert(attn.run("full", { input = "sample:induction.safetensors", layer = 1 }))
    local weights, before, after = rows(r, "weights", 1), 0, 0
    for q = 2, 48 do -- the words come a second time from 48 on
      before, after = before + weights[q][1] / 47, after + weights[q + 47][1] / 47
    end
    is(before, ">", 0.5)
    is(after, "<", 0.1)
  end },

  { "03-patterns", "For this head a narrow window is nearly enough", function(is)
    is(quality("window(window=9)", { input = "synthetic:local" }).mass_mean, ">", 0.9)
  end },
  { "03-patterns", "The last queries lose nearly everything", function(is)
    local o = { input = "synthetic:needle(at=8,queries=24)" }
    is(quality("window(window=9)", o).mass_min, "<", 0.01)
    local weights = rows(run("full", o), "weights")
    for q = 45, 64 do is(weights[q][9], ">", 0.5) end -- a bright column
  end },
  { "03-patterns", "A window reaches half its width further with each layer", function(is)
    local r = run("window(window=5)")
    for layer = 1, 6 do
      is(r:reach_path(0, 2 * layer, { layers = layer }) ~= nil, "==", true)
      is(r:reach_path(0, 2 * layer + 1, { layers = layer }) == nil, "==", true)
    end
  end },
  { "03-patterns", "near tokens, here 7 on each side, and every 8th token", function(is)
    local keys, seen = run("sparse-strided(stride=8)"):pattern():row(32), {}
    for _, key in ipairs(keys) do seen[key - 32] = true end
    for back = 1, 7 do
      is(seen[back], "==", true)
      is(seen[-back], "==", true)
    end
    for back = 8, 15 do is(seen[back] or false, "==", back == 8) end
  end },
  { "03-patterns", "keep over 90 % of the mass in at most a quarter of the pairs", function(is)
    local r = run("window(window=9)", { input = "synthetic:local", quality = true })
    is(r.stats.quality.mass_mean, ">", 0.9)
    is(r.stats.density, "<=", 0.25)
  end },
  { "03-patterns", "a row has a few times √n keys", function(is)
    for _, n in ipairs { 64, 256, 1024 } do
      local root = math.floor(math.sqrt(n))
      local keys = #run(("sparse-strided(stride=%d)"):format(root), { n = n }):pattern():row(n // 2)
      is(keys, "<=", 4 * root)
      is(keys, ">", root)
    end
  end },
  { "04-globals", "A window loses it; a global token keeps it", function(is)
    local o = { input = "synthetic:sink" }
    is(quality("window(window=5)", o).mass_mean, "<", 0.1)
    is(quality("longformer(window=5,global=1)", o).mass_mean, ">", 0.95)
  end },
  { "04-globals", "Nearly 2 n: a row and a column", function(is)
    local more = run("longformer(window=5,global=1)").stats.nnz - run("window(window=5)").stats.nnz
    is(more, "<", 128)
    is(more, ">", 0.9 * 128)
  end },
  { "04-globals", "Without a causal mask it joins every pair of tokens in two layers", function(is)
    is(claims.layers(run("longformer(window=5,global=1)")), "==", 2)
  end },
  { "04-globals", "In a causal run a global token hands on only what stands before it: token 0 is "
      .. "then a sink, no more", function(is)
    local r = run("longformer(window=5,global=1)", { causal = true })
    is(r:reach_path(63, 40, { layers = 11 }) == nil, "==", true) -- 2 tokens a layer, as a window
    is(r:reach_path(63, 41, { layers = 11 }) ~= nil, "==", true)
  end },
  { "04-globals", "random links would still keep paths short, together with the window",
    function(is)
    is(claims.layers(run("bigbird(window=3,global=0,random=2)")), "<", 10)
  end },
  { "04-globals", "Scattered cells are gone, two in each row", function(is)
    local some = run("bigbird(window=3,global=1,random=2)").stats.nnz
    is(some - run("bigbird(window=3,global=1,random=0)").stats.nnz, "==", 2 * 63)
  end },

  { "05-lsh", "Most cells are nearly 0", function(is)
    local small = 0
    for q, row in ipairs(rows(run("full", { input = groups, causal = true }), "weights")) do
      for k = 1, q do small = small + (row[k] < 0.01 and 1 or 0) end
    end
    is(small / (64 * 65 / 2), ">", 0.6)
  end },
  { "05-lsh", "The first rounds help most", function(is)
    is(lsh(3) - lsh(1), ">", 2 * (lsh(10) - lsh(8)))
    is(lsh(8), ">", 0.95)
  end },
  { "05-lsh", "the head must not see the tail", function(is)
    is(lsh(1), ">", lsh(1, ",chunks_before=0") + 0.1)
    is(lsh(1, ",chunks_after=1"), "==", lsh(1))
  end },
  { "05-lsh", "The A's fill two and a half chunks, so even this misses some", function(is)
    local r, a = run("reformer(block=8,rounds=1,exclude_self=false)",
      { input = groups, seed = 1, causal = true }), 0
    for _, bucket in ipairs(rows(r, "buckets")[1]) do a = a + (bucket == 0 and 1 or 0) end
    is(a / 8, "==", 2.5)
  end },
  { "05-lsh", "keep over 95 % of the mass in at most 8 rounds", function(is)
    is(lsh(8), ">", 0.95)
    is(lsh(3), "<", 0.95)
  end },
  { "05-lsh", "A round more keeps all pairs that the rounds before it found", function(is)
    for rounds = 1, 8 do is(lsh(rounds + 1), ">=", lsh(rounds)) end
  end },
  { "05-lsh", "another seed draws other rotations", function(is)
    is(math.abs(lsh(4, nil, 2) - lsh(4)), ">", 0)
  end },
  { "05-lsh", "n tokens, and n / block axes for each", function(is)
    local hash
    for step in run("reformer(block=16,rounds=1)", { n = 256 }):steps() do
      if step.name == "hash" then hash = step.flops.total end
    end
    is(hash / (2 * 256 * 16 * 32), "<", 1.2)
    is(hash, ">=", 2 * 256 * 16 * 32)
  end },
  { "06-clusters", "two clusters with the same tokens share their pairs", function(is)
    is(run("routing(n_clusters=8)", { input = fuzzy, fit = true }).stats.nnz, "<", 512)
  end },
  { "06-clusters", "Better centres, that leave fewer tokens out, cost nothing more", function(is)
    local drawn = run("routing(n_clusters=8)", { input = fuzzy, quality = true })
    local fitted = run("routing(n_clusters=8)", { input = fuzzy, fit = true, quality = true })
    is(fitted.stats.quality.mass_mean, ">", drawn.stats.quality.mass_mean)
    is(fitted.stats.nnz, "<=", 512)
  end },
  { "06-clusters", "over 85 % of the mass in a quarter of all pairs", function(is)
    local wide = run("routing(n_clusters=8,cluster_window=10)",
      { input = fuzzy, fit = true, quality = true })
    is(wide.stats.quality.mass_mean, ">", 0.85)
    is(wide.stats.density, "<=", 0.25)
    local all = run("routing(n_clusters=8,cluster_window=64)", { input = fuzzy, fit = true })
    is(all.stats.density, "==", 1) -- full attention is no way to do it
  end },
  { "07-sinkhorn", "After some rounds both hold, nearly; here there are 8", function(is)
    local p = run("sinkhorn(block=8)", { input = "synthetic:blocks(shuffle=1)", fit = true })
    is(p.params.sinkhorn_iters, "==", 8)
    for axis = 0, 1 do
      is(math.abs(p:view("permutation", 0):sum(axis):max() - 1), "<", 0.01)
    end
  end },
  { "07-sinkhorn", "Dividing the columns puts rows off, each round by less", function(is)
    local before = math.huge
    for rounds = 1, 4 do
      local p = run(("sinkhorn(block=8,temperature=2,sinkhorn_iters=%d)"):format(rounds),
        { input = "synthetic:document", fit = true }):view("permutation", 0)
      local off = math.max(p:sum(1):max() - 1, 1 - p:sum(1):min())
      is(off, "<", before)
      is(math.abs(p:sum(0):max() - 1), "<", 1e-5)
      before = off
    end
  end },
  { "07-sinkhorn", "A block that was sorted to itself sees only its own 8", function(is)
    local r = run("sinkhorn(block=8,sort_net=means)", { input = "synthetic:blocks(shuffle=1)" })
    local most, itself = 0, 0
    for _, row in ipairs(rows(r, "connectivity_hard")) do
      local keys = sum(row)
      most = math.max(most, keys)
      itself = itself + (keys == 8 and 1 or 0)
      is(keys == 8 or keys == 16, "==", true)
    end
    is(most, "==", 16)
    is(itself, ">", 0)
  end },
  { "07-sinkhorn", "Here the error is tiny, because each block wants just one other", function(is)
    local o = { input = "synthetic:blocks(shuffle=1)", fit = true }
    is(quality("sinkhorn(block=8)", o).output_error, "<", 0.01)
    o.input = "synthetic:document"
    is(quality("sinkhorn(block=8)", o).output_error, ">", 0.05)
  end },

  { "08-low-rank", "About n / 2k times: half of the work makes the slots, half attends to them",
    function(is)
      local text, cost = "linformer(k=8,projection=mean-pool)", {}
      for step in run(text):steps() do cost[step.name] = step.flops.total end
      is(flops("full") / flops(text) / (64 / 16), ">", 0.9)
      is(flops("full") / flops(text) / (64 / 16), "<", 1.1)
      local parts = cost["project keys and values"] / cost["scores, softmax, mix"]
      is(parts, ">", 0.9)
      is(parts, "<", 1.1)
    end },
  { "08-low-rank", "within a slot all 8 keys get the same weight", function(is)
    local w = rows(run("linformer(k=8,projection=mean-pool)", { input = "synthetic:local" }),
      "weights")
    for key = 2, 8 do is(w[30][24 + key], "~", w[30][25]) end
  end },
  { "08-low-rank", "Its rank is k at most", function(is)
    is(rank(rows(run("linformer(k=8,projection=mean-pool)"), "weights")), "<=", 8)
  end },
  { "08-low-rank", "the first few hold most", function(is)
    is(energy(run("full", { input = "synthetic:local" }), 16), ">", 0.8)
  end },
  { "08-low-rank", "has a flat spectrum: it is sparse, but not of low rank", function(is)
    is(energy(run("full", { input = "synthetic:previous" }), 16), "<", 0.35)
  end },
  { "08-low-rank", "Smooth heads lose little, sharp heads much", function(is)
    local text = "linformer(k=8,projection=mean-pool)"
    local smooth = quality(text, { input = "synthetic:uniform" }).output_error
    local sharp = quality(text, { input = "synthetic:previous" }).output_error
    is(smooth, "<", 0.01)
    is(sharp, ">", 0.5)
  end },
  { "08-low-rank", "output error is below 20 %, with fewer FLOPs than exact attention", function(is)
    local function at(k)
      local o = { input = "synthetic:local" }
      local text = ("linformer(k=%d,projection=mean-pool)"):format(k)
      return quality(text, o).output_error, flops(text, o) / flops("full", o)
    end
    local err, cost = at(24)
    is(err, "<", 0.2)
    is(cost, "<", 1)
    is(cost, ">", 0.7) -- little is saved
    is(select(2, at(32)), ">", 0.95) -- at k = n / 2 almost nothing
    is(select(2, at(64)), ">", 1.9)
  end },
  { "09-kernels", "output error is below 50 %, with at most 160 features", function(is)
    is(quality("performer(features=128)", { input = features }).output_error, "<", 0.5)
    is(quality("performer(features=112)", { input = features }).output_error, ">", 0.5)
  end },
  { "09-kernels", "For short texts the exact answer is cheaper", function(is)
    is(flops("performer(features=128)", { n = 64 }), ">", 2 * flops("full", { n = 64 }))
  end },
  { "09-kernels", "Both are equal near n = 2 · M, here 256", function(is)
    local ratio = flops("performer(features=128)", { n = 256 }) / flops("full", { n = 256 })
    is(ratio, ">", 0.9)
    is(ratio, "<", 1.1)
  end },
  { "09-kernels", "the work is about 8 n M d; half of it makes the features", function(is)
    is(flops("performer(features=128)", { n = 1024 }) / (8 * 1024 * 128 * 32), "<", 1.1)
    is(flops("performer(features=128)", { n = 1024 }) / (8 * 1024 * 128 * 32), ">", 0.9)
    local cost = {}
    for step in run("performer(features=128)", { n = 1024 }):steps() do
      cost[step.name] = (cost[step.name] or 0) + step.flops.total
    end
    is(cost.features / cost["state and read"], ">", 0.8)
    is(cost.features / cost["state and read"], "<", 1.25)
  end },
  { "09-kernels", "With 128 features, though, sine and cosine do better here", function(is)
    local o = { input = features }
    is(quality("performer(features=128,kernel=trig)", o).output_error, "<",
      quality("performer(features=128)", o).output_error)
    is(quality("performer(features=8,kernel=trig)", o).output_error, ">",
      quality("performer(features=8)", o).output_error)
  end },
  { "09-kernels", "It takes more here", function(is) -- than four times the features for half
    local o = { input = features }
    is(quality("performer(features=32)", o).output_error, ">",
      0.5 * quality("performer(features=8)", o).output_error)
  end },
  { "10-recurrence", "With ratio 1 it is a longer plain memory: less is seen, but sharply",
    function(is)
      local o = { input = "synthetic:clusters(clusters=8)", causal = true }
      local one = quality("compressive(segment=8,mem_len=8,cmem_len=4,ratio=1)", o)
      local four = quality("compressive(segment=8,mem_len=8,cmem_len=4,ratio=4)", o)
      is(one.mass_mean, "<", four.mass_mean)
      is(one.output_error, "<", four.output_error)
    end },
  { "11-tiled", "only a constant factor can be saved there", function(is)
    local function arena(text, n)
      return run(text, { n = n, d = 64 }).stats.memory.arena_peak
    end
    for _, text in ipairs { "full", "window(window=65)" } do
      is(arena(text, 4096) / arena(text, 2048), "<", 2.2, text)
    end
  end },
  { "12-roofline", "Counted once, these bytes grow with n. Its FLOPs grow with n².", function(is)
    local short, long = run("full", { n = 512, d = 64 }), run("full", { n = 1024, d = 64 })
    is(long.stats.bytes / short.stats.bytes, "<", 2.1)
    is(long.stats.flops.total / short.stats.flops.total, ">", 3.9)
  end },
  { "12-roofline", "A window reads and writes nearly as much", function(is)
    local o = { n = 512, d = 64 }
    local window, full = run("window(window=9)", o), run("full", o)
    is(window.stats.bytes / full.stats.bytes, ">", 0.9)
    is(window.stats.bytes / full.stats.bytes, "<", 1.1)
  end },
  { "12-roofline", "Its intensity is lower: it stands further left", function(is)
    local function intensity(text)
      local r = run(text, { n = 512, d = 64 })
      return r.stats.flops.total / r.stats.bytes
    end
    is(intensity("window(window=9)"), "<", 0.5 * intensity("full"))
  end },
  { "13-budget", "Two candidates for a tenth of the exact work", function(is)
    local o = { input = "synthetic:local", n = 256 }
    local full = flops("full", o)
    local window, kernel = "window(window=17)", "performer(features=12,stabilize=false)"
    is(flops(window, o), "<", 0.1 * full)
    is(flops(kernel, o), "<", 0.1 * full)
    is(quality(window, o).output_error, "<", 0.1 * quality(kernel, o).output_error)
  end },
  { "13-budget", "It looks for similar tokens, and that is what this head wants", function(is)
    local o = { input = "synthetic:clusters(clusters=16,spread=0.3)", n = 256 }
    is(quality("reformer(block=16,rounds=2,exclude_self=false)", o).mass_mean, ">",
      quality("window(window=17)", o).mass_mean)
  end },
  { "14-mask", "On paper that is the same: the common sum cancels out", function(is)
    local o = { input = "synthetic:normal(match=4)", n = 28 }
    local after = rows(run("full", o), "weights")[13]
    o.causal = true
    local before = rows(run("full", o), "weights")[13]
    local left = sum { table.unpack(after, 1, 13) }
    for key = 1, 13 do is(after[key] / left, "~", before[key]) end
  end },
  { "14-mask", "With numbers of 32 bits dividing still works here. With 16 bits (fp16), what "
      .. "some of these rows have left is stored as 0", function(is)
    local o = { input = "synthetic:normal(match=4)", n = 28 }
    local after = rows(run("full(scale=2.83)", o), "weights")
    o.causal = true
    local before = rows(run("full(scale=2.83)", o), "weights")
    local none = 0
    for q = 1, 28 do
      local left, most = sum { table.unpack(after[q], 1, q) }, 0
      is(left, ">", 0)
      for k = 1, q do
        is(math.abs(after[q][k] / left - before[q][k]), "<", 1e-6)
        most = math.max(most, after[q][k])
      end
      none = none + (most < 2 ^ -25 and 1 or 0) -- half of the smallest number of fp16
    end
    is(none, "==", 7)
  end },
  { "14-mask", "The same happens with 32 bits where scores differ by more than about 100",
    function(is)
    local o = { input = "synthetic:normal(match=4)", n = 28 }
    local gap = 0
    for _, row in ipairs(rows(run("full(scale=8)", o), "weights")) do
      for _, weight in ipairs(row) do gap = gap + (weight == 0 and 1 or 0) end
    end
    is(gap, ">", 0)
    local empty = 0
    for q, row in ipairs(rows(run("full(scale=8)", o), "weights")) do
      empty = empty + (sum { table.unpack(row, 1, q) } == 0 and 1 or 0)
    end
    is(empty, ">", 0)
  end },
  { "14-mask", "Nearly half of the cells need not be computed at all", function(is)
    is(run("full", { n = 28, causal = true }).stats.density, "<", 0.52)
  end },
  { "15-positions", "about 20 times, smaller", function(is)
    local r = run("full", { n = 28, heads = 8, causal = true, position = "alibi" })
    is(math.exp(-rows(r, "position_bias")[21][15]), ">", 19)
    is(math.exp(-rows(r, "position_bias")[21][15]), "<", 21)
  end },
  { "15-positions", "Turning both by the same angle changes nothing", function(is)
    local o = { input = "synthetic:copy(period=1)", n = 28, d = 64, position = "rope" }
    local bias = rows(run("full", o), "position_bias")
    is(bias[6][4], "~", bias[21][19])
    for back = 1, 8 do is(bias[28][28 - back], "<", bias[28][29 - back]) end
  end },
  { "15-positions", "Half of the 32 buckets are for single distances, half for ever longer ranges",
    function(is)
      local r = run("full", { input = "synthetic:copy(period=1)", n = 200, position = "t5",
        causal = true })
      local bucket = rows(r, "position_buckets")[200]
      local function of(distance) return bucket[200 - distance] end
      for distance = 0, 15 do is(of(distance), "==", distance) end
      is(of(16), "==", of(17))
      is(of(112), "<", of(113)) -- from 113 on all is one bucket
      is(of(113), "==", of(199))
      is(of(199), "==", 31)
    end },
  { "16-heads", "In layer 0 most heads look at many tokens at once", function(is)
    local many = 0
    for head = 0, 3 do
      many = many + (math.exp(tales_head(0, head, story, 64).entropy) > 8 and 1 or 0)
    end
    is(many, "==", 3)
  end },
  { "16-heads", "One of them looks at almost nothing but itself", function(is)
    is(tales_head(0, 2, story, 64).self, ">", 0.9)
  end },
  { "16-heads", "An induction head", function(is)
    is(tales_head(3, 0, again).induction, ">", 0.5)
    local random = { 0 } -- <s>, as the model was trained
    for i = 1, 32 do random[1 + i], random[33 + i] = i * 131 % 1000 + 1, i * 131 % 1000 + 1 end
    for _, row in ipairs(tales:heads(random)) do
      if row.layer == 3 and row.head == 0 then is(row.induction, ">", 0.9) end
    end
  end },
  { "16-heads", "A head of a lower layer writes into each token which token came before it",
    function(is)
      local best = 0
      for head = 0, 3 do best = math.max(best, tales_head(2, head, again).previous) end
      is(best, ">", 0.6)
    end },
  { "16-heads", "With the wide window the model copies; with the narrow one it guesses nonsense "
      .. "words",
    function(is)
      is(tales_cost("window(window=129)", again), "<", 0.3)
      is(tales_cost("window(window=17)", again), ">", 2)
    end },
  { "16-heads", "in causal order the 8 before and the token itself", function(is)
    local first, last = back("window(window=17)", 60)
    is(first, "==", 60 - 8)
    is(last, "==", 60)
  end },
  { "16-heads", "What it needs is far away", function(is)
    local o = { layers = { 3 } }
    o.heads = { 0 }
    local induction = tales_cost("window(window=17)", again, o)
    o.heads = { 2 }
    is(induction, ">", 10 * math.max(0.05, tales_cost("window(window=17)", again, o)))
  end },
  { "17-sinks", "This head gives far more to it than a uniform head would", function(is)
    local even = 0
    for q = 1, 63 do even = even + 1 / (q + 1) / 63 end
    is(even, ">", 0.055)
    is(even, "<", 0.065)
    is(tales_head(3, 1, story, 64).first, ">", 3 * even)
    is(tales_head(3, 1, story, 64).label, "==", "sink")
    is(tales_head(3, 1, story, 256).label, "==", "mixed")
    is(tales_head(3, 1, story, 256).first, "<", 0.5)
  end },
  { "17-sinks", "Its window=9 counts the token and the 8 before: the same keys", function(is)
    for query = 0, 95 do
      local from, to = back("window(window=17)", query)
      local first, last = back("streaming-llm(sinks=0,window=9)", query)
      is(first, "==", from)
      is(last, "==", to)
    end
  end },
  { "17-sinks", "On words repeated three times this head finds even less to do", function(is)
    is(tales_head(3, 1, again, 64).first, ">", tales_head(3, 1, story, 64).first + 0.05)
  end },
  { "17-sinks", "most of the loss is gone", function(is)
    local window = tales_cost("window(window=17)", story)
    local sink = tales_cost("streaming-llm(sinks=1,window=9)", story)
    is((window - sink) / window, ">", 0.75)
  end },
  { "18-depth", "A round is 39 tokens", function(is)
    local ids = tales:read(again)
    is(#ids, "==", 119)
    for i = 3, 79 do is(ids[i], "==", ids[i + 39]) end
  end },
  { "18-depth", "The losses of single layers do not add up", function(is)
    local single = 0
    for layer = 0, 3 do
      single = single + tales_cost("window(window=9)", story, { layers = { layer } })
    end
    is(math.abs(tales_cost("window(window=9)", story) - single), ">", 0.2)
  end },
  { "18-depth", "window=25 is 12 tokens back, so 4 layers reach 48", function(is)
    local r = run("window(window=25)", { n = 96, causal = true })
    is(r:reach_path(95, 95 - 48, { layers = 4 }) ~= nil, "==", true)
    is(r:reach_path(95, 95 - 49, { layers = 4 }) == nil, "==", true)
  end },
  { "18-depth", "in causal order the 4 before and the token itself", function(is)
    is(back("window(window=9)", 60), "==", 56)
  end },
  { "18-depth", "Windows in two layers cost between", function(is)
    local least, most = math.huge, 0
    for first = 0, 2 do
      local cost = tales_cost("window(window=17)", story, { layers = { first, first + 1 } })
      least, most = math.min(least, cost), math.max(most, cost)
    end
    is(most, ">", 2 * least)
  end },
  { "18-depth", "Reach says what could get through, not what does", function(is)
    is(tales_cost("window(window=25)", again), ">", 1)
    is(tales_cost("window(window=129)", again), "<", 0.3)
  end },
  { "19-eviction", "in causal order the 15 before and the token's own", function(is)
    is(back("window(window=31)", 60), "==", 45)
  end },
  { "19-eviction", "Its window=12 counts the 11 before and the token's own", function(is)
    local last = back("streaming-llm(window=12,sinks=0)", 60)
    is(last, "==", 49)
  end },
  { "19-eviction", "A window evicts by age and loses the first tokens, which rows use as a sink",
    function(is)
      local window, sinks = induction("window(window=31)"),
        induction("streaming-llm(window=12,sinks=4)")
      is(window:pattern().nnz, "==", sinks:pattern().nnz)
      is(window.stats.quality.mass_mean, "<", sinks.stats.quality.mass_mean - 0.05)
      is(head_mass(window), "<", head_mass(sinks) - 0.2)
    end },
  { "19-eviction", "It finds the sink by itself, as rows use it", function(is)
    local r = induction("h2o(heavy=8,recent=7)")
    is(r:pattern().nnz, "==", induction("window(window=31)"):pattern().nnz)
    for q = 0, 95 do is(r:pattern():cell(q, 0, 1), "==", true) end
    is(r.stats.quality.mass_mean, ">",
       induction("streaming-llm(window=12,sinks=4)").stats.quality.mass_mean)
    is(head_mass(r), ">", head_mass(induction("streaming-llm(window=12,sinks=4)")))
  end },
  { "19-eviction", "One bright line, nearly 1 in most rows", function(is)
    local weights, bright = rows(induction("full"), "weights", 1), 0
    for q = 50, 96 do bright = bright + (weights[q][q - 47] > 0.8 and 1 or 0) end
    is(bright, ">", 47 / 2)
    is(bright, "<", 47)
  end },
  { "19-eviction", "on the first two, %s on the next two", function(is)
    local weights = rows(induction("full"), "weights", 1)
    local two, rest = 0, 0
    for q = 7, 48 do
      two, rest = two + sum { table.unpack(weights[q], 1, 2) } / 42,
        rest + sum { table.unpack(weights[q], 3, 4) } / 42
    end
    is(two, ">", 0.7)
    is(rest, "<", 0.001)
  end },
  { "19-eviction", "Nearly all of them left before a query had asked for them", function(is)
    local kept, weights = induction("h2o(heavy=8,recent=7)"):pattern(),
      rows(induction("full"), "weights", 1)
    local needed, asked = 0, 0
    for q = 49, 95 do -- the bright key of the row, where it has left
      local key, before = q - 47, 0
      if weights[q + 1][key + 1] > 0.5 and not kept:cell(q, key, 1) then
        for row = key + 1, q - 1 do
          if kept:cell(row, key, 1) then before = math.max(before, weights[row + 1][key + 1]) end
        end
        needed, asked = needed + 1, asked + (before > 0.5 and 1 or 0)
      end
    end
    is(needed, ">", 35)
    is(asked, ">", 0)
    is(asked, "<=", 3)
  end },
  { "19-eviction", "Twice the room, and this head still misses most", function(is)
    local r = induction("h2o(heavy=24,recent=7)")
    is(#r:pattern():row(95, 1), "==", 2 * 16)
    is(sum { table.unpack(rows(r, "evicted_mass")[2], 50, 96) } / 47, ">", 0.5)
  end },
  { "20-forgetting", "Each head has another number, so some remember longer", function(is)
    local r = run("retnet", { n = 28, heads = 2, input = "synthetic:normal" })
    local sum_of = run("retnet(decay=none)", { n = 28, heads = 2, input = "synthetic:normal" })
    local function left(head)
      return rows(r, "weights", head)[28][1] / rows(sum_of, "weights", head)[28][1]
    end
    is(left(0), "~", (31 / 32) ^ 27, 1e-4)
    is(left(1), ">", left(0))
  end },
  { "20-forgetting", "A row's span: its newest tokens that hold 90 % of the weight", function(is)
    local r = run("retnet", { n = 28, d = 16, input = "synthetic:clusters(clusters=4)" })
    is(claims.mean_span(r), "~", r.figures.mean_span)
  end },
  { "20-forgetting", "What is not written again stays. So it forgets by content, not by age",
    function(is)
      -- Key 0 is written once, or again by token 8; others are at right angles to it.
      local function left(again)
        local q, k, v = attn.tensor { 16, 16 }, attn.tensor { 16, 16 }, attn.tensor { 16, 16 }
        for i = 0, 15 do
          local axis = i == 8 and again and 0 or i
          q:set(i, i == 15 and 0 or axis, 1)
          k:set(i, axis, 1)
          v:set(i, i, 1)
        end
        local beta = attn.tensor { 16 }
        for i = 0, 15 do beta:set(i, 1) end
        local r = assert(attn.run("deltanet", { input = attn.input { q = q, k = k, v = v },
          causal = true, params = { beta = beta } }))
        return math.abs(rows(r, "weights")[16][1])
      end
      is(left(false), ">", 0.1)
      is(left(true), "<", 1e-6)
    end },
  { "20-forgetting", "16 directions; more keys overlap", function(is)
    local function recall(n)
      return run("deltanet", { n = n, d = 16, input = "synthetic:normal", causal = true })
        .figures.mean_recall
    end
    is(recall(256), "<", recall(8) - 0.2)
  end },
  { "21-top-k", "In the second half there is one bright key in nearly all rows, and it is always "
      .. "as far away", function(is)
    local weights, bright = rows(induction("full"), "weights", 1), 0
    for q = 50, 96 do bright = bright + (weights[q][q - 47] > 0.5 and 1 or 0) end
    is(bright, ">", 40)
  end },
  { "21-top-k", "in causal order a row reads the 7 before and the token itself", function(is)
    is(back("window(window=15)", 60), "==", 53)
  end },
  { "21-top-k", "Most of the mass of this head is further away",
    function(is)
      is(head_mass(induction("window(window=15)")), "<", 0.25)
      local weights, near = rows(induction("full"), "weights", 1), 0
      for q = 50, 96 do near = near + sum { table.unpack(weights[q], q - 7, q) } end
      is(near / 47, "<", 0.2)
    end },
  { "21-top-k", "It is the best choice there is, so it is the measure for all others", function(is)
    local r = induction("topk(k=8)")
    is(r.figures.mass, "~", r.figures.best_mass, 1e-5)
    is(r:pattern().nnz, "==", induction("window(window=15)"):pattern().nnz)
  end },
  { "21-top-k", "keep 95 % of this head's mass in at most 80 % of the pairs", function(is)
    local wide = induction("window(window=95)")
    is(head_mass(wide), ">", 0.95)
    is(wide:pattern().nnz / wide:pattern().heads / 4656, "<=", 0.8)
    is(head_mass(induction("window(window=93)")), "<", 0.95)
  end },
  { "21-top-k", "DSA a small key of its own for each token", function(is)
    local r = run("dsa")
    is(r:view("index_wk").shape[2], "<", 32) -- numbers of a key of the indexer
    is(r:view("index_scores", 0).shape[2], "==", 64)
  end },
  { "21-top-k", "As n grows it stays near half", function(is)
    local o = { n = 1024, causal = true, input = "synthetic:normal" }
    local share = flops("topk(k=8)", o) / flops("full", o)
    is(share, ">", 0.48)
    is(share, "<", 0.52)
  end },
  { "22-not-softmax", "A sigmoid maps each score to a weight from 0 to 1", function(is)
    local r = run("sigmoid", { n = 28, d = 16, causal = true,
      input = "synthetic:clusters(clusters=4)" })
    is(sum(rows(r, "weights")[28]), ">", 2)
  end },
  { "22-not-softmax", "Each softmax sums to 1", function(is)
    local r = run("differential(lambda=0.5)", { n = 28, d = 16, heads = 2, causal = true })
    is(sum(rows(r, "weights")[21]), "~", 0.5, 1e-4)
  end },
  { "22-not-softmax", "The shorter it is, the more they lose", function(is)
    local function lost(rank)
      return run(("mla(rank=%d)"):format(rank), { n = 128, d = 16, heads = 4, causal = true,
        input = "synthetic:clusters(clusters=4)" }).figures.rank_error
    end
    is(lost(16), ">", lost(28))
    is(lost(28), ">", 0.1) -- a latent as short as 28 tokens are many would be exact for these
    is(lost(64), "<", 0.1)
  end },
}
