/* test_progress.c -- the share of a run that is done: never above 1, and 1 at the end. */
#include <unistd.h>

#include "app/session/internal.h"
#include "check.h"
#include "session_fixture.h"

/* ---- the numbers ------------------------------------------------------------ */

TEST(test_ahead_and_charged)
{
    RunProgress p;

    progress_begin(&p, 100);
    CHECK_NEAR(progress_share(&p), 0, 0);
    progress_ahead(&p, 30);
    CHECK_NEAR(progress_share(&p), 0.3, 1e-12);
    progress_charge(&p, 20); /* of the 30 */
    progress_charge(&p, 20); /* 10 of them, and 10 more */
    CHECK_NEAR(progress_share(&p), 0.4, 1e-12);
    progress_charge(&p, 60);
    CHECK_NEAR(progress_share(&p), 1, 1e-12);
    progress_charge(&p, 60); /* more than planned: the plan was wrong */
    CHECK_NEAR(progress_share(&p), -1, 0);
}

TEST(test_unknown_and_told)
{
    RunProgress p;
    Run         run = { .spec.progress = &p };

    progress_begin(&p, 0);
    progress_charge(&p, 60);
    CHECK_NEAR(progress_share(&p), -1, 0);
    run_report(&run, 0.5);
    run_report(&run, 0.25); /* it never shrinks */
    CHECK_NEAR(progress_share(&p), 0.5, 0);
    run_report(&run, 7);
    CHECK_NEAR(progress_share(&p), 1, 0);
}

/* ---- every mechanism ---------------------------------------------------------- */

static void check_mechanism(Session *s, const Mechanism *m)
{
    Request     request = REQUEST_INIT;
    RunProgress progress;
    Result     *result;
    Error       err = ERROR_INIT;

    CHECK(request_example(s, &request, m, &err), "%s: %s", m->id, err.text);
    result = execute_request(s->loaded, &request, NULL, NULL, &progress, &err);
    request_free(&request);
    CHECK(result, "%s: %s", m->id, err.text);
    if (result->run->err.code == ERR_NONE && atomic_load(&progress.planned) > 0)
        CHECK(progress_share(&progress) > 0.999, "%s: %lld of %lld FLOPs, %lld too many announced",
              m->id, atomic_load(&progress.done), atomic_load(&progress.planned),
              atomic_load(&progress.ahead));
    result_release(result);
}

TEST(test_all_is_done_in_the_end)
{
    Session *s = session_on("synthetic:blocks(n=64,d=32)");
    int      planned = 0;

    for (size_t i = 0; mechanism_at(i); i++) {
        check_mechanism(s, mechanism_at(i));
        planned += mechanism_at(i)->flops && !mechanism_at(i)->flops_bound;
    }
    assert_true(planned > 40);
    session_free(s);
}

/* ---- jobs ----------------------------------------------------------------------- */

TEST(test_job_tells)
{
    Session *s = session_on("synthetic:normal(n=8192,d=64)");
    Request  request = REQUEST_INIT;
    Error    err = ERROR_INIT;
    double   last = 0, middle = 0;
    Job     *job;

    request.threads = 1;
    CHECK(request_parse(s, &request, "full", &err), "%s", err.text);
    job = session_submit(s, &request, &err);
    CHECK(job, "%s", err.text);
    while (job_state(job) <= JOB_RUNNING) {
        Number share = job_share(job);

        if (share.valid) {
            CHECK(share.value >= last && share.value <= 1, "%g after %g", share.value, last);
            last = share.value;
            middle = last > 0.1 && last < 0.9 ? last : middle;
        }
        usleep(2000);
    }
    CHECK(middle > 0, "the one operation is not reported before its end");
    CHECK_NEAR(job_share(job).value, 1, 0);
    job_free(job);
    request_free(&request);
    session_free(s);
}

SUITE(NULL, NULL)
