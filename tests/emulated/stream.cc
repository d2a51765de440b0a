// stream.cc -- the emulated device's one stream: what was begun on it and not waited for.
//
// EMULATED_DEFER=1 in the environment: launches, copies, fills and marks happen when they are
// waited for and not before, so that a host that reads a result too soon reads what was there
// before, and a host that writes too soon changes what a kernel reads, each time alike.
// Without it everything happens at once.
#include "emulated.h"

#include <mutex>
#include <vector>

typedef std::vector<std::function<void()>> Works;

static std::mutex one_at_a_time;
static Works      begun;

static bool is_deferred(void)
{
    const char *text = getenv("EMULATED_DEFER");

    return text && !strcmp(text, "1");
}

void emulated_begin(const std::function<void()> &work)
{
    std::unique_lock<std::mutex> lock(one_at_a_time);

    if (is_deferred()) {
        begun.push_back(work);
        return;
    }
    lock.unlock();
    work();
}

void emulated_settle(void)
{
    std::lock_guard<std::mutex> lock(one_at_a_time);
    Works                       works;

    works.swap(begun);
    for (const std::function<void()> &work : works)
        work();
}
