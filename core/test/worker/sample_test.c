/* Samples of calls that go on: this test is the helper, and a thread of its own makes the call. */
#include "worker/sample.c"
#include "worker/logs/slow_log.c"

#include "system.h"
#include "tap.h"
#include "worker/talk.h"

enum { FRAME_BYTES = 6 };

static struct site site;
static atomic_bool quit;
static atomic_bool is_there;
static _Atomic int cut_short;
static bool outside_works;
static bool faults;
static volatile char *volatile nowhere = (char *)16; /* in the page that nobody has */

static size_t frames(void *self, uint32_t index, bool own_thread, char *dst, size_t cap)
{
    if (faults)
        *nowhere = 1;
    if (!own_thread && !outside_works)
        return 0;
    memcpy(dst, own_thread ? "own 1\n" : "out 1\n", FRAME_BYTES);
    return FRAME_BYTES;
}

static void *spin(void *unused)
{
    atomic_store(&is_there, true);
    while (!atomic_load(&quit))
        continue;
    return NULL;
}

static void *rest(void *unused)
{
    const struct timespec piece = {.tv_nsec = 100 * 1000 * 1000};
    atomic_store(&is_there, true);
    while (!atomic_load(&quit))
        if (nanosleep(&piece, NULL) < 0)
            atomic_fetch_add(&cut_short, 1);
    return NULL;
}

static void *spin_without_signals(void *unused)
{
    sigset_t all;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
    return spin(NULL);
}

static void no_app(struct oribi_req *req)
{
}

static struct oribi_thread *open_call(pthread_t *thread, void *(*body)(void *))
{
    site_init(&site);
    site_open(&site, no_app);
    struct oribi_worker *w = site.worker;
    oribi_worker_show_frames(w, frames, NULL);
    atomic_store(&quit, false);
    atomic_store(&is_there, false);
    atomic_store(&cut_short, 0);
    ok(pthread_create(thread, NULL, body, NULL) == 0);
    ok(wait_for(atomic_load(&is_there)));
    atomic_store(&w->threads.single.pthread, *thread);
    memcpy(w->slot->line, "GET /x", 7);
    atomic_store(w->threads.single.started_us, oribi_clock_us());
    atomic_store(&w->owner, ORIBI_OWNER_CALL);
    return &w->threads.single;
}

static void close_call(pthread_t thread)
{
    atomic_store(&quit, true);
    (void)pthread_join(thread, NULL);
    atomic_store(&site.worker->slot->call_started_us, 0);
    atomic_store(&site.worker->owner, ORIBI_OWNER_MAIN);
    outside_works = faults = false;
    site_close(&site);
}

static bool begins(const struct oribi__sample *sample, const char *text)
{
    return sample->stand.len >= FRAME_BYTES && memcmp(sample->stand.text, text, FRAME_BYTES) == 0;
}

static bool has_native(const struct oribi__sample *sample)
{
    return memmem(sample->stand.text, sample->stand.len, "C: ", 3) != NULL;
}

static void test_a_thread_that_runs_tells_itself(void)
{
    pthread_t thread;
    struct oribi_thread *call = open_call(&thread, spin);
    outside_works = true;
    const struct oribi__sample *sample;
    ok(wait_for(begins(sample = oribi__sample_take(call), "own 1\n"))); /* a thread without a processor tells nothing */
    ok(has_native(sample) == oribi_os_backtrace_is_lockless());
    ok_eq(sample->state.state, oribi_os_adopts_orphans() ? 'R' : 0);
    close_call(thread);
}

/* nanosleep(2) ends at any signal, so that there is none. */
static void test_a_thread_that_sleeps_is_read_from_outside_and_sleeps_on(void)
{
    if (!only_on_linux("what a thread waits in is not known"))
        return;
    pthread_t thread;
    struct oribi_thread *call = open_call(&thread, rest);
    outside_works = true;
    int seen = 0;
    ok(wait_for(begins(oribi__sample_take(call), "out 1\n")));
    for (int i = 0; i < 100; i++)
        seen += begins(oribi__sample_take(call), "out 1\n");
    ok(seen > 50); /* the others were between two sleeps */
    outside_works = false;
    ok(wait_for(oribi__sample_take(call)->stand.len == 0)); /* a runtime that cannot be read */
    ok_eq(atomic_load(&cut_short), 0);
    close_call(thread);
}

static void test_a_fault_leaves_the_frames_out_and_the_call_goes_on(void)
{
    pthread_t thread;
    struct oribi_thread *call = open_call(&thread, spin);
    faults = true;
    for (int i = 0; i < 10; i++)
        ok(!begins(oribi__sample_take(call), "own 1\n"));
    faults = false;
    ok(wait_for(begins(oribi__sample_take(call), "own 1\n")));
    close_call(thread);
}

static void test_a_thread_without_signals_is_given_up(void)
{
    pthread_t thread;
    struct oribi_thread *call = open_call(&thread, spin_without_signals);
    ok_eq(oribi__sample_take(call)->stand.len, 0);
    ok_eq(atomic_load(&site.worker->sampler.state), IDLE);
    close_call(thread);
}

/* The helper is woken by a slow call so often, and not once more. */
static void test_looks_at_a_slow_call_are_counted(void)
{
    pthread_t thread;
    struct oribi_thread *call = open_call(&thread, spin);
    struct oribi_worker *w = site.worker;
    int64_t started_us = atomic_load(call->started_us);
    ok_eq(oribi__slow_look(w, started_us), INT64_MAX); /* off */
    site.options.slow_log_ms = 2000;
    ok_eq(oribi__slow_look(w, started_us), 2001);
    ok_eq(call->slow.looks, 0);
    for (uint32_t i = 1; i <= ORIBI__SLOW_LOOKS_MAX; i++) {
        int64_t due_us = started_us + ((int64_t)2000000 << (i - 1));
        int64_t next_ms = oribi__slow_look(w, due_us);
        ok_eq(call->slow.looks, i);
        ok_eq(atomic_load(&call->slow.said_us), started_us);
        ok_eq(next_ms, i < ORIBI__SLOW_LOOKS_MAX ? ((int64_t)2000 << (i - 1)) + 1 : INT64_MAX);
    }
    atomic_store(call->started_us, started_us + 1); /* the next call begins anew */
    ok_eq(oribi__slow_look(w, started_us + 1), 2001);
    ok_eq(call->slow.looks, 0);
    site.options.slow_log_ms = 0;
    close_call(thread);
}

int main(void)
{
    quiet_log();
    test_a_thread_that_runs_tells_itself();
    test_a_thread_that_sleeps_is_read_from_outside_and_sleeps_on();
    test_a_fault_leaves_the_frames_out_and_the_call_goes_on();
    test_a_thread_without_signals_is_given_up();
    test_looks_at_a_slow_call_are_counted();
    return done_testing();
}
