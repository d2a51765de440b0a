-- Patterns and mechanisms defined by a script.
package.path = "tests/lua/support/?.lua;" .. package.path
local check = require "check"

local function catalogue_has(id)
  for _, name in ipairs(attn.mechanisms()) do
    if name == id then
      return true
    end
  end
  return false
end

check.case("a closed form that fails is reported, and the run goes on", function()
  attn.mechanism {
    id = "without-form", run = function(ctx) return ctx.v end,
    flops = function() error("no idea") end,
  }
  local r = assert(attn.run("without-form", { n = 8, d = 4 }))
  check.equal(r.record.flops.closed_form, nil)
  assert(r.record.warnings[1]:find("closed form of FLOPs is not known: .*no idea"))
end)

check.case("a pattern is the same as the built-in one", function()
  check.equal(attn.pattern {
    id = "own-window", title = "Own window", teaches = "near tokens", arxiv = "2004.05150",
    authors = "the tests", year = 2020, claim_time = "O(n w)", claim_memory = "O(n)",
    params = { { name = "window", default = 5, min = 1, max = 99 } },
    row = function(i, row, p)
      local half = p.window // 2
      row:range(i - half, i + half, "window")
      row:add(0, "global")
    end,
  }, "own-window")
  local input = attn.random { n = 33, d = 8, heads = 2 }
  for _, causal in ipairs { false, true } do
    local own = attn.run("own-window", { input = input, window = 7, causal = causal })
    local same = attn.run("pattern(window(7)+cols([0]))", { input = input, causal = causal })
    assert(own.output:allclose(same.output, 0, 0))
    assert(own.views.connectivity:allclose(same.views.connectivity))
    assert(own.views.components:allclose(same.views.components))
    check.equal(own.record.flops.counted, same.record.flops.counted)
  end
end)

check.case("its card says what its parameters may be", function()
  attn.pattern {
    id = "own-bounds", row = function(i, row) row:add(0) end,
    params = { { name = "few", default = 1, min = 1, max = 99 },
               { name = "many", default = 1, min = 1, max = 1000000000 },
               { name = "fewer", default = 1, min = 1, max = 999999999 },
               { name = "signed", default = 1, min = -1000000000, max = 9 } },
  }
  local card = attn.command("info", "own-bounds")
  for name, range in pairs { few = "1..99", many = ">= 1", fewer = "1..1e+09", signed = "any" } do
    check.equal(card:match("\n  " .. name .. " +int  (.-)  "), range)
  end
end)

check.case("it is in the catalogue, figures, reach, vary and compare", function()
  assert(catalogue_has("own-window"))
  check.equal(attn.info("own-window").title, "Own window")
  check.equal(attn.info("own-window").params[1].max, 99)
  check.equal(attn.info("own-window").class, "FP")
  for name, said in pairs { arxiv = "2004.05150", authors = "the tests", year = 2020,
    claim_time = "O(n w)", claim_memory = "O(n)" } do
    check.equal(attn.info("own-window")[name], said)
  end
  assert(attn.command("list"):find("own%-window"))
  assert(attn.command("figure", "own-window", "-n", "16"):find("Own window"))
  assert(attn.figure { panels = { { result = attn.run("own-window", { n = 16 }) } } })
  local records = attn.compare { "full", "own-window", n = 32, ["repeat"] = 1 }
  check.equal(records[2].status, "OK")
  check.equal(records[2].params.window, 5)
  assert(attn.run("own-window", { n = 32 }):reach())
  local reach = attn.command("reach", "own-window", "-n", "16", "--layers", "1")
  assert(reach:find("\n +0 +16 +16 +6%.25 %% .*\n +1 +71 +87 +33%.98 %% "), reach)
  assert(attn.vary("own-window", "window=1:9:+4", { n = 32 }))
  local sweep = assert(attn.sweep { "own-window", n = "16:32:x2", d = 8, ["repeat"] = 1 })
  check.equal(#sweep, 2)
  for _, record in ipairs(sweep) do
    local here = assert(attn.run("own-window", { n = record.n, d = 8,
      input = "synthetic:normal" })).record
    check.equal(record.status, "OK", record.message)
    check.equal(record.flops.counted, here.flops.counted)
    assert(record.flops.counted > 0 and record.time_ms.median > 0)
    check.equal(record.script, "define.lua")
    check.equal(record.script_sha256, here.script_sha256)
  end
end)

check.case("patterns of heads, steps, overlaps and edges", function()
  attn.pattern { id = "heads", per_head = true, row = function(i, row)
    row:range(-9, row.n + 9, "strided", row.head + 2)
    row:range(-9, row.n + 9, "strided", row.head + 2)
    row:add(i, "window")
    row:add(-1)
    row:add(row.m)
    assert(row.heads == 3 and row.n == row.m and row.causal == false)
  end }
  local r = attn.run("heads", { input = attn.random { n = 12, d = 4, heads = 3 } })
  local cells, components = r.views.connectivity, r.views.components
  for h = 0, 2 do
    for i = 0, 11 do
      for j = 0, 11 do
        local step = (j + 9) % (h + 2) == 0
        check.equal(cells:get(h, i, j) ~= 0, step or i == j, "cell")
        check.equal(components:get(h, i, j), (step and 8 or 0) + (i == j and 1 or 0), "bits")
      end
    end
  end
end)

check.case("a pattern said pair by pair", function()
  attn.pattern { id = "own-cells", params = { { name = "step", default = 2, min = 1 } },
    cell = function(i, j, p) return (i - j) % p.step == 0 or j < 1 end }
  for _, step in ipairs { 1, 2, 5 } do
    local own = attn.run("own-cells", { n = 23, step = step, causal = true })
    local same = attn.run(("pattern(window(99,%d)+cols([0]))"):format(step),
      { n = 23, causal = true })
    assert(own.output:allclose(same.output, 0, 1e-6))
    assert(own.views.connectivity:allclose(same.views.connectivity))
    check.equal(own.stats.nnz, same.stats.nnz)
  end
  assert(attn.check("own-cells", { reference = "pattern(window(999,2)+cols([0]))" }).error < 1e-5)
  check.raises("unknown mechanism", attn.check, "own-cells", { reference = "nonsense" })
end)

-- Query i is position i among the keys, also where only the last queries are there.
check.case("the last queries of a causal pattern", function()
  attn.pattern { id = "own-band", params = { { name = "reach", default = 5, min = 0 } },
    row = function(i, row, p)
      row:range(i - p.reach, i + p.reach)
      row:add(0)
    end }
  attn.pattern { id = "own-band-cells",
    cell = function(i, j) return math.abs(i - j) <= 5 or j == 0 end }
  attn.pattern { id = "own-band-heads", per_head = true,
    row = function(i, row) row:range(i - 5, i + 5) row:add(0) end }
  local all = attn.random { n = 40, d = 8, heads = 2 }
  for _, n in ipairs { 1, 13, 39 } do
    local input = attn.input { q = all.q:slice { nil, { 40 - n } }:copy(), k = all.k, v = all.v }
    local same = attn.run("pattern(window(11)+cols([0]))", { input = input, causal = true })
    for _, id in ipairs { "own-band", "own-band-cells", "own-band-heads" } do
      local own = attn.run(id, { input = input, causal = true })
      assert(own.output:allclose(same.output, 0, 1e-6), id)
      check.equal(own.stats.nnz, same.stats.nnz)
    end
  end
  assert(attn.check("own-band").ok)
end)

check.case("names of components, rows without keys, one token more", function()
  attn.pattern { id = "own-named", components = { window = "near by", other = "the first" },
    row = function(i, row)
      if i % 3 ~= 1 then row:range(i - 2, i, "window") row:add(0) end
    end }
  local r = attn.run("own-named", { n = 12, d = 8, causal = true, decode = true })
  local said = table.concat(r.record.warnings, "\n")
  assert(said:find("4 of 12 queries see no key, the first of them query 1: their output is 0",
    1, true), said)
  local same = attn.run("pattern(expr=runs($t))",
    { n = 12, d = 8, causal = true, decode = true, t = r:pattern().runs })
  said = table.concat(same.record.warnings, "\n")
  assert(said:find("4 of 12 queries see no key", 1, true), said)
  assert(r.record.decode.state_bytes > 0)
  for _, key in ipairs { "state_bytes", "kv_bytes_per_token", "step_bytes", "decode_flops" } do
    check.equal(r.record.decode[key], same.record.decode[key], key)
  end
  for _, whole in ipairs { "own-named", "pattern(expr=window(3))" } do
    local seen = attn.run(whole, { n = 1, d = 8 })
    check.equal(table.concat(seen.record.warnings, "\n"):find("see no key"), nil, whole)
  end
  check.raises("'near' is none of window, global", attn.pattern,
    { id = "x", components = { near = "window" }, row = print })
  check.raises("texts both", attn.pattern, { id = "x", components = { window = 3 }, row = print })
end)

check.case("a pattern without cells", function()
  attn.pattern { id = "empty", row = function() end }
  check.equal(attn.run("empty", { n = 4, d = 4 }).output:nnz(), 0)
  check.equal(attn.run("empty", { n = 1, d = 1 }).output:nnz(), 0)
end)

check.case("errors have the script's line", function()
  attn.pattern { id = "bad", row = function(_, row) row:add("x") end }
  assert(check.refuses("SCRIPT", attn.run, "bad", { n = 4 }):find("define.lua:%d+:"))
  for _, key in ipairs { 0.5, -9e15, 9e15, 0 / 0 } do
    attn.pattern { id = "bad", row = function(_, row) row:add(key) end }
    assert(check.refuses("SCRIPT", attn.run, "bad", { n = 4 }):find("expected a whole number"))
  end
  attn.pattern { id = "bad", row = function() error("on purpose") end }
  assert(check.refuses("SCRIPT", attn.run, "bad", { n = 4 }):find("define.lua:%d+: on purpose"))
  attn.pattern { id = "bad", row = function(_, row) row:range(0, 1, "windo") end }
  assert(check.refuses("SCRIPT", attn.run, "bad", { n = 4 }):find("windo"))
  attn.pattern { id = "bad", row = function(_, row) row:range(0, 5, "window", 0) end }
  assert(check.refuses("SCRIPT", attn.run, "bad", { n = 4 }):find("step"))
  attn.pattern { id = "bad", row = function() attn.run("full", { n = 4 }) end }
  attn.run("bad", { n = 4 })
end)

check.case("misuse raises", function()
  check.raises("row: expected a function", attn.pattern, { id = "x" })
  check.raises("mechanism of the program", attn.pattern, { id = "full", row = print })
  check.raises("id ''", attn.pattern, { row = print })
  check.raises("id 'a b'", attn.pattern, { id = "a b", row = print })
  check.raises("did you mean 'row'", attn.pattern, { id = "x", rwo = print })
  check.raises("option of that name", attn.pattern,
    { id = "x", row = print, params = { { name = "n" } } })
  check.raises("params: expected a list, got the key 'w'", attn.pattern,
    { id = "x", row = print, params = { w = 3 } })
  check.raises("there twice", attn.pattern,
    { id = "x", row = print, params = { { name = "w" }, { name = "w" } } })
  check.raises("type 'real'", attn.pattern,
    { id = "x", row = print, params = { { name = "w", type = "real" } } })
  check.raises("none of its values", attn.pattern, { id = "x", row = print,
    params = { { name = "w", type = "enum", values = { "a" }, default = "b" } } })
  check.raises("whole number", attn.pattern,
    { id = "x", row = print, params = { { name = "w", min = 3, default = 1 } } })
  check.raises("unknown 'ZZ'", attn.pattern, { id = "x", class = "ZZ", row = print })
  check.raises("run: expected a function", attn.mechanism, { id = "x" })
  check.raises("unknown kind", attn.mechanism,
    { id = "x", run = print, views = { { name = "a", kind = "b" } } })
  assert(not catalogue_has("x"))
end)

check.case("a file is loaded again", function()
  local path = os.tmpname()
  local function write(text)
    local file <close> = io.open(path, "w")
    file:write(text)
  end
  local one = "attn.pattern { id = 'again', row = function(i, row) row:range(i - %d, i) end }\n"
  write(one:format(0) .. one:format(1) .. "attn.pattern { id = 'other', row = print }")
  check.equal(table.concat(attn.reload(path), " "), "again other")
  check.equal(attn.run("again", { n = 8 }).stats.nnz, 15)
  local before = attn.run("again", { n = 8 })
  write(one:format(2))
  check.equal(table.concat(attn.reload(path), " "), "again")
  check.equal(attn.run("again", { n = 8 }).stats.nnz, 21)
  check.equal(before.stats.nnz, 15)
  assert(before.views.weights)
  write("\n\nerror('on purpose')")
  assert(check.refuses("SCRIPT", attn.reload, path):find(":3: on purpose"))
  write("x =")
  assert(check.refuses("SCRIPT", attn.reload, path):find("unexpected"))
  check.refuses("FILE", attn.reload, path .. ".missing")
  check.raises("string expected", attn.reload)
  os.remove(path)
  write("return 1")
  check.equal(#attn.reload(path), 0)
  os.remove(path)
end)

check.case("a row ends with its function", function()
  local kept
  attn.pattern { id = "keeps", row = function(_, row) kept = row end }
  attn.run("keeps", { n = 2 })
  check.raises("only while its function runs", function() return kept.n end)
  check.raises("only while its function runs", kept.add, kept, 1)
end)

-- mechanisms ----------------------------------------------------------------------

local function define_exact()
  attn.mechanism {
    id = "own-full", title = "Own full attention", claim_exponent = 2, claim_time = "O(n^2)",
    params = { { name = "heat", type = "float", default = 1, min = 0 } },
    views = { { name = "weights", help = "weights" } },
    run = function(ctx)
      ctx:stage("scores", "score")
      local s = ctx.q:matmul(ctx.k:transpose())
      ctx:stage("softmax")
      s = s * (ctx.scale * ctx.params.heat)
      local w = s:softmax(ctx.causal)
      ctx:view("weights", w)
      ctx:stage("mix", "mixing")
      return w:matmul(ctx.v)
    end,
  }
end

check.case("a card has classes, sentences and notes", function()
  local one = { id = "carded", class = "FP+KR", problem = "It is dark.", idea = "A lamp.",
    price = "Oil.", notes = { draw = "It lights the lamp." }, run = function(ctx)
      ctx:stage "draw"
      return ctx.v:copy()
    end }
  attn.mechanism(one)
  check.equal(attn.info("carded").class, "FP+KR")
  local card = attn.command("info", "carded")
  for _, sentence in ipairs { "It is dark.", "A lamp.", "Oil." } do
    assert(card:find(sentence, 1, true), card)
  end
  local steps = attn.command("step", "carded", "-n", "8")
  assert(steps:find("It lights the lamp.", 1, true), steps)
  one.class = "FP+XX"
  check.raises("unknown 'XX'", attn.mechanism, one)
  one.class, one.price = "FP", nil
  check.raises("price is missing", attn.mechanism, one)
  one.price, one.notes = "Oil.", { "a list" }
  check.raises("notes: expected { STAGE", attn.mechanism, one)
  one.notes = "words"
  check.raises("notes: expected a table", attn.mechanism, one)
end)

check.case("a check without a run has no error", function()
  attn.mechanism { id = "never", run = function() error "not today" end }
  local report = attn.check "never"
  assert(not report.ok and report.error == nil)
end)

check.case("exact attention in Lua is exact", function()
  define_exact()
  local report = attn.check("own-full")
  for _, case in ipairs(report.cases) do
    assert(case.ok, case.name .. ": " .. case.text)
  end
  assert(report.ok and report.error < 1e-5, report.error)
end)

check.case("FLOPs are counted by class and stage", function()
  local input = attn.random { n = 16, d = 4, heads = 2 }
  local r = attn.run("own-full", { input = input, measure = true })
  local parts = r.record.flops.counted_parts
  check.equal(parts.score, 2 * 2 * 16 * 16 * 4)
  check.equal(parts.mixing, 2 * 2 * 16 * 16 * 4)
  check.equal(parts.overhead, 2 * 16 * 16 * (1 + 4))
  assert(r.record.time_ms)
end)

check.case("keys and values shared by heads", function()
  local i = attn.random { n = 6, d = 4, heads = 4 }
  local shared = attn.input { q = i.q, k = i.k:slice { { 0, 2 } }:copy(),
    v = i.v:slice { { 0, 2 } }:copy() }
  local own = attn.run("own-full", { input = shared })
  assert(own.output:allclose(attn.run("full", { input = shared }).output, 1e-5, 1e-5))
end)

check.case("linear attention with drawn features", function()
  attn.mechanism {
    id = "own-linear", params = { { name = "features", default = 16, min = 1 } },
    views = { { name = "features", kind = "features", maybe = true } },
    run = function(ctx)
      local f = ctx.params.features
      local w = ctx:normal("omega", { ctx.heads, ctx.d, f })
      ctx:stage("features")
      local function phi(x) return (x * (ctx.d ^ -0.25)):matmul(w):map("abs") end
      local q, k = phi(ctx.q), phi(ctx.k)
      ctx:view("features", k)
      ctx:stage("attend", "mixing")
      if ctx.causal then
        local s = q:matmul(k:transpose())
        local mask = attn.tensor { s.shape[1], s.shape[2], s.shape[3] }:softmax(true):map("sign")
        s = s * mask
        return s:matmul(ctx.v) / (s:sum(2):reshape { ctx.heads, ctx.n, 1 } + 1e-9)
      end
      local sum = k:sum(1):reshape { ctx.heads, f, 1 }
      return q:matmul(k:transpose():matmul(ctx.v)) / (q:matmul(sum) + 1e-9)
    end,
  }
  local report = attn.check("own-linear")
  for _, case in ipairs(report.cases) do
    assert(case.ok, case.name .. ": " .. case.text)
  end
  assert(report.error > 1e-3)
  local a = attn.run("own-linear", { n = 8, seed = 1 }).output
  assert(not a:allclose(attn.run("own-linear", { n = 8, seed = 2 }).output))
end)

check.case("attn.check finds what is wrong", function()
  local function failing(name, id)
    for _, case in ipairs(attn.check(id).cases) do
      if not case.ok and case.name:find(name, 1, true) then
        return true
      end
    end
    error("not found: " .. name)
  end
  attn.mechanism { id = "wrong", run = function(ctx) return ctx.v * (0 / 0) end }
  failing("finite", "wrong")
  attn.mechanism { id = "wrong", run = function(ctx)
    return ctx.v - ctx.v:mean(1):reshape { ctx.heads, 1, ctx.e }
  end }
  failing("no look ahead", "wrong")
  local calls = 0
  attn.mechanism { id = "wrong", run = function(ctx)
    calls = calls + 1
    return ctx.v * calls
  end }
  failing("the same twice", "wrong")
  attn.mechanism { id = "wrong", views = { { name = "weights" } }, run = function(ctx)
    ctx:view("weights", ctx.q:matmul(ctx.k:transpose()):softmax(ctx.causal))
    return ctx.v
  end }
  failing("weights @ V", "wrong")
  attn.mechanism { id = "wrong", flops = function() return { mixing = 1 } end,
    run = function(ctx) return ctx.v * 2 end }
  failing("FLOPs", "wrong")
  attn.mechanism { id = "wrong", run = function(ctx) return ctx.v:slice { nil, { 0, 1 } } end }
  failing("runs", "wrong")
end)

check.case("errors of mechanisms", function()
  local function refuse(text, run, extra)
    local definition = extra or {}
    definition.id, definition.run = "bad", run
    attn.mechanism(definition)
    local message = check.refuses("SCRIPT", attn.run, "bad", { n = 4 })
    assert(message:find(text, 1, true), message)
  end
  refuse("must return a Tensor", function() end)
  refuse("the output must be", function() return attn.tensor { 2, 2 } end)
  refuse("it has none", function(ctx) ctx:view("weights", ctx.q) end)
  refuse("did you mean weights", function(ctx) ctx:view("weight", ctx.q) end,
    { views = { { name = "weights" } } })
  refuse("have the shape", function(ctx) ctx:view("weights", ctx.q) end,
    { views = { { name = "weights" } } })
  refuse("define.lua:", function(ctx) return ctx.nothing end)
  refuse("not negative", function(ctx) ctx:charge(-1) end)
  refuse("cannot start commands", function() attn.command("list") end)
end)

check.case("parameters of every type", function()
  local got
  attn.mechanism { id = "typed", params = {
    { name = "a", default = 3 }, { name = "b", type = "float", default = 0.5 },
    { name = "c", type = "bool", default = true }, { name = "e", type = "text", default = "hm" },
    { name = "f", type = "enum", values = { "x", "y" }, default = "y" },
    { name = "t", type = "tensor" } },
    run = function(ctx) got = ctx.params return ctx.v end }
  attn.run("typed", { n = 2 })
  check.equal(got.a .. got.e .. got.f .. got.b, "3hmy0.5")
  check.equal(got.c, true)
  check.equal(got.t, nil)
  attn.run("typed", { n = 2, a = 9, b = 2, c = false, e = "oh", f = "x", t = attn.vector { 4, 5 } })
  check.equal(got.a .. got.e .. got.f .. got.b, "9ohx2.0")
  check.equal(got.c, false)
  check.equal(got.t:get(1), 5)
  check.raises("typed has no parameter 'window'", attn.run, "typed", { n = 2, window = 1 })
end)

check.case("progress is reported, and a cancelled run ends there", function()
  local shares, ended = {}, false
  attn.mechanism {
    id = "told", views = {},
    run = function(ctx)
      check.raises("from 0 to 1", ctx.progress, ctx, 2)
      check.raises("number expected", ctx.progress, ctx)
      for step = 1, 4 do
        local until_then = os.clock() + 0.15
        while os.clock() < until_then do end
        ctx:progress(step / 4)
      end
      ended = true
      return ctx.v
    end,
  }
  local job = attn.start("told", { n = 8, d = 4 })
  repeat
    local done, share = job:poll(0.02)
    if share and share ~= shares[#shares] then shares[#shares + 1] = share end
  until done
  check.equal(table.concat(shares, " "), "0.25 0.5 0.75 1.0")
  assert(ended)
  ended = false
  check.refuses("CANCELLED", function()
    return attn.start("told", { n = 8, d = 4 }):on_progress(function(share)
      return not (share and share >= 0.5)
    end):wait()
  end)
  assert(not ended)
end)

check.case("what is given to a function says what it is", function()
  local row, context
  attn.register { { id = "says-row", row = function(_, r) row = r
    check.equal(tostring(r):sub(1, 12), "Row of query")
    check.equal(#r, 8)
  end }, { id = "says-context", run = function(ctx) context = ctx
    check.equal(tostring(ctx), "Context of says-context n=8")
    check.equal(#ctx, 8)
    return ctx.v
  end } }
  assert(attn.run("says-row", { n = 8, d = 4 }))
  assert(attn.run("says-context", { n = 8, d = 4 }))
  check.equal(tostring(row), "Row (closed)")
  check.equal(tostring(context), "Context (closed)")
  check.raises("only while its function runs", function() return #context end)
end)

check.case("a list of definitions", function()
  local function weights_of(ctx)
    return (ctx.q:matmul(ctx.k:transpose()) * ctx.scale):softmax(ctx.causal)
  end
  local ids = assert(attn.register {
    { id = "planned-near",
      params = { { name = "w", type = "int", default = 2, help = "keys around" },
      { name = "how", type = "enum", values = { "both", "left" } } },
      row = function(i, row, p) row:range(i - p.w, p.how == "both" and i + p.w or i) end },
    { id = "planned-cell", cell = function(i, j) return i == j end },
    { id = "planned", views = { "features", { name = "other", help = "another" } },
      run = function(ctx)
        local first, second = ctx.rng:normal { 2, 3 }, ctx.rng:normal({ 2, 3 }, 0.5)
        assert(not first:allclose(second))
        ctx:stage("draw", "mixing")
        ctx:view("features", first)
        ctx:view("other", second)
        check.equal(select("#", ctx:charge(1000)), 0)
        ctx:stage "attend"
        return weights_of(ctx):matmul(ctx.v)
      end,
      weights = weights_of,
      flops = function(shape, p)
        assert(p == shape.params)
        local cells = shape.heads * shape.n * shape.m
        return 1000 + cells * (2 * shape.d + 1 + 5 + 2 * shape.e)
      end },
  })
  check.same(ids, { "planned-near", "planned-cell", "planned" })
  check.equal(attn.info("planned-near").params[1].help, "keys around")
  check.equal(attn.info("planned-near").params[2].type, "enum")
  check.equal(attn.info("planned").views[2].help, "another")
  check.equal(attn.info("planned").views[3].name, "weights")
  local input = attn.random { n = 16, d = 4 }
  check.equal(#attn.run("planned-near", { input = input, w = 1, how = "left" }):row(5), 2)
  local r = assert(attn.run("planned", { input = input, seed = 3, ["repeat"] = 3 }))
  check.equal(r.stats.flops.total, r.record.flops.counted) -- weights are for whoever looks on
  check.equal(r.stats.flops.mixing, 1000)
  check.equal(r:stages()[2].name, "draw")
  check.same(r:stages()[2].views, { "features", "other" })
  assert(r.views.weights:matmul(input.v):allclose(r.output, 1e-4, 1e-4))
  local again = attn.run("planned", { input = input, seed = 3 })
  assert(again.views.features:allclose(r.views.features, 0, 0))
  local report = attn.check("planned", { n = { 1, 7 } })
  for _, one in ipairs(report.cases) do
    assert(one.ok or one.name:find("FLOPs"), one.name .. ": " .. one.text)
  end
  check.equal(attn.check("planned-near", "planned-near").error, 0)
  check.raises("check has no option 'N'", attn.check, "planned", { N = 3 })
  check.raises("did you mean", attn.mechanism, { id = "b", run = print, forward = print })
  check.raises("has none of row, cell", attn.register, { id = "b" })
  check.raises("definition: expected table", attn.register, { print })
  attn.mechanism { id = "no-weights", run = function(ctx) return ctx.v end,
    weights = function() error "not today" end }
  assert(check.refuses("SCRIPT", attn.run, "no-weights", { input = input }):find("not today"))
end)
