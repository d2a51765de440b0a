# engine.sh -- what the tests of engines share; read by them.  Wants: $binary.
sweep_words="-m bigbird,full,reformer -n 512:2048:x2 -d 32 --repeat 80" # the killed ones are slow

# A shard's worker, by the lock it holds on its file.
worker_of() { # FILE
    inode=$(stat -c %i "$1" 2>/dev/null) || return 1
    awk -v inode="$inode" '$2 == "FLOCK" && $6 ~ ":" inode "$" { print $5; found = 1 }
        END { exit !found }' /proc/locks
}
# Kills a shard's worker after its first point and before its last one.
kill_worker() { # FILE POINTS
    tries=0
    until [ -s "$1" ]; do
        tries=$((tries + 1))
        [ $tries -lt 1500 ] || { echo "no point of $1 in 30 s"; return 1; }
        sleep 0.02
    done
    pid=$(worker_of "$1") || { echo "no worker of $1"; return 1; }
    kill -9 "$pid" || return 1
    lines=$(wc -l <"$1")
    [ "$lines" -lt "$2" ] || { echo "$1 was done before the kill"; return 1; }
    echo "killed the worker of $(basename "$1") after $lines of $2 points"
}
keys() { sed 's/^{"key":"\([^"]*\)".*/\1/' "$@" | sort; }
# The shards hold every point of the sweep, each once and measured.
check_shards() { # SHARDS
    rm -f whole.jsonl
    # shellcheck disable=SC2086
    "$binary" sweep $sweep_words --threads 1 -o whole.jsonl --budget 0.001s >/dev/null || return 1
    keys whole.jsonl >whole.keys
    for k in $(seq "$1"); do keys "cost.${k}of$1.jsonl"; done | sort >shards.keys
    cmp whole.keys shards.keys || { echo "points are missing or doubled"; return 1; }
    "$binary" merge cost.*of"$1".jsonl -o cost.jsonl >merged || return 1
    grep -q '^9 points from .* files: 9 measured, 0 not' merged || { cat merged; return 1; }
}
