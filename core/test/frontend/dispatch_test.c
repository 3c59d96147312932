/* Which request goes out next, to which worker, and by which way. */
#include "frontend/dispatch.c"

#include "fakes.h"

#include <stdlib.h>

static const struct fake_request get;

/* The number in the path of the request that has come on the channel; -1: none has. */
static int asked(int far)
{
    const char *at = strstr(fake_asked(far), "GET /");
    return at ? (int)strtol(at + 5, NULL, 10) : -1;
}

/* A call that has taken so long that its worker has one at a time. */
static void answer(int far)
{
    fake_passes_ms(1);
    fake_answers(far, FAKE_OK);
    fake_turn();
}

/* --- the queue --- */

static void test_requests_go_out_in_their_order(void)
{
    fake_begin((struct fake_setup){0});
    for (int i = 0; i < 3; i++)
        fake_submit(get);
    fake_dispatch();
    ok(fake_is_out(0) && fake_is_queued(1) && fake_is_queued(2));
    int far = fake_take(0);
    for (int i = 0; i < 3; i++) {
        ok_eq(asked(far), i);
        ok_eq(fake_take(0), -1);
        answer(far);
    }
    ok_eq(fake_gauge(FAKE_QUEUED), 0);
    ok_eq(fake_counters()->passed_count, 1);
    ok_eq(fake_counters()->call_count, 3);
    fake_end();
}

static void test_a_request_may_go_to_the_front(void)
{
    fake_begin((struct fake_setup){0});
    int calls[4];
    for (int i = 0; i < 4; i++)
        calls[i] = fake_call(get);
    oribi__dispatch_add(fake_upstream(calls[0]), false);
    oribi__dispatch_add(fake_upstream(calls[1]), false);
    oribi__dispatch_add(fake_upstream(calls[2]), true);
    oribi__dispatch_add(fake_upstream(calls[3]), true);
    ok_eq(fake_gauge(FAKE_QUEUED), 4);
    oribi__dispatch_remove(fake_upstream(calls[3]));
    oribi__dispatch_remove(fake_upstream(calls[0]));
    ok_eq(fake_gauge(FAKE_QUEUED), 2);
    is_str(fake_heard(calls[0]), "+ - ");
    ok(!fake_is_queued(calls[0]));
    fake_dispatch();
    int far = fake_take(0);
    ok_eq(asked(far), 2);
    fake_answers(far, FAKE_OK);
    fake_turn();
    ok_eq(asked(far), 1);
    fake_end();
}

/* --- workers --- */

static void test_as_many_requests_are_out_as_workers_can_take(void)
{
    fake_begin((struct fake_setup){.workers = 2});
    for (int i = 0; i < 3; i++)
        fake_submit(get);
    fake_dispatch();
    ok_eq(fake_gauge(FAKE_OUT), 2);
    ok_eq(fake_gauge(FAKE_OUT_WAITING), 2);
    ok_eq(fake_gauge(FAKE_QUEUED), 1);
    ok_eq(fake_waiting(), 2);
    ok_eq(oribi__dispatch_capacity(fake_frontend()), 2);
    fake_end();
}

static void test_a_worker_of_several_threads_has_as_many(void)
{
    fake_begin((struct fake_setup){0});
    atomic_store(&fake_slot(0)->threads, 3);
    for (int i = 0; i < 4; i++)
        fake_submit(get);
    fake_dispatch();
    ok_eq(oribi__dispatch_capacity(fake_frontend()), 3);
    ok_eq(fake_gauge(FAKE_OUT), 3);
    ok_eq(fake_gauge(FAKE_QUEUED), 1);
    fake_end();
}

static void test_short_calls_go_out_several_at_a_time(void)
{
    static const uint32_t us_and_room[][2] = {{UINT32_MAX, 1},
                                              {SHORT_US / 2 + 1, 1},
                                              {SHORT_US / 2, 2},
                                              {50, 4},
                                              {13, 15},
                                              {SHORT_US / SHORT_CALLS + 1, 28},
                                              {SHORT_US / SHORT_CALLS, SHORT_CALLS},
                                              {1, SHORT_CALLS},
                                              {0, SHORT_CALLS}};
    for (size_t i = 0; i < sizeof(us_and_room) / sizeof(us_and_room[0]); i++) {
        uint32_t room = us_and_room[i][1];
        fake_begin((struct fake_setup){0});
        fake_average_us(0, us_and_room[i][0]);
        for (uint32_t k = 0; k <= room; k++)
            fake_submit(get);
        fake_dispatch();
        ok_named(oribi__dispatch_capacity(fake_frontend()) == room, "calls of %u us: %u at a time", us_and_room[i][0],
                 room);
        ok_eq(fake_gauge(FAKE_OUT), room);
        ok_eq(fake_gauge(FAKE_QUEUED), 1);
        fake_end();
    }
}

static void test_only_workers_that_serve_are_asked(void)
{
    static const uint32_t states[] = {ORIBI_SLOT_EMPTY, ORIBI_SLOT_STARTING, ORIBI_SLOT_DRAINING};
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        fake_begin((struct fake_setup){.workers = 2});
        int far = fake_befriend(0);
        atomic_store(&fake_slot(0)->state, states[i]);
        atomic_store(&fake_slot(1)->state, states[i]);
        ok(!oribi__dispatch_serves(fake_frontend()));
        ok_eq(oribi__dispatch_capacity(fake_frontend()), 0);
        int call = fake_submit(get);
        fake_dispatch();
        ok(fake_is_queued(call) && asked(far) == -1);
        atomic_store(&fake_slot(1)->state, ORIBI_SLOT_BUSY);
        ok(oribi__dispatch_serves(fake_frontend()));
        fake_dispatch();
        ok(fake_is_out(call) && asked(far) == -1);
        ok_eq(fake_waiting(), 1);
        fake_end();
    }
}

static void test_the_channel_that_was_used_last_goes_first(void)
{
    fake_begin((struct fake_setup){.workers = 2});
    fake_submit(get);
    fake_submit(get);
    fake_dispatch();
    int far0 = fake_take(0);
    int far1 = fake_take(1);
    (void)fake_asked(far0);
    (void)fake_asked(far1);
    fake_answers(far1, FAKE_OK);
    fake_turn();
    fake_answers(far0, FAKE_OK);
    fake_turn();
    ok_eq(fake_gauge(FAKE_IDLE_CHANNELS), 2);
    fake_submit(get);
    fake_dispatch();
    ok_eq(asked(far0), 2);
    ok_eq(asked(far1), -1);
    fake_submit(get);
    fake_dispatch();
    ok_eq(asked(far1), 3);
    fake_end();
}

static void test_an_idle_worker_goes_before_one_that_is_done_soon(void)
{
    fake_begin((struct fake_setup){.workers = 2});
    int far = fake_befriend(0);
    fake_average_us(0, 10);
    fake_submit(get);
    fake_dispatch();
    ok_eq(asked(far), 1);
    fake_submit(get);
    fake_dispatch();
    ok_eq(asked(far), -1);
    ok_eq(fake_waiting(), 1);
    ok_eq(fake_gauge(FAKE_CHANNELS), 2);
    fake_end();
}

/* Worker 0 has so many idle channels. */
static void befriend_often(int far[], int count)
{
    atomic_store(&fake_slot(0)->threads, (uint32_t)count);
    for (int i = 0; i < count; i++)
        fake_submit(get);
    fake_dispatch();
    for (int i = 0; i < count; i++) {
        far[i] = fake_take(0);
        (void)fake_asked(far[i]);
    }
    for (int i = 0; i < count; i++)
        answer(far[i]);
    ok_eq(fake_gauge(FAKE_IDLE_CHANNELS), count);
}

static void test_a_worker_without_a_channel_goes_before_a_second_call(void)
{
    int far[2];
    fake_begin((struct fake_setup){.workers = 2});
    befriend_often(far, 2);
    atomic_store(&fake_slot(0)->threads, 1);
    fake_average_us(0, 10);
    fake_submit(get);
    fake_submit(get);
    fake_dispatch();
    ok_eq(fake_waiting(), 1);
    ok_eq(fake_out_of(0), 1);
    fake_submit(get);
    fake_dispatch();
    ok_eq(fake_out_of(0), 1); /* it is not known yet that worker 1 will take the second */
    ok_eq(fake_waiting(), 2);
    fake_end();
}

/* The worker tells late of calls that it has just been given. */
static void test_calls_of_ours_count_before_the_worker_tells_of_them(void)
{
    int far[3];
    fake_begin((struct fake_setup){0});
    befriend_often(far, 3);
    atomic_store(&fake_slot(0)->threads, 2);
    for (int i = 0; i < 3; i++)
        fake_submit(get);
    fake_dispatch();
    ok_eq(fake_out_of(0), 2);
    ok_eq(fake_gauge(FAKE_QUEUED), 1);
    ok_eq(fake_waiting(), 0);
    fake_end();
}

static void test_a_worker_that_calls_for_others_is_passed_by(void)
{
    fake_begin((struct fake_setup){.workers = 2});
    int far = fake_befriend(0);
    fake_passes_ms(1);
    atomic_store(&fake_slot(0)->call_started_us, fake_now_us());
    fake_submit(get);
    fake_dispatch();
    ok_eq(asked(far), -1);
    ok_eq(fake_waiting(), 1);
    fake_end();
}

static void test_a_call_that_began_before_our_last_one_ended_was_that_one(void)
{
    fake_begin((struct fake_setup){.workers = 2});
    int far = fake_befriend(0);
    atomic_store(&fake_slot(0)->call_started_us, fake_now_us());
    fake_submit(get);
    fake_dispatch();
    ok_eq(asked(far), 1);
    fake_end();
}

static void test_what_waits_in_a_worker_counts(void)
{
    fake_begin((struct fake_setup){.workers = 2});
    int far = fake_befriend(0);
    atomic_store(&fake_slot(0)->queue_len, 1);
    fake_submit(get);
    fake_dispatch();
    ok_eq(asked(far), -1);
    ok_eq(fake_waiting(), 1);
    fake_end();
}

static void test_busy_threads_count_as_the_worker_says_or_as_we_know(void)
{
    fake_begin((struct fake_setup){.workers = 2});
    int far = fake_befriend(0);
    atomic_store(&fake_slot(0)->threads, 2);
    atomic_store(&fake_slot(0)->threads_busy, 2);
    fake_submit(get);
    fake_dispatch();
    ok_eq(asked(far), -1);
    ok_eq(fake_waiting(), 1);
    atomic_store(&fake_slot(0)->threads_busy, 1);
    atomic_store(&fake_slot(1)->state, ORIBI_SLOT_DRAINING);
    fake_submit(get);
    fake_dispatch();
    ok_eq(asked(far), 2);
    fake_end();
}

/* The worker has two channels, of which one ends in a call without an answer. */
static void test_a_worker_that_died_is_given_nothing_for_a_while(void)
{
    fake_begin((struct fake_setup){.workers = 2});
    fake_submit(get);
    fake_submit(get);
    fake_dispatch();
    int dies = fake_take(0);
    int lives = fake_take(0);
    (void)fake_asked(dies);
    (void)fake_asked(lives);
    answer(lives);
    answer(dies);
    int call = fake_submit(get);
    fake_dispatch();
    ok_eq(asked(dies), 2);
    fake_far_dies(dies);
    fake_turn();
    ok(fake_is_out(call) && asked(lives) == -1);
    ok_eq(fake_waiting(), 1);
    answer(fake_take(1));
    atomic_store(&fake_slot(1)->state, ORIBI_SLOT_DRAINING);
    fake_passes_ms(500 - 2);
    ok(!fake_upstream(call));
    call = fake_submit(get);
    int second = fake_submit(get);
    fake_dispatch();
    ok_eq(asked(lives), -1);
    fake_passes_ms(1);
    fake_dispatch();
    ok(fake_is_out(call) && asked(lives) == second);
    fake_end();
}

/* --- the hand-off queue --- */

static void test_requests_wait_among_those_of_others(void)
{
    fake_begin((struct fake_setup){0});
    atomic_store(&fake_slot(0)->handed_off, 2);
    atomic_store(&fake_slot(0)->call_started_us, fake_now_us() + 1);
    for (int i = 0; i < 5; i++)
        fake_submit(get);
    fake_dispatch();
    ok_eq(fake_gauge(FAKE_OUT), 3);
    ok_eq(fake_gauge(FAKE_QUEUED), 2);
    fake_end();
}

static void test_requests_of_another_frontend_are_no_reason_for_more(void)
{
    fake_begin((struct fake_setup){0});
    atomic_store(&fake_slot(0)->handed_off, 2);
    atomic_store(&fake_slot(0)->call_started_us, fake_now_us() + 1);
    fake_others_out(1);
    for (int i = 0; i < 5; i++)
        fake_submit(get);
    fake_dispatch();
    ok_eq(fake_gauge(FAKE_OUT), 2);
    fake_others_out(2);
    fake_end();
}

static void test_a_body_travels_in_a_file_from_a_size_on(void)
{
    for (size_t extra = 0; extra < 2; extra++) {
        fake_begin((struct fake_setup){0});
        fake_submit((struct fake_request){.method = "POST", .body_bytes = SPOOL_BYTES + extra});
        fake_dispatch();
        int far = fake_take(0);
        const char *text = fake_asked(far);
        ok(strstr(text, extra ? "Content-Length: 49153\r\n\r\n" : "Content-Length: 49152\r\n\r\n") != NULL);
        ok_eq(strlen(strstr(text, "\r\n\r\n") + 4), extra ? 0 : SPOOL_BYTES);
        const char *body = fake_asked_body(far);
        ok((body != NULL) == (extra > 0));
        ok_eq(body ? fake_asked_len() : 0, extra ? SPOOL_BYTES + extra : 0);
        fake_end();
    }
}

static void test_a_chunked_body_in_a_file_leaves_its_end(void)
{
    fake_begin((struct fake_setup){0});
    fake_submit((struct fake_request){.method = "POST", .body = "abc", .chunked = true});
    fake_dispatch();
    int far = fake_take(0);
    is_str(strstr(fake_asked(far), "\r\n\r\n"), "\r\n\r\n3\r\nabc\r\n0\r\nx: y\r\n\r\n");
    fake_goes(0);
    fake_end();
    fake_begin((struct fake_setup){0});
    fake_submit((struct fake_request){.method = "POST", .body_bytes = SPOOL_BYTES + 1, .chunked = true});
    fake_dispatch();
    far = fake_take(0);
    is_str(strstr(fake_asked(far), "\r\n\r\n"), "\r\n\r\n0\r\nx: y\r\n\r\n");
    ok(fake_asked_body(far) && fake_asked_len() == SPOOL_BYTES + 1);
    fake_end();
}

static void test_a_body_that_is_in_a_file_takes_no_idle_channel(void)
{
    fake_begin((struct fake_setup){0});
    int far = fake_befriend(0);
    fake_submit((struct fake_request){.method = "POST", .body = "abc", .in_file = true});
    fake_dispatch();
    is_str(fake_asked(far), "");
    far = fake_take(0);
    ok(far >= 0);
    is_str(fake_asked_body(far), "abc");
    fake_end();
}

static void test_a_body_behind_a_long_head_travels_in_a_file(void)
{
    fake_begin((struct fake_setup){0});
    fake_submit((struct fake_request){.method = "POST", .body_bytes = SPOOL_BYTES, .head_bytes = 64 * 1024});
    fake_dispatch();
    int far = fake_take(0);
    ok(far >= 0 && strlen(fake_asked(far)) > 64 * 1024);
    ok(fake_asked_body(far) && fake_asked_len() == SPOOL_BYTES);
    fake_end();
}

/* A head that fits no message; with its body in memory, or in a file already. */
static void test_a_head_that_fits_no_message_travels_in_a_file(void)
{
    static const struct fake_request requests[] = {
        {.head_bytes = ORIBI_HANDOFF_BYTES_MAX},
        {.method = "POST", .head_bytes = ORIBI_HANDOFF_BYTES_MAX, .body = "abc"},
        {.method = "POST", .head_bytes = ORIBI_HANDOFF_BYTES_MAX, .body = "abc", .in_file = true},
        {.head_bytes = ORIBI_HEAD_BYTES_CAP - 100},
    };
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        fake_begin((struct fake_setup){0});
        int call = fake_submit(requests[i]);
        int next = fake_submit(get);
        fake_dispatch();
        ok(fake_is_out(call) && fake_is_queued(next));
        int far = fake_take(0);
        const char *text = fake_asked(far);
        ok_eq(strspn(strstr(text, "f: ") + 3, "x"), requests[i].head_bytes);
        is_str(strstr(text, "\r\n\r\n"), "\r\n\r\n");
        const char *body = fake_asked_body(far);
        is_str(body ? body : "", requests[i].body ? requests[i].body : "");
        answer(far);
        ok_eq(asked(far), next);
        fake_end();
    }
}

/* No client can send so much: heads and trailers have their maxima below it. */
static void test_a_request_that_fits_no_file_either_is_refused(void)
{
    fake_begin((struct fake_setup){0});
    int call = fake_call(get);
    char *more = oribi_buf_try_reserve(&fake_upstream(call)->head, ORIBI_HANDOFF_LONG_BYTES_MAX);
    memset(more, 'x', ORIBI_HANDOFF_LONG_BYTES_MAX);
    fake_upstream(call)->head.len += ORIBI_HANDOFF_LONG_BYTES_MAX;
    fake_submits(call);
    int next = fake_submit(get);
    fake_dispatch();
    is_str(fake_heard(call), "+ - fail 503 ");
    is_str(fake_reason(call), "a request cannot be handed to a worker");
    ok(fake_is_out(next));
    ok_eq(fake_gauge(FAKE_CHANNELS), 1);
    fake_end();
}

static void test_without_numbers_a_request_waits(void)
{
    fake_begin((struct fake_setup){.workers = 3, .channels = 2});
    for (int i = 0; i < 4; i++)
        fake_submit(get);
    fake_dispatch();
    ok_eq(fake_gauge(FAKE_OUT), 2);
    ok_eq(fake_gauge(FAKE_FREE_NUMBERS), 0);
    ok(fake_is_queued(2));
    is_str(fake_heard(2), "+ - + ");
    int far = fake_take(0);
    (void)fake_asked(far);
    fake_answers(far, FAKE_OK);
    fake_turn();
    ok_eq(asked(far), 2);
    fake_end();
}

static void test_without_numbers_a_request_goes_to_who_is_done_soon(void)
{
    fake_begin((struct fake_setup){.workers = 2, .channels = 2});
    fake_submit(get);
    fake_submit(get);
    fake_dispatch();
    int far[2] = {fake_take(0), fake_take(0)};
    for (int i = 0; i < 2; i++) {
        (void)fake_asked(far[i]);
        fake_answers(far[i], FAKE_OK);
    }
    fake_turn();
    fake_average_us(0, 10);
    fake_submit(get);
    fake_submit(get);
    fake_dispatch();
    ok_eq(fake_gauge(FAKE_OUT), 2);
    ok_eq(fake_out_of(0), 2);
    fake_end();
}

static void test_a_client_that_goes_leaves_an_empty_channel_in_the_queue(void)
{
    fake_begin((struct fake_setup){0});
    int call = fake_submit(get);
    fake_dispatch();
    fake_goes(call);
    ok_eq(fake_gauge(FAKE_OUT), 0);
    ok_eq(fake_gauge(FAKE_CHANNELS), 0);
    int far = fake_take(0);
    (void)fake_asked(far);
    ok(fake_is_over(far));
    fake_end();
}

/* --- the end --- */

static void test_giving_up_answers_all_that_wait(void)
{
    fake_begin((struct fake_setup){0});
    for (int i = 0; i < 3; i++)
        fake_submit(get);
    fake_dispatch();
    fake_gives_up();
    fake_dispatch();
    ok(fake_is_out(0));
    for (int i = 1; i < 3; i++) {
        is_str(fake_heard(i), "+ - fail 503 ");
        is_str(fake_reason(i), "the server ends");
    }
    int far = fake_take(0);
    (void)fake_asked(far);
    fake_submit(get);
    fake_answers(far, FAKE_OK);
    fake_turn();
    is_str(fake_heard(3), "+ - fail 503 ");
    ok_eq(asked(far), -1);
    fake_end();
}

static void test_channels_that_nobody_can_use_are_closed(void)
{
    fake_begin((struct fake_setup){0});
    fake_average_us(0, 0);
    for (int i = 0; i < SHORT_CALLS; i++)
        fake_submit(get);
    fake_dispatch();
    int far[SHORT_CALLS];
    for (int i = 0; i < SHORT_CALLS; i++) {
        far[i] = fake_take(0);
        (void)fake_asked(far[i]);
    }
    for (int i = 0; i < SHORT_CALLS; i++) {
        fake_answers(far[i], FAKE_OK);
        fake_turn();
    }
    ok_eq(fake_gauge(FAKE_IDLE_CHANNELS), SHORT_CALLS);
    fake_average_us(0, UINT32_MAX);
    fake_dispatch();
    ok_eq(fake_gauge(FAKE_IDLE_CHANNELS), 4);
    ok(fake_is_over(far[0]) && fake_is_over(far[SHORT_CALLS - 5]));
    ok(!fake_is_over(far[SHORT_CALLS - 4]) && !fake_is_over(far[SHORT_CALLS - 1]));
    fake_end();
}

static void test_an_idle_channel_waits_where_its_worker_stops(void)
{
    fake_begin((struct fake_setup){0});
    fake_submit(get);
    int next = fake_submit(get);
    fake_dispatch();
    int far = fake_take(0);
    (void)fake_asked(far);
    atomic_store(&fake_slot(0)->state, ORIBI_SLOT_DRAINING);
    answer(far);
    ok(fake_is_queued(next) && asked(far) == -1);
    atomic_store(&fake_slot(0)->state, ORIBI_SLOT_IDLE);
    fake_dispatch();
    ok_eq(asked(far), next);
    fake_end();
}

static void test_an_idle_channel_waits_where_its_worker_has_as_many_as_it_can_take(void)
{
    fake_begin((struct fake_setup){0});
    fake_average_us(0, 0);
    fake_submit(get);
    fake_submit(get);
    fake_dispatch();
    int far[2] = {fake_take(0), fake_take(0)};
    (void)fake_asked(far[0]);
    (void)fake_asked(far[1]);
    fake_average_us(0, UINT32_MAX);
    int next = fake_submit(get);
    fake_submit(get);
    answer(far[1]);
    ok(fake_is_out(next) && asked(far[1]) == next); /* nothing that waits is known of: its owner was not told yet */
    answer(far[0]);
    ok_eq(fake_gauge(FAKE_QUEUED), 1);
    ok_eq(asked(far[0]), -1);
    answer(far[1]);
    ok_eq(fake_gauge(FAKE_QUEUED), 0);
    fake_end();
}

int main(void)
{
    test_an_idle_channel_waits_where_its_worker_stops();
    test_an_idle_channel_waits_where_its_worker_has_as_many_as_it_can_take();
    test_a_worker_that_died_is_given_nothing_for_a_while();
    test_requests_go_out_in_their_order();
    test_a_request_may_go_to_the_front();
    test_as_many_requests_are_out_as_workers_can_take();
    test_a_worker_of_several_threads_has_as_many();
    test_short_calls_go_out_several_at_a_time();
    test_only_workers_that_serve_are_asked();
    test_the_channel_that_was_used_last_goes_first();
    test_an_idle_worker_goes_before_one_that_is_done_soon();
    test_a_worker_without_a_channel_goes_before_a_second_call();
    test_calls_of_ours_count_before_the_worker_tells_of_them();
    test_a_worker_that_calls_for_others_is_passed_by();
    test_a_call_that_began_before_our_last_one_ended_was_that_one();
    test_what_waits_in_a_worker_counts();
    test_busy_threads_count_as_the_worker_says_or_as_we_know();
    test_requests_wait_among_those_of_others();
    test_requests_of_another_frontend_are_no_reason_for_more();
    test_a_body_travels_in_a_file_from_a_size_on();
    test_a_chunked_body_in_a_file_leaves_its_end();
    test_a_body_that_is_in_a_file_takes_no_idle_channel();
    test_a_body_behind_a_long_head_travels_in_a_file();
    test_a_head_that_fits_no_message_travels_in_a_file();
    test_a_request_that_fits_no_file_either_is_refused();
    test_without_numbers_a_request_waits();
    test_without_numbers_a_request_goes_to_who_is_done_soon();
    test_a_client_that_goes_leaves_an_empty_channel_in_the_queue();
    test_giving_up_answers_all_that_wait();
    test_channels_that_nobody_can_use_are_closed();
    return done_testing();
}
