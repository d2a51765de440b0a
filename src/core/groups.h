/* core/groups.h -- limits of control groups.
 *
 * A control group (a container, a job of Slurm or systemd) may allow less than the machine has.
 * Its limits, and those of its parents, are files: memory.max and cpu.max of version 2,
 * memory.limit_in_bytes and cpu.cfs_quota_us of version 1.
 */
#ifndef CORE_GROUPS_H
#define CORE_GROUPS_H

#define GROUPS_OF_PROCESS "/proc/self/cgroup"
#define GROUPS_MOUNTED "/sys/fs/cgroup"

/* Smallest limit along the groups that the file `groups` names (as GROUPS_OF_PROCESS), of a tree
 * mounted at `root` (as GROUPS_MOUNTED).  INFINITY: none. */
double groups_memory(const char *groups, const char *root);
double groups_processors(const char *groups, const char *root);

#endif
