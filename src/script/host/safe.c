/* safe.c -- the sandbox of scripts from somebody else (--safe).
 *
 * Two fences.  The state lacks the functions that reach outside.  Whatever is
 * left, and every reader and writer of this program that a script can call, is
 * stopped by the kernel: a filter grants only the system calls that computing
 * takes, none that opens a file, starts a program or reaches the network, and
 * limits bound memory, time and output.  So a hole in the first fence leads
 * nowhere.
 */
#include "core/text.h"
#include "script/host/state.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MEMORY_BYTES (4ull << 30) /* beyond what is mapped at the start */
#define OUTPUT_BYTES (64ull << 20) /* of a file that standard output is */

/* ---- the state -------------------------------------------------------------- */

/* The value as text, as safe_clean makes it.  [-0, +1, v] */
static void push_clean(lua_State *L, int at)
{
    size_t      length;
    const char *text = luaL_tolstring(L, at, &length);
    luaL_Buffer clean;

    luaL_buffinit(L, &clean);
    for (size_t i = 0, bytes; i < length; i += bytes ? bytes : 1) {
        bytes = text_harmless(text + i, length - i);
        if (bytes)
            luaL_addlstring(&clean, text + i, bytes);
        else
            luaL_addchar(&clean, '?');
    }
    luaL_pushresult(&clean);
    lua_remove(L, -2);
}

int safe_clean(lua_State *L)
{
    luaL_checkstring(L, 1);
    push_clean(L, 1);
    return 1;
}

/* print without what a terminal would obey, to the stream in the upvalue.  [-n, +0, v] */
static int clean_print(lua_State *L)
{
    FILE *output = lua_touserdata(L, lua_upvalueindex(1));
    int   count = lua_gettop(L);

    for (int i = 1; i <= count; i++) {
        push_clean(L, i);
        fputs(lua_tostring(L, -1), output);
        fputs(i < count ? "\t" : "\n", output);
        lua_pop(L, 1);
    }
    if (!count)
        fputs("\n", output);
    return 0;
}

void safe_strip(lua_State *L, FILE *output)
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
    lua_pushlightuserdata(L, output);
    lua_pushcclosure(L, clean_print, 1);
    lua_setglobal(L, "print");
}

/* ---- the process ------------------------------------------------------------ */

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef ARCHITECTURE
/* All that computing, waiting and writing to what is open takes; nothing that names a file. */
static const int granted[] = {
    SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_lseek, SYS_close, SYS_fstat,
    SYS_fcntl, SYS_dup, SYS_pipe2, SYS_eventfd2, SYS_ppoll, SYS_pselect6, SYS_epoll_create1,
    SYS_epoll_ctl, SYS_epoll_pwait, SYS_munmap, SYS_mremap, SYS_madvise, SYS_mincore, SYS_brk,
    SYS_futex, SYS_set_robust_list, SYS_get_robust_list, SYS_rseq, SYS_membarrier,
    SYS_set_tid_address, SYS_gettid, SYS_getpid, SYS_getppid, SYS_getuid, SYS_geteuid, SYS_getgid,
    SYS_getegid, SYS_exit, SYS_exit_group, SYS_restart_syscall, SYS_nanosleep,
    SYS_clock_nanosleep, SYS_clock_gettime, SYS_clock_getres, SYS_gettimeofday, SYS_times,
    SYS_getrusage, SYS_sysinfo, SYS_uname, SYS_getcpu, SYS_sched_yield, SYS_sched_getaffinity,
    SYS_sched_setaffinity, SYS_sched_getparam, SYS_sched_getscheduler, SYS_getrandom,
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack,
#ifdef __x86_64__
    SYS_poll, SYS_select, SYS_epoll_wait, SYS_pipe, SYS_time, SYS_arch_prctl,
#endif
};
#define GRANTED (sizeof(granted) / sizeof(*granted))

/* Granted where the low half of an argument has a bit, or is one number. */
static const struct Condition {
    int      number, argument;
    unsigned test; /* BPF_JSET or BPF_JEQ */
    unsigned value;
    bool     wanted; /* the test is to hold, or not to */
} conditions[] = {
    { SYS_clone, 0, BPF_JSET, 0x00010000u /* CLONE_THREAD */, true }, /* threads, no processes */
    { SYS_mmap, 2, BPF_JSET, PROT_EXEC, false },
    { SYS_mprotect, 2, BPF_JSET, PROT_EXEC, false },
    { SYS_newfstatat, 3, BPF_JSET, AT_EMPTY_PATH, true }, /* of what is open, not of names */
    { SYS_prctl, 0, BPF_JEQ, PR_SET_NAME, true },
    { SYS_prlimit64, 2, BPF_JEQ, 0, true }, /* limits are read, not set */
    { SYS_ioctl, 1, BPF_JEQ, TIOCGWINSZ, true }, /* never TIOCSTI */
    { SYS_ioctl, 1, BPF_JEQ, TCGETS, true },
};
#define CONDITIONS (sizeof(conditions) / sizeof(*conditions))

typedef struct Filter {
    struct sock_filter code[2 * GRANTED + 5 * CONDITIONS + 24];
    int                count;
} Filter;

static void add_step(Filter *f, struct sock_filter step)
{
    f->code[f->count++] = step;
}

static void add_load(Filter *f, size_t offset)
{
    add_step(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset));
}

/* The next step only when the test holds; else `skipped` steps on. */
static void add_test(Filter *f, unsigned test, unsigned value, unsigned char skipped)
{
    add_step(f, (struct sock_filter)BPF_JUMP(BPF_JMP | test | BPF_K, value, 0, skipped));
}

static void add_answer(Filter *f, unsigned answer)
{
    add_step(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer));
}

/* System call numbers of another architecture, or of x32 on x86-64, would bypass the filter. */
static void add_entrance(Filter *f)
{
    add_load(f, offsetof(struct seccomp_data, arch));
    add_step(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0));
    add_answer(f, SECCOMP_RET_KILL_PROCESS);
    add_load(f, offsetof(struct seccomp_data, nr));
    add_test(f, BPF_JGE, 0x40000000u, 1);
    add_answer(f, SECCOMP_RET_KILL_PROCESS);
}

static void add_condition(Filter *f, const struct Condition *c)
{
    size_t argument = offsetof(struct seccomp_data, args) + 8 * (size_t)c->argument;

    add_test(f, BPF_JEQ, (unsigned)c->number, 4);
    add_load(f, argument);
    add_step(f, (struct sock_filter)BPF_JUMP(BPF_JMP | c->test | BPF_K, c->value, !c->wanted,
                                             c->wanted));
    add_answer(f, SECCOMP_RET_ALLOW);
    add_load(f, offsetof(struct seccomp_data, nr)); /* for the tests that follow */
}

/* Everything else is refused like a file one may not open, so that callers say so.  The C
 * library asks for a thread by clone3 first, whose flags a filter cannot see. */
static bool install_filter(void)
{
    Filter            f = { .count = 0 };
    struct sock_fprog program;

    add_entrance(&f);
    for (size_t i = 0; i < CONDITIONS; i++)
        add_condition(&f, &conditions[i]);
    for (size_t i = 0; i < GRANTED; i++) {
        add_test(&f, BPF_JEQ, (unsigned)granted[i], 1);
        add_answer(&f, SECCOMP_RET_ALLOW);
    }
    add_test(&f, BPF_JEQ, SYS_clone3, 1);
    add_answer(&f, SECCOMP_RET_ERRNO | ENOSYS);
    add_answer(&f, SECCOMP_RET_ERRNO | EACCES);
    program = (struct sock_fprog){ .len = (unsigned short)f.count, .filter = f.code };
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
    static const char text[] = "attnscope: the script took longer than --safe allows "
                               "(--safe=SECONDS)\n";

    (void)number;
    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
        _exit(1);
    _exit(1);
}

/* Writers of figures and tables take "-" for standard output, and would put there what a terminal
 * obeys; readers take "-" for what the user pipes in.  Both numbers stay taken, or the next pipe
 * would get them. */
FILE *safe_take_output(Error *err)
{
    int   kept = fflush(stdout) == 0 ? dup(STDOUT_FILENO) : -1;
    int   nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    FILE *output = NULL;

    if (kept >= 0 && nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 &&
        dup2(nothing, STDOUT_FILENO) >= 0)
        output = fdopen(kept, "w");
    if (output)
        setvbuf(output, NULL, _IOLBF, BUFSIZ); /* what was printed stays when time is up */
    if (!output) {
        error_set(err, ERR_UNSUPPORTED, "--safe: standard output: %s; the script was not run",
                  strerror(errno));
        if (kept >= 0)
            close(kept);
    }
    if (nothing >= 0)
        close(nothing);
    return output;
}

/* Address space in use now, in bytes; 0: unknown. */
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

bool safe_close_process(int seconds, Error *err)
{
    unsigned long long bytes = mapped() + MEMORY_BYTES;
    struct rlimit      memory = { bytes, bytes }, none = { 0, 0 };
    struct rlimit      output = { OUTPUT_BYTES, OUTPUT_BYTES };

    signal(SIGALRM, out_of_time);
    alarm((unsigned)seconds);
    setrlimit(RLIMIT_CORE, &none);
    setrlimit(RLIMIT_FSIZE, &output);
    signal(SIGXFSZ, SIG_IGN); /* writing fails then */
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
