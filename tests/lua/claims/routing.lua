-- Claims about experts, memories of many slots and sparse layers.
local claims = require "support.claims"
local run, flops, rows, sum = claims.run, claims.flops, claims.rows, claims.sum

-- Slots used by each expert, and how many it has.
local function slots(r)
  local used, room = {}, {}
  for expert, row in ipairs(r:view("capacity"):totable()[1]) do
    used[expert], room[expert] = row[1], row[2]
  end
  return used, room
end

return {
  { "switch", "so the layer costs as much as one expert however many there are", function(is)
    local function cost(experts) -- with room for all
      return run(("switch(n_experts=%d,capacity_factor=%d)"):format(experts, experts))
        .figures.expert_flops
    end
    is(cost(4), "==", cost(1))
    is(cost(16), "==", cost(1))
  end },
  { "switch", "A popular expert fills up: the later tokens it is the first choice of are dropped, "
    .. "while slots elsewhere stay empty", function(is)
      local r = run("switch(capacity_factor=0.75)")
      local dropped, of = r:view("dropped"):totable(), r:view("assignment"):totable()
      local last_kept, first_dropped = {}, {}
      for token = 1, 64 do
        local expert = of[token][1]
        if dropped[token] > 0 then
          first_dropped[expert] = first_dropped[expert] or token
        else
          last_kept[expert] = token
        end
      end
      is(sum(dropped), ">", 0)
      for expert, token in pairs(first_dropped) do is(token, ">", last_kept[expert]) end
      local used, room = slots(r)
      is(sum(used), "<", sum(room))
    end },
  { "switch", "The layer gives 0 for them", function(is)
    local r = run("switch(capacity_factor=0.5)")
    local dropped, output = r:view("dropped"):totable(), r.output:slice({ 0 }):totable()
    is(sum(dropped), ">", 0)
    for token = 1, 64 do
      if dropped[token] > 0 then is(claims.apart(output[token], {}), "==", 0) end
    end
  end },
  { "switch", "its even share, times a factor", function(is)
    local _, room = slots(run("switch(n_experts=8,capacity_factor=1.25)"))
    for expert = 1, 8 do is(room[expert], "==", 64 / 8 * 1.25) end
  end },
  { "gshard", "First choices of all tokens take their slots before any second one", function(is)
    local r = run("gshard(capacity_factor=1)")
    local of, place = r:view("assignment"):totable(), r:view("position"):totable()
    local first, second = {}, {}
    for token = 1, 64 do
      local a, b = of[token][1], of[token][2]
      if place[token][1] >= 0 then first[a] = math.max(first[a] or 0, place[token][1]) end
      if place[token][2] >= 0 then second[b] = math.min(second[b] or 1e9, place[token][2]) end
    end
    for expert, slot in pairs(second) do is(slot, ">", first[expert] or -1) end
  end },
  { "gshard", "the second only as often as its gate is worth it", function(is)
    local r = run("gshard(capacity_factor=8)", { n = 4096 })
    local of, probs = r:view("assignment"):totable(), r:view("router_probs"):totable()
    local kept, kept_gate, left, left_gate = 0, 0, 0, 0
    for token = 1, 4096 do
      local sorted = { table.unpack(probs[token]) }
      table.sort(sorted, function(a, b) return a > b end)
      local gate = sorted[2] / (sorted[1] + sorted[2])
      if of[token][2] >= 0 then
        kept, kept_gate = kept + 1, kept_gate + gate
      else
        left, left_gate = left + 1, left_gate + gate
      end
    end
    is(left, ">", 0)
    is(kept_gate / kept, ">", left_gate / left)
  end },
  { "glam", "two cells whose gates add up to one", function(is)
    for _, row in ipairs(run("glam(capacity_factor=8)"):view("routing"):totable()) do
      is(sum(row), "~", 1)
    end
  end },
  { "glam", "With room for two full shares only uneven routing drops a choice", function(is)
    local r = run("glam")
    local used, room = slots(r)
    is(sum(room), "==", 2 * 64)
    is(r.figures.dropped_choices, "==", sum(room) - sum(used))
    is(r.figures.dropped_choices, "<", 0.2 * 2 * 64)
  end },
  { "st-moe", "first choices fill the slots and most of what is crossed out is a second choice",
    function(is)
      local first, second = 0, 0
      for _, row in ipairs(run("st-moe"):view("dropped_choices"):totable()) do
        first, second = first + row[1], second + row[2]
      end
      is(second, ">", 2 * first)
    end },
  { "st-moe", "The z-loss is the price of large router logits", function(is)
    local input = assert(attn.load("synthetic:normal", { n = 64, d = 32 }))
    local large = assert(attn.input { q = input.q, k = input.k, v = input.v,
      x = input.x:map(function(x) return 16 * x end) })
    is(run("st-moe", { input = large }).figures.z_loss, ">",
      4 * run("st-moe", { input = input }).figures.z_loss)
  end },
  { "product-key-memory", "n_keys^2 slots are searched at the price of 2 n_keys", function(is)
    local function score(keys)
      return run(("product-key-memory(n_keys=%d,knn=4)"):format(keys)).stats.flops.score
    end
    is(score(128), "==", 2 * score(64))
  end },
  { "product-key-memory", "Over a sequence many slots are never read", function(is)
    local figures = run("product-key-memory").figures
    is(figures.slots, "==", 512 * 512)
    is(figures.slots_never_read, ">", 0.9 * figures.slots)
  end },
  { "scaling", "exactly one unit lights up in every block, which one depends on the token",
    function(is)
      local routing = run("scaling(ff_block=16)"):view("routing"):totable()
      local seen = 0
      for _, row in ipairs(routing) do
        for block = 0, 7 do
          is(sum({ table.unpack(row, 16 * block + 1, 16 * block + 16) }), "==", 1)
        end
        seen = seen + (claims.apart(row, routing[1]) > 0 and 1 or 0)
      end
      is(seen, ">", 32)
    end },
  { "scaling", "little is saved when many tokens run at once", function(is)
    local function idle(n)
      local f = run("scaling", { n = n }).figures
      return f.units_never_active / f.units
    end
    is(idle(1), ">", 0.9)
    is(idle(64), "<", 0.3)
  end },
  { "scaling", "Mult saves parameters and memory traffic, not multiplications", function(is)
    local r = run("scaling(part=qkv)")
    is(r.figures.parameters, "<", 0.5 * r.figures.parameters_dense)
    for step in r:steps() do
      if step.name == "project" then is(step.flops.total, ">=", 3 * 2 * 64 * 32 * 32) end
    end
  end },
}
