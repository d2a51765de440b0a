/* rss.c -- see rss.h; proc(5), clear_refs and status. */
#include "profile/rss.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

bool rss_reset(void)
{
    int  fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    bool ok;

    if (fd < 0)
        return false;
    ok = write(fd, "5", 1) == 1;
    close(fd);
    return ok;
}

int64_t rss_peak(void)
{
    FILE     *file = fopen("/proc/self/status", "re");
    char      line[256];
    long long kib = -1;

    if (!file)
        return -1;
    while (kib < 0 && fgets(line, sizeof(line), file))
        if (sscanf(line, "VmHWM: %lld kB", &kib) != 1)
            kib = -1;
    fclose(file);
    return kib < 0 ? -1 : kib * 1024;
}
