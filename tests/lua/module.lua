-- The catalogue, commands, JSON, CSV, fits and the like.
local check = require "support.check"
local case, equal, near, raises = check.case, check.equal, check.near, check.raises

case("the module", function()
  equal(require "attnscope", attn)
  equal(type(attn.version), "string")
  equal(attn.has_ui, false)
  equal(attn.interrupted(), false)
  equal(type(attn.environment().cores), "number")
end)

check.ours("nothing is searched beside the script", function()
  equal(package.cpath, "")
  for entry in package.path:gmatch("[^;]+") do
    equal(entry:sub(1, 1), "/", entry)
  end
end)

case("catalogue", function()
  local ids = attn.mechanisms()
  assert(#ids >= 7)
  for _, id in ipairs(ids) do
    local info = attn.info(id)
    equal(info.id, id)
    assert(#info.classes > 0 and info.title and info.claim_time and info.views)
    for _, p in ipairs(info.params) do
      assert(p.name and p.type and p.default and p.help, id)
    end
  end
  assert(#attn.mechanisms { class = "lp" } < #ids)
  equal(attn.mechanisms({ text = "REFORMER" })[1], "reformer")
  for _, id in ipairs(attn.mechanisms { causal = false }) do
    equal(attn.info(id).causal, false)
  end
  for _, id in ipairs(attn.mechanisms { fit = true }) do
    assert(attn.info(id).fit, id)
  end
  equal(attn.info("full").fit, nil)
  raises("unknown 'XX'; expected", attn.mechanisms, { class = "XX" })
  raises("did you mean 'class'", attn.mechanisms, { clas = "LP" })
  raises("reformer", attn.info, "reforner")
  local lessons = assert(attn.lessons())
  assert(#lessons >= 13 and lessons[1].steps > 0 and lessons[1].done == 0 and lessons[1].at == 1)
  equal(lessons[1].file, nil)
  assert(#attn.positions() > 0 and #attn.generators() > 0)
end)

case("commands", function()
  local text = assert(attn.command("run", "full", "-n", "16", "-d", "8", "--json"))
  equal(assert(attn.from_json(text)).mechanism, "full")
  assert(attn.command("list"):find("bigbird", 1, true))
  check.refuses("FILE", attn.command, "run", "full", "--input", "/nonexistent.npz")
  raises("neither a command", attn.command, "rnu")
  raises("a process of its own", attn.command, "lua", "x.lua")
  raises("string expected", attn.command, "run", {})
end)

case("JSON", function()
  equal(attn.json { b = 1, a = { 1, 2.5, "x\n\"" }, c = true },
    '{"a":[1,2.5,"x\\n\\""],"b":1,"c":true}')
  equal(attn.json {}, "[]")
  equal(attn.json(attn.from_json "{}"), "{}")
  equal(attn.json(0 / 0), "null")
  equal(attn.json(0.1), "0.1")
  equal(attn.json({ 1, { x = 2 } }, 2), '[\n  1,\n  {\n    "x": 2\n  }\n]')
  check.same(attn.from_json '{"a": [1, null, 2.5], "b": null}', { a = { 1, attn.null, 2.5 } })
  equal(math.type(attn.from_json "3"), "integer")
  check.refuses("FORMAT", attn.from_json, '{"a": ')
  raises("holds itself", function() local t = {} t[1] = t attn.json(t) end)
  raises("no word for a function", attn.json, { print })
  local deep = string.rep("[", 1500) .. string.rep("]", 1500)
  assert(attn.from_json(deep))
end)

case("CSV", function()
  local path = check.scratch("attnscope-lua-test.csv")
  local rows = { { a = 1, b = "x,y", t = { m = 0.5 } }, { a = 2, b = 'q"' } }
  assert(attn.csv(path, rows, { "a", "b", "t.m" }))
  local file <close> = assert(io.open(path))
  equal(file:read("a"), 'a,b,t.m\n1,"x,y",0.5\n2,"q""",\n')
  os.remove(path)
  check.refuses("FILE", attn.csv, "/nonexistent-folder/a.csv", rows)
  local stream <close> = io.tmpfile()
  assert(attn.csv(stream, rows, { "b" }))
  stream:seek("set")
  equal(stream:read("a"), 'b\n"x,y"\n"q"""\n')
  raises("expected table", attn.csv, path, 5)
  local all <close> = io.tmpfile()
  rows = { { n = 1, t = { m = 0.5, s = { 1, 2 } } }, { n = 2, t = { ["a.b"] = 3 }, [3] = 4 },
           { n = 3, t = {} } }
  assert(attn.csv(all, rows))
  all:seek("set")
  equal(all:read("l"), "3,n,t,t.m,t.s")
  equal(all:read("l"), ',1,"{""m"":0.5,""s"":[1,2]}",0.5,"[1,2]"')
  equal(all:read("a"), '4,2,"{""a.b"":3}",,\n,3,[],,\n')
  local endless = {}
  endless.a = endless
  raises("holds itself", attn.csv, path, { endless })
end)

case("fit", function()
  local xs, ys = {}, {}
  for i = 1, 6 do
    xs[i] = 2 ^ i
    ys[i] = 3 * xs[i] ^ 1.5
  end
  local fit = attn.fit(xs, ys)
  near(fit.alpha, 1.5, 1e-12)
  near(fit.c, 3, 1e-9)
  near(fit.r2, 1, 1e-12)
  near(fit.stderr, 0, 1e-7)
  near(fit.lo, 1.5, 1e-9)
  near(fit.hi, 1.5, 1e-9)
  equal(fit.best, "n^1.5")
  near(fit.models["n^1.5"], 0, 1e-9)
  equal(#fit.slopes, 5)
  equal(fit.count, 6)
  equal(attn.fit(xs, ys, { drop = 2 }).count, 4)
  equal(attn.fit(xs, ys, { drop = 3 }).lo, nil)
  raises("not a number", attn.fit, { 1, "x" }, { 1, 2 })
  local cache = attn.cache{ layers = "(window(4096),full)x21", heads = 16, kv_heads = 8,
                            dim = 256, n = 8192 }
  equal(cache.layers, 42)
  equal(cache.token_bytes, 172032)
  equal(cache.cache_bytes, 2113929216)
  equal(attn.cache{ layers = "full,state(1,2,3)" }.step_flops, nil)
  cache = attn.cache{ layers = "state(1,2,3),full", depth = 4, dim = 32, dtype = "q4" }
  equal(cache.layers, 4)
  equal(cache.state_bytes, 48)
  equal(cache.token_bytes, 72)
  equal(attn.cache{ layers = "retnet(2,3,4)" }.step_flops, 120)
  local path = "tests/model/gemma3.json"
  cache = attn.cache{ model = path, n = 131072 }
  equal(cache.layers, 62)
  equal(cache.cache_bytes, 11173625856)
  equal(attn.cache{ model = path, n = 131072, layers = "full" }.cache_bytes, 66571993088)
  equal(attn.cache{ model = path, heads = 8, kv_heads = 4, dim = 64 }.token_bytes, 63488)
  raises("cannot be opened", attn.cache, { model = "no-such.gguf" })
  raises("2 layers are given, but the depth is 1", attn.cache, { layers = "fullx2", depth = 1 })
  raises("'q3' is no type", attn.cache, { dtype = "q3" })
  raises("character 8", attn.cache, { layers = "window(0)" })
  raises("without a rank", attn.cache, { rope = 64 })
  raises("3 heads do not divide", attn.cache, { heads = 3, kv_heads = 2 })
  raises("did you mean 'drop'", attn.fit, xs, ys, { dropp = 1 })
  raises("at least 2", attn.fit, { 1 }, { 1 })
  raises("all x are the same", attn.fit, { 2, 2 }, { 1, 3 })
end)

case("sweep", function()
  local path = os.tmpname()
  os.remove(path)
  path = path .. ".jsonl"
  local options = { "full", "bigbird", n = { 16, 32 }, d = 8, threads = 1, ["repeat"] = 3,
                    params = { window = "3:5:+2" }, output = path }
  local records = attn.sweep(options)
  equal(#records, 6)
  for _, record in ipairs(records) do
    equal(record.status, "OK")
    equal(record.d, 8)
  end
  local message = select(2, pcall(attn.sweep, options))
  equal(message:find("--resume", 1, true) ~= nil, true)
  options.resume, options.n = true, "16:64:x2"
  equal(#attn.sweep(options), 9)
  local lines = 0
  for _ in io.lines(path) do
    lines = lines + 1
  end
  equal(lines, 9)
  equal(#attn.from_json(attn.command("fit", path, "--json")), 3)
  os.remove(path)
  local refused = attn.sweep { "nsa", "dilated", n = 16, params = { window = 0 } }
  local by = {}
  for _, record in ipairs(refused) do by[record.mechanism] = record end
  equal(by.dilated.status, "OK")
  equal(by.nsa.status, "UNSUPPORTED")
  equal(by.nsa.time_ms.median, nil)
  raises("-p window=-1: bigbird n=16: parameter window", attn.sweep,
         { "bigbird", n = 16, params = { window = -1 } })
  raises("no option 'nn'", attn.sweep, { "full", nn = 3 })
  raises("expected a number", attn.sweep, { "full", n = print })
  raises("whole numbers", attn.sweep, { "full", n = 0 })
end)

case("records of a file, pivoted", function()
  local path = os.tmpname()
  os.remove(path)
  path = path .. ".jsonl"
  assert(attn.sweep { "full", "bigbird", n = "16,32", d = 4, output = path, ["repeat"] = 1 })
  local file = io.open(path, "ab")
  file:write('{"half')
  file:close()
  local records = attn.read_sweep(path)
  equal(#records, 4)
  local rows, columns = attn.pivot(records, "n", "mechanism", "flops.counted")
  equal(#rows, 2)
  equal(table.concat(columns, " "), "n full bigbird")
  for _, row in ipairs(rows) do
    assert(row.full > 0 and row.bigbird > 0)
  end
  file = io.open(path, "ab")
  file:write("\n")
  file:close()
  check.refuses("FORMAT", attn.read_sweep, path)
  os.remove(path)
  check.refuses("FILE", attn.read_sweep, path)
  raises("across: expected string", attn.pivot, {}, "a", 1, "b")
end)

case("a pivot refuses two values for one cell, and a column that is not there", function()
  local rows = {
    { n = 8, mechanism = "window", params = { window = 5 }, decode = { step_bytes = 40 } },
    { n = 8, mechanism = "window", params = { window = 9 }, decode = { step_bytes = 72 } },
    { n = 16, mechanism = "window", params = { window = 9 }, decode = attn.null },
  }
  raises("two records stand at n=8, mechanism=window: they differ in params.window=5 and 9",
    attn.pivot, rows, "n", "mechanism", "decode.step_bytes")
  local out = attn.pivot(rows, "n", "params.window", "decode.step_bytes")
  equal(out[1]["5"], 40)
  equal(out[1]["9"], 72)
  raises("no record has a column 'decode.step_byte'; did you mean 'decode.step_bytes'?",
    attn.pivot, rows, "n", "params.window", "decode.step_byte")
  raises("did you mean 'mechanism'?", attn.pivot, rows, "n", "mechanisms", "decode.step_bytes")
  equal(#attn.pivot({ rows[3] }, "n", "mechanism", "decode.step_bytes"), 1)
end)

case("roofline", function()
  local roof = attn.roofline { "full", "bigbird(window=3)", n = 32, ["repeat"] = 1 }
  assert(roof.ceilings.gemm > 0 and roof.ceilings.stream > 0 and roof.threads >= 1)
  local mechanisms = {}
  for _, point in ipairs(roof.points) do
    mechanisms[point.mechanism] = true
    assert(point.stage and point.flops >= 0)
  end
  assert(mechanisms.full and mechanisms["bigbird(window=3)"])
  assert(#roof.runs == 2 and not roof.runs[1].stage)
  for _, run in ipairs(roof.runs) do
    local flops, time, bytes = 0, 0, 0
    for _, point in ipairs(roof.points) do
      if point.mechanism == run.mechanism then
        flops, time = flops + point.flops, time + point.time_ms
        bytes = bytes + (point.bytes or 0)
      end
    end
    local bound = 1e3 * math.max(flops / roof.ceilings.peak, bytes / roof.ceilings.stream)
    assert(run.flops == flops and math.abs(run.bound_ms / bound - 1) < 1e-6)
    assert(math.abs(run.of_bound / (bound / time) - 1) < 1e-6)
  end
  raises("no option 'm'", attn.roofline, { "full", m = 3 })
  raises("unknown mechanism", attn.roofline, { "ful", n = 16 })
end)

case("log", function()
  raises("debug, info", attn.log, "loud", "x")
end)

case("script arguments", function()
  equal(attn.args, arg)
  equal(arg[1], nil)
  assert(arg[0]:find("module.lua", 1, true))
end)

case("no explorer here", function()
  local ui = attn.ui
  equal(attn.has_ui, false)
  equal(_G.ui, not check.stock and ui or nil)
  for _, name in ipairs { "open", "panes", "wait", "message" } do
    raises("interactive program", ui[name], "full")
  end
  raises("expected function", ui.animate, 10)
  raises("rate: expected number", ui.animate, "fast", print)
end)
