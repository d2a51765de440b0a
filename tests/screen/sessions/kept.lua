-- kept.lua keep|same FILE...: puts files aside; later, that those made anew are the same.
local verb = attn.args[1]

local function bytes(path)
    local file <close> = assert(io.open(path, "rb"))
    -- a text says by which command it was written; that one is the script now
    return (file:read("a"):gsub("# attnscope:command:[^\n]*", ""))
end

for i = 2, #attn.args do
    local path = attn.args[i]
    if verb == "keep" then
        assert(os.rename(path, path .. ".kept"))
    else
        assert(bytes(path) == bytes(path .. ".kept"), path .. " differs from what was kept")
    end
end
