/* groups.c -- limits of control groups; see groups.h. */
#include "core/groups.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_MOST 4096

/* ---- files of a group ------------------------------------------------------------- */

/* The first one or two numbers of a file, and how many there are; "max" is none. */
static int read_numbers(const char *folder, const char *name, double out[2])
{
    char  path[PATH_MOST + 64];
    FILE *file;
    int   count;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "re");
    if (!file)
        return 0;
    count = fscanf(file, "%lf %lf", &out[0], &out[1]);
    fclose(file);
    return count > 0 ? count : 0;
}

typedef double (*GroupLimit)(const char *folder);

static double memory_of(const char *folder)
{
    double value[2];

    if (read_numbers(folder, "memory.max", value) ||
        read_numbers(folder, "memory.limit_in_bytes", value))
        return value[0] > 0 ? value[0] : (double)INFINITY;
    return (double)INFINITY;
}

static double processors_of(const char *folder)
{
    double value[2], period[2];

    if (read_numbers(folder, "cpu.max", value) == 2 && value[1] > 0)
        return value[0] / value[1];
    if (read_numbers(folder, "cpu.cfs_quota_us", value) && value[0] > 0 &&
        read_numbers(folder, "cpu.cfs_period_us", period) && period[0] > 0)
        return value[0] / period[0];
    return (double)INFINITY;
}

/* The smallest limit from the group up to the root.  A container may see its group as the root, so
 * groups that are not there are passed over. */
static double along(const char *root, const char *group, GroupLimit limit)
{
    char   folder[PATH_MOST];
    size_t top = strlen(root);
    double least = (double)INFINITY;
    int    length = snprintf(folder, sizeof(folder), "%s%s", root, group);

    if (length < 0 || (size_t)length >= sizeof(folder))
        return limit(root);
    for (;;) {
        char *slash;

        least = fmin(least, limit(folder));
        slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < top)
            return least;
        *slash = '\0';
    }
}

/* ---- the groups of a process ------------------------------------------------------ */

/* "cpu,cpuacct" holds "cpu". */
static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = list; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
        if (strcspn(at, ",") == length && !strncmp(at, word, length))
            return true;
    return false;
}

/* One line of the file: "0::/path" of version 2, "4:memory:/path" of version 1. */
static double limit_of_line(char *line, const char *root, const char *controller, GroupLimit limit)
{
    char *list = strchr(line, ':'), *group = list ? strchr(list + 1, ':') : NULL;
    char  mount[PATH_MOST];

    if (!group)
        return (double)INFINITY;
    *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    if (*++list && !has_word(list, controller))
        return (double)INFINITY;
    snprintf(mount, sizeof(mount), "%s/%s", root, *list ? controller : "unified");
    if (*list)
        return along(mount, group, limit);
    return fmin(along(root, group, limit), along(mount, group, limit));
}

static double groups_limit(const char *groups, const char *root, const char *controller,
                           GroupLimit limit)
{
    FILE  *file = fopen(groups, "re");
    char  *line = NULL;
    size_t capacity = 0;
    double least = (double)INFINITY;

    while (file && getline(&line, &capacity, file) > 0)
        least = fmin(least, limit_of_line(line, root, controller, limit));
    free(line);
    if (file)
        fclose(file);
    return least;
}

double groups_memory(const char *groups, const char *root)
{
    return groups_limit(groups, root, "memory", memory_of);
}

double groups_processors(const char *groups, const char *root)
{
    return groups_limit(groups, root, "cpu", processors_of);
}
