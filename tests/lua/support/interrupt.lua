-- interrupt.lua NAME COUNT SCRIPT [WORD...] -- the shipped script, with Ctrl-C right behind the
-- COUNT-th call of attn.NAME: where a loaded machine may well stop it.
local attn = require "attnscope"

local name, count, script = table.unpack(attn.args)
local call = attn[name]
table.move(attn.args, 4, #attn.args + 3, 1)
attn[name] = function(...)
  local values = table.pack(call(...))
  count = count - 1
  if count == 0 then
    io.popen("kill -INT $PPID"):close()
  end
  return table.unpack(values, 1, values.n)
end
dofile("scripts/lua/" .. script)
