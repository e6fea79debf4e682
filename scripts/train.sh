#!/bin/sh
# train.sh PROGRAM: runs PROGRAM as users do, on several policies and loads, so that an instrumented
# one counts which of its code that takes (scripts/dist.sh). Needs half a minute. It asks for one
# thread and fixed seeds everywhere: the same program does the same each time.
#
# train.sh tool: prints the llvm-profdata that reads such counts; status 1 without one.
# train.sh wanted: prints the version of LLVM that the compiler is made with.
set -eu
cd "$(dirname "$0")/.."

compiler=$(scripts/cargo --where)/rustc
llvm=$("$compiler" -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
case $1 in
    wanted) exec echo "$llvm" ;;
    tool)
        # The compiler's own comes first (rustup's component llvm-tools), then the distribution's of
        # the same version. Others may not know the form of the counts, or write a newer one.
        own=$("$compiler" --print target-libdir)/../bin/llvm-profdata
        for tool in "$own" "llvm-profdata-$llvm" llvm-profdata; do
            path=$(command -v "$tool") || continue
            if "$path" merge --version 2>/dev/null | grep -q "LLVM version $llvm\."; then
                exec echo "$path"
            fi
        done
        exit 1
        ;;
esac

program=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# A policy that starves a task is a result here (status 3).
quietly() {
    "$@" >>said 2>&1 || [ $? -eq 3 ] || {
        echo "train.sh: this failed: $*" >&2
        tail said >&2
        exit 1
    }
}

# Tasks that run for a moment and sleep, and tasks that never sleep.
cat >crowd.toml <<'END'
[workload]
name  = "crowd"
stop  = "duration:1s"
scale = { tasks = 100 }

[task.member]
count = "tasks"
do    = ["loop(inf)[ run(500us), sleep(uniform(5ms, 30ms)) ]"]
END
sed 's/do *=.*/do = ["run(inf)"]/' crowd.toml >hogs.toml

for policy in fifo mlfq o1 staircase eevdf elsc; do
    quietly "$program" sim $policy -w desk
    quietly "$program" sim $policy -w desk --events $policy.jsonl
    quietly "$program" sim $policy -w desk --trace $policy.pftrace
    quietly "$program" sim $policy -w crowd.toml --scale tasks=10 --cpus 1
    quietly "$program" sim $policy -w crowd.toml --cpus 4
    quietly "$program" sim $policy -w crowd.toml --scale tasks=1000 --cpus 64 --duration 300ms
    quietly "$program" sim $policy -w hogs.toml --cpus 4
    for load in chat hackbench make oltp web; do
        quietly "$program" sim $policy -w $load --duration 300ms
    done
done
quietly "$program" sim fifo goodness elsc o1 staircase staircase5 mlfq cfs eevdf -w desk \
    -o demo.html
quietly "$program" sim mlfq -w desk --profile default-v0 --duration 3s
quietly "$program" sim fifo mlfq -w desk --runs 10 --duration 1s --jobs 1 --format json -o runs.json
quietly "$program" compare runs.json
quietly "$program" sim fifo --from mlfq.jsonl
quietly "$program" explain mlfq -w desk
quietly "$program" hunt fifo --trials 20 --jobs 1
cat >sweep.toml <<'END'
policy = ["mlfq", "eevdf"]
workload = ["desk"]
cpus = [2, 4]
seeds = 3
duration = "1s"
END
quietly "$program" sweep sweep.toml --jobs 1
