// stream.cc -- the emulated device's streams: what was begun on them and not waited for, and
// graphs captured.
//
// What is begun goes to device_stream(), which has to be one that was made: CUDA would take the
// default one instead, and say nothing.
//
// EMULATED_DEFER=1 in the environment: launches, copies, fills and marks happen when they are
// waited for and not before, so that a host that reads a result too soon reads what was there
// before, and a host that writes too soon changes what a kernel reads, each time alike.
// Without it everything happens at once.
//
// While the stream captures, nothing happens at all.  As with CUDA, whatever waits or takes or
// gives memory is refused then, and ends the capture; so is moving pages, of which CUDA's
// documents do not say whether it can be captured.
#include "emulated.h"

#include <map>
#include <mutex>
#include <vector>

typedef std::vector<std::function<void()>> Works;

enum class Capture { none, active, lost };

static std::mutex                    one_at_a_time;
static std::map<cudaStream_t, Works> begun; // by stream, of all that there are
static Works                         captured;
static Capture                       capture;

static bool is_deferred(void)
{
    const char *text = getenv("EMULATED_DEFER");

    return (text && !strcmp(text, "1")) || emulated_exclusive();
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
    std::lock_guard<std::mutex> lock(one_at_a_time);

    *stream = new char;
    begun[*stream] = Works();
    return cudaSuccess;
}

// Under the lock.
static void settle(cudaStream_t stream)
{
    Works works;

    works.swap(begun[stream]);
    emulated_works(stream, false);
    for (const std::function<void()> &work : works)
        work();
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    std::lock_guard<std::mutex> lock(one_at_a_time);

    settle(stream);
    begun.erase(stream);
    emulated_ended(stream);
    delete (char *)stream;
    return cudaSuccess;
}

void emulated_settle(cudaStream_t stream)
{
    std::lock_guard<std::mutex> lock(one_at_a_time);

    if (begun.count(stream))
        settle(stream);
}

void emulated_settle(void)
{
    std::lock_guard<std::mutex> lock(one_at_a_time);

    for (auto &one : begun)
        settle(one.first);
}

cudaError_t emulated_begin(const std::function<void()> &work)
{
    cudaStream_t                 stream = device_stream();
    std::unique_lock<std::mutex> lock(one_at_a_time);

    if (!begun.count(stream)) {
        fprintf(stderr, "emulated: something is begun on a stream that is not there\n");
        abort();
    }
    if (capture == Capture::lost)
        return cudaErrorStreamCaptureInvalidated;
    if (capture == Capture::active || is_deferred()) {
        (capture == Capture::active ? captured : begun[stream]).push_back(work);
        if (emulated_exclusive())
            emulated_works(stream, true);
        return cudaSuccess;
    }
    lock.unlock();
    work();
    return cudaSuccess;
}

cudaError_t emulated_uncapturable(void)
{
    std::lock_guard<std::mutex> lock(one_at_a_time);

    if (capture == Capture::none)
        return cudaSuccess;
    capture = Capture::lost;
    return cudaErrorStreamCaptureUnsupported;
}

/* ---- graphs ---------------------------------------------------------------------------- */

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode)
{
    std::lock_guard<std::mutex> lock(one_at_a_time);

    if (capture != Capture::none)
        return emulated_code(cudaErrorIllegalState);
    capture = Capture::active;
    captured.clear();
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *graph)
{
    std::lock_guard<std::mutex> lock(one_at_a_time);
    Capture                     was = capture;

    capture = Capture::none;
    *graph = was == Capture::active ? new Works(captured) : NULL;
    captured.clear();
    return emulated_code(was == Capture::active ? cudaSuccess
                         : was == Capture::lost ? cudaErrorStreamCaptureInvalidated
                                                : cudaErrorIllegalState);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    *exec = new Works(*(Works *)graph);
    return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t)
{
    return emulated_code(emulated_uncapturable());
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t)
{
    Works works = *(Works *)exec;

    return emulated_code(emulated_begin([=] {
        for (const std::function<void()> &work : works)
            work();
    }));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete (Works *)graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    emulated_settle();
    delete (Works *)exec;
    return cudaSuccess;
}
