-- Claims about mechanisms that choose their pairs by content, or learn them.
local claims = require "support.claims"
local run, flops, quality = claims.run, claims.flops, claims.quality
local rows, apart, distinct, sum = claims.rows, claims.apart, claims.distinct, claims.sum

local groups = "synthetic:clusters(clusters=8,spread=0.3,match=6)"
local lsh = "reformer(block=8,rounds=%d,exclude_self=false)"

-- Share of pairs with one bucket, of pairs in one group and of others.
local function together(r)
  local bucket, labels = rows(r, "buckets")[1], r.input.tokens
  local same, other, same_all, other_all = 0, 0, 0, 0
  for i = 1, #bucket do
    for j = i + 1, #bucket do
      local meets = bucket[i] == bucket[j] and 1 or 0
      if labels[i] == labels[j] then
        same, same_all = same + meets, same_all + 1
      else
        other, other_all = other + meets, other_all + 1
      end
    end
  end
  return same / same_all, other / other_all
end

-- Clusters that each token is in.
local function memberships(r)
  local of = {}
  local members = rows(r, "membership")
  for _, row in ipairs(members) do
    for token, is in ipairs(row) do of[token] = (of[token] or 0) + (is > 0 and 1 or 0) end
  end
  return of, members
end

local function shares(list, value)
  local count = 0
  for _, v in ipairs(list) do count = count + (v == value and 1 or 0) end
  return count / #list
end

return {
  { "reformer", "a block diagonal with one block before it and an empty diagonal", function(is)
    local r = run("reformer(block=8,rounds=1)", { input = groups })
    local chunk, p = rows(r, "chunks")[1], r:pattern()
    for q = 0, 63 do
      local keys = p:row(q)
      for _, k in ipairs(keys) do
        local back = chunk[q + 1] - chunk[k + 1]
        is(back == 0 or back == 1, "==", true)
      end
      if #keys > 1 then is(p:cell(q, q), "==", false) end
    end
  end },
  { "reformer", "more rounds fill the pairs that one round missed", function(is)
    local one = run(lsh:format(1), { input = groups }):missed().found
    local many = run(lsh:format(8), { input = groups }):missed().found
    is(many, ">", one + 0.1)
  end },
  { "reformer", "Attention takes O(n block) a round. Hashing takes O(n^2 d/block) with one hash "
      .. "and O(n^1.5 d) with n_buckets2 near the root of 2 n/block", function(is)
    local function growth(stage, name)
      local function cost(n)
        local root = 2 * math.floor(math.sqrt(2 * n / 16) / 2 + 0.5)
        local of, total = stage:gsub("ROOT", root), 0
        for step in run(of, { n = n }):steps() do
          total = total + (step.name == name and step.flops.total or 0)
        end
        return total
      end
      return cost(2048) / cost(512)
    end
    is(growth("reformer(block=16)", "attend"), "<", 4.2)
    is(growth("reformer(block=16)", "hash"), "~", 16)
    is(growth("reformer(block=16,n_buckets=ROOT,n_buckets2=ROOT)", "hash"), "~", 8)
  end },
  { "reformer", "gives near vectors the same bucket with high probability", function(is)
    local near, far = together(run(lsh:format(1), { input = groups }))
    is(near, ">", 0.5)
    is(far, "<", 0.2)
  end },
  { "reformer", "the input's k is ignored", function(is)
    local input = assert(attn.load("synthetic:normal", { n = 64, d = 32 }))
    local other = assert(attn.input { q = input.q, k = input.v, v = input.v })
    local a = run("reformer(block=8)", { input = input })
    is(select(2, a.output:allclose(run("reformer(block=8)", { input = other }).output)), "==", 0)
  end },
  { "reformer", "With exclude_self a token sees itself only if it sees nobody else", function(is)
    local p = run("reformer(block=8,rounds=1)", { input = groups }):pattern()
    for q = 0, 63 do
      if p:cell(q, q) then is(#p:row(q), "==", 1) end
    end
    local own = run(lsh:format(1), { input = groups }):pattern()
    for q = 0, 63 do is(own:cell(q, q), "==", true) end
  end },
  { "reformer", "some large weights are missed", function(is)
    is(quality(lsh:format(1), { input = groups }).mass_mean, "<", 0.95)
  end },
  { "reformer", "Itself it would always prefer", function(is)
    local r = run(lsh:format(1), { input = groups })
    for q = 0, 63 do is(r:cell(q, q).rank, "==", 1) end
  end },

  { "routing", "Clusters of equal size overlap and leave tokens out", function(is)
    local of, members = memberships(run("routing", { input = groups }))
    for _, row in ipairs(members) do is(sum(row), "==", 8) end
    is(shares(of, 0), ">", 0)
    is(1 - shares(of, 0) - shares(of, 1), ">", 0)
  end },
  { "routing", "one of none gets 0", function(is)
    local r = run("routing", { input = groups })
    local of, output = memberships(r), r.output:slice({ 0 }):totable()
    for token, count in ipairs(of) do
      if count == 0 then is(apart(output[token], {}), "==", 0) end
    end
  end },
  { "routing", "A fixed pattern does not know which tokens belong together", function(is)
    local learned = run("routing(n_clusters=8)", { input = groups, fit = true, quality = true })
    local fixed = quality("window(window=9)", { input = groups })
    is(learned.stats.nnz, "<=", 64 * 9)
    is(learned.stats.quality.mass_mean, ">", 2 * fixed.mass_mean)
  end },

  { "sinkhorn", "a low temperature sharpens it towards one cell in each row", function(is)
    local function spread(t)
      return claims.mean_entropy(run(("sinkhorn(block=8,temperature=%g,sinkhorn_iters=32)")
        :format(t)), "permutation")
    end
    is(spread(0.1), "<", 0.5 * spread(0.5))
    is(spread(0.5), "<", spread(2))
  end },
  { "sinkhorn", "It equalises and does not sharpen", function(is)
    local function spread(rounds)
      return claims.mean_entropy(run(("sinkhorn(block=8,temperature=0.5,sinkhorn_iters=%d)")
        :format(rounds)), "permutation")
    end
    is(spread(32), ">=", 0.95 * spread(1))
  end },
  { "sinkhorn", "makes all row and column sums 1", function(is)
    local p = run("sinkhorn(block=8,sinkhorn_iters=200)"):view("permutation", 0)
    for axis = 0, 1 do
      is(p:sum(axis):min(), ">", 0.999)
      is(p:sum(axis):max(), "<", 1.001)
    end
  end },
  { "sinkhorn", "A query sees only its own block and one mixture of blocks", function(is)
    is(sum(rows(run("sinkhorn(block=8)"), "connectivity_hard")[1]), "<=", 16)
  end },

  { "clusterformer", "The window layer is a band of squares", function(is)
    local p = run("clusterformer(layer=window,block=8)", { input = groups }):pattern()
    is(p.nnz, "==", 8 * 8 * 8)
    for _, k in ipairs(p:row(20)) do is(k // 8, "==", 2) end
  end },
  { "clusterformer", "Comparing every token with about sqrt(n) centres takes O(n^1.5)", function(is)
    local function assigned(n)
      local total = 0
      for step in run("clusterformer", { n = n }):steps() do
        total = total + (step.name == "assign" and step.flops.total or 0)
      end
      return total
    end
    is(assigned(1024) / assigned(256), "~", 8)
  end },
  { "clusterformer", "distance no longer matters", function(is)
    local p = run("clusterformer(block=8)", { input = groups, fit = true }):pattern()
    local far, all = 0, 0
    for q = 0, 63 do
      for _, k in ipairs(p:row(q)) do
        all, far = all + 1, far + (math.abs(q - k) >= 16 and 1 or 0)
      end
    end
    is(far / all, ">", 0.3)
  end },
  { "clusterformer", "With rows sorted by cluster they are a band again", function(is)
    local r = run("clusterformer(block=8)", { input = groups, fit = true })
    local order, at, p = rows(r, "order")[1], {}, r:pattern()
    for slot, token in ipairs(order) do at[token] = slot end
    for q = 0, 63 do
      for _, k in ipairs(p:row(q)) do is(math.abs(at[q] - at[k]), "<", 8) end
    end
  end },

  { "clustered", "every query of a cluster has the very same row", function(is)
    is(distinct(rows(run("clustered(n_clusters=8)", { input = groups }), "weights")), "<=", 8)
  end },
  { "clustered", "only as many rows are computed as there are clusters", function(is)
    is(#rows(run("clustered(n_clusters=8)"), "cluster_weights"), "==", 8)
  end },
  { "clustered-improved", "With topk = m it is exact attention, whatever the clusters", function(is)
    is(quality("clustered-improved(n_clusters=4,topk=64)").output_error, "<", 1e-4)
  end },
  { "clustered-improved", "Each band of clustered attention now differs in a few columns",
    function(is)
      local a = rows(run("clustered(n_clusters=8)", { input = groups }), "weights")
      local b = rows(run("clustered-improved(n_clusters=8,topk=8)", { input = groups }), "weights")
      for q = 1, 64 do
        local differ = 0
        for k = 1, 64 do differ = differ + (math.abs(a[q][k] - b[q][k]) > 1e-6 and 1 or 0) end
        is(differ, "<=", 8)
      end
      is(distinct(b), ">", 8)
    end },
  { "clustered-improved", "One row for a whole cluster is wrong most where the weights are largest",
    function(is)
      local o = { input = groups }
      is(quality("clustered-improved(n_clusters=8,topk=8)", o).output_error, "<",
        quality("clustered(n_clusters=8)", o).output_error)
      is(flops(run("clustered-improved(n_clusters=8,topk=8)", o)), ">",
        flops(run("clustered(n_clusters=8)", o)))
    end },

  { "entmax", "Every pair may attend, yet most weights are exactly 0", function(is)
    local weights = run("entmax").views.weights
    is(weights:nnz(), "<", 0.5 * 64 * 64)
    is(run("full").views.weights:nnz(), "==", 64 * 64)
  end },
  { "entmax", "a larger alpha leaves fewer keys", function(is)
    local before = 64 * 64 + 1
    for _, alpha in ipairs { 1, 1.25, 1.5, 2, 3 } do
      local now = run("entmax", { alpha = alpha }).views.support:nnz()
      is(now, "<", before, "alpha " .. alpha)
      before = now
    end
  end },
  { "entmax", "All scores are still computed: zeros save only the sum over the values", function(is)
    local sparse, dense = run("entmax").stats.flops, run("full").stats.flops
    is(sparse.score, "==", dense.score)
    is(sparse.mixing, "<", 0.5 * dense.mixing)
  end },
  { "sparsebert-dam", "stripes along the diagonals inside a frame that is always on", function(is)
    local mask = rows(run("sparsebert-dam"), "mask")
    for i = 1, 64 do is(mask[1][i] * mask[i][1] * mask[64][i] * mask[i][64], "==", 1) end
    for i = 2, 60 do is(mask[i][i + 2], "==", mask[i + 1][i + 3]) end
  end },
  { "sparsebert-dam", "A small tau turns the grey of a soft mask to black and white", function(is)
    local function grey(tau)
      local total, r = 0, run(("sparsebert-dam(hard=false,sample=true,tau=%g)"):format(tau))
      for _, row in ipairs(rows(r, "mask")) do
        for _, x in ipairs(row) do total = total + math.min(x, 1 - x) end
      end
      return total / 64 / 64
    end
    is(grey(0.01), "<", 0.05)
    is(grey(1), ">", 0.1)
  end },
  { "sparsebert-dam", "A soft mask is computed in full; of a hard one only the open cells are",
    function(is)
      local hard, full = run("sparsebert-dam"), run("full").stats.flops
      is(run("sparsebert-dam(hard=false)").stats.flops.score, "==", full.score)
      is(hard.stats.flops.score, "~", hard.stats.density * full.score)
    end },
}
