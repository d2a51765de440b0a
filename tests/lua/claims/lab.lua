-- Claims about general methods: memory, rounding, sharing, pipelines.
local check = require "support.check"
local claims = require "support.claims"
local run, flops, rows, sum = claims.run, claims.flops, claims.rows, claims.sum

local function list(result, view) return result:view(view):totable() end

local function most(values)
  local best = values[1]
  for _, value in ipairs(values) do best = math.max(best, value) end
  return best
end

local function least_at(values)
  local best = 1
  for i, value in ipairs(values) do best = value < values[best] and i or best end
  return best
end

local function plain(text) return assert(attn.run(text)) end -- it reads no input

local function scaled(by, from)
  local input = assert(attn.load("synthetic:normal", { n = 64, d = 32 }))
  local q = input.q:copy()
  for i = from or 0, from or 63 do
    for c = 0, 31 do q:set(0, i, c, by * q:get(0, i, c)) end
  end
  return assert(attn.input { q = q, k = input.k, v = input.v })
end

return {
  { "act", "columns of different height", function(is)
    local r = run("act")
    is(r:view("updates"):max(), ">", r:view("updates"):min())
    is(r.figures.saved_fraction, ">", 0)
  end },
  { "act", "who passes 1 - epsilon gets what is missing to 1 as the last share", function(is)
    local shares = run("act(max_steps=12)"):view("update_weights"):sum(0)
    is(shares:min(), "~", 1)
    is(shares:max(), "~", 1)
  end },
  { "act", "a halted token is still a key and a value", function(is)
    local r = run("act")
    is(r:view("active"):min(), "==", 0)
    is(r.figures.token_steps, "<", 64 * r.figures.steps)
  end },

  { "checkpointing", "a saw instead of a triangle: less kept, more computed again", function(is)
    local all, some = run("checkpointing(schedule=none)").figures, run("checkpointing").figures
    is(some.peak_bytes, "<", 0.7 * all.plain_peak_bytes)
    is(some.recomputed_layers, ">", 0)
  end },
  { "checkpointing", "Up to one more forward pass is computed", function(is)
    for _, every in ipairs { 1, 2, 3, 6 } do
      local r = run(("checkpointing(schedule=every,every=%d)"):format(every))
      is(r.figures.forward_ratio, ">=", 1)
      is(r.figures.forward_ratio, "<=", 2)
    end
  end },
  { "checkpointing", "in a stack of few layers k = 1 is best", function(is)
    is(least_at(list(run("checkpointing(layers=6)"), "peaks")), "==", 1)
  end },
  { "checkpointing", "Deep stacks have a U of peaks against k, its bottom near sqrt(L I/A)",
    function(is)
      local r = run("checkpointing(layers=256)", { n = 16, d = 8 })
      local f, at = r.figures, least_at(list(r, "peaks"))
      local bottom = math.sqrt(256 * f.checkpoint_bytes / f.layer_bytes)
      is(at, ">", 1)
      is(math.abs(at - bottom), "<", 0.5 * bottom + 1)
    end },
  { "reversible", "a triangle against a flat line", function(is)
    local function peaks(layers)
      local r = run(("reversible(layers=%d)"):format(layers), { n = 32, d = 16 })
      return r.figures.peak_plain_bytes, r.figures.peak_reversible_bytes
    end
    local plain_4, reversible_4 = peaks(4)
    local plain_16, reversible_16 = peaks(16)
    is(plain_16, ">", 3 * plain_4)
    is(reversible_16, "==", reversible_4)
  end },
  { "reversible", "an error that grows layer by layer as the inputs are reconstructed, more so in "
    .. "coarse formats", function(is)
      local function errors(format)
        return list(run("reversible(layers=12,precision=" .. format .. ")"), "error_relative")
      end
      local fine, coarse = errors("float32"), errors("bf16")
      for _, e in ipairs { fine, coarse } do
        is(most(e[1]), ">", most(e[7]))
        is(most(e[7]), ">", most(e[13]))
      end
      is(most(coarse[1]), ">", 100 * most(fine[1]))
    end },
  { "chunked-ffn", "its memory falls as 1/chunks, down to what input and output take, for the same "
    .. "FLOPs and the same numbers", function(is)
      local whole, parts = run("chunked-ffn"), run("chunked-ffn(chunks=8)")
      is(parts.figures.hidden_bytes, "==", whole.figures.hidden_bytes / 8)
      is(parts.figures.peak_bytes - parts.figures.hidden_bytes, "==",
        whole.figures.peak_bytes - whole.figures.hidden_bytes)
      is(flops(parts), "==", flops(whole))
      -- A product of fewer rows may round otherwise: the order of the sum is the BLAS kernel's.
      is(select(2, parts.output:allclose(whole.output)), "<", 1e-5)
    end },
  { "given", "The weights are taken from a file and applied to the values", function(is)
    local input = assert(attn.load("synthetic:normal", { n = 16, d = 8 }))
    local full = run("full", { input = input })
    local path = check.scratch("claims-given.npz")
    assert(attn.write_npz(path, { attn = full.views.weights:copy(), v = input.v:copy() }))
    local given = run("given", { input = assert(attn.load(path)) })
    is(select(2, given.output:allclose(full.output)), "<", 1e-5)
  end },
  { "head-pruning", "Weights that are drawn have no such heads: their curve rises from the first",
    function(is)
      local curve = list(run("head-pruning(heads=4,prune=6)"), "curve")
      is(curve[2], ">", 0.05)
      is(curve[7], ">", 3 * curve[2])
    end },
  { "head-pruning", "Heads are ordered by how much the output changes without them", function(is)
    local r = run("head-pruning(heads=4)")
    local importance, before = list(r, "importance"), 0
    for _, head in ipairs(list(r, "order")) do
      is(importance[head[1] + 1][head[2] + 1], ">=", before)
      before = importance[head[1] + 1][head[2] + 1]
    end
  end },

  { "micro-batching", "idle triangles shrink with the number of pieces", function(is)
    local bubbles = list(plain("micro-batching"), "bubbles")
    for i = 2, #bubbles do is(bubbles[i], "<", bubbles[i - 1]) end
  end },
  { "micro-batching", "Where a piece's activations are recomputed, the memory of each "
    .. "device shrinks too", function(is)
      local function memory(pieces, recompute) -- of one batch, cut into so many pieces
        return plain(("micro-batching(layers=8,layer_bytes=%d,boundary_bytes=%d,micro_batches=%d,"
          .. "recompute=%s)"):format(16000 // pieces, 1600 // pieces, pieces, recompute))
          .figures.peak_bytes_per_device
      end
      is(memory(8, "true"), "<", memory(2, "true"))
      is(memory(8, "false"), ">=", memory(2, "false"))
    end },
  { "mixed-precision", "bf16 is coarse but has the range of float32, so it overflows only where "
      .. "float32 nearly does; fp16 is finer, overflows above 65504", function(is)
      local function figures(format, input)
        return run("mixed-precision(scale_first=false,format=" .. format .. ")", { input = input })
          .figures
      end
      is(figures("bf16").relative_error, ">", 4 * figures("fp16").relative_error)
      is(figures("fp16", scaled(20000)).score_overflows, ">", 0)
      is(figures("bf16", scaled(20000)).score_overflows, "==", 0)
      is(figures("bf16", scaled(1e18)).score_overflows, "==", 0)
    end },
  { "mixed-precision", "turns weights below 2^-25 into zero", function(is)
    local weights = run("mixed-precision(format=fp16)", { input = scaled(12) })
    local exact, stored = rows(weights, "weights_reference"), rows(weights, "weights")
    local small = 0
    for q = 1, 64 do
      for k = 1, 64 do
        if exact[q][k] < 2 ^ -26 then
          small = small + 1
          is(stored[q][k], "==", 0)
        end
      end
    end
    is(small, ">", 0)
  end },
  { "mixed-precision", "Sums kept wide lose one rounding, sums in the format one at each step",
    function(is)
      for _, format in ipairs { "bf16", "fp16" } do
        local wide = run("mixed-precision(format=" .. format .. ")").figures.relative_error
        local half = run("mixed-precision(accumulate=half,format=" .. format .. ")").figures
        is(half.relative_error, ">", 2 * wide, format)
      end
    end },
  { "quantization", "q, k, v: N/32 of the bytes", function(is)
    local r = run("quantization(bits=4)")
    local function distinct(view)
      local seen, count = {}, 0
      for _, row in ipairs(rows(r, view)) do
        for _, value in ipairs(row) do
          count = count + (seen[value] and 0 or 1)
          seen[value] = true
        end
      end
      return count
    end
    is(distinct("dequantized_q"), "<=", 16)
    is(distinct("weights"), ">", 16) -- these are not quantised
  end },
  { "quantization", "an even error of at most half a step over the tensor", function(is)
    local below, above = 0, 0
    for _, row in ipairs(rows(run("quantization"), "error_q")) do
      for _, e in ipairs(row) do
        is(math.abs(e), "<=", 0.5001)
        if math.abs(e) < 0.25 then below = below + 1 else above = above + 1 end
      end
    end
    is(below / above, ">", 0.9)
    is(below / above, "<", 1.1)
  end },
  { "quantization", "so one outlier row makes it coarse for all, unless every row has its own",
    function(is)
      local function step(text, input, row)
        return run(text, { input = input }):view("scale_q"):totable()[1][row or 1][1]
      end
      is(step("quantization", scaled(20, 7)), ">", 10 * step("quantization", scaled(1)))
      local own = "quantization(granularity=row)"
      is(step(own, scaled(20, 7), 1), "~", step(own, scaled(1), 1))
      is(step(own, scaled(20, 7), 8), ">", 10 * step(own, scaled(1), 8))
    end },
  { "parameter-sharing", "ALBERT has a tenth of BERT's numbers and all of its FLOPs", function(is)
    local bert = plain("parameter-sharing").figures
    local albert = plain("parameter-sharing(share=all,embedding_dim=128)").figures
    is(albert.parameters / bert.parameters, "<", 0.11)
    is(albert.parameters / bert.parameters, ">", 0.09)
    local function layers(share) -- of 4 layers, by their first set of weights
      local wq, all = attn.tensor { 4, 8, 8 }, { layers = 4, heads = 2, share = share }
      for l = 0, 3 do
        for i = 0, 7 do wq:set(l, i, i, l + 1) end
      end
      all.wq = wq
      return flops(run("parameter-sharing", { n = 16, d = 8, params = all }))
    end
    is(layers("all"), "==", layers("none"))
    is(layers("all"), ">", 0)
  end },
}
