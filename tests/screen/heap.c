/* heap.c -- linked into the sanitized program for the monkey: the file that MONKEY_HEAP names
 * always holds the bytes of the heap that are in use.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define EACH 20000 /* microseconds */

size_t __sanitizer_get_current_allocated_bytes(void); /* of the sanitizer's interface */

static void *tell(void *at)
{
    for (volatile uint64_t *bytes = at;; usleep(EACH))
        *bytes = __sanitizer_get_current_allocated_bytes();
    return NULL;
}

__attribute__((constructor)) static void tell_always(void)
{
    const char *path = getenv("MONKEY_HEAP");
    int         fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    void       *at = MAP_FAILED;
    sigset_t    all, before;
    pthread_t   thread;

    if (fd >= 0 && ftruncate(fd, sizeof(uint64_t)) == 0)
        at = mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (at == MAP_FAILED)
        return;
    sigfillset(&all); /* the program's threads hear its signals */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, tell, at) == 0)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
