-- Claims about patterns that are chosen by position.
local claims = require "support.claims"
local run, flops, quality, layers = claims.run, claims.flops, claims.quality, claims.layers
local rows, apart, distinct = claims.rows, claims.apart, claims.distinct

local function cells(text, options) return run(text, options):pattern() end

-- Furthest key of a query.
local function span(pattern, query)
  local most = 0
  for _, key in ipairs(pattern:row(query)) do most = math.max(most, math.abs(key - query)) end
  return most
end

-- Cells of a component.
local function count(pattern, component)
  local total = 0
  for q = 0, pattern.n - 1 do
    for _, k in ipairs(pattern:row(q)) do
      local _, names = pattern:cell(q, k)
      for _, name in ipairs(names) do total = total + (name == component and 1 or 0) end
    end
  end
  return total
end

-- Share of the pairs that a query may see that are reached in so many layers.
local function share(result, depth)
  local depths = result:reach({ layers = depth }).depths
  return depths[#depths].share
end

-- Diagonals that have a cell.
local function diagonals(pattern)
  local seen, total = {}, 0
  for q = 0, pattern.n - 1 do
    for _, k in ipairs(pattern:row(q)) do
      if not seen[q - k] then seen[q - k], total = true, total + 1 end
    end
  end
  return total
end

return {
  { "full", "the square whose area, quadratic in n", function(is)
    is(cells("full").nnz, "==", 64 * 64)
    is(cells("full", { n = 128 }).nnz, "==", 4 * cells("full").nnz)
  end },
  { "full", "a softmax turns the scores into shares of the values", function(is)
    local sums = run("full").views.weights:sum(2)
    is(sums:min(), "~", 1)
    is(sums:max(), "~", 1)
  end },
  { "full", "grow with the square of the length", function(is)
    local ratio = flops(run("full", { n = 256 })) / flops(run("full", { n = 128 }))
    is(ratio, ">", 3.9)
    is(ratio, "<", 4.1)
  end },

  { "window", "A band along the diagonal whose width does not grow with n", function(is)
    is(#cells("window(window=9)"):row(32), "==", 9)
    is(#cells("window(window=9)", { n = 512 }):row(256), "==", 9)
  end },
  { "window", "Far tokens meet only through many layers", function(is)
    is(layers(run("window(window=9)")), "==", math.ceil(63 / 4))
  end },
  { "window", "much of what a token needs is near", function(is)
    is(quality("window(window=17)", { input = "synthetic:local" }).mass_mean, ">", 0.95)
    is(quality("window(window=17)", { input = "synthetic:clusters" }).mass_mean, "<", 0.5)
  end },
  { "dilated", "the same number of cells reaches further", function(is)
    local near, far = cells("window(window=7)"), cells("dilated(window=7,dilation=2)")
    is(#far:row(32), "==", #near:row(32))
    is(span(far, 32), "==", 2 * span(near, 32))
    is(diagonals(far), "==", 7)
  end },
  { "dilated", "within one head tokens whose positions differ by no multiple of the dilation never "
      .. "meet", function(is)
    local r = run("dilated(window=7,dilation=2)")
    is(r:reach_path(32, 33, { layers = 254 }) == nil, "==", true)
    is(r:reach_path(0, 62, { layers = 254 }) ~= nil, "==", true)
  end },
  { "cascade", "the bands are 1, 3, 7, 15 wide and end in full attention", function(is)
    for layer, width in ipairs { 1, 3, 7, 15, 31 } do
      is(#cells("cascade(layer=" .. layer - 1 .. ")"):row(32), "==", width)
    end
    is(cells("cascade(layer=7)").nnz, "==", 64 * 64)
  end },

  { "block-local",
    "Squares on the diagonal and no bridge between them, until neighbours are let in", function(is)
      is(layers(run("block-local(block=8)")) == nil, "==", true)
      is(run("block-local(block=8)"):reach_path(8, 7, { layers = 254 }) == nil, "==", true)
      is(layers(run("block-local(block=8,back=1,ahead=1)")), "<=", 8)
    end },
  { "blockbert", "With as many heads as blocks every pair of tokens meets in exactly one head",
    function(is)
      local p = cells("blockbert(blocks=4)", { heads = 4 })
      local once = 0
      for q = 0, 63 do
        for k = 0, 63 do
          local heads = 0
          for h = 0, 3 do heads = heads + (p:cell(q, k, h) and 1 or 0) end
          once = once + (heads == 1 and 1 or 0)
        end
      end
      is(once, "==", 64 * 64)
    end },
  { "blockbert", "A head keeps the squares on the diagonal or moves them all off it", function(is)
    local p = cells("blockbert(blocks=4)", { heads = 2 })
    is(p:cell(20, 20, 0), "==", true)
    for q = 0, 63 do is(p:cell(q, q, 1), "==", false) end
  end },
  { "sparse-strided", "so that two layers join any pair", function(is)
    is(layers(run("sparse-strided(stride=8)")), "==", 2)
    is(layers(run("sparse-strided(stride=8)", { causal = true })), "==", 2)
  end },
  { "sparse-fixed", "full columns at the end of each block", function(is)
    local p = cells("sparse-fixed(stride=8)")
    for q = 0, 63 do is(p:cell(q, 7), "==", true) end
    is(p:cell(40, 6), "==", false)
    is(layers(run("sparse-fixed(stride=8)")), "==", 2)
  end },
  { "star", "any two tokens are at most two hops apart, unless the run is causal", function(is)
    is(layers(run("star")), "==", 2)
    is(share(run("star", { n = 256, causal = true }), 12), "<", 0.15)
    is(#cells("star"):row(0), "==", 64)
    is(#cells("star"):row(32), "==", 4)
  end },
  { "logsparse", "log2(n) layers to connect any pair", function(is)
    is(layers(run("logsparse", { causal = true })), "<=", 6)
    is(layers(run("logsparse", { causal = true, n = 256 })), "<=", 8)
  end },
  { "logsparse", "A query sees the distances 1, 2, 4, 8 and so on", function(is)
    local p = cells("logsparse", { causal = true })
    for _, back in ipairs { 1, 2, 4, 8, 16, 32 } do is(p:cell(63, 63 - back), "==", true) end
    is(#p:row(63), "==", 7)
  end },
  { "logsparse", "A restart repeats the comb", function(is)
    local p = cells("logsparse(restart=16)", { causal = true })
    for _, distance in ipairs { 1, 2, 4, 8 } do
      is(p:cell(63, 63 - 16 - distance), "==", true, "distance " .. 16 + distance)
    end
  end },
  { "random", "no locality, yet most tokens are a few hops apart", function(is)
    local p, near = cells("random(r=3)", { n = 256 }), 0
    for q = 0, 255 do
      for _, k in ipairs(p:row(q)) do near = near + (math.abs(q - k) <= 8 and 1 or 0) end
    end
    is(near / p.nnz, "<", 0.12) -- 16 of 255 keys are so near
    is(share(run("random(r=3)", { n = 256 }), 9), ">", 0.9)
    is(share(run("window(window=3)", { n = 256 }), 9), "<", 0.1)
  end },
  { "random", "About e^-r of the keys are drawn by no query, and reach no token but themselves",
    function(is)
      for r = 1, 3 do
        local p, drawn, left = cells(("random(r=%d)"):format(r), { n = 1024 }), {}, 0
        for q = 0, 1023 do
          for _, k in ipairs(p:row(q)) do drawn[k] = true end
        end
        for k = 0, 1023 do left = left + (drawn[k] and 0 or 1) end
        is(math.abs(left / 1024 - math.exp(-r)), "<", 0.03, "r = " .. r)
      end
      is(layers(run("random(r=3)", { n = 512 })) == nil, "==", true)
    end },
  { "random", "most keys that matter are missed", function(is)
    is(run("random(r=3)", { input = "synthetic:clusters" }):missed().found, "<", 0.2)
  end },

  { "longformer", "without a causal mask two hops join any pair", function(is)
    is(layers(run("longformer(window=5,global=1)")), "==", 2)
  end },
  { "longformer", "In a causal run a global token hands on only what stands before it: the first "
      .. "token is only a sink", function(is)
    local r = run("longformer", { n = 256, causal = true })
    is(#r:pattern():row(0), "==", 1)
    is(share(r, 2), "<", 0.1)
    is(share(r, 12), "<", 0.3)
  end },
  { "bigbird", "the global tokens, which without a causal mask keeps every pair within two hops",
    function(is)
      is(layers(run("bigbird(window=3,global=1,random=0)")), "==", 2)
      is(layers(run("bigbird(window=3,global=0,random=2)")), ">", 2)
      is(share(run("bigbird", { n = 256, causal = true }), 2), "<", 0.5)
    end },
  { "bigbird", "scattered random cells, which keep paths short even without the cross", function(is)
    is(layers(run("bigbird(window=3,global=0,random=2)")), "<", 10)
    is(layers(run("bigbird(window=3,global=0,random=0)")), "==", 63)
  end },
  { "bigbird", "A single far pair is mostly missed and needs more than one hop", function(is)
    local p, far, seen = cells("bigbird", { n = 256 }), 0, 0
    for q = 8, 255 do
      for k = 8, 255 do
        if math.abs(q - k) > 8 then far, seen = far + 1, seen + (p:cell(q, k) and 1 or 0) end
      end
    end
    is(seen / far, "<", 0.05)
  end },
  { "etc", "a small dense square, two thin strips and a band", function(is)
    local cell = rows(run("etc(global=2,radius=3)"), "connectivity") -- globals first
    local total = 0
    for _, row in ipairs(cell) do total = total + claims.sum(row) end
    is(total, "==", 2 * 2 + 2 * 2 * 64 + 64 * 7 - 12)
    is(cell[1][1] + cell[1][2] + cell[2][1] + cell[2][2], "==", 4)
  end },
  { "etc", "time O(g^2 + g n + r n)", function(is)
    local function counted(radius)
      local some = run(("etc(global=2,radius=%d)"):format(radius), { n = 512 })
      return flops(some) / (2 * 2 + 2 * 2 * 512 + 512 * (2 * radius + 1))
    end
    is(counted(31) / counted(3), ">", 0.9) -- so the window is most of the work
    is(counted(31) / counted(3), "<", 1.1)
  end },
  { "etc", "Far parts of the text reach each other only through the extra tokens", function(is)
    local cell = rows(run("etc(global=2,radius=3)"), "connectivity")
    is(cell[2 + 41][2 + 20], "==", 0)
    is(cell[2 + 41][1] * cell[1][2 + 20], "==", 1)
  end },

  { "image-local-1d", "Every query of a block shares one memory strip: steps, not a sliding band",
    function(is)
      local r = rows(run("image-local-1d(query_block=8,memory=8)"), "connectivity")
      is(distinct(r), "==", 8)
      is(apart(r[17], r[24]), "==", 0)
    end },
  { "image-local-1d", "In reading order the pixel below is far away", function(is)
    local p = cells("image-local-1d(query_block=8,memory=8,both=true)",
      { n = 256, input = "synthetic:grid(width=16)" })
    is(p:cell(128, 128 + 16), "==", false)
    is(p:cell(128, 129), "==", true)
  end },
  { "image-local-2d", "one block of queries shares one rectangle of memory", function(is)
    local p = cells("image-local-2d", { input = "synthetic:grid(width=8)" })
    local a, b = p:row(4 * 8 + 4), p:row(5 * 8 + 5) -- the same block of 2 x 2
    is(apart(a, b), "==", 0)
    is(#a, "==", 3 * 4) -- two rows and one above, two columns and one to each side
  end },
  { "axial", "One pass is a bar of the image, two passes are everything", function(is)
    local r = run("axial", { input = "synthetic:grid(width=8)" })
    for _, pass in ipairs { "connectivity_row", "connectivity_col" } do
      is(claims.sum(rows(r, pass)[30]), "==", 8, pass)
    end
    is(r:pattern().nnz, "==", 64 * 64)
  end },
  { "axial", "Causal passes leave a blind spot up and to the right; causal_mode=shift fills it",
    function(is)
      local o = { input = "synthetic:grid(width=8)", causal = true }
      is(cells("axial", o):cell(5 * 8 + 3, 2 * 8 + 6), "==", false)
      is(cells("axial", o):cell(5 * 8 + 3, 2 * 8 + 1), "==", true)
      is(cells("axial(causal_mode=shift)", o):cell(5 * 8 + 3, 2 * 8 + 6), "==", true)
    end },

  { "poolingformer", "the second level sees far for little, because one key stands for many tokens",
    function(is)
      local r = run("poolingformer(window=7,window2=31,kernel=4,stride=4)")
      is(claims.sum(rows(r, "connectivity_pooled")[32]), "<", 10)
      is(span(r:pattern(), 32), ">", 12)
      is(flops(r), "<", flops(run("window(window=31)")))
    end },
  { "poolingformer", "reads q, k, v, so that the weights stay exact (ours)", function(is)
    is(claims.apart({ run("poolingformer").views.weights:sum(2):max() }, { 2 }), "<", 1e-4)
    local names = table.concat(run("poolingformer(level2=sequential)"):view_names(), " ") .. " "
    is(names:find("weights ", 1, true) == nil, "==", true)
  end },
  { "long-short", "near tokens one by one, all others through a few mixtures", function(is)
    local r = run("long-short(segment=8,rank=4)")
    is(#rows(r, "weights_compressed")[1], "==", 4)
    is(claims.sum(rows(r, "connectivity_window")[32]), "<", 64)
    is(r:pattern().nnz, "==", 64 * 64)
  end },
  { "memory-compressed", "Columns in groups of f with one weight each", function(is)
    local r = rows(run("memory-compressed(factor=4)"), "weights")
    for group = 0, 15 do
      for key = 2, 4 do
        is(math.abs(r[33][4 * group + 1] - r[33][4 * group + key]), "<", 1e-6)
      end
    end
  end },
  { "memory-compressed", "a group is seen only once it is over", function(is)
    local p = cells("memory-compressed(factor=4)", { causal = true })
    is(p:cell(34, 32), "==", false)
    is(p:cell(35, 32) or p:cell(36, 32), "==", true)
    is(p:cell(2, 0), "==", true) -- column 0 fills the first rows
  end },
  { "memory-compressed", "the cost stays quadratic, divided by the stride", function(is)
    local ratio = flops(run("memory-compressed(factor=4)", { n = 1024 })) /
      flops(run("memory-compressed(factor=4)", { n = 512 }))
    is(ratio, ">", 3)
  end },
  { "natten", "Every query has the same number of keys, also in a corner", function(is)
    local p = cells("natten", { n = 64, params = { grid = "[8,8]", kernel = "3" } })
    for q = 0, 63 do is(#p:row(q), "==", 9) end
  end },
  { "natten", "one box on the grid is many short runs in the sequence", function(is)
    local row = cells("natten", { n = 64, params = { grid = "[8,8]", kernel = "3" } }):row(27)
    for x = 0, 8 do is(row[x + 1], "==", 18 + x // 3 * 8 + x % 3) end
  end },
  { "natten", "the box jumps, and all its blocks are whole", function(is)
    local p = cells("natten", { n = 64, params = { grid = "[8,8]", tile = "2", kernel = "3" } })
    for q = 0, 63 do
      is(#p:row(q), "==", 36)
      local same = p:row(q // 16 * 16 + q % 8 // 2 * 2)
      for x, k in ipairs(p:row(q)) do is(k, "==", same[x]) end
    end
  end },
  { "natten", "a query at the border no longer stands in the middle of it", function(is)
    local p = cells("natten", { n = 16, params = { kernel = "5" } })
    is(p:row(0)[1], "==", 0)
    is(p:row(0)[5], "==", 4)
    is(p:row(8)[1], "==", 6)
  end },
  { "pattern", "a union of a few regular pieces", function(is)
    local all = cells("pattern", { params = { expr = "window(3)+global(2)" } })
    local parts = cells("pattern", { params = { expr = "window(3)" } }):union(
      cells("pattern", { params = { expr = "global(2)" } }))
    is(all:compare(parts).same, "==", true)
  end },
  { "adaptive-span", "an edge that fades over R cells", function(is)
    local mask = rows(run("adaptive-span(z=8,max_span=64,ramp=16)"), "mask")[40]
    is(mask[40 - 8], "~", 1)
    is(mask[40 - 16], "<", 1)
    is(mask[40 - 16], ">", 0)
    is(mask[40 - 24], "~", 0)
  end },
  { "adaptive-span", "Few heads need a long span; the others compute only a narrow band",
    function(is)
      is(flops(run("adaptive-span(z=8,ramp=4)", { n = 256 })), "<",
        0.2 * flops(run("adaptive-span(z=256)", { n = 256 })))
    end },
  { "adaptive-span", "a head that looks far saves nothing", function(is)
    local far = run("adaptive-span(z=64)").stats.flops
    is(far.score, "==", run("full").stats.flops.score)
  end },
  { "adaptive-span", "the others are not computed", function(is)
    local some, all = run("adaptive-span(z=8,ramp=4)", { n = 256 }), run("full", { n = 256 })
    is(flops(some), "<", 0.2 * flops(all))
  end },
}
