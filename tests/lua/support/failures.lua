-- Runs failures.lua and counts the families whose error grows at least threefold on what breaks it.
local rows
attn.csv = function(_, given) rows = given return true end
arg[#arg + 1] = "csv=-"
dofile "scripts/lua/failures.lua"
local breaks = 0
for _, row in ipairs(rows) do
  breaks = breaks + (row["bad error"] > 3 * row["good error"] and 1 or 0)
  if row["bad error"] <= 3 * row["good error"] then
    print(row.family, row["good error"], row["bad error"])
  end
end
print(breaks .. " break of " .. #rows)
