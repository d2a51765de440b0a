-- Tensors: elements, slices, arithmetic, reductions, files.
local check = require "support.check"
local case, equal, near, raises = check.case, check.equal, check.near, check.raises

case("lists of all shapes", function()
  for _, shape in ipairs { { 5 }, { 0 }, { 3, 0 }, { 0, 3 }, { 2, 3, 4 }, { 1, 1, 1, 1 },
    { 3, 5000 }, { 2, 1, 2, 4097 } } do
    local t, count = attn.tensor(shape), 1
    for _, extent in ipairs(shape) do
      count = count * extent
    end
    t = t:map(function() count = count - 1 return count end)
    local list = t:totable()
    equal(#list, shape[1])
    if shape[1] > 0 and shape[2] ~= 0 then
      local again = #shape == 1 and attn.vector(list) or attn.tensor(list)
      check.same(again.shape, shape)
      assert(again:allclose(t, 0, 0))
      local turned = #shape > 1 and t:transpose()
      assert(not turned or attn.tensor(turned:totable()):allclose(turned, 0, 0))
    end
  end
  equal(attn.tensor({ 3 }, "i64"):slice({ 1 }):totable(), 0)
  raises("axis 1 differ", attn.tensor, { { 1, 2 }, { 3 } })
  raises("axis 1 differ", attn.tensor, { { 1, 2 }, 3 })
  raises("axis 2 differ", attn.tensor, { { { 1 } }, { { 3, 4 } } })
  raises("expected a number", attn.tensor, { { 1, 2 }, { 3, "x" } })
end)

case("a tensor of a shape is zero", function()
  local t = attn.tensor { 2, 3 }
  equal(t.dtype, "f32")
  check.same(t.shape, { 2, 3 })
  equal(#t, 2)
  equal(t:sum(), 0)
  equal(t:bytes(), 24)
  equal(tostring(t), "Tensor f32 [2,3]")
end)

case("tensor of nested lists", function()
  local t = attn.tensor({ { 1, 2 }, { 3, 4 } }, "i32")
  equal(t:get(1, 0), 3)
  equal(math.type(t:get(1, 0)), "integer")
  check.same(t:totable(), { { 1, 2 }, { 3, 4 } })
  check.same(attn.vector({ 5, 6, 7 }, "i64"):totable(), { 5, 6, 7 })
  raises("differ", attn.tensor, { { 1, 2 }, { 3 } })
  raises("at most 4", attn.tensor, { { { { { 1 } } } } })
  raises("expected a number", attn.tensor, { { 1, "x" } })
  raises("attn.vector", attn.tensor, { 1.5, 2 })
  raises("whole number", attn.tensor({ 2, 3 }).softmax, attn.tensor { 2, 3 }, 1.5)
  raises("to of {from, to, step}: expected a whole number from 0 to 4", attn.tensor({ 4 }).slice,
    attn.tensor { 4 }, { { 0, 9 } })
  raises("f32, f64", attn.tensor, { 2 }, "float")
  raises("too large", attn.tensor, { 1 << 40, 1 << 40 })
end)

case("indices count from 0 and are checked", function()
  local t = attn.tensor { 2, 3 }
  t:set(1, 2, 7.5)
  equal(t:get(1, 2), 7.5)
  raises("outside 0..2", t.get, t, 0, 3)
  raises("outside 0..1", t.get, t, -1, 0)
  raises("2 axes", t.get, t, 0)
  raises("whole number", function() attn.tensor({ 1 }, "u8"):set(0, 256) end)
  raises("whole number", function() attn.tensor({ 1 }, "i32"):set(0, 1.5) end)
end)

case("i64 keeps all digits", function()
  local t = attn.tensor({ 1 }, "i64")
  t:set(0, math.maxinteger)
  equal(t:get(0), math.maxinteger)
  equal(t:copy():get(0), math.maxinteger)
end)

case("slices share the elements", function()
  local t = attn.tensor { { 0, 1, 2, 3 }, { 4, 5, 6, 7 }, { 8, 9, 10, 11 } }
  local s = t:slice { { 1, 3 }, { 0, 4, 2 } }
  check.same(s.shape, { 2, 2 })
  check.same(s:totable(), { { 4, 6 }, { 8, 10 } })
  s:set(0, 1, 60)
  equal(t:get(1, 2), 60)
  check.same(t:slice({ nil, 1 }):totable(), { 1, 5, 9 })
  check.same(t:slice({ 2 }):totable(), { 8, 9, 10, 11 })
  equal(t:slice({ 2, 3 }):get(), 11)
  check.same(t:transpose():slice({ 0 }):totable(), { 0, 4, 8 })
  equal(#t:slice { { 1, 1 } }, 0)
  raises("from 0 to 3, got 9", t.slice, t, { { 2, 9 } })
  raises("outside 0..2", t.slice, t, { 3 })
end)

case("a slice outlives its closed base", function()
  local t = attn.tensor { { 1, 2 }, { 3, 4 } }
  local s = t:slice { 1 }
  t:close()
  raises("closed", t.get, t, 0, 0)
  collectgarbage()
  check.same(s:totable(), { 3, 4 })
  equal(tostring(t), "Tensor (closed)")
end)

case("to-be-closed", function()
  local kept
  do
    local t <close> = attn.tensor { 1 }
    kept = t
  end
  raises("closed", function() return kept.shape end)
end)

case("arithmetic", function()
  local a, b = attn.tensor { { 1, 2 }, { 3, 4 } }, attn.tensor { { 10, 20 }, { 30, 40 } }
  check.same((a + b):totable(), { { 11.0, 22.0 }, { 33.0, 44.0 } })
  check.same((b - a):totable(), { { 9.0, 18.0 }, { 27.0, 36.0 } })
  check.same((a * b):totable(), { { 10.0, 40.0 }, { 90.0, 160.0 } })
  check.same((b / a):totable(), { { 10.0, 10.0 }, { 10.0, 10.0 } })
  check.same((1 - a):totable(), { { 0.0, -1.0 }, { -2.0, -3.0 } })
  check.same((-a):totable(), { { -1.0, -2.0 }, { -3.0, -4.0 } })
  equal((a + b).dtype, "f32")
  equal((a + attn.tensor({ 2, 2 }, "i64")).dtype, "f64")
  check.same((a + attn.tensor { { 1, 2 } }):totable(), { { 2.0, 4.0 }, { 4.0, 6.0 } })
  check.same((attn.tensor { { 1 }, { 2 } } * a):totable(), { { 1.0, 2.0 }, { 6.0, 8.0 } })
  raises("[2,2] and [3,2] differ", function() return a + attn.tensor { 3, 2 } end)
  raises("[2,2] and [3] differ", function() return a + attn.vector { 1, 2, 3 } end)
  raises("Tensor expected", function() return a + "x" end)
end)

case("leading axes that are lacking are repeated", function()
  local a, row = attn.tensor { { 1, 2 }, { 3, 4 } }, attn.vector { 10, 20 }
  local stack = attn.tensor { { { 1, 2 }, { 3, 4 } }, { { 5, 6 }, { 7, 8 } } }
  check.same((a + row):totable(), { { 11.0, 22.0 }, { 13.0, 24.0 } })
  check.same((row - a):totable(), { { 9.0, 18.0 }, { 7.0, 16.0 } })
  local product = { { { 1.0, 4.0 }, { 9.0, 16.0 } }, { { 5.0, 12.0 }, { 21.0, 32.0 } } }
  check.same((stack * a):totable(), product)
  check.same((a * stack):totable(), product)
  check.same((stack - a:transpose()):totable(), { { { 0.0, -1.0 }, { 1.0, 0.0 } },
    { { 4.0, 3.0 }, { 5.0, 4.0 } } })
  check.same((attn.tensor { 1, 1, 1, 2 } + stack).shape, { 1, 2, 2, 2 })
  equal((attn.tensor { 1, 1, 1, 2 } + stack):get(0, 1, 0, 1), 6.0)
  raises("[3,2] and [2,3,3] differ",
    function() return attn.tensor { 3, 2 } + attn.tensor { 2, 3, 3 } end)
end)

-- Four axes of different extents are halved, and their first axis is left out, piece by piece.
case("arithmetic of four axes", function()
  local a, b = attn.tensor { 2, 3, 4, 5 }, attn.tensor { 2, 3, 4, 5 }
  local function of(i, j, k, l) return 1000 * i + 100 * j + 10 * k + l end
  local function each(f)
    for i = 0, 1 do for j = 0, 2 do for k = 0, 3 do for l = 0, 4 do f(i, j, k, l) end end end end
  end
  each(function(i, j, k, l)
    a:set(i, j, k, l, of(i, j, k, l))
    b:set(i, j, k, l, 0.5)
  end)
  local sum = a + b
  each(function(i, j, k, l) check.same(sum:get(i, j, k, l), of(i, j, k, l) + 0.5) end)
end)

case("matmul", function()
  local a = attn.tensor { { 1, 2, 3 }, { 4, 5, 6 } }
  local b = attn.tensor { { 1, 0 }, { 0, 1 }, { 1, 1 } }
  check.same(a:matmul(b):totable(), { { 4.0, 5.0 }, { 10.0, 11.0 } })
  check.same(a:matmul(a:transpose()):totable(), { { 14.0, 32.0 }, { 32.0, 77.0 } })
  local h = attn.tensor { { { 1, 2 } }, { { 3, 4 } } }
  check.same(h:matmul(h:transpose()):totable(), { { { 5.0 } }, { { 25.0 } } })
  raises("expected [n,k] and [k,m]", a.matmul, a, a)
end)

-- Larger than the pieces in which it is done on every side, whole numbers, any strides.
case("matmul of more than a piece", function()
  local function of(i, j) return (i * 7 + j * 3) % 11 - 5 end
  local a, b = attn.tensor { 260, 300 }, attn.tensor { 520, 300 }
  for i = 0, 259 do for k = 0, 299 do a:set(i, k, of(i, k)) end end
  for j = 0, 519 do for k = 0, 299 do b:set(j, k, of(k, j)) end end
  local y = a:matmul(b:transpose())
  check.same(y.shape, { 260, 520 })
  for _, at in ipairs { { 0, 0 }, { 259, 519 }, { 256, 512 }, { 3, 511 } } do
    local sum = 0.0
    for k = 0, 299 do sum = sum + of(at[1], k) * of(k, at[2]) end
    check.same(y:get(at[1], at[2]), sum)
  end
end)

case("reductions", function()
  local t = attn.tensor { { 1, 5, 3 }, { 7, 2, 6 } }
  equal(t:sum(), 24)
  equal(t:mean(), 4)
  equal(t:min(), 1)
  equal(t:max(), 7)
  check.same({ t:argmax() }, { 1, 0 })
  check.same(t:sum(0):totable(), { 8.0, 7.0, 9.0 })
  check.same(t:mean(1):totable(), { 3.0, 5.0 })
  check.same(t:max(1):totable(), { 5.0, 7.0 })
  check.same(t:min(0):totable(), { 1.0, 2.0, 3.0 })
  check.same(t:argmax(1):totable(), { 1, 0 })
  equal(t:transpose():sum(), 24)
  check.same(t:transpose():sum(0):totable(), { 9.0, 15.0 })
  equal(t:slice({ nil, { 0, 3, 2 } }):max(), 7)
  equal(attn.tensor({ { 0, 1 }, { 2, 0 } }, "u8"):nnz(), 2)
  equal(math.type(attn.tensor({ { 1, 2 } }, "i32"):sum()), "integer")
  -- a sum beyond the whole numbers of Lua is a number
  local most = attn.vector({ 1 << 62, 1 << 62 }, "i64")
  equal(most:sum(), 2.0 ^ 63)
  equal(math.type(most:sum()), "float")
  equal((attn.vector({ math.mininteger }, "i64"):sum()), math.mininteger)
  raises("outside 0..1", t.sum, t, 2)
  raises("no elements", function() attn.tensor({ 0 }):max() end)
  equal(attn.tensor({ 0 }):sum(), 0)
end)

case("NaN is not lost", function()
  local t = attn.vector { 1, 0 / 0, 3 }
  assert(t:max() ~= t:max() and t:min() ~= t:min() and t:sum() ~= t:sum())
  equal(t:argmax(), 2)
  equal(t:allclose(t), false)
  local lines = attn.tensor { { 1, 2 }, { 5, 0 / 0 }, { 9, 3 } }
  assert(lines:max() ~= lines:max() and lines:min() ~= lines:min())
end)

case("map and allclose", function()
  local t = attn.vector { 0, 1, 4 }
  check.same(t:map("sqrt"):totable(), { 0.0, 1.0, 2.0 })
  check.same(t:map(function(x) return x + 1 end):totable(), { 1.0, 2.0, 5.0 })
  local close, worst = t:allclose(t * (1 + 1e-6))
  equal(close, true)
  assert(worst > 0 and worst < 1e-5)
  equal((t:allclose(t + 0.5)), false)
  equal((t:allclose(t + 0.5, 0, 1)), true)
  local below = attn.vector { -4, -8 } -- what is allowed goes by the size, whatever the sign
  equal((below:allclose(below * 1.01, 0.1, 0)), true)
  equal((below:allclose(below * 1.2, 0.1, 0)), false)
  equal((below:allclose(below * 0.8, 0.1, 0)), false)
  equal(select(2, below:allclose(below + 0.5)), 0.5)
  equal(select(2, below:allclose(below - 0.5)), 0.5)
  raises("exp, log", t.map, t, "cosine")
  raises("must return a number", t.map, t, function() end)
  raises("closed", t.map, t, function() t:close() return 1 end)
end)

case("text", function()
  equal(attn.tensor({ { 1, 2 }, { 3, 4 } }, "i32"):tostring(), "{{1, 2},\n{3, 4}}")
  equal(attn.vector({ 0.5, 0.25 }):tostring("%.2f"), "{0.50, 0.25}")
  equal(attn.tensor({ 20 }):tostring("%d", 2), "{0, 0, ...}")
end)

case("files", function()
  local path = check.scratch("attnscope-lua-test.npy")
  local t = attn.tensor({ { 1, 2 }, { 3, 4 } }, "i64")
  assert(t:transpose():write(path))
  local back = assert(attn.read(path))
  equal(back.dtype, "i64")
  check.same(back:totable(), { { 1, 3 }, { 2, 4 } })
  os.remove(path)
  check.refuses("FILE", attn.read, path)
  check.refuses("FILE", t.write, t, "/nonexistent-folder/t.npy")
end)

case("arrays of files by name", function()
  local base = check.scratch("attnscope-lua-test")
  local a, b = attn.tensor { { 1, 2 }, { 3, 4 } }, attn.vector({ 5, 6, 7 }, "i32")
  assert(attn.write_npz(base .. ".npz", { query = a, ids = b }))
  assert(attn.read(base .. ".npz", "query"):allclose(a, 0, 0))
  check.equal(attn.read(base .. ".npz", "ids"):tostring(), "{5, 6, 7}")
  check.equal(attn.read(base .. ".npz", "ids").dtype, "i32")
  assert(check.refuses("DATA", attn.read, base .. ".npz", "key"):find("it has: ids query"))
  assert(check.refuses("DATA", attn.read, base .. ".npz"):find("has 2 arrays; which one"))
  assert(a:write(base .. ".npy"))
  assert(attn.read(base .. ".npy"):allclose(a, 0, 0))
  local q = assert(attn.read("samples/induction.safetensors", "layers.0.q"))
  check.equal(#q.shape, 3)
  local input = attn.load("samples/induction.safetensors")
  assert(q:allclose(input.q, 0, 0))
  check.refuses("FORMAT", attn.read, "samples/english.txt")
  check.refuses("FILE", attn.read, base .. ".nothing.npz", "x")
  os.remove(base .. ".npz")
  os.remove(base .. ".npy")
end)

case("members are known by name", function()
  local t = attn.tensor { 1 }
  raises("did you mean 'shape'", function() return t.shap end)
  raises("no member", function() return t[1] end)
  raises("Tensor expected, got table", t.sum, {})
end)

case("from the largest on", function()
  local t = attn.tensor { { 3, 1, 2, 0 / 0 }, { 0, 5, 5, 1 } }
  local values, indices = t:sort_desc()
  check.equal((values:tostring("%g"):gsub("-nan", "nan")), "{{3, 2, 1, nan},\n{5, 5, 1, 0}}")
  check.equal(indices:tostring(), "{{0, 2, 1, 3},\n{1, 2, 3, 0}}")
  check.equal(indices.dtype, "i32")
  values, indices = t:transpose():sort_desc()
  check.equal(indices:tostring(), "{{0, 1},\n{1, 0},\n{1, 0},\n{1, 0}}")
  check.equal(attn.vector({ 1, 2 }):sort_desc():get(0), 2)
  check.equal(#attn.tensor({ 2, 0 }):sort_desc().shape, 2)
  local whole = attn.tensor { { { 1, 3 }, { 2, 5 } }, { { 7, 9 }, { 8, 4 } } }
  values, indices = whole:sort_desc(1, 1)
  check.same(values:totable(), { 8.0, 4.0 })
  check.same(indices:totable(), { 0, 1 })
  check.same(whole:sort_desc(0):totable(), { { 3.0, 1.0 }, { 5.0, 2.0 } })
  check.same(whole:transpose():sort_desc(1, 0):totable(), { 8.0, 7.0 })
  check.raises("fewer axes", whole.sort_desc, whole, 0, 0, 0)
  check.raises("index 2 is outside 0..1", whole.sort_desc, whole, 2)
end)

-- From many steps on it is the worker that computes, and what comes out is the same.
case("what takes long is computed as what is short", function()
  local n = 300
  local a, one = attn.tensor { n, n }, attn.tensor { n, n }
  for i = 0, n - 1 do
    one:set(i, i, 1)
    for j = 0, n - 1, 7 do a:set(i, j, i - j) end
  end
  assert(a:matmul(one):allclose(a, 0, 0))
  assert(one:transpose():matmul(a:transpose()):allclose(a:transpose(), 0, 0))
  local many = attn.tensor { 1100, 1000 }
  many:set(1099, 999, 2)
  near(many:map("exp"):sum(), 1.1e6 - 1 + math.exp(2), 1e-5)
  equal(many:map(function(x) return x + 1 end):sum(), 1.1e6 + 2)
  near(many:softmax():get(0, 0), 1e-3, 1e-9)
  for _, ahead in ipairs { -(1 << 40), 1 << 40 } do
    raises("within 2^40", many.softmax, many, ahead)
  end
  local values, indices = many:sort_desc()
  equal(values:get(1099, 0), 2)
  equal(indices:get(1099, 0), 999)
  local huge = attn.tensor({ 21, 1000, 1000 }, "u8")
  huge:set(20, 999, 999, 3)
  equal(huge:sum(), 3)
  check.same({ huge:argmax() }, { 20, 999, 999 })
  equal(huge:nnz(), 1)
  equal(huge:max(0):get(999, 999), 3)
  assert(huge:copy():reshape({ 21000000 }):get(20999999) == 3)
  equal((huge + 1):sum(), 21e6 + 3)
end)

case("a missing argument is called nil", function()
  raises("Tensor expected, got nil", function() return attn.tensor({ 2, 2 }):matmul() end)
end)
