# examples.awk -- the examples of a page, each into a file of the folder `to`: NNNN.sh with one
# shell command, NNNN.lua with a snippet; NNNN is the line.  Lines that a page shows as a
# command's output, below "$ COMMAND", go to NNNN.out.
#
#     awk -v to=FOLDER -f examples.awk PAGE.md

function file(kind) { return sprintf("%s/%04d.%s", to, NR, kind) }
function is_command(text) {
    return text ~ /^((build\/)?attnscope |python3 |sbatch |scripts\/[a-z]|[A-Z_]+='[^']*' [a-z])/
}
# A call with its arguments that names nothing the reader is to fill in.
function inline_lua(text) {
    return text ~ /^(attn|result|figure|r)[.:][a-z_]+ ?[({]/ && text !~ /[A-Z][A-Z]/ ? text : ""
}
function inline_command(text) {
    return text ~ /^attnscope [a-z-]+ ./ && text !~ /[A-Z][A-Z]|\.\.\./ ? text : ""
}

/^```/ { fenced = !fenced; lua = output = ""; next } # those have tests of their own
fenced { next }

/^    / {
    text = substr($0, 5)
    if (more != "") {
        sub(/^ +/, "", text)
        print text >> more
        if (text !~ /\\$/) more = ""
        next
    }
    prompt = sub(/^\$ /, "", text)
    if (is_command(text)) {
        lua = ""
        output = prompt ? file("out") : ""
        more = file("sh")
        print text > more
        if (text !~ /\\$/) { close(more); more = "" }
    } else if (output != "") {
        print text > output
    } else if (lua != "" || text ~ /^(local [a-z, ]+ = )?attn\./) {
        if (lua == "") lua = file("lua")
        print text > lua
    }
    next
}

/^$/ { lua = ""; next }

{
    lua = output = ""
    count = split($0, part, "`")
    for (i = 2; i < count; i += 2) {
        if (inline_lua(part[i]) != "") print part[i] > file(i ".lua")
        if (inline_command(part[i]) != "") print part[i] > file(i ".sh")
    }
}
