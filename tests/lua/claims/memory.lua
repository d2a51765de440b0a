-- Claims about memories, latents and pooled queries.
local claims = require "support.claims"
local run, flops, quality, rows = claims.run, claims.flops, claims.quality, claims.rows
local apart, distinct, rank, sum = claims.apart, claims.distinct, claims.rank, claims.sum

local function growth(text)
  return flops(run(text, { n = 1024 })) / flops(run(text, { n = 512 }))
end

local function stage(result, name)
  for step in result:steps() do
    if step.name == name then return step.flops.total or step.flops end
  end
  error("no stage " .. name)
end

local back = "compressive(segment=8,mem_len=8,cmem_len=4,ratio=4)"

return {
  { "transformer-xl", "a band of memory as wide as mem_len on its left", function(is)
    local p = run("transformer-xl(segment=8,mem_len=8)", { causal = true }):pattern()
    is(#p:row(40), "==", 9)
    is(p:row(40)[1], "==", 32)
    is(#p:row(47), "==", 16)
  end },
  { "transformer-xl", "a segment knows nothing of the one before", function(is)
    local r = run("transformer-xl(segment=8,mem_len=0)", { causal = true })
    is(r:reach_path(40, 39, { layers = 254 }) == nil, "==", true)
  end },
  { "transformer-xl", "One layer looks one memory back, L layers look L memories back", function(is)
    local r = run("transformer-xl(segment=8,mem_len=8)", { causal = true, n = 128 })
    for layer = 1, 4 do
      is(r:reach_path(120, 120 - 8 * layer, { layers = layer }) ~= nil, "==", true)
      is(r:reach_path(120, 119 - 8 * layer, { layers = layer }) == nil, "==", true)
    end
  end },
  { "compressive", "The same cache reaches mem_len + ratio cmem_len tokens back", function(is)
    local p = run(back, { causal = true, n = 128 }):pattern()
    is(120 - p:row(120)[1], "==", 8 + 4 * 4)
  end },
  { "compressive", "slots that stand for ratio tokens each: columns of equal weight", function(is)
    local row = rows(run(back, { causal = true, n = 128 }), "weights")[121]
    for slot = 0, 3 do
      for token = 1, 3 do
        is(math.abs(row[97 + 4 * slot] - row[97 + 4 * slot + token]), "<", 1e-6)
      end
      is(row[97 + 4 * slot], ">", 0)
    end
  end },
  { "compressive", "Old tokens are blended and cannot be told apart any more", function(is)
    local o = { causal = true, input = "synthetic:clusters(clusters=8)" }
    local squeezed, plain = quality(back, o), quality("transformer-xl(segment=8,mem_len=8)", o)
    is(squeezed.mass_mean, ">", plain.mass_mean)
    is(squeezed.output_error, ">", 0.5 * plain.output_error)
  end },

  { "funnel", "Bands of `stride` equal rows", function(is)
    is(distinct(rows(run("funnel(stride=4)"), "weights")), "==", 16)
  end },
  { "funnel", "attention costs n^2/stride", function(is)
    local ratio = flops(run("full", { n = 512 })) / flops(run("funnel(stride=4)", { n = 512 }))
    is(ratio, ">", 3.8)
    is(ratio, "<", 4.1)
  end },
  { "luna", "the whole map has the rank of the slots", function(is)
    is(rank(rows(run("luna(n_p=8)"), "weights")), "==", 8)
  end },
  { "luna", "In causal runs rows need not sum to 1; the first rows can be farthest from it",
    function(is)
    for _, input in ipairs { "clusters", "local", "normal" } do
      local o = { causal = true, input = "synthetic:" .. input }
      local sums = run("luna", o).views.weights:sum(2)
      local first, last = 0, 0
      for row = 0, 7 do
        first = first + math.abs(sums:get(0, row) - 1)
        last = last + math.abs(sums:get(0, 63 - row) - 1)
      end
      is(first, ">", last, input)
      is(last, ">", 1e-3, input)
    end
    is(run("luna").views.weights:sum(2):max(), "~", 1)
  end },
  { "luna", "as many however long the sequence is", function(is)
    is(#rows(run("luna(n_p=8)", { n = 256 }), "memory"), "==", 8)
    is(growth("luna"), "<", 2.1)
  end },
  { "perceiver", "What comes out has N rows, unless queries read the latents back", function(is)
    is(run("perceiver(n_latents=8)").output.shape[2], "==", 8)
    is(run("perceiver(n_latents=8,decode=query)").output.shape[2], "==", 64)
  end },
  { "perceiver", "latent layers blend the same rows", function(is)
    local r = run("perceiver(n_latents=8,latent_layers=2)")
    local both = rows(r, "factor_right")
    is(rank(both), "==", 8)
    for _, row in ipairs(rows(r, "weights")) do both[#both + 1] = row end
    is(rank(both), "==", 8)
  end },
  { "perceiver", "this is the only step whose cost grows with the length", function(is)
    local short = run("perceiver(n_latents=8,latent_layers=1)", { n = 256 })
    local long = run("perceiver(n_latents=8,latent_layers=1)", { n = 512 })
    is(stage(long, "latent layer"), "==", stage(short, "latent layer"))
    is(stage(long, "cross-attend") / stage(short, "cross-attend"), ">", 1.9)
  end },
  { "set-isab", "Permuted tokens give permuted rows, and a pooled set does not change at all",
    function(is)
      local input = assert(attn.load("synthetic:normal", { n = 16, d = 8 }))
      local order = {}
      for i = 0, 15 do order[i + 1] = (7 * i + 3) % 16 end
      local other = claims.reordered(input, order)
      local seeds = attn.tensor { 2, 8 }
      for i = 0, 1 do
        for c = 0, 7 do seeds:set(i, c, math.sin(3 * i + c)) end
      end
      local text = "set-isab(heads=2)"
      local a = run(text, { input = input, params = { seeds = seeds } })
      local b = run(text, { input = other, params = { seeds = seeds } })
      is(select(2, a.views.pooled:allclose(b.views.pooled)), "<", 1e-5)
      local x, y = run(text, { input = input }).output, run(text, { input = other }).output
      for i, source in ipairs(order) do
        is(apart(y:slice({ 0, i - 1 }):totable(), x:slice({ 0, source }):totable()), "<", 1e-5)
      end
    end },
  { "set-isab", "Members meet only through the points", function(is)
    is(rank(rows(run("set-isab(mab=core,n_inducing=4)"), "weights")), "<=", 4)
    is(growth("set-isab"), "<", 2.1)
  end },
  { "tokenlearner", "S heat strips over the input, one for each learned token", function(is)
    local r = run("tokenlearner(n_tokens=4)")
    local maps = rows(r, "factor_right")
    is(#maps, "==", 4)
    for _, map in ipairs(maps) do is(sum(map), "~", 1) end
    is(r.output.shape[2], "==", 4)
  end },
}
