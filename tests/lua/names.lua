-- Every name that scripts may count on: a name that goes, or changes what it gives, is seen here.
package.path = "tests/lua/support/?.lua;" .. package.path
local check = require "support.check"
local case, equal = check.case, check.equal

local function all(thing, names, what)
  for name in names:gmatch("%S+") do
    local ok, value = pcall(function() return thing[name] end)
    assert(ok and value ~= nil, what .. "." .. name)
  end
end

local input = attn.random { n = 16, d = 4, heads = 2, structure = "blocks" }

case("the module", function()
  all(attn, [[version has_ui args ui null object mechanisms info positions presets lessons
    generators load synthetic random input tensor vector read write_npz pattern mechanism reload
    check register run start profile compare vary figure fit sweep read_sweep pivot
    roofline csv json from_json command log interrupted memory environment]], "attn")
  assert(#attn.mechanisms { class = "LP", causal = true, text = "lsh" } >= 1)
  local card = attn.info "reformer"
  all(card, [[id title authors year arxiv class claim_time claim_memory claim_exponent causal inputs
    params views notes]], "card")
  check.same(card.inputs, { "q", "k", "v" })
  check.same(attn.info("mlp-mixer").inputs, { "x" })
  all(card.params[1], "name type default min max help", "param")
  all(card.views[1], "name kind help", "view")
end)

case("the explorer's, which raise without it", function()
  local ui = attn.ui
  for name in ([[open pane panes set state action keys enter export mark message ask sleep wait
    animate map leave play session lesson]]):gmatch("%S+") do
    equal(type(ui[name]), "function", name)
  end
  check.raises("needs the interactive program", ui.play)
  check.raises("needs the interactive program", ui.play, 2)
  check.raises("needs the interactive program", ui.lesson, "n-squared")
  check.raises("needs the interactive program", ui.wait)
  check.raises("needs the interactive program", ui.session, "x")
end)

case("inputs and tensors", function()
  all(input, "n m d e heads layer layers width name kind sha256 q k v token save close", "input")
  all(input.q, [[shape dtype get set slice transpose copy totable tostring write bytes sum mean
    min max argmax nnz map softmax sort_desc cumsum reshape matmul allclose close]], "tensor")
  equal(#input, 16)
  equal(tostring(input.q + input.q - input.q):sub(1, 6), "Tensor")
end)

case("results", function()
  local r = attn.run("reformer", { input = input, block = 4, ["repeat"] = 2, quality = true })
  all(r, [[output views params stats record mechanism text input figures warnings view_names view
    cell row stages steps save_steps compare pattern reach missed reach_path close]], "result")
  all(r.stats, "run_ms flops nnz density time_ms memory bytes quality threads", "stats")
  all(r.stats.time_ms, "median q1 q3 min samples", "time")
  all(r.stats.flops, "score mixing overhead total", "flops")
  assert(r.stats.memory.arena_peak >= r.output:bytes())
  local cell, entry = r:cell(3, 3), r:row(3)[1]
  all(cell, "allowed components weight rank values bucket_q bucket_k", "cell")
  check.same(cell.bucket_q, cell.bucket_k)
  equal(#cell.bucket_q, r.views.buckets.shape[2]) -- one each round
  equal(cell.bucket_q[2], r.views.buckets:get(0, 1, 3))
  equal(attn.run("clusterformer", { input = input }):cell(2, 5).bucket_k,
    attn.run("clusterformer", { input = input }).views.clusters:get(0, 5))
  equal(attn.run("full", { input = input }):cell(2, 5).bucket_q, nil)
  all(entry, "k weight components", "entry")
  all(r:steps()(), "name caption views", "step")
  local count = 0
  for step in r:steps() do
    count = count + 1
    equal(step.name, r:stages()[count].name)
  end
  equal(count, #r:stages())
  all(r:pattern(), "n m heads per_head nnz density runs row cell compare union common minus close",
    "pattern")
end)

case("jobs, sweeps and figures", function()
  local job = attn.start("full", { input = input })
  all(job, "poll progress on_progress wait cancel close", "job")
  job:wait()
  local s = attn.sweep { "full", "window", n = "16,32,64", d = 4, ["repeat"] = 1 }
  all(s, "filter pivot csv jsonl", "sweep")
  local work = { sweep = s, cost = "flops.counted", title = "work" }
  local f = attn.figure { panels = { { sweep = s }, work }, grid = "1x2" }
  all(f, "save text close", "figure")
  local text = f:text { width = 100 }
  assert(text:find("work") and text:find("time %(ms%)") and text:find("FLOPs"))
  all(attn.fit({ 1, 2, 4, 8 }, { 1, 2, 4, 8 }),
    [[alpha lo hi c r2 count best models slopes model]], "fit")
  all(attn.roofline { "full", n = 16, d = 4 },
    "ceilings devices points runs threads environment", "roofline")
  local record = attn.profile("full", { input = input }, { ["repeat"] = 3 })
  all(record, "time_ms flops memory bytes nnz density", "record")
  assert(#record.time_ms.samples >= 3)
  local within = attn.profile("full", { input = input, within = 0.5 })
  assert(within.time_ms.median > 0)
  check.raises("share of the median", attn.run, "full", { within = 2 })
end)

case("no second name for anything", function()
  for _, name in ipairs { "run_async", "text" } do
    equal(attn[name], nil)
  end
  check.raises("no option of a run; did you mean", attn.run, "full", { input = input, reps = 3 })
  check.raises("did you mean 'repeat'", attn.profile, "full", { input = input }, { reps = 3 })
  check.raises("sweep has no option 'budget_s'; did you mean 'budget'", attn.sweep,
    { "full", n = 8, budget_s = 3 })
  for _, name in ipairs { "grid", "max_mem", "mech", "reps" } do
    check.raises(("sweep has no option '%s'"):format(name), attn.sweep,
      { "full", n = 8, [name] = 3 })
  end
  check.raises("unknown option 'forward'", attn.mechanism, { id = "x", forward = print })
  local r = attn.run("full", { input = input })
  check.raises("unknown option 'layout'", attn.figure, { panels = { r }, layout = "1x1" })
  equal(r:row(3)[1].w, nil)
  equal(r:cell(3, 3).component, nil)
  equal(r.record.flops.total, nil)
  attn.mechanism { id = "old-words", run = function(ctx) ctx:flops(3) return ctx.v end }
  local why = check.refuses("SCRIPT", attn.run, "old-words", { input = input })
  assert(why:find("no member 'flops'"))
end)

case("userdata says what it is and closes", function()
  for _, thing in ipairs { input, input.q, attn.run("full", { input = input }),
    attn.run("full", { input = input }):pattern(), attn.start("full", { input = input }) } do
    assert(tostring(thing):match("^%u%l+"), tostring(thing))
    do local _ <close> = thing end
    assert(tostring(thing):find("closed"), tostring(thing))
  end
end)
