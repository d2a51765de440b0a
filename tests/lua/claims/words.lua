-- Words of the glossary whose explanation holds a number or an order.
local claims = require "support.claims"
local run, quality = claims.run, claims.quality

return {
  { "feature map", "FAVOR+ of the Performer makes positive numbers with random directions",
    function(is)
      is(run("performer(features=16)").views.features_q:min(), ">", 0)
      is(run("performer(features=16,kernel=trig)").views.features_q:min(), "<", 0)
    end },
  { "entropy", "0: all weight is on one key. ln(m): the weight is equal on m keys", function(is)
    is(claims.mean_entropy(run("full", { input = "synthetic:uniform", n = 49 })), "~", math.log(49))
    is(claims.mean_entropy(run("window(window=1)")), "~", 0)
  end },
  { "output error", "1: as wrong as an output of zeros", function(is)
    local input = assert(attn.load("synthetic:normal", { n = 32, d = 16 }))
    local zeros = assert(attn.input { q = input.q, k = input.k,
      v = input.v:map(function() return 0 end) })
    local compared = run("full", { input = zeros }):compare(run("full", { input = input }))
    is(compared.rel_l2, "~", 1)
  end },
  { "total variation", "0: equal. 1: they have no key in common", function(is)
    is(quality("window(window=129)").total_variation, "<", 1e-6)
    local a, b = run("window(window=1)"), run("dilated(window=3,dilation=[60])")
    is(a:compare(b).total_variation, ">", 0)
  end },
  { "reach", "A window of 3 needs many layers, a global token needs two, or many in a causal run",
    function(is)
      is(claims.layers(run("longformer(window=3,global=1)", { causal = true })), ">", 30)
      is(claims.layers(run("window(window=3)")), "==", 63)
      is(claims.layers(run("longformer(window=3,global=1)")), "==", 2)
    end },
  { "round", "More rounds miss fewer keys and cost more", function(is)
    local o = { input = "synthetic:clusters" }
    local one, eight = run("reformer(block=8,rounds=1)", o), run("reformer(block=8,rounds=8)", o)
    is(eight:missed().found, ">", one:missed().found)
    is(claims.flops(eight), ">", claims.flops(one))
  end },
  { "sliding window", "In streaming-llm and nsa the number counts the token and those before it; "
      .. "in bigbird it counts blocks", function(is)
    is(#run("streaming-llm(sinks=0,window=7)", { causal = true }):pattern():row(32), "==", 7)
    local seen = 0
    local nsa = run("nsa(window=7)", { causal = true })
    for _, cell in ipairs(claims.rows(nsa, "connectivity_win")[33]) do seen = seen + cell end
    is(seen, "==", 7)
    is(#run("bigbird(window=3,block=4,global=0,random=0)"):pattern():row(32), "==", 3 * 4)
  end },
  { "recurrence", "only that of log-linear grows, by the logarithm", function(is)
    for _, id in ipairs { "linear", "retnet", "gla", "mamba2", "deltanet", "gated-deltanet",
                          "rwkv7", "log-linear" } do
      local function bytes(n) return run(id, { n = n, causal = true }).figures.state_bytes end
      if bytes(64) then is(bytes(512) > bytes(64), "==", id == "log-linear", id) end
    end
  end },
  { "kernels", "(sigmoid is no such product.)", function(is)
    local short, long = run("sigmoid", { n = 256 }), run("sigmoid", { n = 512 })
    is(claims.flops(long) / claims.flops(short), ">", 3.9)
  end },
  { "low rank", "the n x n map, or the keys and values (mla)", function(is)
    local r = run("mla(rank=8)")
    is(claims.rank(claims.rows(r, "weights")), ">", 8)
    is(claims.rank(claims.rows(run("linformer(k=8)"), "weights")), "<=", 8)
  end },
  { "KL", "It is not symmetric: KL(mechanism || exact) of weights", function(is)
    local a, b = run("linear"), run("full")
    local exact, own, total = claims.rows(b, "weights"), claims.rows(a, "weights"), 0
    for q = 1, 64 do
      for k = 1, 64 do
        if own[q][k] > 0 then total = total + own[q][k] * math.log(own[q][k] / exact[q][k]) / 64 end
      end
    end
    is(math.abs(quality("linear").kl - total), "<", 1e-4)
  end },
  { "sliding window", "window=7 allows the query itself and three keys on each side", function(is)
    is(attn.json(run("window(window=7)"):pattern():row(32)) == "[29,30,31,32,33,34,35]", "==", true)
  end },
  { "kernels", "the cost grows with n instead of n^2", function(is)
    local short, long = run("linear", { n = 512 }), run("linear", { n = 1024 })
    is(claims.flops(long) / claims.flops(short), "<", 2.1)
  end },
  { "span", "its newest tokens that hold 90 % (span_mass) of the weight", function(is)
    local r = run("gated-deltanet")
    is(claims.mean_span(r), "~", r.figures.mean_span)
  end },
}
