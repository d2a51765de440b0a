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
    check run start run_async profile compare vary figure text fit sweep read_sweep pivot roofline
    csv json from_json command log interrupted memory environment]], "attn")
  assert(#attn.mechanisms { class = "LP", causal = true, text = "lsh" } >= 1)
  all(attn.info "reformer", "id title authors year arxiv class claim causal params views notes",
    "card")
  all(attn.info("reformer").params[1], "name type default help", "param")
end)

case("the explorer's, which raise without it", function()
  local ui = attn.ui
  for name in ([[open pane panes set state action keys enter export mark message ask sleep wait
    animate map leave layout link mode step play session]]):gmatch("%S+") do
    equal(type(ui[name]), "function", name)
  end
  check.raises("needs the interactive program", ui.link, true)
  check.raises("needs the interactive program", ui.layout, "2x2")
  check.raises("needs the interactive program", ui.mode, "step")
  check.raises("needs the interactive program", ui.step, 1)
  check.raises("needs the interactive program", ui.play)
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
  local r = attn.run("reformer", { input = input, block = 4, reps = 2, quality = true })
  all(r, [[output views params stats record mechanism text input figures warnings view_names view
    cell row stages steps save_steps compare pattern reach missed reach_path close]], "result")
  all(r.stats, "run_ms flops nnz density time_ms memory quality threads", "stats")
  all(r:cell(3, 3), "allowed components weight rank values", "cell")
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
  local job = attn.run_async("full", { input = input })
  all(job, "poll progress on_progress wait cancel close", "job")
  job:wait()
  local s = attn.sweep { "full", "window", n = "16,32,64", d = 4, reps = 1 }
  all(s, "rows filter pivot csv jsonl", "sweep")
  local work = { sweep = s, cost = "flops.counted", title = "work" }
  local f = attn.figure { panels = { { sweep = s }, work }, layout = "1x2" }
  all(f, "save text close", "figure")
  local text = f:text { width = 100 }
  assert(text:find("work") and text:find("time %(ms%)") and text:find("FLOPs"))
  all(attn.fit({ 1, 2, 4 }, { 1, 2, 4 }), "alpha c r2 count best models slopes", "fit")
  local within = attn.profile("full", { input = input, within = 0.5 })
  assert(within.time_ms.median > 0)
  check.raises("within", attn.run, "full", { within = 2 })
end)

case("userdata says what it is and closes", function()
  for _, thing in ipairs { input, input.q, attn.run("full", { input = input }),
    attn.run("full", { input = input }):pattern(), attn.start("full", { input = input }) } do
    assert(tostring(thing):match("^%u%l+"), tostring(thing))
    do local _ <close> = thing end
    assert(tostring(thing):find("closed"), tostring(thing))
  end
end)
