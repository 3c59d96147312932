/* Calls that run on without their client: how long each counts, and for whom. */
#include "frontend/channel.c"

#include "fakes.h"

static const struct fake_request get;

/* A call that worker 0 has begun, and whose client has gone. */
static int abandoned(int *far)
{
    int call = fake_out(get, far);
    fake_goes(call);
    return call;
}

static void test_it_counts_until_its_worker_has_ended_it(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    abandoned(&far);
    ok_eq(fake_gauge(FAKE_ABANDONED), 1);
    ok_eq(fake_gauge(FAKE_OUT), 1);
    ok_eq(fake_gauge(FAKE_OUT_WAITING), 0);
    ok_eq(fake_out_of(0), 1);
    ok(fake_is_over(far));
    fake_turn();
    ok_eq(fake_gauge(FAKE_ABANDONED), 1);
    int next = fake_submit(get);
    fake_dispatch();
    ok(fake_is_queued(next));
    fake_far_closes(far);
    fake_turn();
    ok_eq(fake_gauge(FAKE_ABANDONED), 0);
    ok(fake_is_out(next));
    ok_eq(fake_gauge(FAKE_OUT), 1);
    ok_eq(fake_out_of(0), 0);
    ok_eq(fake_gauge(FAKE_OUT_WAITING), 1);
    fake_end();
}

/* The client goes while the frontend reads from the ring, and the loop has told of the socket. */
static void test_it_counts_also_where_its_client_goes_in_a_long_record(void)
{
    enum { BYTES = 100 * 1000 };
    static char answer[BYTES];
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n";
    memset(answer, 'x', sizeof(answer));
    memcpy(answer, head, sizeof(head) - 1);
    fake_begin((struct fake_setup){0});
    int far;
    int call = fake_out((struct fake_request){.goes_in = 'b'}, &far);
    struct oribi__channel *channel = fake_upstream(call)->channel;
    fake_answers_bytes(far, answer, sizeof(answer));
    fake_reads(channel);
    ok(!fake_upstream(call));
    ok_eq(fake_gauge(FAKE_ABANDONED), 1);
    ok_eq(fake_gauge(FAKE_OUT), 1);
    fake_far_closes(far);
    fake_turn();
    ok_eq(fake_gauge(FAKE_ABANDONED), 0);
    ok_eq(fake_gauge(FAKE_OUT), 0);
    fake_end();
}

static void test_a_request_that_no_worker_has_taken_does_not_count(void)
{
    fake_begin((struct fake_setup){0});
    int call = fake_submit(get);
    fake_dispatch();
    fake_goes(call);
    ok_eq(fake_gauge(FAKE_ABANDONED), 0);
    ok_eq(fake_gauge(FAKE_OUT), 0);
    ok_eq(fake_gauge(FAKE_OUT_WAITING), 0);
    ok_eq(fake_gauge(FAKE_FREE_NUMBERS), 64);
    fake_end();
}

/* The worker says that it has the channel no more, and its descriptor may be open for another reason; another worker
 * has the channel; another process has the worker's place. */
static void test_it_ends_where_its_worker_has_the_channel_no_more(void)
{
    for (int how = 0; how < 3; how++) {
        int far;
        fake_begin((struct fake_setup){.workers = 2});
        abandoned(&far);
        oribi__channels_look(fake_frontend());
        ok_eq(fake_gauge(FAKE_ABANDONED), 1);
        if (how == 0)
            fake_far_unowned(far);
        else if (how == 1)
            fake_far_passes(far, 1);
        else
            atomic_store(&fake_slot(0)->pid, 4711);
        ok_eq(fake_gauge(FAKE_ABANDONED), 1);
        oribi__channels_look(fake_frontend());
        ok_eq(fake_gauge(FAKE_ABANDONED), 0);
        ok_eq(fake_gauge(FAKE_OUT), 0);
        ok_eq(fake_out_of(0), 0);
        fake_end();
    }
}

/* A worker that is killed tells nothing, and its place keeps its pid until it is replaced. */
static void test_a_death_is_seen_by_the_place_alone(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    abandoned(&far);
    fake_far_dies(far);
    fake_turn();
    ok_eq(fake_gauge(FAKE_ABANDONED), 1);
    atomic_store(&fake_slot(0)->pid, 0);
    int next = fake_submit(get);
    fake_dispatch();
    ok_eq(fake_gauge(FAKE_ABANDONED), 0);
    ok(fake_is_out(next));
    fake_end();
}

static void test_a_call_that_was_answered_is_abandoned_too(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = fake_out(get, &far);
    fake_answers(far, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
    fake_turn();
    fake_goes(call);
    ok_eq(fake_gauge(FAKE_ABANDONED), 1);
    fake_turn();
    ok_eq(fake_gauge(FAKE_OUT), 1);
    ok(!fake_tries_answer(far, "defghi"));
    fake_end();
}

static void test_it_was_counted_as_waiting_and_counts_for_its_worker_from_then_on(void)
{
    int far[2];
    fake_begin((struct fake_setup){.workers = 2});
    fake_submit(get);
    fake_submit(get);
    fake_dispatch();
    ok_eq(fake_gauge(FAKE_OUT_WAITING), 2);
    far[0] = fake_take(1);
    far[1] = fake_take(1);
    fake_goes(0);
    ok_eq(fake_gauge(FAKE_OUT_WAITING), 1);
    ok_eq(fake_out_of(1), 1);
    fake_goes(1);
    ok_eq(fake_gauge(FAKE_OUT_WAITING), 0);
    ok_eq(fake_out_of(1), 2);
    ok_eq(fake_gauge(FAKE_OUT), 2);
    fake_far_closes(far[0]);
    fake_far_closes(far[1]);
    fake_turn();
    ok_eq(fake_gauge(FAKE_OUT), 0);
    fake_end();
}

static void test_they_leave_in_any_order(void)
{
    for (int first = 0; first < 3; first++) {
        int far[3];
        fake_begin((struct fake_setup){.workers = 3});
        for (int i = 0; i < 3; i++)
            fake_submit(get);
        fake_dispatch();
        for (uint32_t i = 0; i < 3; i++)
            far[i] = fake_take(i);
        for (int i = 0; i < 3; i++)
            fake_goes(i);
        ok_eq(fake_gauge(FAKE_ABANDONED), 3);
        for (int i = 0; i < 3; i++) {
            fake_far_unowned(far[(first + i) % 3]);
            oribi__channels_look(fake_frontend());
            ok_eq(fake_gauge(FAKE_ABANDONED), 2 - i);
            ok_eq(fake_gauge(FAKE_OUT), 2 - i);
        }
        ok_eq(fake_gauge(FAKE_CHANNELS), 0);
        fake_end();
    }
}

static void test_bytes_of_an_abandoned_answer_are_not_read(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = fake_out(get, &far);
    fake_answers(far, FAKE_OK);
    fake_goes(call);
    fake_turn();
    is_str(fake_heard(call), "+ - ");
    ok_eq(fake_gauge(FAKE_ABANDONED), 1);
    fake_end();
}

static void test_the_frontend_s_end_closes_them(void)
{
    int far;
    fake_begin((struct fake_setup){.workers = 2});
    abandoned(&far);
    abandoned(&far);
    ok_eq(fake_gauge(FAKE_ABANDONED), 2);
    close_abandoned(fake_frontend());
    ok_eq(fake_gauge(FAKE_ABANDONED), 0);
    ok_eq(fake_gauge(FAKE_OUT), 0);
    fake_end();
}

/* Its connections are closed with the reactor: no call may run on from then on. */
static void test_the_frontend_s_end_leaves_no_call_of_a_connection_behind(void)
{
    fake_begin((struct fake_setup){0});
    int client = fake_h1();
    fake_says(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    fake_settle();
    ok(fake_take(0) >= 0);
    ok_eq(fake_gauge(FAKE_OUT), 1);
    fake_end(); /* sees what is left */
}

/* A stream of HTTP/2 that was reset counts against its connection as long as its call runs. */
static void test_a_stream_that_was_reset_waits_for_its_call(void)
{
    fake_begin((struct fake_setup){.streams_max = 2});
    int client = fake_h2();
    fake_settle();
    int32_t id = fake_asks(client, (struct fake_ask){0});
    fake_settle();
    int far = fake_take(0);
    fake_resets(client, id, 8);
    fake_settle();
    ok_eq(fake_gauge(FAKE_ABANDONED), 1);
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    ok_eq(fake_gauge(FAKE_OUT), 1);
    ok_eq(fake_left_of(client), 1);
    fake_far_closes(far);
    fake_settle();
    ok_eq(fake_gauge(FAKE_ABANDONED), 0);
    ok_eq(fake_left_of(client), 0);
    fake_end();
}

static void test_a_connection_that_ends_is_forgotten_by_its_calls(void)
{
    fake_begin((struct fake_setup){.workers = 2});
    int client = fake_h2();
    int other = fake_h2();
    fake_settle();
    int32_t id = fake_asks(client, (struct fake_ask){0});
    fake_settle();
    int far = fake_take(0);
    int32_t other_id = fake_asks(other, (struct fake_ask){0});
    fake_settle();
    int other_far = fake_take(1);
    fake_resets(client, id, 8);
    fake_resets(other, other_id, 8);
    fake_settle();
    ok_eq(fake_gauge(FAKE_ABANDONED), 2);
    fake_hangs_up(client);
    fake_settle();
    ok_eq(fake_gauge(FAKE_CLIENTS_H2), 1);
    ok_eq(fake_gauge(FAKE_ABANDONED), 2);
    ok_eq(fake_gauge(FAKE_OUT), 2);
    fake_far_closes(far);
    fake_settle();
    ok_eq(fake_gauge(FAKE_ABANDONED), 1);
    ok_eq(fake_left_of(other), 1);
    fake_far_closes(other_far);
    fake_settle();
    ok_eq(fake_gauge(FAKE_ABANDONED), 0);
    ok_eq(fake_left_of(other), 0);
    fake_end();
}

int main(void)
{
    test_it_counts_until_its_worker_has_ended_it();
    test_it_counts_also_where_its_client_goes_in_a_long_record();
    test_a_request_that_no_worker_has_taken_does_not_count();
    test_it_ends_where_its_worker_has_the_channel_no_more();
    test_a_death_is_seen_by_the_place_alone();
    test_a_call_that_was_answered_is_abandoned_too();
    test_it_was_counted_as_waiting_and_counts_for_its_worker_from_then_on();
    test_they_leave_in_any_order();
    test_bytes_of_an_abandoned_answer_are_not_read();
    test_the_frontend_s_end_closes_them();
    test_the_frontend_s_end_leaves_no_call_of_a_connection_behind();
    test_a_stream_that_was_reset_waits_for_its_call();
    test_a_connection_that_ends_is_forgotten_by_its_calls();
    return done_testing();
}
