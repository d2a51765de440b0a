/* session_fixture.h -- sessions and their results, for tests that need no other input. */
#ifndef TESTS_SESSION_FIXTURE_H
#define TESTS_SESSION_FIXTURE_H

#include "app/call.h"
#include "check.h"

static inline Session *session_on(const char *spec)
{
    Error    err = ERROR_INIT;
    Session *s = session_new(&err);

    assert_non_null(s);
    CHECK(session_load(s, spec, NULL, &err), "%s", err.text);
    return s;
}

/* Teardown of a group whose state is a session. */
static inline int session_close(void **session)
{
    session_free(*session);
    return 0;
}

/* Of a run that may have failed; what the text does not say is as in `request`, which is freed. */
static inline Result *result_tried_as(Session *s, Request request, const char *text)
{
    Error   err = ERROR_INIT;
    Result *result;

    CHECK(request_parse(s, &request, text, &err), "%s: %s", text, err.text);
    result = session_run(s, &request, &err);
    request_free(&request);
    CHECK(result, "%s: %s", text, err.text);
    return result;
}

static inline Result *result_tried(Session *s, const char *text)
{
    return result_tried_as(s, REQUEST_INIT, text);
}

static inline Result *result_as(Session *s, Request request, const char *text)
{
    Result *result = result_tried_as(s, request, text);

    CHECK(result->run->err.code == ERR_NONE, "%s: %s", text, result->run->err.text);
    return result;
}

static inline Result *result_of(Session *s, const char *text)
{
    return result_as(s, REQUEST_INIT, text);
}

#endif
