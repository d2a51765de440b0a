-- sample.lua -- single plausible mutants of our C, sampled by a seed.
--
--     attnscope lua sample.lua SEED COUNT KERNELS ROOM FOLDER KNOWN FILE...
--
-- Each mutant becomes a folder FOLDER/NAME with the changed file and `what`: the path, the line,
-- the kind, the line before and after, and the room, one a line.  The names are printed in the order in which they
-- are to be tried.  ROOM is a room, several with commas, `all`, or `known`: the changes listed in the
-- file KNOWN, which once survived.
--
-- Rooms have equal shares, and in a room kinds have: else comparisons and constants would be all.
-- The kernels of the GPU are a room with a share of its own: KERNELS besides the COUNT of the others.
-- The first mutants are a fair sample too, for a run that ends early: rooms and kinds take turns.
-- The same seed on the same sources gives the same mutants, and a change of the sources leaves most of them.

local seed, count, kernels, room, folder, known = table.unpack(arg, 1, 6)
seed, count, kernels = tonumber(seed), tonumber(count), tonumber(kernels)
local files = table.move(arg, 7, #arg, 1, {})

-- ---- chance: an order by hashes ---------------------------------------------------------------

local function hash_of(...)
    local hash = 1469598103934665603
    for _, byte in ipairs { table.concat({ ... }, "\n"):byte(1, -1) } do
        hash = (hash ~ byte) * 1099511628211
        hash = hash ~ (hash >> 29)
    end
    return hash
end

-- In the order of the hashes of the seed and of what `text` says of each: a change of one leaves the order
-- of the others.
local function shuffle(list, text)
    local keys = {}
    for i, value in ipairs(list) do
        local words = text(value)
        keys[value] = { hash_of(seed, words), words, i }
    end
    table.sort(list, function(a, b)
        local p, q = keys[a], keys[b]
        for i = 1, 3 do
            if p[i] ~= q[i] then
                return p[i] < q[i]
            end
        end
        return false
    end)
    return list
end

-- ---- reading C -------------------------------------------------------------------------------

local function read(path)
    local file = assert(io.open(path, "rb"))
    local text = file:read("a")
    file:close()
    return text
end

local function blank(text)
    return (text:gsub("[^\n]", " "))
end

-- What stands at `at` and is no code: a comment, a string, a character, a line of the preprocessor.
local function no_code(text, at)
    local c = text:sub(at, at)
    if c == "/" then
        return text:match("^/%*.-%*/", at) or text:match("^//[^\n]*", at)
    elseif c == "'" then
        return text:match("^'\\?[^\n]'", at)
    end
    local stop = at
    if c == '"' then
        repeat
            stop = stop + (text:sub(stop, stop) == "\\" and 2 or 1)
        until text:sub(stop, stop) == '"'
        return text:sub(at, stop)
    elseif at == 1 or text:sub(at - 1, at - 1) == "\n" then
        repeat
            stop = text:find("\n", stop + 1, true)
        until text:sub(stop - 1, stop - 1) ~= "\\"
        return text:sub(at, stop - 1)
    end
end

-- The text with all that is no code as blanks, of equal length.
local function code_of(text)
    local out, at = {}, 1
    while at do
        local from = text:find("[\"'/#]", at)
        out[#out + 1] = text:sub(at, from and from - 1 or nil)
        if from then
            local piece = no_code(text, from)
            out[#out + 1] = piece and blank(piece) or text:sub(from, from)
            at = from + (piece and #piece or 1)
        else
            at = nil
        end
    end
    return table.concat(out)
end

local function lines_of(text)
    local lines = {}
    for line in text:gmatch("([^\n]*)\n") do
        lines[#lines + 1] = line
    end
    return lines
end

-- Where the bracket that opens at `at` closes; nil: on another line.
local function closing(code, at)
    local depth = 0
    for i = at, #code do
        local c = code:sub(i, i)
        if c == "(" or c == "[" or c == "{" then
            depth = depth + 1
        elseif c == ")" or c == "]" or c == "}" then
            depth = depth - 1
            if depth == 0 then
                return i
            end
        end
    end
end

-- The arguments of the call whose bracket opens at `at`, as pairs of first and last.
local function arguments(code, at)
    local stop, list, depth, first = closing(code, at), {}, 0, at + 1
    for i = at, stop or 0 do
        local c = code:sub(i, i)
        if c:find("[%(%[{]") then
            depth = depth + 1
        elseif c:find("[%)%]}]") then
            depth = depth - 1
        end
        if (c == "," and depth == 1) or i == stop then
            list[#list + 1] = { first, i - 1 }
            first = i + 1
        end
    end
    return list, stop
end

-- ---- the kinds -------------------------------------------------------------------------------

-- Each finds its sites in a line of code: yields first, last, the new text.
local kinds = {}

local function every(code, pattern, found)
    local at = 1
    while true do
        local hit = { code:find(pattern, at) }
        if not hit[1] then
            return
        end
        found(table.unpack(hit))
        at = hit[1] + 1
    end
end

local edges = { ["<"] = "<=", ["<="] = "<", [">"] = ">=", [">="] = ">" }
-- Whether this is the smaller or the larger of two, `a < b ? a : b`: its edge changes nothing.
local function is_choice(code, first, last)
    local left = code:sub(1, first - 1)
    local right, yes, no = code:match("^([^?:;]-) %? ([^?:;]-) : ([^?:;,]*)", last + 1)
    if not right then
        return false
    end
    no = no:gsub("%)+$", "")
    return left:sub(-#yes) == yes and no == right or yes == right and #no > 0 and left:sub(-#no) == no
end

function kinds.boundary(code, _, yield)
    every(code, " ([<>]=?) ", function(first, last, op)
        if not is_choice(code, first, last) then
            yield(first + 1, last - 1, edges[op])
        end
    end)
end

local others = { ["=="] = "!=", ["!="] = "==", ["&&"] = "||", ["||"] = "&&" }
function kinds.comparison(code, _, yield)
    every(code, " ([=!&|][=&|]) ", function(first, last, op)
        if others[op] then
            yield(first + 1, last - 1, others[op])
        end
    end)
end

local signs = { ["+"] = "-", ["-"] = "+", ["+="] = "-=", ["-="] = "+=" }
function kinds.sign(code, _, yield)
    every(code, "[%w_%)%]] ([+-]=?) ", function(first, last, op)
        yield(first + 2, last - 1, signs[op])
    end)
end

-- Numbers alone: not the sizes of arrays, not the zeros of initialisers.
function kinds.constant(code, _, yield)
    every(code, "%f[%w_.](%d+)%f[^%w_.]", function(first, last, digits)
        local before, after = code:sub(1, first - 1), code:sub(last + 1)
        if #digits > 9 or before:find("[%w_]%[$") and after:find("^%][;,]") or
           before:find("{ $") and after:find("^ }") then
            return
        end
        yield(first, last, tostring(tonumber(digits) + 1))
        if tonumber(digits) > 0 then
            yield(first, last, tostring(tonumber(digits) - 1))
        end
    end)
end

function kinds.extremum(code, original, yield)
    for _, name in ipairs { "min_i64", "max_i64", "fmin", "fmax", "fminf", "fmaxf", "fabs", "fabsf", "llabs" } do
        every(code, "%f[%w_]" .. name .. "(%()", function(first, last)
            local list, stop = arguments(code, last)
            for _, range in ipairs(stop and list or {}) do
                yield(first, stop, "(" .. original:sub(range[1], range[2]):match("^%s*(.*)$") .. ")")
            end
        end)
    end
end

function kinds.branch(code, original, yield)
    every(code, "%f[%w_]if (%()", function(_, last)
        local stop = closing(code, last)
        if stop then
            yield(last, stop, "(!" .. original:sub(last, stop) .. ")")
        end
    end)
    every(code, " %? ([^?:;]-) : ([^?:;]*)", function(first, last, yes, no)
        local stop = 0
        local depth = 0
        for i = 1, #no do -- to the end of this expression
            local c = no:sub(i, i)
            depth = depth + (c:find("[%(%[{]") and 1 or c:find("[%)%]}]") and -1 or 0)
            if depth < 0 or (c == "," and depth == 0) then
                break
            end
            stop = i
        end
        local _, level = yes:gsub("[%(%)]", { ["("] = "" })
        if stop > 0 and level % 2 == 0 then
            local from = first + 3
            local middle = from + #yes + 3
            yield(from, middle + stop - 1, original:sub(middle, middle + stop - 1) .. " : " ..
                  original:sub(from, from + #yes - 1))
        end
    end)
end

local releases = { "free", "fclose", "close", "munmap", "arena_release", "json_decref" }
function kinds.release(code, _, yield)
    local first, name, stop = code:match("^%s+()([%w_]+)%b()();$")
    if not first then
        return
    end
    for _, release in ipairs(releases) do
        if name == release or name:find("_" .. release .. "$") or name:find("_unlock$") then
            return yield(first, stop - 1, "(void)0")
        end
    end
end

-- The function ends here; only where nothing is returned.
function kinds.leave(code, _, yield, place)
    local first = code:match("^    ()[%w_]+[%w_%.%->%[%]]* ?[%(%+%-]?=? ?.*;$") or
                  code:match("^    ()if %(") or code:match("^    ()for %(")
    if first and place.void and place.statement then
        yield(first, first - 1, "return; ")
    end
end

local names = {}
for name in pairs(kinds) do
    names[#names + 1] = name
end
table.sort(names)

-- ---- the sites of a file ---------------------------------------------------------------------

local function room_of(path)
    if path:find("%.cu$") then
        return "kernels"
    end
    local below = path:match("^src/attn/(%w+)/") or path:match("^src/attn/(%w+)")
    local top = path:match("^src/(%w+)/") or "cli"
    return top == "attn" and "attn/" .. below or top
end

-- Whether lines of the same depth begin statements after this line.
local function declares(code)
    return code:find("^    [%a_][%w_]*[ %*]+[%a_][%w_]*.*[;,=]$") and not code:find("^    return") or
           code:find("^    const ") or code:find("^    static ") or code:find("^    struct ")
end

local function sites_of(path, sites)
    local text = read(path)
    local original, code = lines_of(text), lines_of(code_of(text))
    local inside, place = false, {}
    for number, line in ipairs(code) do
        if line:find("^{") then
            local head = number - 1
            while head > 1 and not original[head]:find("^[%a]") do
                head = head - 1
            end
            inside = true
            place = { void = original[head]:find("^void [%a_]") or original[head]:find("^static [%a_ ]*void [%a_]") }
        elseif line:find("^}") then
            inside = false
        elseif inside and not original[number]:find("error_set%(") then
            if line:find("^    %S") and not declares(line) then
                local before = code[number - 1]
                place.statement = before:find("[;}{]%s*$") or before:find("^%s*$")
            else
                place.statement = false
            end
            for _, kind in ipairs(names) do
                kinds[kind](line, original[number], function(first, last, new)
                    local list = sites[kind]
                    list[#list + 1] = { path = path, line = number, kind = kind,
                                        before = original[number],
                                        after = original[number]:sub(1, first - 1) .. new ..
                                                original[number]:sub(last + 1) }
                end, place)
            end
        end
    end
end

-- ---- choosing and writing ----------------------------------------------------------------------

local function write(path, text)
    local file = assert(io.open(path, "wb"))
    file:write(text)
    file:close()
end

-- A result stands for the same change of the same line in the same function, wherever the function is.
local function name_of(site)
    return ("%s-%s-%08x"):format((site.path:gsub("^src/", ""):gsub("/", ".")), site.kind,
                                hash_of(site.before, site.after, site.body) >> 32)
end

-- The function around a line, as text.
local function body_around(lines, number)
    local first, last = number, number
    while first > 1 and not lines[first - 1]:find("^}") do
        first = first - 1
    end
    while last < #lines and not lines[last]:find("^}") do
        last = last + 1
    end
    return table.concat(lines, "\n", first, last)
end

-- The name of the function; '': there is none.
local function function_in(body)
    return ("\n" .. body):match("\n%a[^\n;]-([%w_]+)%([^{;]*\n{") or ""
end

-- Writes the mutant; not where the same line was changed in the same way in this file: that is one mutant.
local taken = {}
local function emit(site)
    local key = site.path .. "\n" .. site.before .. "\n" .. site.after
    if taken[key] then
        return false
    end
    taken[key] = true
    site.body = body_around(lines_of(read(site.path)), site.line)
    local name = name_of(site)
    local lines = lines_of(read(site.path))
    lines[site.line] = site.after
    os.execute(("mkdir -p '%s/%s'"):format(folder, name))
    write(("%s/%s/%s"):format(folder, name, site.path:match("[^/]+$")), table.concat(lines, "\n") .. "\n")
    write(("%s/%s/what"):format(folder, name),
          table.concat({ site.path, site.line, site.kind, site.before:match("^%s*(.*)$"),
                         site.after:match("^%s*(.*)$"), room_of(site.path), function_in(site.body) },
                       "\n") .. "\n")
    print(name)
    return true
end

local function emit_known()
    for line in io.lines(known) do
        local path, before, after = line:match("^(%S+)\t(.-)\t(.*)$")
        if path and not line:find("^#") then
            local found
            for number, text in ipairs(lines_of(read(path))) do
                if not found and text:find(before, 1, true) then
                    local at = text:find(before, 1, true)
                    found = true
                    emit { path = path, line = number, kind = "known", before = text,
                           after = text:sub(1, at - 1) .. after .. text:sub(at + #before) }
                end
            end
            if not found then
                io.stderr:write(("%s: no line has: %s\n"):format(path, before))
            end
        end
    end
end

local function rooms_of()
    local rooms, order = {}, {}
    for _, path in ipairs(files) do
        local name = room_of(path)
        if room == "all" or ("," .. room .. ","):find("," .. name .. ",", 1, true) then
            if not rooms[name] then
                rooms[name] = {}
                order[#order + 1] = name
                for _, kind in ipairs(names) do
                    rooms[name][kind] = {}
                end
            end
            sites_of(path, rooms[name])
        end
    end
    table.sort(order)
    return rooms, order
end

-- Takes a site of the room: the next kind, from the turn's, that has one left.
local function take(sites, kinds_of, turn)
    for step = 1, #names do
        local left = sites[kinds_of[(turn + step) % #names + 1]]
        while #left > 0 do
            if emit(table.remove(left)) then
                return true
            end
        end
    end
    return false
end

local function sample()
    local rooms, order = rooms_of()
    local kinds_of, turns, wanted, got = {}, {}, {}, {}
    local others = #order - (rooms.kernels and 1 or 0)
    local most, left = 0, others > 0 and count % others or 0 -- of the left each room has one, in turn
    for _, name in ipairs(order) do
        for _, kind in ipairs(names) do
            shuffle(rooms[name][kind], function(site)
                return table.concat({ site.path, site.before, site.after }, "\n")
            end)
        end
        kinds_of[name], turns[name], got[name] = { table.unpack(names) }, 0, 0
        shuffle(kinds_of[name], function(kind)
            return name .. " " .. kind
        end)
        local share = count // math.max(others, 1)
        if name == "kernels" then
            share = kernels
        elseif left > 0 then
            share, left = share + 1, left - 1
        end
        wanted[name], most = share, math.max(most, share)
    end
    for turn = 1, most do
        for _, name in ipairs(order) do
            while got[name] < math.ceil(turn * wanted[name] / most) and
                  take(rooms[name], kinds_of[name], turns[name]) do
                got[name], turns[name] = got[name] + 1, turns[name] + 1
            end
        end
    end
end

if room == "known" then
    emit_known()
else
    sample()
end
