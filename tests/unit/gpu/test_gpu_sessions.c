/* test_gpu_sessions.c -- sessions of one process share one GPU, and take turns on it. */
#include <time.h>

#include "app/session/session.h"
#include "check.h"
#include "unit/gpu_fixture.h"

#define MECHANISM "full"

static Session *session_on_gpu(Request *request)
{
    Error    err = { 0 };
    Session *s = session_new(&err);

    assert_non_null(s);
    assert_true(session_load(s, "synthetic:normal", &(InputChoice){ .n = 8, .d = 4 }, &err));
    *request = REQUEST_INIT;
    assert_true(request_device(s, request, "cuda", "f32", &err));
    assert_true(request_parse(s, request, MECHANISM, &err));
    return s;
}

static void run_well(Session *s, const Request *request)
{
    Error   err = { 0 };
    Result *result = session_run(s, request, &err);

    assert_non_null(result);
    assert_int_equal(result->run->err.code, ERR_NONE);
    result_release(result);
}

TEST(who_leaves_takes_nothing_away)
{
    Device  *first = gpu_fixture_device();
    Request  of_a, of_b;
    Session *a = session_on_gpu(&of_a), *b = session_on_gpu(&of_b);

    assert_ptr_equal(device_of(of_a.ops), first);
    assert_ptr_equal(device_of(of_b.ops), first);
    device_release(first);
    run_well(a, &of_a);
    request_free(&of_a);
    session_free(a);
    run_well(b, &of_b);
    request_free(&of_b);
    session_free(b);
    device_release(gpu_fixture_device()); /* opened anew */
}

/* Until the job is there, for some seconds. */
static bool comes_to(const Job *job, const char *stage)
{
    for (int i = 0; i < 5000; i++) {
        if (!strcmp(job_stage(job), stage))
            return true;
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    return false;
}

TEST(runs_wait_for_each_other)
{
    Device  *device = gpu_fixture_device();
    Error    err = { 0 };
    Request  request;
    Session *s = session_on_gpu(&request);
    Job     *stopped, *patient;

    assert_true(device_hold(device, NULL));
    run_well(s, &request); /* this thread has it */
    stopped = session_submit(s, &request, &err);
    assert_true(comes_to(stopped, "waiting for the GPU"));
    job_cancel(stopped);
    job_wait(stopped);
    assert_int_equal(job_state(stopped), JOB_CANCELLED);
    patient = session_submit(s, &request, &err);
    assert_true(comes_to(patient, "waiting for the GPU"));
    device_leave(device);
    job_wait(patient);
    assert_int_equal(job_state(patient), JOB_DONE);
    job_free(stopped);
    job_free(patient);
    request_free(&request);
    session_free(s);
    device_release(device);
}

SUITE(NULL, NULL)
