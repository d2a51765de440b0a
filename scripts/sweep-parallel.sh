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
set -eu
[ $# -ge 2 ] || { echo "usage: $0 SHARDS WORDS-OF-attnscope-sweep..." >&2; exit 2; }
shards=$1
shift

# shellcheck disable=SC2086 # the options are words
seq "$shards" | parallel ${PARALLEL_OPTIONS:-} --quote --retries 3 --line-buffer \
    "${ATTNSCOPE:-attnscope}" sweep --resume "$@" --shard "{}/$shards"
