#!/bin/sh
# slurm-array.sh -- a sweep as a Slurm array job: one shard a task, one file a shard.
#
#   sbatch --array=1-8 scripts/slurm-array.sh -m table1 --n 256:16384:x2 -o cost.jsonl
#   attnscope merge cost.*of8.jsonl -o cost.jsonl
#
# The words after the script are those of `attnscope sweep`; the shard is the task's place in
# the array, which attnscope reads from Slurm's environment.  A task that was killed, or whose
# time was up, goes on where it stopped when the same line is submitted again, or when Slurm
# puts it back into the queue.  ATTNSCOPE names the program when it is not on the PATH.
#
# A node of its own (--exclusive) keeps other jobs from spoiling the times.
#
# Each task asks for 8 GiB of memory, 8 hours and one processor.  Options of sbatch before the
# script override this: sbatch --mem=64G --time=2-0 --cpus-per-task=16 --array=1-8 scripts/...
# A point may use half of the memory that Slurm's control group allows (sweep --mem overrides
# this).  At the end of the time the sweep ends in order; the same line goes on.
#
#SBATCH --job-name=attnscope-sweep
#SBATCH --array=1-8
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=8G
#SBATCH --time=08:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@60

# exec: the signal before the end of the time limit reaches the sweep, which ends in order.
exec "${ATTNSCOPE:-attnscope}" sweep --threads "${SLURM_CPUS_PER_TASK:-1}" --resume "$@"
