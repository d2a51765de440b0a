-- Runs every mechanism of the catalogue on the device at arg[1] tokens, to be watched by
-- compute-sanitizer.  Prints how many ran.
local n, precision = math.tointeger(arg[1]) or 64, arg[2] -- nil: float32
local ran, refused = 0, {}

for _, id in ipairs(attn.mechanisms {}) do
  for _, causal in ipairs { false, true } do
    local example = attn.info(id).example
    local text = example and example ~= "" and ("%s(%s)"):format(id, example) or id
    local good, r, message = pcall(attn.run, text, {
      n = n, d = 16, heads = 2, causal = causal, device = "cuda", precision = precision,
    })

    if good and r then
      ran = ran + 1
    elseif not good or not message:find("causal") then
      refused[#refused + 1] = id .. ": " .. tostring(good and message or r)
    end
  end
end
print(ran .. " runs")
for _, why in ipairs(refused) do
  io.stderr:write(why, "\n")
end
