-- Figures: panels, text, PNG.
local check = require "support.check"
local case, equal, raises = check.case, check.equal, check.raises

local input = assert(attn.random { structure = "induction", n = 24, d = 16, heads = 2 })
local full = assert(attn.run("full", { input = input }))
local bigbird = assert(attn.run("bigbird", { input = input }))

case("text", function()
  local fig = attn.figure { panels = { full, { result = bigbird, title = "the birds" } },
    title = "two of them", grid = "1x2" }
  equal(#fig, 2)
  equal(tostring(fig), "Figure of 2 panels")
  local text = assert(fig:text { width = 70 })
  assert(text:find("two of them", 1, true) and text:find("the birds", 1, true))
  equal(text, fig:text { width = 70 })
  for line in text:gmatch("[^\n]+") do
    assert(utf8.len(line) <= 70, line)
  end
  assert(not fig:text({ width = 70, utf8 = false }):find("[\x80-\xff]"), "only ASCII")
  assert(fig:text({ colours = 24 }):find("\27[", 1, true), "colours")
end)

case("what a query sees, on the image", function()
  local image = assert(attn.load("samples/image.png"))
  local r = assert(attn.run("image-local-2d", { input = image }))
  local text = attn.figure { panels = { { result = r, span = "13,17" } } }:text { width = 90 }
  assert(text:find("query at row 13, column 17 sees 12 of 1024 pixels", 1, true), text)
  equal(text, attn.figure { panels = { { result = r, span = 13 * 32 + 17 } } }:text { width = 90 })
  raises("there are 1024 queries", function()
    return attn.figure { panels = { { result = r, span = 1024 } } }
  end)
end)

case("strips beside a matrix", function()
  local fig = attn.figure { panels = { { result = bigbird, strips = "kept" } } }
  local text = fig:text { width = 70 }
  assert(text:find("bars: exact attention kept, to 1", 1, true), text)
  text = attn.figure { panels = { { result = full, strips = "sums", minus = bigbird,
    view = "weights" } } }:text { width = 70 }
  assert(text:find("bars: sum of each row, column, to", 1, true), text)
  text = attn.figure { panels = { { result = full, strips = "sums", queries = { 2, 9 } } } }:text {}
  assert(text:find("of 2 rows in each column", 1, true), text)
  text = attn.figure { panels = { { result = full, view = "weights", exclude = 3 } } }:text {}
  assert(text:find("key 3 excluded", 1, true), text)
  raises("has the keys 0..23, not 24", function()
    return attn.figure { panels = { { result = full, view = "weights", exclude = 24 } } }
  end)
  raises("choose sums, entropy, kept", function()
    return attn.figure { panels = { { result = full, strips = "all" } } }
  end)
end)

case("PNG, the same bytes twice", function()
  local path, bytes = check.scratch("attnscope-a.png"), {} -- the name is in the file's command
  for i = 1, 2 do
    local fig = attn.figure { panels = { { result = full, view = "weights", head = 1 },
      { result = bigbird, view = "weights", minus = full, region = { q = { 4, 20 } } } } }
    assert(fig:save(path, { width = 3.25, dpi = 100 }))
    local file <close> = assert(io.open(path, "rb"))
    bytes[i] = file:read("a")
    os.remove(path)
  end
  equal(bytes[1]:sub(2, 4), "PNG")
  equal(bytes[1] == bytes[2], true)
end)

case("a figure of panels is a command that makes it again", function()
  local input = assert(attn.random { n = 24, d = 16, heads = 2, seed = 5 })
  local window = assert(attn.run("window", { input = input, window = 5 }))
  local other = assert(attn.run("bigbird", { input = input, seed = 7 }))
  local low = assert(attn.run("linformer", { input = input, k = 4 }))
  local figures = {
    { panels = { window, { result = other, view = "weights", head = 1, minus = window,
      title = "what BigBird has more" } }, title = "two", caption = "by hand", grid = "2x1" },
    { panels = { { result = window, view = "weights", pool = "mean", region = { 0, 12, 0, 12 } },
      { result = other, view = "weights", scale = "log", cmap = "magma", lo = 0, hi = 0.3 },
      { result = other, view = "reach", layers = 3, residual = false } }, shared_scale = true },
    { panels = { { result = low, view = "spectrum", with = { window } },
      { result = other, view = "weights", exclude = 0 } } },
    { panels = { { result = window, strips = "sums", queries = { 3, 4 } } } },
    { panels = { { result = window, view = "plot(flops)", with = { other } } } },
  }
  for i, options in ipairs(figures) do
    for _, kind in ipairs { "png", "svg", "pdf", "txt", "ans" } do
      local path = check.scratch(("attnscope-again-%d.%s"):format(i, kind))
      local look = { dpi = 60, width = 5.5, colours = 256 }
      if i > 3 then
        look.font, look.size, look.letters, look.labels = "mono", 7, "text", "axes"
        look.no_title, look.no_count, look.no_caption = i == 4, true, i == 5
      end
      assert(attn.figure(options):save(path, look))
      assert(attn.command("rerender", path, "--check"))
      local said = assert(attn.command("info", path))
      assert(said:find("command       figure ", 1, true), said)
      assert(said:find("input-sha256", 1, true) and said:find("version", 1, true), said)
      os.remove(path)
    end
  end
end)

case("without a caption there are no signs of warnings", function()
  local warned = assert(attn.run("performer", { n = 16 }))
  local panels = { { result = warned, view = "weights", title = "mine" }, warned }
  local fig = attn.figure { panels = panels }
  for hidden = 1, 0, -1 do
    local path = check.scratch("attnscope-signs.svg")
    assert(fig:save(path, { no_caption = hidden == 1 }))
    local file <close> = assert(io.open(path, "rb"))
    equal(file:read("a"):find("†", 1, true) == nil, hidden == 1)
    os.remove(path)
  end
end)

case("an option that only scripts have is reported", function()
  local path = check.scratch("attnscope-script.png")
  local t = attn.tensor { { 1, 2 }, { 3, 5 }, { 2, 0 } }
  local made = attn.input { q = t, k = t, v = t }
  local r = assert(attn.run("full", { input = made }))
  for _, panel in ipairs { { result = r }, { result = full, caption = "mine" },
    { tensor = attn.tensor { { 1, 2 } } } } do
    local panels = { panel, full }
    assert(attn.figure { panels = panels }:save(path, { dpi = 60 }))
    local done, why = attn.command("rerender", path, "--check")
    assert(not done and why:find("a script drew it", 1, true), why)
  end
  os.remove(path)
end)

case("text files and refusals", function()
  local fig = attn.figure { panels = { full } }
  local path = check.scratch("attnscope-figure.txt")
  assert(fig:save(path))
  os.remove(path)
  for ending, head in pairs { svg = "<?xml", pdf = "%PDF-", ans = "" } do
    local other = check.scratch("attnscope-figure." .. ending)
    assert(fig:save(other, { theme = "print", dpi = 100 }))
    local file <close> = assert(io.open(other, "rb"))
    local bytes = file:read("a")
    equal(bytes:sub(1, #head), head)
    assert(bytes:find("attnscope:command", 1, true) or ending == "pdf", ending)
    os.remove(other)
  end
  raises("no theme 'neon'", fig.save, fig, path, { theme = "neon", format = "png" })
  raises("attnscope step", fig.save, fig, "a.apng")
  check.refuses("FILE", fig.save, fig, "/nonexistent-folder/a.png")
  raises("the ending says what to write", fig.save, fig, "a.jpeg")
end)

case("steps as a figure, an animation and a file each", function()
  local folder = os.getenv("TMPDIR") or "/tmp"
  local input32 = assert(attn.random { structure = "normal", n = 32 })
  local r = assert(attn.run("sinkhorn", { input = input32, params = { block = 8 } }))
  local path = check.scratch("attnscope-steps.apng")
  assert(r:save_steps(path, { dpi = 50, delay = 0.2 }))
  local file <close> = assert(io.open(path, "rb"))
  local bytes = file:read("a")
  assert(bytes:find("acTL", 1, true), "an animation")
  assert(bytes:find("step 'sinkhorn(block=8)'", 1, true), "with its command")
  os.remove(path)
  assert(r:save_steps(folder .. "/lua-step-%02d.svg", { dpi = 50 }))
  for k = 1, 10 do assert(os.remove(("%s/lua-step-%02d.svg"):format(folder, k))) end
  raises("%02d", r.save_steps, r, folder .. "/%s.png")
end)

case("panels of tensors", function()
  local t = attn.tensor { { 0.1, 0.9 }, { 0.5, 0.5 } }
  local fig = attn.figure { panels = { { tensor = t, kind = "weights", title = "by hand" },
    { tensor = t:transpose() }, { tensor = full.output, head = 1, cmap = "magma" } } }
  assert(fig:text { width = 90 })
  assert(attn.figure { panels = { { tensor = attn.vector { 1, 4, 9 } } } }:text(), "a curve")
  raises("unknown 'weight'", attn.figure, { panels = { { tensor = t, kind = "weight" } } })
end)

case("presets, commands, what a position does", function()
  local ids = {}
  for i, preset in ipairs(attn.presets()) do
    ids[i] = preset.id
    assert(preset.title ~= "" and preset.source ~= "" and preset.help ~= "", preset.id)
    equal(preset.command:match("^%a+"), preset.model and "model" or "figure")
  end
  equal(ids[1], "fournier-fig5")
  local fig = assert(attn.figure { preset = "slides-bigbird", title = "Birds", grid = "1x4" })
  equal(#fig, 4)
  assert(fig:text { width = 160 }:find("Birds", 1, true))
  local path = check.scratch("attnscope-preset.png")
  assert(fig:save(path, { dpi = 100 }))
  assert(attn.command("rerender", path, "--check")) -- the file knows the whole command
  os.remove(path)
  local narrow = assert(attn.run("full", { input = "synthetic:normal", n = 16 }))
  local loose = assert(attn.figure { panels = { narrow, narrow, narrow, narrow }, grid = "1x4~" })
  assert(loose:save(path, { dpi = 100, width = 2 }))
  assert(attn.command("rerender", path, "--check"))
  os.remove(path)
  equal(#assert(attn.figure { command = "full bigbird -n 16 --diff" }), 2)
  equal(#assert(attn.figure { command = "--preset slides-alibi -n 6" }), 4)
  local with = assert(attn.run("full", { input = input, position = "t5" }))
  local effect = assert(attn.figure { position_effect = with, head = 1 })
  equal(#effect, 5)
  local text = effect:text { width = 150 }
  for _, title in ipairs { "Weights without T5 buckets", "Weights with T5 buckets",
    "Bias added by T5 buckets", "Position buckets" } do
    assert(text:find(title, 1, true), title)
  end
  assert(with:view("bias"):allclose(with:view("position_bias"), 0, 0))
  raises("nearest is 'slides-alibi'", attn.figure, { preset = "slides-alib" })
  raises("choose one", attn.figure, { preset = "slides-alibi", command = "full" })
  raises("no position", attn.figure, { position_effect = full })
  raises("expected a Result", attn.figure, { position_effect = 3 })
  check.refuses("FILE", attn.figure, { command = "full --input nowhere.npz" })
end)

case("misuse", function()
  raises("expected a list", attn.figure, {})
  raises("1 to 1000", attn.figure, { panels = {} })
  raises("panel 1", attn.figure, { panels = { 5 } })
  raises("needs a result or a tensor", attn.figure, { panels = { {} } })
  raises("did you mean 'view'", attn.figure, { panels = { { result = full, veiw = "weights" } } })
  raises("weights", attn.figure, { panels = { { result = full, view = "wieghts" } } })
  raises("there are 2 (0..1)", attn.figure, { panels = { { result = full, head = 2 } } })
  raises("not inside", attn.figure, { panels = { { result = full, region = { 0, 99 } } } })
  raises("no pooling 'median'", attn.figure, { panels = { { result = full, pool = "median" } } })
  raises("do not fit", attn.figure, { panels = { full, bigbird }, grid = "1x1" })
  raises("ROWSxCOLS", attn.figure, { panels = { full }, grid = "one" })
  raises("ROWSxCOLS", attn.figure, { panels = { full }, grid = "1x1?" })
  local fig = attn.figure { panels = { full } }
  raises("number from 20 to 10000", fig.text, fig, { width = 5 })
  raises("0, 256 or 24", fig.text, fig, { colours = 16 })
  raises("did you mean 'dpi'", fig.save, fig, "a.png", { dip = 3 })
end)

case("sorted order", function()
  local r = assert(attn.run("reformer", { input = input }))
  assert(attn.figure { panels = { r, { result = r, sorted = true } } }:text { width = 80 })
end)

case("reach", function()
  local r = assert(attn.run("window", { input = attn.random { n = 20, d = 4 }, window = 3 }))
  local text = assert(attn.figure {
    panels = { { result = r, view = "reach", layers = 2 },
      { result = r, view = "reach", layers = 2, residual = false } } }:text { width = 120 })
  assert(text:find("reach, 2 layers", 1, true))
  assert(text:find("reach, walks of 2 layers", 1, true))
  assert(text:find("2 2 layers", 1, true) and text:find("not reached", 1, true))
  raises("no number of layers", attn.figure, { panels = { { result = r, view = "reach",
    minus = r } } })
end)

case("plots of measured numbers", function()
  local data = attn.random { n = 32, d = 8 }
  local timed = assert(attn.run("full", { input = data, ["repeat"] = 7, quality = true }))
  local drawn = assert(attn.run("performer", { input = data, ["repeat"] = 7, seeds = 3 }))
  local plain = assert(attn.run("linear", { input = data }))
  local figure = assert(attn.figure { panels = {
    { result = timed, view = "plot(time)", with = { drawn, plain } },
    { result = drawn, view = "plot(error-seeds)", with = { timed } },
    { result = drawn, view = "plot(timeline)" },
    { scaling = { { name = "square", n = { 8, 16, 32 }, cost = { 1, 4, 17 }, claim = 2 },
      { name = "gap", n = { 8, 16, 32 }, cost = { 1, 0 / 0, 2 }, low = { 1, 1, 1 },
        high = { 2, 2, 3 } } } } } })
  local text = assert(figure:text { width = 200 })
  for _, words in ipairs { "not measured", " ms", "one draw", "nothing drawn", "own memory", "n^2",
    "square", "measured on " } do
    assert(text:find(words, 1, true), words)
  end
  assert(attn.figure { panels = { { result = timed, view = "plot(roofline)" } } }
    :text():find("sgemm", 1, true))
  assert(attn.figure { command = "'full:plot(flops) + linear:plot(flops)' -n 16" }
    :text():find("Linear", 1, true))
  for _, ending in ipairs { "png", "svg", "txt" } do -- the file holds what was measured
    local path = check.scratch("attnscope-plots." .. ending)
    assert(figure:save(path, { theme = "print", dpi = 80 }))
    assert(attn.command("rerender", path, "--check"))
    assert(attn.figure { title = "mine", panels = { { scaling = { { name = "own",
      n = { 8, 16 }, cost = { 1, 3 } } } } } }:save(path, { width = 3.25 })) -- and of no run at all
    assert(attn.command("rerender", path, "--check"))
    assert(attn.command("info", path):find("measured", 1, true))
    os.remove(path)
  end
  raises("there are: time", attn.figure, { panels = { { result = timed, view = "plot(x)" } } })
  raises("not measured", attn.figure, { panels = { { result = plain, view = "plot(timeline)" } } })
  raises("n and cost", attn.figure, { panels = { { scaling = { { n = { 1 } } } } } })
end)

-- Records as a sweep has them, of three lengths; the second was measured on a busy machine.
local function decoded()
  local records = {}
  for i, n in ipairs { 64, 128, 256 } do
    records[i] = { mechanism = "full", status = "OK", n = n, params = {}, oversubscribed = i == 2,
      time_ms = { median = i }, decode = { state_bytes = 20480 * i, decode_flops = 10 * n,
        step_ms = { median = i } }, gpu = { activity = { busy_ms = i } } }
  end
  return records
end

case("axes of a sweep's numbers", function()
  local function text(cost)
    return attn.figure { panels = { { sweep = decoded(), cost = cost } } }:text { width = 80 }
  end
  assert(text("decode.decode_flops"):find("FLOPs of a decoding step over n", 1, true))
  assert(text("decode.step_ms"):find("Time of a decoding step over n", 1, true))
  local bytes = text "decode.state_bytes"
  assert(bytes:find("Cache over n", 1, true) and bytes:find("%d+Ki") and not bytes:find("%d+k"))
  assert(text("gpu.activity.busy_ms"):find("gpu activity busy (ms)", 1, true))
end)

case("times of a busy machine", function()
  local busy = "more threads than processors were free"
  local function caption(panel)
    return attn.figure { panels = { panel } }:text { width = 200 }
  end
  assert(caption({ sweep = decoded() }):find(busy, 1, true))
  assert(not caption({ sweep = decoded(), cost = "decode.state_bytes" }):find(busy, 1, true))
  local curve = { name = "own", n = { 1, 2 }, cost = { 1, 4 } }
  assert(not caption({ scaling = { curve } }):find(busy, 1, true))
  curve.busy = { false, true }
  assert(caption({ scaling = { curve } }):find(busy, 1, true))
  assert(caption({ scaling = { { name = "own", records = decoded() } } }):find(busy, 1, true))
end)

case("curves", function()
  local r = assert(attn.run("linformer", { input = attn.random { n = 20, d = 4 }, k = 3 }))
  local other = assert(attn.run("full", { input = attn.random { n = 20, d = 4 } }))
  local s = r:view("spectrum")
  assert(s.shape[1] == 20 and s.shape[2] == 2)
  local text = assert(attn.figure {
    panels = { { result = r, view = "spectrum", with = { other } },
      { tensor = attn.tensor { { 1, 10 }, { 2, 20 }, { 4, 5 } },
        curve = { x = "layer", y = "memory (bytes)", series = "plain|reversible", first = 1 } },
      { tensor = attn.tensor { 3, 1, 2 }, curve = true } } }:text { width = 160 })
  assert(text:find("rank 3 (k)", 1, true))
  assert(text:find("linformer", 1, true) and text:find("full", 1, true))
  assert(text:find("reversible", 1, true) and text:find("layer", 1, true))
  raises("only for curves", attn.figure, { panels = { { result = r, view = "weights",
    with = { other } } } })
  raises("expected line, steps, bars", attn.figure, { panels = { { tensor = attn.tensor { 1, 2 },
    curve = { mark = "dots" } } } })
end)

check.case("notes mark cells, and the file's command has them", function()
  local r = attn.run("window", { n = 16, d = 8 })
  local panel = { result = r, view = "weights", notes = "3:4:here|*:0:first" }
  local f = assert(attn.figure { panels = { panel } })
  assert(f:text():find("query 3, key 4: here", 1, true))
  local path = check.scratch("notes.svg")
  assert(f:save(path))
  local svg = io.open(path):read("a")
  assert(svg:find("here", 1, true) and svg:find("{notes=3:4:here|*:0:first}", 1, true))
  os.remove(path)
  check.raises("expected QUERY:KEY:TEXT", attn.figure, { panels = { { result = r, notes = "x" } } })
end)

case("a page that the figure says", function()
  local r = attn.run("bigbird", { n = 32, d = 4 })
  local f = attn.figure { panels = { r, { result = r, view = "weights", region = { 0, 4, 0, 4 } },
    { pattern = r:pattern() } }, width = "3.25in", dpi = 100,
    region = { q = { 0, 8 }, k = { 0, 16 } } }
  local path = check.scratch("attnscope-page.png")
  local function width_of(options)
    assert(f:save(path, options))
    local file <close> = io.open(path, "rb")
    return (">I4"):unpack(file:read(20):sub(17))
  end
  equal(width_of(), 325)
  equal(width_of { dpi = 200 }, 650)
  equal(width_of { width = "450px", dpi = 150 }, 450)
  equal(width_of { width = 2 }, 200)
  check.raises("width: expected inches as", f.save, f, path, { width = "9 ells" })
  assert(f:save(path, { width = "8.5cm" }))
  check.raises("width: expected inches as", f.save, f, path, { width = "nan" .. "in" })
  check.raises("width: expected inches from 0", f.save, f, path, { width = "-3in" })
  check.raises("expected inches as 6.75", attn.figure, { panels = { r }, width = "wide" })
  check.raises("is not inside 32 x 32", attn.figure, { panels = { r }, region = { 0, 99 } })
  check.raises("it is of panels", attn.figure, { preset = "bigbird", region = { 0, 4 } })
  os.remove(path)
  local text = f:text { width = 150 }
  assert(text:find("8 x 16", 1, true) or text:find("128 pairs", 1, true), text)
end)

case("metadata given by the caller", function()
  local f = attn.figure { panels = { attn.run("full", { n = 8, d = 4 }) } }
  for _, kind in ipairs { "svg", "png", "txt", "pdf" } do
    local path = check.scratch("attnscope-meta." .. kind)
    assert(f:save(path, { metadata = { author = "A. N. Other", run = 17 } }))
    local file = io.open(path, "rb")
    local bytes = file:read("a")
    file:close()
    if kind ~= "pdf" then -- which packs its words
      assert(bytes:find("author", 1, true) and bytes:find("A. N. Other", 1, true), kind)
    end
    os.remove(path)
  end
  local function refuses(what, metadata)
    check.raises(what, f.save, f, "x.png", { metadata = metadata })
  end
  refuses("expected a table", 3)
  refuses("a key has letters", { ["a: b"] = 1 })
  refuses("a key has letters", { Software = "mine" })
  refuses("zero byte", { a = "b\0c" })
  local many = {}
  for i = 1, 17 do
    many["key" .. i] = i
  end
  refuses("16 keys at most", many)
end)

case("an overview of heads", function()
  local all = assert(attn.load("sample:induction.npz"))
  local wall = assert(attn.figure { overview = assert(attn.run("full", { input = all })),
    view = "weights", sort = "entropy", title = "all of them" })
  equal(#wall, all.layers * all.heads)
  local text = wall:text { width = 70 }
  assert(text:find("all of them", 1, true) and text:find("entropy", 1, true))
  local same = assert(attn.figure { command =
    "full:weights --overview --sort entropy --input sample:induction.npz --title 'all of them'" })
  equal(same:text { width = 70 }, text)
  equal(#assert(attn.figure { overview = full }), 2)
  raises("are of an overview", attn.figure, { panels = { full }, sort = "entropy" })
  raises("choose one of", attn.figure, { overview = full, command = "full" })
  raises("--sort loud: expected previous", attn.figure, { overview = full, sort = "loud" })
end)
