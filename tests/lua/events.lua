-- Handlers of events, and curves along numbers of one's own.
local check = require "support.check"
local case, equal, raises = check.case, check.equal, check.raises

local input = assert(attn.random { n = 16, d = 8 })

case("a handler is told of each run until it is taken away", function()
  local seen = {}
  local off = attn.on("run", function(e) seen[#seen + 1] = e end)
  local r = assert(attn.run("window", { input = input }))
  equal(#seen, 1)
  equal(seen[1].mechanism, "window")
  equal(seen[1].result, r)
  local job = assert(attn.start("full", { input = input }))
  job:wait()
  job:wait()
  equal(#seen, 2, "a run is told of once")
  equal(attn.run("differential", { input = input }), nil, "one head alone")
  equal(#seen, 2, "a run that failed")
  equal(off(), true)
  equal(off(), false)
  attn.run("full", { input = input })
  equal(#seen, 2)
end)

case("an error in a handler hurts neither the run nor the others", function()
  local after = 0
  local bad = attn.on("run", function() error("deliberate") end)
  local odd = attn.on("run", function() error({}) end)
  local good = attn.on("run", function() after = after + 1 end)
  local r, message = attn.run("full", { input = input })
  assert(r, message)
  equal(after, 1)
  bad() odd() good()
end)

case("what a handler does tells nobody", function()
  local count = 0
  local off = attn.on("run", function()
    count = count + 1
    attn.run("window", { input = input })
  end)
  attn.run("full", { input = input })
  equal(count, 1)
  attn.run("full", { input = input })
  equal(count, 2)
  off()
end)

case("comparisons, points of a sweep and files", function()
  local seen = {}
  local function note(name, of) return attn.on(name, function(e) seen[#seen + 1] = of(e) end) end
  local offs = {
    note("compare", function(e) return "compare " .. #e.records end),
    note("point", function(e)
      return ("point %d/%d %s"):format(e.done, e.total, e.record.mechanism)
    end),
    note("figure", function(e) return "figure " .. e.path end),
  }
  attn.compare { "full", "window", n = 16, ["repeat"] = 1 }
  local own = 0
  local function count() own = own + 1 end
  local sweep = assert(attn.sweep { "full", n = { 8, 16 }, progress = count })
  equal(#sweep, 2)
  equal(own, 2, "the sweep's own function is called, too")
  local path = os.tmpname()
  local figure = attn.figure { panels = { attn.run("full", { input = input }) } }
  local ok = figure:save(path, { format = "svg" })
  os.remove(path)
  equal(ok, true)
  check.same(seen, { "compare 2", "point 1/2 full", "point 2/2 full", "figure " .. path })
  for _, off in ipairs(offs) do off() end
end)

case("misuse", function()
  raises("there is no event 'runs'; there are compare, figure, point, run", attn.on, "runs", print)
  raises("f: expected function, got nil", attn.on, "run")
end)

case("a curve along numbers of one's own", function()
  local t = attn.vector { 1, 2, 4 }
  local curve = { x = "features", along = { 16, 64, 256 }, mark = "points" }
  local text = attn.figure { panels = { { tensor = t, curve = curve } } }:text { width = 60 }
  assert(text:find("features", 1, true) and text:find(" 250", 1, true), text)
  raises("along: 2 numbers for 3 points", attn.figure,
    { panels = { { tensor = t, curve = { along = { 1, 2 } } } } })
  raises("along: value 2 is no finite number", attn.figure,
    { panels = { { tensor = t, curve = { along = { 1, 0 / 0, 2 } } } } })
end)

case("a pivot's columns are named in order", function()
  local rows = { { n = 8, mechanism = "full", time_ms = { median = 1 } },
                 { n = 8, mechanism = "window", time_ms = { median = 2 } },
                 { n = 16, mechanism = "full", time_ms = { median = 3 } } }
  local out, names = attn.pivot(rows, "n", "mechanism", "time_ms")
  check.same(names, { "n", "full", "window" })
  equal(#out, 2)
  check.same(out[1], { n = 8, full = 1, window = 2 })
  check.same(out[2], { n = 16, full = 3 })
end)
