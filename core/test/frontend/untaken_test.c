/* Requests that lie in a ring: behind a long call, at a worker that is stopped, and those that were begun. */
#include "frontend/untaken.c"

#include "fakes.h"

static const struct fake_request get;
static const struct fake_request post = {.method = "POST", .body = "abc"};

/* Worker 0 has `count` idle channels, worker 1 does not serve yet. */
static void begin(int fars[], int count)
{
    int calls[4];
    fake_begin((struct fake_setup){.workers = 2});
    atomic_store(&fake_slot(1)->state, ORIBI_SLOT_DRAINING);
    fake_average_us(0, 10);
    for (int i = 0; i < count; i++) {
        calls[i] = fake_submit(get);
        fake_dispatch();
        fars[i] = fake_take(0);
        (void)fake_asked(fars[i]);
    }
    for (int i = 0; i < count; i++)
        fake_answers(fars[i], FAKE_OK);
    fake_turn();
    fake_average_us(0, 10);
    ok_named(!fake_upstream(calls[0]) && fake_gauge(FAKE_IDLE_CHANNELS) == count, "%d idle channels", count);
}

/* A request that lies in the ring of worker 0. */
static int lying(int *far, struct fake_request request)
{
    begin(far, 1);
    int call = fake_submit(request);
    fake_dispatch();
    return call;
}

static void begins_call(uint32_t worker)
{
    atomic_store(&fake_slot(worker)->call_started_us, fake_now_us());
}

static void serves(uint32_t worker)
{
    atomic_store(&fake_slot(worker)->state, ORIBI_SLOT_IDLE);
}

static void test_behind_a_long_call_a_request_goes_to_another_worker(void)
{
    for (int big = 0; big < 2; big++) {
        int far;
        int call = lying(&far, big ? (struct fake_request){.method = "POST", .body_bytes = 100 * 1000} : post);
        begins_call(0);
        ok_eq(fake_out_of(0), 1);
        serves(1);
        fake_passes_ms(1);
        fake_turn();
        ok_named(fake_is_out(call), "the call may be short yet");
        fake_passes_ms(1);
        fake_turn();
        ok_eq(fake_out_of(0), 0);
        is_str(fake_heard(call), "+ - + - ");
        is_str(fake_asked(far), "");
        ok(big || fake_is_over(far)); /* its bytes lie in the socket */
        int other = fake_take(1);
        ok(other >= 0);
        fake_answers(other, FAKE_OK);
        fake_turn();
        is_str(fake_heard(call), "+ - + - begin 200 ok. ");
        fake_end();
    }
}

static void test_a_request_that_was_begun_stays(void)
{
    int far;
    int call = lying(&far, post);
    begins_call(0);
    ok(strstr(fake_asked(far), "abc") != NULL);
    serves(1);
    fake_passes_ms(1000);
    fake_turn();
    ok(fake_is_out(call));
    fake_answers(far, FAKE_OK);
    fake_turn();
    is_str(fake_heard(call), "+ - begin 200 ok. ");
    fake_end();
}

/* A hostile worker: its ring says that the request was not begun. */
static void test_what_is_answered_is_not_taken_back(void)
{
    int far;
    int call = lying(&far, get);
    begins_call(0);
    serves(1);
    fake_answers(far, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha");
    fake_turn();
    fake_passes_ms(1000);
    fake_turn();
    ok_named(fake_is_out(call) && fake_take(1) < 0, "no other worker is asked");
    fake_answers(far, "lf");
    fake_turn();
    is_str(fake_heard(call), "+ - begin 200 ha more lf. ");
    fake_end();
}

static void test_the_oldest_becomes_the_first(void)
{
    int fars[3];
    int calls[3];
    begin(fars, 3);
    for (int i = 0; i < 3; i++) {
        calls[i] = fake_submit(post);
        fake_dispatch();
        ok(fake_is_out(calls[i]));
    }
    begins_call(0);
    serves(1);
    fake_passes_ms(2);
    fake_turn();
    ok_eq(fake_out_of(0), 0);
    for (int i = 0; i < 3; i++) {
        char path[16];
        int far = fake_take(1);
        (void)snprintf(path, sizeof(path), "POST /%d ", calls[i]);
        ok_named(far >= 0 && strstr(fake_asked(far), path), "request %d", calls[i]);
        fake_answers(far, FAKE_OK);
        fake_turn();
    }
    fake_end();
}

static void test_a_worker_that_is_stopped_is_passed_by(void)
{
    int far;
    int call = lying(&far, post);
    serves(1);
    fake_passes_ms(STOPPED_US / 1000 - 1);
    fake_turn();
    ok(fake_is_out(call) && fake_out_of(0) == 1);
    fake_passes_ms(1);
    fake_turn();
    is_str(fake_heard(call), "+ - + - ");
    int other = fake_take(1);
    ok(other >= 0);
    (void)fake_befriend(1);
    for (int i = 0; i < 3; i++) {
        (void)fake_submit(get);
        fake_dispatch();
        ok_eq(fake_out_of(0), 0);
    }
    fake_end();
}

static void test_of_several_threads_another_takes_it(void)
{
    int far;
    begin(&far, 1);
    atomic_store(&fake_slot(0)->threads, 2);
    int call = fake_submit(post);
    fake_dispatch();
    begins_call(0);
    serves(1);
    fake_passes_ms(1000);
    fake_turn();
    ok(fake_is_out(call) && fake_out_of(0) == 1);
    fake_end();
}

static void test_the_next_turn_looks(void)
{
    int far;
    begin(&far, 1);
    ok_eq(fake_wait_ms(), -1);
    (void)fake_submit(post);
    fake_dispatch();
    ok(fake_wait_ms() > 0 && fake_wait_ms() <= ORIBI__UNTAKEN_MS);
    (void)fake_asked(far);
    fake_passes_ms(ORIBI__UNTAKEN_MS);
    fake_turn();
    ok_eq(fake_wait_ms(), -1); /* it was begun */
    fake_end();
}

static void test_a_worker_in_a_long_call_is_given_nothing(void)
{
    int far;
    begin(&far, 1);
    serves(1);
    begins_call(0);
    fake_passes_ms(ORIBI__UNTAKEN_MS);
    (void)fake_submit(get);
    fake_dispatch();
    ok_eq(fake_out_of(0), 0);
    ok_eq(fake_waiting(), 1);
    fake_end();
}

/* The kernel has woken one worker for the request in the hand-off queue. */
static void test_of_a_stopped_worker_another_is_woken(void)
{
    for (int idle = 0; idle < 2; idle++) {
        fake_begin((struct fake_setup){.workers = 2});
        atomic_store(&fake_slot(0)->state, idle ? ORIBI_SLOT_IDLE : ORIBI_SLOT_BUSY);
        atomic_store(&fake_slot(1)->state, idle ? ORIBI_SLOT_IDLE : ORIBI_SLOT_BUSY);
        (void)fake_submit(get);
        fake_dispatch();
        for (int i = 0; i < 3; i++) {
            ok(!idle || fake_wait_ms() > 0);
            fake_passes_ms(STOPPED_US / 1000);
            fake_turn();
            fake_turn();
        }
        ok(fake_take(0) >= 0);
        ok_eq(fake_wakeups(), 0);
        ok_eq(fake_take(0), -1);
        ok_named(fake_wakeups() == 3 * idle, "%d wake-ups, workers are %s", fake_wakeups(), idle ? "idle" : "busy");
        fake_passes_ms(STOPPED_US / 1000);
        fake_turn();
        ok(fake_take(0) == -1 && fake_wakeups() == 0);
        fake_end();
    }
}

int main(void)
{
    test_behind_a_long_call_a_request_goes_to_another_worker();
    test_a_request_that_was_begun_stays();
    test_what_is_answered_is_not_taken_back();
    test_the_oldest_becomes_the_first();
    test_a_worker_that_is_stopped_is_passed_by();
    test_of_several_threads_another_takes_it();
    test_the_next_turn_looks();
    test_a_worker_in_a_long_call_is_given_nothing();
    test_of_a_stopped_worker_another_is_woken();
    return done_testing();
}
