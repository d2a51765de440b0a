-- Claims about kernels, features and maps of low rank.
local claims = require "support.claims"
local run, flops, quality, rows = claims.run, claims.flops, claims.quality, claims.rows
local apart, rank, sum = claims.apart, claims.rank, claims.sum

-- How many times as many FLOPs twice the length takes.
local function growth(text)
  return flops(run(text, { n = 1024 })) / flops(run(text, { n = 512 }))
end

-- An input of unit vectors as queries and keys.
local function unit_input(n, d)
  local input = assert(attn.load("synthetic:normal", { n = n, d = d }))
  local tensors = { v = input.v }
  for _, name in ipairs { "q", "k" } do
    local t = input[name]:copy()
    for i = 0, n - 1 do
      local length = math.sqrt(sum(t:slice({ 0, i }):map("square"):totable()))
      for c = 0, d - 1 do t:set(0, i, c, t:get(0, i, c) / length) end
    end
    tensors[name] = t
  end
  return assert(attn.input(tensors))
end

-- Mean over seeds of the product of two tokens' features, beside what it stands for.
local function mean_product(text, input, q, k, seeds)
  local total = 0
  for seed = 1, seeds do
    local r = run(text, { input = input, seed = seed })
    local a, b = rows(r, "features_q")[q + 1], rows(r, "features_k")[k + 1]
    for i = 1, #a do total = total + a[i] * b[i] end
  end
  return total / seeds
end

local function dot(input, q, k)
  local total = 0
  for c = 0, input.d - 1 do total = total + input.q:get(0, q, c) * input.k:get(0, k, c) end
  return total
end

return {
  { "linear", "The weights are flatter than those of the softmax", function(is)
    for _, input in ipairs { "normal", "clusters", "local" } do
      local o = { input = "synthetic:" .. input }
      is(claims.mean_entropy(run("linear", o)), ">", claims.mean_entropy(run("full", o)), input)
    end
  end },
  { "linear", "Queries and keys go through a positive function", function(is)
    is(run("linear").views.features_q:min(), ">", 0)
    is(run("linear").views.features_k:min(), ">", 0)
  end },
  { "linear", "turns n^2 into a state of d x e numbers", function(is)
    for _, n in ipairs { 64, 256 } do
      local memory = rows(run("linear", { n = n }), "memory")
      is(#memory * #memory[1], "==", 32 * 32)
    end
    is(growth("linear"), "<", 2.1)
  end },
  { "linear", "which grows token by token like that of a recurrent network", function(is)
    local a = run("linear(form=recurrent)", { causal = true }).output
    is(select(2, a:allclose(run("linear(form=matrix)", { causal = true }).output)), "<", 1e-4)
  end },

  { "linear", "1 + s + s^2/2 in the place of e^s", function(is)
    local input = assert(attn.load("synthetic:normal", { n = 24, d = 8 }))
    local weights = rows(run("linear(feature_map=taylor2,normalize=false)", { input = input }),
                         "weights")
    for q = 0, 23 do
      local s = dot(input, q, 23 - q) / math.sqrt(8)
      is(math.abs(weights[q + 1][24 - q] - (1 + s + s * s / 2)), "<", 1e-5)
    end
  end },
  { "linear", "it is sharper, but where s < -1 a weight rises again", function(is)
    local o = { input = "synthetic:normal" }
    is(claims.mean_entropy(run("linear(feature_map=taylor2)", o)), "<",
       claims.mean_entropy(run("linear", o)))
    -- Queries of one channel that is 1, keys -1 and -3 there: s = -1 and s = -3.
    local input = assert(attn.input { q = attn.tensor { { 1 }, { 1 } },
                                      k = attn.tensor { { -1 }, { -3 } },
                                      v = attn.tensor { { 1 }, { 1 } } })
    local weights = rows(run("linear(feature_map=taylor2)", { input = input }), "weights")
    is(weights[1][2], ">", weights[1][1])
  end },

  { "performer", "noisy with few features, close with many", function(is)
    local o = { input = "synthetic:clusters(match=4)" }
    local before = math.huge
    for _, features in ipairs { 8, 64, 512, 4096 } do
      local now = quality(("performer(features=%d)"):format(features), o).output_error
      is(now, "<", before, features .. " features")
      before = now
    end
    is(before, "<", 0.2)
  end },
  { "performer", "random noise that falls only slowly with more features", function(is)
    local o = { input = "synthetic:clusters(match=4)" }
    local few = quality("performer(features=64)", o).output_error
    local many = quality("performer(features=256)", o).output_error
    is(many, ">", few / 4) -- four times the features, by far not a quarter of the error
  end },
  { "performer", "in the mean the product of two of them is the exponential of their score",
    function(is)
      local input = unit_input(4, 4)
      local mean = mean_product("performer(features=64,stabilize=false,scale=1)", input, 1, 2, 200)
      is(mean / math.exp(dot(input, 1, 2)), ">", 0.95)
      is(mean / math.exp(dot(input, 1, 2)), "<", 1.05)
    end },
  { "performer", "the state they are summed into does not grow with n", function(is)
    local small, large = run("performer(features=64)"), run("performer(features=64)", { n = 256 })
    is(small:view("memory"):nnz(), "==", large:view("memory"):nnz())
    is(growth("performer(features=64)"), "<", 2.1)
  end },
  { "rfa", "before the division the map is right in the mean, after it only nearly so, and it can "
      .. "be negative in a cell", function(is)
    local input = unit_input(4, 4)
    local mean = mean_product("rfa(features=64,normalize=false)", input, 1, 2, 200)
    local true_kernel = math.exp(dot(input, 1, 2) - 1) -- exp(-|q - k|^2 / 2) of unit vectors
    is(math.abs(mean - true_kernel), "<", 0.02)
    is(run("rfa(features=16)").views.weights:min(), "<", 0)
  end },
  { "rfa", "With the gate it fades with distance, and forgets at once where g drops", function(is)
    local g = attn.tensor { 64 }
    for i = 0, 63 do g:set(i, i == 40 and 0 or 0.8) end
    local r = run("rfa(gate=true,features=2048)", { causal = true, params = { gates = g } })
    local w = rows(r, "weights")
    is(math.abs(w[64][40]) + math.abs(w[64][30]), "<", 1e-6)
    local near, far = 0, 0
    for q = 20, 39 do
      for back = 0, 3 do
        near, far = near + w[q][q - back], far + w[q][q - back - 12]
      end
    end
    is(near, ">", 3 * far)
  end },

  { "mla", "One narrow strip feeds all heads", function(is)
    local r = run("mla(rank=8)", { n = 48, heads = 4 })
    is(rank(rows(r, "v_up")), "==", 8)
    is(rank(rows(r, "k_up", 3)), "==", 8)
    is(r.figures.latent, "==", 8)
  end },
  { "mla", "show what the cut leaves out, and kv_ratio what it saves", function(is)
    local f, all, lost = run("mla(rank=8)", { n = 48, heads = 2, causal = true }).figures, 0, 0
    for x, s in ipairs(rows(run("mla(rank=8)", { n = 48, heads = 2 }), "singular_values")[1]) do
      all = all + s * s
      if x > 8 then lost = lost + s * s end
    end
    is(f.rank_error, "~", math.sqrt(lost / all))
    is(f.kv_bytes_per_token, "~", f.kv_ratio * f.kv_bytes_full)
  end },
  { "mla", "so that it can meet the latents themselves", function(is)
    local a, b = run("mla(rank=8)", { heads = 2 }), run("mla(rank=8,form=plain)", { heads = 2 })
    for q, row in ipairs(rows(a, "output", 1)) do
      is(apart(row, rows(b, "output", 1)[q]), "<=", 1e-5)
    end
    is(run("mla(rank=64)", { n = 48 }).figures.relative_error, "<=", 1e-5)
  end },
  { "linformer", "few singular values hold most of many attention maps", function(is)
    is(rank(rows(run("full"), "weights"), 1e-6), "==", 64) -- though their rank is full
    is(claims.energy(run("full", { input = "synthetic:local" }), 16), ">", 0.8)
    is(claims.energy(run("full", { input = "synthetic:clusters" }), 16), ">", 0.9)
  end },
  { "linformer", "its rank is at most k however long the sequence is", function(is)
    is(rank(rows(run("linformer(k=8)", { n = 4 }), "weights")), "<=", 4)
    for _, n in ipairs { 32, 64 } do
      is(rank(rows(run("linformer(k=8)", { n = n }), "weights")), "==", 8, "n = " .. n)
    end
  end },
  { "linformer", "weights can be negative and rows need not sum to 1", function(is)
    local weights = run("linformer(k=8)").views.weights
    is(weights:min(), "<", 0)
    is(math.abs(weights:sum(2):min() - 1), ">", 0.05)
  end },
  { "linformer", "n keys and n values become k of each", function(is)
    is(#rows(run("linformer(k=8)"), "projected_keys"), "==", 8)
    is(growth("linformer(k=64)"), "<", 2.1)
  end },

  { "nystrom", "A tall, a small and a wide panel stand for the square", function(is)
    local r = run("nystrom(n_landmarks=8)")
    local tall, wide = rows(r, "factor_left"), rows(r, "factor_right")
    is(#tall, "==", 64)
    is(#tall[1], "==", 8)
    is(#wide, "==", 8)
    is(#wide[1], "==", 64)
    is(rank(rows(r, "weights")), "<=", 8)
  end },
  { "nystrom", "The inverse in the middle brings signs", function(is)
    is(run("nystrom(n_landmarks=8)").views.weights:min(), "<", 0)
    is(run("nystrom(n_landmarks=8)").views.factor_right:min(), ">=", 0)
  end },
  { "nystrom", "its residual shows whether its iterations were enough", function(is)
    local o = { input = "synthetic:clusters" }
    local function residual(iterations)
      local r = run(("nystrom(n_landmarks=8,pinv_iterations=%d)"):format(iterations), o)
      local list = r:view("residuals", 0):totable()
      list = type(list[1]) == "table" and list[1] or list
      return list[#list]
    end
    is(residual(12), "<", residual(2))
    local function off(text) return run(text, o).views.weights end
    local exact = off("nystrom(n_landmarks=8,pinv=exact)")
    is(select(2, off("nystrom(n_landmarks=8,pinv_iterations=24)"):allclose(exact)), "<",
      select(2, off("nystrom(n_landmarks=8,pinv_iterations=1)"):allclose(exact)))
  end },
  { "nystrom", "The sequence is no longer than the landmarks, so attention is exact", function(is)
    is(quality("nystrom(n_landmarks=64)").output_error, "<", 1e-4)
  end },

  { "synthesizer-dense", "shuffle all other tokens and a row does not move", function(is)
    local input = assert(attn.load("synthetic:normal", { n = 16, d = 8 }))
    local order = { 0, 3, 1, 2, 4 }
    for i = 5, 15 do order[i + 1] = 20 - i end
    local other = claims.reordered(input, order)
    local a = rows(run("synthesizer-dense", { input = input }), "weights")
    local b = rows(run("synthesizer-dense", { input = other }), "weights")
    is(apart(a[1], b[1]), "==", 0)
    is(apart(a[4], b[2]), "==", 0)
    local full_a = rows(run("full", { input = input }), "weights")
    local full_b = rows(run("full", { input = other }), "weights")
    is(apart(full_a[1], full_b[1]), ">", 0.01)
  end },
  { "synthesizer-random", "The same map whatever the input is", function(is)
    local a = run("synthesizer-random").views.weights
    local b = run("synthesizer-random", { input = "synthetic:clusters" }).views.weights
    is(select(2, a:allclose(b)), "==", 0)
  end },
  { "synthesizer-factorized-dense", "a comb of period a whose teeth are scaled by B", function(is)
    local r = run("synthesizer-factorized-dense")
    local l, a, b = rows(r, "logits"), rows(r, "factor_a"), rows(r, "factor_b")
    for column = 0, 63 do
      is(l[10][column + 1], "~", a[10][column % 8 + 1] * b[10][column // 8 + 1])
    end
  end },
  { "synthesizer-factorized-random",
    "stripes of rank k, and the softmax lifts the rank of the weights again", function(is)
      local r = run("synthesizer-factorized-random(k=4)")
      is(rank(rows(r, "logits")), "==", 4)
      is(rank(rows(r, "weights"), 1e-5), ">", 4)
    end },
  { "synthesizer-factorized-random", "The same map whatever the input is", function(is)
    local a = run("synthesizer-factorized-random").views.weights
    local b = run("synthesizer-factorized-random", { input = "synthetic:local" }).views.weights
    is(select(2, a:allclose(b)), "==", 0)
  end },
  { "sigmoid", "Each weight is the logistic function of its own score", function(is)
    local own, exact = rows(run("sigmoid"), "weights"), rows(run("full"), "weights")
    for q, row in ipairs(own) do
      local function apart(k) return math.log(row[k] / (1 - row[k]) / exact[q][k]) end
      for k = 2, #row do is(apart(k), "~", apart(1)) end
    end
  end },
  { "sigmoid", "A bias of -ln m makes a row of scores near 0 sum to about 1", function(is)
    for _, sum in ipairs(rows(run("sigmoid(scale=1e-6)"), "row_sum")[1]) do
      is(sum, ">", 0.95)
      is(sum, "<", 1.05)
    end
  end },
  { "sigmoid", "a row may be all dark or all light", function(is)
    for bias, dark in pairs { [9] = 1, [-9] = 0 } do
      for _, row in ipairs(rows(run(("sigmoid(bias=%d)"):format(bias)), "weights")) do
        for _, w in ipairs(row) do is(math.abs(w - dark), "<", 0.2) end
      end
    end
  end },
  { "sigmoid", "with b = -ln m early causal rows sum to far less", function(is)
    is(rows(run("sigmoid", { causal = true }), "row_sum")[1][1], "<", 0.1)
  end },
  { "sigmoid", "With bias_rule=visible the early rows of a causal run rise to the others",
    function(is)
      local function early(rule)
        local sums, ratio = rows(run("sigmoid(bias_rule=" .. rule .. ")", { causal = true }),
                                 "row_sum")[1], 0
        for q = 1, 8 do ratio = ratio + sums[q] / 8 / (claims.sum(sums) / 64) end
        return ratio
      end
      is(early("length"), "<", 0.3)
      is(early("visible"), ">", 0.7)
    end },
}
