-- table.lua -- what came of mutants: attnscope lua table.lua RESULTS SAMPLED EQUIVALENT
--
-- RESULTS are the lines of tools/mutants/one, SAMPLED the names that count, EQUIVALENT the list of
-- changes that change nothing that can be seen, each with its reason.

local results, sampled, equivalent = table.unpack(arg)

local function field(line, name)
    local text = line:match('"' .. name .. '":"(.-[^\\])"') or ""
    return (text:gsub('\\(["\\])', "%1"))
end

-- ["path<tab>before<tab>after"] = reason; the path may end in ":function"
local reasons = {}
for line in io.lines(equivalent) do
    local change, reason = line:match("^(%S+\t.-\t.-)\t(.+)$")
    if change and not line:find("^#") then
        reasons[change] = reason
    end
end

-- Whether nothing that can be seen changes: in any function, or in the one of this line.
local function is_equivalent(line)
    local path = field(line, "path")
    local change = "\t" .. field(line, "before") .. "\t" .. field(line, "after")
    return reasons[path .. change] or reasons[path .. ":" .. field(line, "function") .. change]
end

local order = { "killed", "same", "equivalent", "lived", "unreached", "broken" }
local rooms, names, killers, lived, seen = {}, {}, {}, {}, {}

local function count(room, result)
    if not rooms[room] then
        rooms[room] = {}
        names[#names + 1] = room
    end
    rooms[room][result] = (rooms[room][result] or 0) + 1
end

-- Of a mutant that was tried again the last line counts.
local last = {}
for line in io.lines(results) do
    last[field(line, "mutant")] = line
end

local kinds = {}
for name in io.lines(sampled) do
    local line = last[name]
    local result = line and field(line, "result")
    if line and not seen[name] then
        local path, before, after = field(line, "path"), field(line, "before"), field(line, "after")
        seen[name] = true
        if (result == "lived" or result == "unreached") and is_equivalent(line) then
            result = "equivalent"
        end
        count(field(line, "room"), result)
        kinds[field(line, "kind")] = kinds[field(line, "kind")] or {}
        local kind = kinds[field(line, "kind")]
        kind[result] = (kind[result] or 0) + 1
        if result == "killed" then
            local by = field(line, "by")
            killers[by] = (killers[by] or 0) + 1
        elseif result == "lived" or result == "unreached" then
            lived[#lived + 1] = ("%s: %s\n    %s\n    %s"):format(path, result, before, after)
        end
    end
end

-- What does not compile, or compiles to the same code, is no mutant.
local function row(name, counts)
    local killed, equal = counts.killed or 0, counts.equivalent or 0
    local all = killed + equal + (counts.lived or 0) + (counts.unreached or 0)
    print(("| %-12s | %7d | %6d | %10d | %5d | %9d | %5s |"):format(name, all, killed, equal, counts.lived or 0,
        counts.unreached or 0, all > 0 and ("%.0f %%"):format(100 * (killed + equal) / all) or "-"))
end

local function rows(title, list, of)
    local sum = {}
    print(("| %-12s | mutants | killed | equivalent | lived | unreached | share |"):format(title))
    print("| --- | --- | --- | --- | --- | --- | --- |")
    table.sort(list)
    for _, name in ipairs(list) do
        row(name, of[name])
        for _, result in ipairs(order) do
            sum[result] = (sum[result] or 0) + (of[name][result] or 0)
        end
    end
    row("all", sum)
    return sum
end

local sum = rows("room", names, rooms)
print(("\n%d more compile to the same code, %d do not compile\n"):format(sum.same or 0, sum.broken or 0))
local list = {}
for kind in pairs(kinds) do
    list[#list + 1] = kind
end
rows("kind", list, kinds)

local by = {}
for program in pairs(killers) do
    by[#by + 1] = program
end
table.sort(by, function(a, b)
    return killers[a] > killers[b] or killers[a] == killers[b] and a < b
end)
print("\nkilled by")
for _, program in ipairs(by) do
    print(("%5d  %s"):format(killers[program], program))
end
print("\nlived")
table.sort(lived)
for _, text in ipairs(lived) do
    print(text)
end
