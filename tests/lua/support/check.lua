-- check.lua -- the tests' few words.  Prints "ok NAME" or "not ok NAME: why"
-- for each case; the runner counts the lines.
local check = {
  stock = package.cpath ~= "", -- the module in an interpreter that is not ours
}

-- A case of what only the program has.
function check.ours(name, body)
  if not check.stock then
    check.case(name, body)
  end
end

function check.case(name, body)
  local good, why = xpcall(body, debug.traceback)
  print(good and "ok " .. name or "not ok " .. name .. ": " .. tostring(why))
end

function check.equal(got, want, what)
  if got ~= want then
    error(("%s: expected %s, got %s"):format(what or "value", want, got), 2)
  end
end

function check.near(got, want, tolerance, what)
  if not (math.abs(got - want) <= tolerance) then
    error(("%s: expected %g +- %g, got %g"):format(what or "value", want, tolerance, got), 2)
  end
end

function check.same(got, want)
  check.equal(attn.json(got), attn.json(want), "table")
end

-- The call raises, and its message holds the text.
function check.raises(text, f, ...)
  local good, why = pcall(f, ...)
  if good then
    error("expected an error about '" .. text .. "', got none", 2)
  elseif not tostring(why):find(text, 1, true) then
    error("expected an error about '" .. text .. "', got: " .. tostring(why), 2)
  end
end

-- The call gives nil, a message and this code.
function check.refuses(code, f, ...)
  local value, message, got = f(...)
  if value ~= nil then
    error("expected nil, got " .. tostring(value), 2)
  end
  check.equal(type(message), "string", "the message")
  check.equal(got, code, "the code")
  return message
end

function check.scratch(name)
  return (os.getenv("TMPDIR") or "/tmp") .. "/" .. name
end

return check
