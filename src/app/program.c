/* program.c -- the program's file, its folders, what it prints, and itself as a child process; see
 * program.h. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/program.h"
#include "core/shortage.h"
#include "profile/measure.h"

#ifdef ATTNSCOPE_MODULE
#include <dlfcn.h>

bool place_home(Text *out)
{
    static const char own; /* its address lies in the module */
    Dl_info           found;
    char              path[PATH_MAX];

    if (!dladdr(&own, &found) || !found.dli_fname || !realpath(found.dli_fname, path))
        return false;
    text_add(out, dirname(path));
    return text_ok(out);
}

/* A folder may have that name, too. */
static bool is_program(const char *folder, size_t length, const char *below, Text *out)
{
    struct stat about;

    text_clear(out);
    text_addf(out, "%.*s%s/attnscope", (int)length, folder, below);
    return text_ok(out) && stat(text_str(out), &about) == 0 && S_ISREG(about.st_mode) &&
           access(text_str(out), X_OK) == 0;
}

/* The program to execute as a child; in stock Lua, the one beside the module, in the folder above
 * it, or on PATH. */
static bool place_program(Text *out, Error *err)
{
    const char *path = getenv("PATH");
    Text        home = { 0 };
    bool        found = place_home(&home) && (is_program(home.data, home.length, "", out) ||
                                              is_program(home.data, home.length, "/..", out));

    text_free(&home);
    for (; !found && path && *path; path += strcspn(path, ":"), path += *path == ':')
        found = is_program(path, strcspn(path, ":"), "", out);
    return found || error_set(err, ERR_FILE, "the program attnscope, which runs each point of a "
                              "sweep, is neither beside the module nor on PATH");
}

#else

bool place_home(Text *out)
{
    char    path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

    if (length <= 0)
        return false;
    path[length] = '\0';
    text_add(out, dirname(path));
    return text_ok(out);
}

static bool place_program(Text *out, Error *err)
{
    text_add(out, "/proc/self/exe"); /* this very file, even after another replaced it */
    return text_ok(out) || error_set(err, ERR_NOMEM, "not enough memory for a path");
}

#endif

/* By the specification a relative path is ignored. */
static bool place_below(const char *variable, const char *usual, const char *name, Text *out,
                        Error *err)
{
    const char *set = getenv(variable), *home = getenv("HOME");

    if (set && *set == '/')
        text_addf(out, "%s/attnscope/%s", set, name);
    else if (home && *home == '/')
        text_addf(out, "%s/%s/attnscope/%s", home, usual, name);
    else
        return error_set(err, ERR_FILE, "neither HOME nor %s is set", variable);
    return text_ok(out) || error_set(err, ERR_NOMEM, "not enough memory for a path");
}

bool place_state(const char *name, Text *out, Error *err)
{
    return place_below("XDG_STATE_HOME", ".local/state", name, out, err);
}

bool place_data(const char *name, Text *out, Error *err)
{
    return place_below("XDG_DATA_HOME", ".local/share", name, out, err);
}

/* Folders of the machine's data; by the specification these where the variable is not set. */
static const char *shared_folders(void)
{
    const char *set = getenv("XDG_DATA_DIRS");

    return set && *set ? set : "/usr/local/share:/usr/share";
}

int place_data_shared_count(void)
{
    int count = 1;

    for (const char *at = shared_folders(); (at = strchr(at, ':')); at++)
        count++;
    return count;
}

bool place_data_shared(const char *name, int index, Text *out, Error *err)
{
    const char *at = shared_folders();

    while (index-- > 0 && *(at += strcspn(at, ":")))
        at++;
    if (*at != '/')
        return error_set(err, ERR_FILE, "XDG_DATA_DIRS: a relative path is ignored");
    text_addf(out, "%.*s/attnscope/%s", (int)strcspn(at, ":"), at, name);
    return text_ok(out) || error_set(err, ERR_NOMEM, "not enough memory for a path");
}

bool place_cache(const char *name, Text *out, Error *err)
{
    return place_below("XDG_CACHE_HOME", ".cache", name, out, err);
}

bool place_make_folders(const char *path, Error *err)
{
    char   folder[PATH_MAX];
    size_t length = strlen(path);

    if (length >= sizeof(folder))
        return error_set(err, ERR_FILE, "%.200s...: the path is too long", path);
    for (size_t i = 1; i < length; i++) {
        if (path[i] != '/')
            continue;
        snprintf(folder, sizeof(folder), "%.*s", (int)i, path);
        if (mkdir(folder, 0700) != 0 && errno != EEXIST)
            return error_set(err, ERR_FILE, "%s: cannot be made: %s", folder, strerror(errno));
    }
    return true;
}

bool place_is_file(const char *path, Error *err)
{
    struct stat about;

    return stat(path, &about) != 0 || S_ISREG(about.st_mode) ||
           error_set(err, ERR_FILE, "%s is a %s where a file of text is expected: remove it", path,
                     S_ISDIR(about.st_mode)    ? "folder"
                     : S_ISFIFO(about.st_mode) ? "named pipe"
                                               : "device or socket");
}

/* O_NONBLOCK: what came into the file's place since it was looked at is not waited for either. */
static int place_open(const char *path, int flags, Error *err)
{
    struct stat about;
    int         file;

    if (!place_is_file(path, err))
        return -1;
    file = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
    if (file < 0)
        error_set(err, ERR_FILE, "%s: %s", path, strerror(errno));
    if (file < 0 || (fstat(file, &about) == 0 && S_ISREG(about.st_mode)))
        return file;
    close(file);
    error_set(err, ERR_FILE, "%s is no regular file: remove it", path);
    return -1;
}

bool place_read(const char *path, size_t most, Text *out, Error *err)
{
    int file = place_open(path, O_RDONLY, err);

    return file >= 0 && file_read_open(file, path, most, out, err);
}

bool place_write(const char *path, const void *bytes, size_t length, Error *err)
{
    return place_is_file(path, err) && file_write(path, bytes, length, err);
}

int place_append(const char *path, Error *err)
{
    return place_open(path, O_WRONLY | O_APPEND | O_CREAT, err);
}

void place_absolute(const char *path, Text *out)
{
    char here[PATH_MAX];

    if (*path != '/' && getcwd(here, sizeof(here)))
        text_addf(out, "%s/", here);
    text_add(out, strncmp(path, "./", 2) ? path : path + 2);
}

/* ---- the start ------------------------------------------------------------------ */

#define STACK_LEAST  (INT64_C(256) << 10) /* runs end well with so much */
#define STACK_USUAL  (INT64_C(8) << 20)
#define CHILD_ERROR  "attnscope: error " /* begins the line that names an error's code */

static void open_closed_streams(void)
{
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++)
        if (fcntl(file, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != file)
            return;
}

static bool stack_message(rlim_t bytes)
{
    char words[128];

    snprintf(words, sizeof(words), "the stack is limited to %llu KiB, and %lld are needed: "
             "ulimit -s 8192", (unsigned long long)bytes >> 10, (long long)STACK_LEAST >> 10);
    program_message(words);
    return false;
}

/* Libraries have started threads already, with stacks as small: only another start helps. */
static bool widen_stack(char **argv)
{
    struct rlimit stack;

    if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= (rlim_t)STACK_LEAST)
        return true;
    if (stack.rlim_max < (rlim_t)STACK_LEAST)
        return stack_message(stack.rlim_max);
    stack.rlim_cur = stack.rlim_max < (rlim_t)STACK_USUAL ? stack.rlim_max : (rlim_t)STACK_USUAL;
    if (setrlimit(RLIMIT_STACK, &stack) == 0)
        execv("/proc/self/exe", argv);
    return true;
}

bool program_begin(char **argv)
{
    open_closed_streams();
    if (getenv(POINT_VARIABLE))
        shortage_say_first(CHILD_ERROR "NOMEM\n");
    shortage_catch_crashes();
    signal(SIGXFSZ, SIG_IGN); /* a write beyond "ulimit -f" fails and is reported */
    return widen_stack(argv);
}

/* ---- what it prints ------------------------------------------------------------ */

/* Without memory: byte by byte. */
static void print_each(const char *words)
{
    size_t left = strlen(words), most;

    fputs("attnscope: ", stderr);
    for (; left > 0; words += most, left -= most) {
        size_t some = *words == '\n' ? 0 : text_harmless(words, left);

        most = some ? some : 1;
        fwrite(some ? words : "?", 1, most, stderr);
    }
    fputc('\n', stderr);
}

void program_message(const char *words)
{
    Text shown = { 0 };

    text_add_shown(&shown, words, strlen(words), false);
    if (text_ok(&shown))
        fprintf(stderr, "attnscope: %s\n", text_str(&shown));
    else
        print_each(words);
    text_free(&shown);
}

int program_fail(const Error *err)
{
    if (getenv(POINT_VARIABLE))
        fprintf(stderr, CHILD_ERROR "%s\n", error_name(err->code));
    program_message(err->text);
    return error_exit_status(err->code);
}

void program_progress(const char *words)
{
    Text shown = { 0 };

    text_add_shown(&shown, words, strlen(words), false);
    fprintf(stderr, "\r\033[K%s", text_str(&shown));
    fflush(stderr);
    text_free(&shown);
}

int program_print(const Text *text)
{
    Text   shown = { 0 };
    size_t written;
    bool   whole;

    text_add_shown(&shown, text_str(text), text->length, true);
    written = shown.length ? fwrite(shown.data, 1, shown.length, stdout) : 0;
    /* fflush alone forgets what fwrite could not write. */
    whole = fflush(stdout) == 0 && written == shown.length;
    whole = whole && text_ok(text) && text_ok(&shown);
    if (!whole)
        program_message(text_ok(text) && text_ok(&shown) ? "standard output cannot be written"
                                                         : "not enough memory for the output");
    text_free(&shown);
    return !whole;
}

/* ---- the program as a child process -------------------------------------- */

/* The environment with POINT_VARIABLE; NULL: no memory.  The caller frees the list alone. */
static char **child_environment(void)
{
    static char variable[] = POINT_VARIABLE "=1";
    size_t      count = 0;
    char      **list;

    while (environ[count])
        count++;
    list = calloc(count + 2, sizeof(*list));
    if (list)
        memcpy(list, environ, count * sizeof(*list));
    if (list)
        list[count] = variable;
    return list;
}

static void become(const char *program, char *const *words, char *const *environment, int out,
                   int errors, pid_t parent)
{
    sigset_t none;
    int      null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(errors, 2) < 0)
        _exit(127);
    execve(program, words, environment);
    _exit(127);
}

/* No handler of a library runs before the child: OpenBLAS's waits for threads that may never have
 * begun where memory is short.  The thread sanitizer must see a fork. */
static pid_t fork_at_once(void)
{
#ifdef __SANITIZE_THREAD__
    return fork();
#else
    return _Fork();
#endif
}

static bool start(const char *program, char *const *words, Child *child, Error *err)
{
    pid_t parent = getpid();
    int   ends[2] = { -1, -1 };
    char **environment = child_environment();

    if (!environment)
        return error_set(err, ERR_NOMEM, "not enough memory to start a process");
    child->err = memfd_create("attnscope-messages", MFD_CLOEXEC);
    if (child->err < 0 || pipe2(ends, O_CLOEXEC) != 0 || (child->pid = fork_at_once()) < 0) {
        int why = errno;

        child_end(child);
        free(environment);
        if (ends[0] >= 0) {
            close(ends[0]);
            close(ends[1]);
        }
        return error_set(err, ERR_NOMEM, "a process of its own cannot be started: %s",
                         strerror(why));
    }
    if (child->pid == 0)
        become(program, words, environment, ends[1], child->err, parent);
    setpgid(child->pid, child->pid); /* whoever comes first */
    free(environment);
    close(ends[1]);
    child->out = ends[0];
    return true;
}

#define CHILD_MOST (64 << 20) /* bytes of its output, and of its messages */

/* What the child started ends with it: it would keep the pipe open. */
static void watch_child(Child *child, const ChildWatch *watch, size_t output)
{
    struct stat messages;

    child->stopped = watch->stopped && watch->stopped(watch->context);
    child->late = watch->deadline > 0 && clock_wall() > watch->deadline;
    child->endless = output > CHILD_MOST ||
                     (fstat(child->err, &messages) == 0 && messages.st_size > CHILD_MOST);
    if ((child->stopped || child->late || child->endless) && kill(-child->pid, SIGKILL) != 0)
        kill(child->pid, SIGKILL);
}

/* Reads what there is; false: the child has closed it. */
static bool read_output(Child *child, Text *text)
{
    char    bytes[8192];
    ssize_t got = read(child->out, bytes, sizeof(bytes));

    if (got > 0 && !child->endless)
        text_add_bytes(text, bytes, (size_t)got);
    return got > 0 || (got < 0 && errno == EINTR);
}

/* Collects the child's output until it ends, which may be long after it has closed that. */
static void follow(Child *child, const ChildWatch *watch, Text *text)
{
    struct rusage usage = { 0 };
    double        began = clock_wall();
    bool          open = true;
    pid_t         ended = 0;

    while (open || ended == 0) {
        struct pollfd ready = { .fd = open ? child->out : -1, .events = POLLIN };

        if (!child->stopped && !child->late && !child->endless)
            watch_child(child, watch, text->length);
        if (poll(&ready, 1, open ? 50 : 1) > 0)
            open = read_output(child, text);
        if (!open)
            ended = wait4(child->pid, &child->status, WNOHANG, &usage);
        if (ended < 0 && errno == EINTR)
            ended = 0;
    }
    close(child->out);
    child->seconds = clock_wall() - began;
    child->cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

#define LAST_MOST 4096

/* The end of what the child wrote on stderr, without the line's end; false: nothing. */
static bool last_words(int file, char bytes[LAST_MOST])
{
    off_t   end = lseek(file, 0, SEEK_END), most = LAST_MOST - 1;
    ssize_t got = pread(file, bytes, (size_t)most, end > most ? end - most : 0);

    while (got > 0 && bytes[got - 1] == '\n')
        got--;
    bytes[got > 0 ? got : 0] = '\0';
    return got > 0;
}

ErrorCode child_error(const Child *child)
{
    char        bytes[LAST_MOST];
    const char *found = NULL;

    for (const char *at = last_words(child->err, bytes) ? bytes : NULL; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (!strncmp(at, CHILD_ERROR, strlen(CHILD_ERROR)))
            found = at + strlen(CHILD_ERROR);
    }
    return found ? error_named(found, strcspn(found, "\n")) : ERR_NONE;
}

/* The last line on stderr, without the program's name. */
static void last_message(int file, char *text, size_t size)
{
    char        bytes[LAST_MOST];
    const char *line;

    *text = '\0';
    if (!last_words(file, bytes))
        return;
    line = strrchr(bytes, '\n');
    line = line ? line + 1 : bytes;
    if (!strncmp(line, "attnscope: ", 11))
        line += 11;
    snprintf(text, size, "%.*s", (int)size - 1, line);
}

/* A limit of processor time sends SIGXCPU, or at its hard end SIGKILL.  0: it did not. */
static long long passed_limit(const Child *child, int number)
{
    struct rlimit time;

    if ((number != SIGKILL && number != SIGXCPU) || getrlimit(RLIMIT_CPU, &time) != 0 ||
        time.rlim_cur == RLIM_INFINITY || child->cpu + 0.5 < (double)time.rlim_cur)
        return 0;
    return (long long)time.rlim_cur;
}

static void signal_reason(const Child *child, char *text, size_t size)
{
    int       number = WTERMSIG(child->status);
    long long seconds = passed_limit(child, number);

    if (seconds)
        snprintf(text, size, "its process was ended by the limit of %lld s of processor time "
                 "(ulimit -t)", seconds);
    else
        snprintf(text, size, "its process was ended by signal %d (%s)%s", number, strsignal(number),
                 number == SIGKILL ? "; when nobody sent it, the system was out of memory" : "");
}

void child_reason(const Child *child, char *text, size_t size)
{
    if (child->endless) {
        snprintf(text, size, "its process wrote more than %d MiB", CHILD_MOST >> 20);
        return;
    }
    if (WIFSIGNALED(child->status)) {
        signal_reason(child, text, size);
        return;
    }
    last_message(child->err, text, size);
    if (!*text)
        snprintf(text, size, "its process wrote no record and left with status %d",
                 WEXITSTATUS(child->status));
}

bool child_run(Child *child, char *const *words, const ChildWatch *watch, Text *output, Error *err)
{
    Text program = { 0 };
    bool ok;

    *child = (Child){ .out = -1, .err = -1 };
    if (watch->program)
        text_add(&program, watch->program);
    ok = (watch->program || place_program(&program, err)) &&
         start(text_str(&program), words, child, err);
    text_free(&program);
    if (ok)
        follow(child, watch, output);
    return ok;
}

void child_end(Child *child)
{
    if (child->err >= 0)
        close(child->err);
    child->err = -1;
}
