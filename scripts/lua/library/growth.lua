-- growth.lua -- how a cost in a list of records grows with n.
--
--   local growth = require "library.growth"
--   local fit = growth(records, function(record) return record.flops.counted end)

local attn = require "attnscope"

-- What attn.fit gives for the runs that succeeded and have the cost; nil: fewer than three.
return function(records, cost)
  local xs, ys = {}, {}
  for _, record in ipairs(records) do
    local y = record.status == "OK" and cost(record)
    if y and y > 0 then
      xs[#xs + 1], ys[#ys + 1] = record.n, y
    end
  end
  return #xs >= 3 and attn.fit(xs, ys) or nil
end
