#!/bin/sh
# sweep-parallel.sh -- a sweep in N shards by GNU parallel, here or on other machines.
#
#   scripts/sweep-parallel.sh 8 -m table1 --n 256:16384:x2 -o cost.jsonl
#   attnscope merge cost.*of8.jsonl -o cost.jsonl
#
# PARALLEL_OPTIONS are options of parallel: '--jobs 1' measures one point at a time on this
# machine, '--sshlogin a,b --workdir .' runs the shards on others over one file system.  A
# worker that dies is started again, three times at most, and goes on where it stopped; so does
# the same line after a kill of all.  ATTNSCOPE names the program when it is not on the PATH.
#
# Each job gets its threads: the processors of its machine, or of a container's quota, divided by
# the jobs there, which are --jobs N, else as many as shards and processors allow.  --threads in the
# words overrides this.
set -eu
[ $# -ge 2 ] || { echo "usage: $0 SHARDS WORDS-OF-attnscope-sweep..." >&2; exit 2; }
shards=$1
shift
case $shards in
'' | *[!0-9]* | 0*) echo "$0: SHARDS is '$shards', not a number from 1" >&2; exit 2 ;;
esac

# The number in '--jobs 3', '--jobs=3', '-j3' or '-j 3'; other forms ('50%', '+1') leave it open.
jobs=$(printf '%s\n' "${PARALLEL_OPTIONS:-}" |
    sed -nE 's/^(.* )?(--jobs[ =]|-j ?|-P ?)([1-9][0-9]*)( .*)?$/\3/p')
given=
for word; do
    case $word in --threads | --threads=*) given=yes ;; esac
done

# Counted where the job runs: machines may differ.
# shellcheck disable=SC2016 # the variables are those of the job's shell
job='jobs=$1 given=$2 threads=1; shift 2
cores=$(nproc 2>/dev/null || echo 1) groups=${CONTROL_GROUPS:-/sys/fs/cgroup}
quota=$(cat "$groups/cpu.max" 2>/dev/null ||
    cat "$groups/cpu/cpu.cfs_quota_us" "$groups/cpu/cpu.cfs_period_us" 2>/dev/null)
cores=$(echo $quota | awk -v cores="$cores" "{ if (\$1 + 0 > 0 && \$1 / \$2 < cores) cores = int(\$1 / \$2) }
    END { print (cores < 1 ? 1 : cores) }")
[ "$jobs" -le "$cores" ] || jobs=$cores
threads=$((cores / jobs))
[ -n "$given" ] || set -- "$@" --threads "$threads"
exec "$@"'

# What every shard complains of, at each of its tries, is said once.
said=$(mktemp -u "${TMPDIR:-/tmp}/sweep-parallel.XXXXXX")
mkfifo -m 600 "$said"
while IFS= read -r line; do
    case $line in
    attnscope:*)
        case ${told:-} in *"<$line>"*) continue ;; esac
        told="${told:-}<$line>"
        ;;
    esac
    printf '%s\n' "$line"
done <"$said" >&2 &
exec 3>"$said"
rm -f "$said"

status=0
# shellcheck disable=SC2086 # the options are words
seq "$shards" | parallel ${PARALLEL_OPTIONS:-} --quote --retries 3 --line-buffer \
    sh -c "$job" job "${jobs:-$shards}" "$given" \
    "${ATTNSCOPE:-attnscope}" sweep --resume "$@" --shard "{}/$shards" 2>&3 3>&- || status=$?
exec 3>&-
wait
exit "$status"
