# SPDX-License-Identifier: MIT OR Apache-2.0
# The kernel's trace of a recording probe (tests/policies/probe.h) as tests/golden/traces has it.
# Reads the trace twice: a task that another task of a scenario forks is written under the name that
# it takes later.

# Who it is, as recordings call them.
function who(name) {
    if (name ~ /^swapper\//) return "idle"
    if (name ~ /^tv/ || name == "main" || name == "-") return name
    return "other"
}

# A number of up to 64 bits, which awk itself does not have: divided by hand.
function hex(text, digits, quotient, rest, at) {
    digits = ""
    while (text != "") {
        quotient = ""; rest = 0
        for (at = 1; at <= length(text); at++) {
            rest = rest * 10 + substr(text, at, 1)
            quotient = quotient int(rest / 16)
            rest %= 16
        }
        digits = substr("0123456789abcdef", rest + 1, 1) digits
        sub(/^0+/, "", quotient)
        text = quotient
    }
    return "0x" digits
}

# The moment of a line, in microseconds.
function moment(line, at) {
    match(line, / [0-9]+\.[0-9]+: /)
    split(substr(line, RSTART + 1, RLENGTH - 3), at, ".")
    return at[1] * 1000000 + at[2]
}

# Writes what the last scenario's tasks did, and how their CPU came to rest behind it.
function flush(at) {
    for (at = 1; at <= last + 2 && at <= lines; at++) print kept[at]
    lines = last = 0
}

function keep(text) {
    kept[++lines] = text
    if (text ~ / tv/) last = lines
}

/: @@ / {
    title = $0
    sub(/.*: @@ /, "", title)
    begin = moment($0)
    section = title == "end" ? "" : title
    if (FNR != NR) flush()
    if (FNR != NR && section != "") print (printed++ ? "\n" : "") "-- " section
    next
}

section == "" || !/: @ / { next }

{
    match($0, /\[[0-9]+\]/)
    cpu = substr($0, RSTART + 1, RLENGTH - 2) + 0
    us = moment($0) - begin
    line = $0
    sub(/.*: @ /, "", line)
    split(line, word, " ")
    op = word[3]; pid = word[4]; name = word[5]; a = word[6]; b = word[7]
}

# First time: which name each task ends up with, and whose child it is.
FNR == NR {
    if (op == "init_task") forked[section, pid] = word[2] ~ /^tv/
    if (name ~ /^tv/) called[section, pid] = name
    next
}

op == "exit_task" || op == "disable" || op == "init" { next }

{
    if (forked[section, pid]) name = called[section, pid]
    name = who(name)
    current = who(forked[section, word[1]] ? called[section, word[1]] : word[2])
}

op == "dispatch" || op == "update_idle" || op == "cpu_acquire" || op == "cpu_release" {
    if (cpu != 1) next
    if (op == "dispatch" && name == "-") name = "idle"
}

!(op ~ /^(dispatch|update_idle|cpu_acquire|cpu_release)$/) && name !~ /^tv/ { next }

{
    if (op ~ /^(enqueue|dequeue|runnable|quiescent|select_cpu)$/) a = hex(a)
    text = sprintf("%7d %d %-7s %-11s %s", us, cpu, current, op, name)
    if (op == "yield") keep(text)
    else if (op ~ /^(dequeue|runnable|quiescent|tick|set_weight|init_task|enable|cpu_acquire)$/)
        keep(text " " a)
    else keep(text " " a " " b)
}
