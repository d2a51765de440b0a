/* safe.c -- what holds a stranger's script.
 *
 * Two fences.  The state lacks the functions that reach outside.  Whatever is
 * left, and every reader and writer of this program that a script can call, is
 * stopped by the kernel: a filter refuses the system calls that open files,
 * start programs or reach the network, and limits bound memory and time.  So a
 * hole in the first fence leads nowhere.
 */
#include "script/safe.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MEMORY_BYTES (4ull << 30) /* beyond what is mapped at the start */
#define SECONDS 60

/* ---- the state -------------------------------------------------------------- */

void safe_strip(lua_State *L)
{
    static const char *const globals[] = { "io", "package", "require", "dofile", "loadfile",
                                           "debug", "load" };
    static const char *const kept[] = { "clock", "date", "difftime", "time" };

    for (size_t i = 0; i < sizeof(globals) / sizeof(*globals); i++) {
        lua_pushnil(L);
        lua_setglobal(L, globals[i]);
    }
    lua_getglobal(L, "os");
    lua_newtable(L);
    for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++) {
        lua_getfield(L, -2, kept[i]);
        lua_setfield(L, -2, kept[i]);
    }
    lua_setglobal(L, "os");
    lua_pop(L, 1);
}

/* ---- the process ------------------------------------------------------------ */

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef ARCHITECTURE
static const int refused[] = {
    SYS_openat, SYS_openat2, SYS_execve, SYS_execveat, SYS_socket, SYS_connect, SYS_unlinkat,
    SYS_renameat2, SYS_mkdirat, SYS_linkat, SYS_symlinkat, SYS_mknodat, SYS_truncate,
    SYS_fchmodat, SYS_fchownat, SYS_mount, SYS_ptrace, SYS_kill, SYS_tkill,
    SYS_process_vm_readv, SYS_process_vm_writev, SYS_io_uring_setup, SYS_open_by_handle_at,
    SYS_chdir, SYS_setxattr, SYS_utimensat, SYS_bpf, SYS_pidfd_open,
#ifdef __x86_64__
    SYS_open, SYS_creat, SYS_unlink, SYS_rename, SYS_renameat, SYS_mkdir, SYS_rmdir, SYS_link,
    SYS_symlink, SYS_mknod, SYS_chmod, SYS_chown, SYS_fork, SYS_vfork,
#endif
};
#define REFUSED (sizeof(refused) / sizeof(*refused))

static bool install_filter(void)
{
    struct sock_filter code[REFUSED * 2 + 8];
    struct sock_fprog  program = { .filter = code };
    int                at = 0;

    code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                              offsetof(struct seccomp_data, arch));
    code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                              offsetof(struct seccomp_data, nr));
    /* The second table of numbers of x86-64 (x32) would be a way around. */
    code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    for (size_t i = 0; i < REFUSED; i++) {
        code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                  (unsigned)refused[i], 0, 1);
        code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES);
    }
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program.len = (unsigned short)at;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}
#else
static bool install_filter(void)
{
    errno = ENOSYS;
    return false;
}
#endif

static void out_of_time(int number)
{
    static const char text[] = "attnscope: the script took longer than --safe allows (60 s)\n";

    (void)number;
    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
        _exit(1);
    _exit(1);
}

/* Address space in use now, in bytes; 0: not known. */
static unsigned long long mapped(void)
{
    unsigned long long pages = 0;
    FILE              *file = fopen("/proc/self/statm", "r");

    if (!file)
        return 0;
    if (fscanf(file, "%llu", &pages) != 1)
        pages = 0;
    fclose(file);
    return pages * (unsigned long long)sysconf(_SC_PAGESIZE);
}

bool safe_close_process(Error *err)
{
    unsigned long long bytes = mapped() + MEMORY_BYTES;
    struct rlimit      memory = { bytes, bytes }, none = { 0, 0 };

    signal(SIGALRM, out_of_time);
    alarm(SECONDS);
    setrlimit(RLIMIT_CORE, &none);
#ifndef ATTNSCOPE_SANITIZED /* a sanitizer's shadow is larger than any limit */
    if (setrlimit(RLIMIT_AS, &memory) != 0)
        return error_set(err, ERR_UNSUPPORTED, "--safe: memory cannot be limited: %s",
                         strerror(errno));
#else
    (void)memory;
#endif
    return install_filter() ||
           error_set(err, ERR_UNSUPPORTED, "--safe: this kernel has no filter of system calls "
                     "(seccomp): %s; the script was not run", strerror(errno));
}
