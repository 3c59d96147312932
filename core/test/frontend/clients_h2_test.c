/* Clients of HTTP/2: bytes between their sockets and their sessions, deadlines, rest, and their ends. */
#include "frontend/clients_h2.c"

#include "fakes.h"

#define LENGTH  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
#define ENDLESS "HTTP/1.1 200 OK\r\n\r\n"

enum { SECOND = 1000 };

static const struct fake_ask get;

static void passes(int64_t ms)
{
    fake_passes_ms(ms);
    fake_settle();
}

static void test_each_client_has_room_for_its_deadline(void)
{
    fake_begin((struct fake_setup){0});
    fake_options()->idle_timeout_ms = 60 * SECOND;
    for (int i = 0; i < FAKE_CLIENTS_MAX; i++)
        (void)fake_h2();
    fake_settle();
    ok_eq(fake_gauge(FAKE_CLIENTS_H2), FAKE_CLIENTS_MAX);
    fake_hangs_up(0);
    fake_settle();
    ok_eq(fake_gauge(FAKE_CLIENTS_H2), FAKE_CLIENTS_MAX - 1);
    fake_end();
}

/* --- bytes --- */

static void test_bytes_of_a_client_are_counted(void)
{
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    int64_t in = (int64_t)fake_counters()->bytes_in;
    int64_t sent = (int64_t)fake_counters()->bytes_out;
    ok(in > 24 && sent > 9);
    int32_t id = fake_asks(client, (struct fake_ask){.method = "POST", .open = true});
    fake_more_body(client, id, NULL, 100 * 1000, true);
    fake_settle();
    ok((int64_t)fake_counters()->bytes_in - in > 100 * 1000);
    fake_replies(fake_take(0), LENGTH "hello");
    ok((int64_t)fake_counters()->bytes_out - sent > 5);
    fake_end();
}

/* The kernel has no room: the session has the rest, until the socket takes it. */
static void test_a_client_that_does_not_read_is_sent_the_rest_later(void)
{
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    fake_asks(client, get);
    fake_settle();
    int far = fake_take(0);
    fake_silent(client, true);
    fake_answers(far, "HTTP/1.1 200 OK\r\nContent-Length: 4000000\r\n\r\n");
    size_t all = 0;
    for (int i = 0; i < 400 && all < 4000000; i++) {
        all += fake_floods(far, 4000000 - all);
        fake_settle();
    }
    ok_eq(all, 4000000);
    ok_eq(fake_gauge(FAKE_STREAMS), 1);
    ok(fake_gauge(FAKE_FILE) > 1000 * 1000);
    fake_silent(client, false);
    fake_settle();
    const char *frames = fake_frames(client);
    ok(strstr(frames, "H1=200,content-length=4000000 ") != NULL && strstr(frames, "D1+4000000 E1 ") != NULL);
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    fake_end();
}

static void test_a_client_that_takes_nothing_is_let_go(void)
{
    fake_begin((struct fake_setup){0});
    fake_options()->write_timeout_ms = 10 * SECOND;
    int client = fake_h2_settled();
    fake_asks(client, get);
    fake_settle();
    int far = fake_take(0);
    (void)fake_asked(far);
    fake_silent(client, true);
    fake_answers(far, ENDLESS);
    for (int i = 0; i < 100 && fake_gauge(FAKE_BLOCKED) == 0; i++) {
        (void)fake_floods(far, 64 * 1024);
        fake_settle();
    }
    ok_eq(fake_gauge(FAKE_BLOCKED), 1);
    passes(10 * SECOND - 1);
    ok_eq(fake_gauge(FAKE_CLIENTS_H2), 1);
    passes(1);
    ok_eq(fake_gauge(FAKE_CLIENTS_H2), 0);
    ok_eq(fake_counters()->timeouts[ORIBI_TIMEOUT_WRITE], 1);
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    (void)fake_asked(far);
    ok(fake_is_over(far));
    fake_end();
}

static void test_a_client_that_takes_some_is_kept(void)
{
    fake_begin((struct fake_setup){0});
    fake_options()->write_timeout_ms = 10 * SECOND;
    int client = fake_h2_settled();
    fake_asks(client, get);
    fake_settle();
    int far = fake_take(0);
    fake_silent(client, true);
    fake_answers(far, "HTTP/1.1 200 OK\r\nContent-Length: 16000000\r\n\r\n");
    for (size_t all = 0; all < 16000000;) {
        all += fake_floods(far, 16000000 - all);
        fake_settle();
    }
    for (int i = 0; i < 3; i++) {
        passes(9 * SECOND);
        ok(fake_hears_some(client, 4 * 1024 * 1024) > 0);
        fake_settle();
        ok_eq(fake_gauge(FAKE_CLIENTS_H2), 1);
        ok_eq(fake_gauge(FAKE_STREAMS), 1); /* the socket is full again */
    }
    fake_end();
}

/* Others have their turn beside a client that takes much. */
static void test_a_turn_sends_so_much_and_the_next_one_goes_on(void)
{
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    fake_window(client, 1000);
    fake_settle();
    int32_t id = fake_asks(client, get);
    fake_settle();
    int far = fake_take(0);
    fake_answers(far, "HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n");
    for (size_t all = 0; all < 2000000;) {
        all += fake_floods(far, 2000000 - all);
        fake_settle();
    }
    (void)fake_frames(client);
    fake_opens(client, id, 8 * 1024 * 1024);
    int64_t before = (int64_t)fake_counters()->bytes_out;
    fake_turn();
    int64_t sent = (int64_t)fake_counters()->bytes_out - before;
    ok(sent > 0 && sent <= 2 * SENDS_MAX * (SEND_BYTES + READ_BYTES)); /* once for the event, once for the turn */
    fake_settle();
    is_str(fake_frames(client), "D1+1999000 E1 ");
    fake_end();
}

/* --- ends --- */

static void test_a_client_hangs_up(void)
{
    for (int how = 0; how < 3; how++) {
        fake_begin((struct fake_setup){0});
        int client = how == 0 ? fake_h2() : fake_h2_settled();
        if (how == 2)
            fake_asks(client, get);
        fake_hangs_up(client);
        fake_settle();
        ok_eq(fake_gauge(FAKE_CLIENTS_H2), 0);
        ok_eq(fake_gauge(FAKE_RESTING_H2), 0);
        ok_eq(fake_gauge(FAKE_STREAMS), 0);
        fake_end();
    }
}

static void test_a_client_hangs_up_while_calls_run_on_without_their_streams(void)
{
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    int32_t id = fake_asks(client, get);
    fake_settle();
    int far = fake_take(0);
    fake_resets(client, id, 8);
    fake_settle();
    ok_eq(fake_gauge(FAKE_LEFT_BY_STREAMS), 1);
    fake_hangs_up(client);
    fake_settle();
    ok_eq(fake_gauge(FAKE_CLIENTS_H2), 0);
    ok_eq(fake_gauge(FAKE_ABANDONED), 1);
    ok_eq(fake_gauge(FAKE_LEFT_BY_STREAMS), 0);
    fake_far_closes(far);
    fake_settle();
    ok_eq(fake_gauge(FAKE_OUT), 0);
    fake_end();
}

static void test_a_connection_waits_when_each_of_its_requests_does(void)
{
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    fake_asks(client, get);
    fake_settle();
    ok_eq(fake_gauge(FAKE_WAITING_H2), 0);
    fake_asks(client, get);
    fake_settle();
    ok_eq(fake_gauge(FAKE_QUEUED), 1);
    ok_eq(fake_gauge(FAKE_WAITING_H2), 0);
    int other = fake_h2_settled();
    fake_asks(other, get);
    fake_settle();
    ok_eq(fake_gauge(FAKE_WAITING_H2), 1);
    fake_hangs_up(other);
    fake_settle();
    ok_eq(fake_gauge(FAKE_WAITING_H2), 0);
    fake_end();
}

/* An answer can still be read by a client that sends no more; but it cannot open a window. */
static void test_a_client_that_sends_no_more_is_let_go(void)
{
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    fake_asks(client, get);
    fake_settle();
    int far = fake_take(0);
    (void)fake_asked(far);
    fake_shuts(client);
    fake_settle();
    ok_eq(fake_gauge(FAKE_CLIENTS_H2), 0);
    ok(fake_is_over(far));
    fake_end();
}

static void test_an_error_ends_the_connection_with_a_word(void)
{
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    fake_asks(client, get);
    fake_settle();
    int far = fake_take(0);
    (void)fake_asked(far);
    (void)fake_logged();
    fake_sends_raw(client, "\0\0\4\10\0\0\0\0\0\0\0\0\0", 13); /* WINDOW_UPDATE of 0 */
    fake_settle();
    is_str(fake_frames(client), "G=1 ");
    ok(fake_is_ended(client));
    ok(strstr(fake_logged(), "frontend: ended a connection of 10.0.0.2: ") != NULL);
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    ok(fake_is_over(far));
    ok_eq(fake_gauge(FAKE_CLIENTS_H2), 1); /* what the client has sent before is read */
    fake_hangs_up(client);
    fake_settle();
    ok_eq(fake_gauge(FAKE_CLIENTS_H2), 0);
    fake_end();
}

static int lingering(void)
{
    int client = fake_h2_settled();
    fake_sends_raw(client, "\0\0\4\10\0\0\0\0\0\0\0\0\0", 13);
    fake_settle();
    ok_named(fake_is_ended(client) && fake_gauge(FAKE_CLIENTS_H2) == 1, "the client may still send");
    return client;
}

static void test_lingering_ends_with_silence(void)
{
    fake_begin((struct fake_setup){0});
    lingering();
    passes(ORIBI_LINGER_SILENCE_MS_MAX - 1);
    ok_eq(fake_gauge(FAKE_CLIENTS_H2), 1);
    passes(1);
    ok_eq(fake_gauge(FAKE_CLIENTS_H2), 0);
    fake_end();
}

static void test_lingering_ends_after_a_time_whatever_comes(void)
{
    fake_begin((struct fake_setup){0});
    int client = lingering();
    int64_t ms = 0;
    for (; fake_gauge(FAKE_CLIENTS_H2) && ms < 2 * ORIBI_LINGER_MS_MAX; ms += 500) {
        fake_sends_raw(client, "x", 1);
        passes(500);
    }
    ok(ms >= ORIBI_LINGER_MS_MAX && ms <= ORIBI_LINGER_MS_MAX + 500);
    fake_end();
}

static void test_lingering_ends_after_so_many_bytes(void)
{
    for (int over = 0; over < 2; over++) {
        static char bytes[ORIBI_LINGER_BYTES_MAX];
        fake_begin((struct fake_setup){0});
        int client = lingering();
        for (size_t left = (size_t)ORIBI_LINGER_BYTES_MAX - 1 + (size_t)over; left > 0;) {
            size_t n = left < 60000 ? left : 60000;
            fake_sends_raw(client, bytes, n);
            left -= n;
            fake_settle();
        }
        ok_eq(fake_gauge(FAKE_CLIENTS_H2), 1 - over);
        fake_end();
    }
}

/* --- rest --- */

static void test_a_connection_without_a_stream_rests(void)
{
    fake_begin((struct fake_setup){0});
    ok_eq(oribi__h2_rested_ms(fake_frontend()), -1);
    int first = fake_h2_settled();
    passes(300);
    int second = fake_h2_settled();
    passes(200);
    ok_eq(fake_gauge(FAKE_RESTING_H2), 2);
    ok_eq(oribi__h2_rested_ms(fake_frontend()), 500);
    fake_asks(first, get);
    fake_settle();
    ok_eq(fake_gauge(FAKE_RESTING_H2), 1);
    ok_eq(oribi__h2_rested_ms(fake_frontend()), 200);
    fake_replies(fake_take(0), LENGTH "hello");
    ok_eq(fake_gauge(FAKE_RESTING_H2), 2);
    ok_eq(oribi__h2_rested_ms(fake_frontend()), 200);
    fake_hangs_up(second);
    fake_settle();
    ok_eq(oribi__h2_rested_ms(fake_frontend()), 0);
    fake_end();
}

static void test_a_connection_that_rests_too_long_is_ended_without_a_loss(void)
{
    fake_begin((struct fake_setup){0});
    fake_options()->idle_timeout_ms = 10 * SECOND;
    int client = fake_h2_settled();
    passes(10 * SECOND - 1);
    is_str(fake_frames(client), "");
    passes(1);
    is_str(fake_frames(client), "G=0 ");
    ok_eq(fake_counters()->timeouts[ORIBI_TIMEOUT_IDLE], 1);
    fake_settle(); /* the client has answered the PING */
    passes(ORIBI_H2_GOAWAY_MS);
    fake_settle();
    ok(fake_is_ended(client));
    fake_end();
}

static void test_a_connection_with_a_stream_does_not_rest(void)
{
    fake_begin((struct fake_setup){0});
    fake_options()->idle_timeout_ms = 10 * SECOND;
    int client = fake_h2_settled();
    fake_asks(client, get);
    fake_settle();
    passes(60 * SECOND);
    is_str(fake_frames(client), "");
    ok_eq(fake_counters()->timeouts[ORIBI_TIMEOUT_IDLE], 0);
    fake_replies(fake_take(0), LENGTH "hello");
    is_str(fake_frames(client), "H1=200,content-length=5 D1+5 E1 ");
    fake_end();
}

static void test_a_connection_falls_asleep_and_wakes(void)
{
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    int64_t blocks = oribi_mem_blocks();
    passes(ASLEEP_AFTER_MS - 1);
    ok_eq(oribi_mem_blocks(), blocks);
    passes(1);
    ok(oribi_mem_blocks() < blocks);
    fake_asks(client, get);
    fake_settle();
    fake_replies(fake_take(0), LENGTH "hello");
    is_str(fake_frames(client), "H1=200,content-length=5 D1+5 E1 ");
    fake_end();
}

/* --- room for others --- */

static void test_the_one_that_has_rested_longest_makes_room(void)
{
    fake_begin((struct fake_setup){0});
    int first = fake_h2_settled();
    passes(10);
    int second = fake_h2_settled();
    passes(10);
    ok(oribi__h2_make_room(fake_frontend()));
    fake_settle();
    is_str(fake_frames(first), "G=0 ");
    ok(fake_is_ended(first) && !fake_is_ended(second));
    ok_eq(fake_gauge(FAKE_CLIENTS_H2), 1);
    fake_end();
}

static void test_one_whose_request_is_on_its_way_makes_no_room(void)
{
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    fake_asks(client, get);
    ok(!oribi__h2_make_room(fake_frontend()));
    fake_settle();
    ok_eq(fake_gauge(FAKE_OUT), 1);
    ok(!fake_is_ended(client));
    fake_end();
}

static void test_one_that_has_gone_makes_room(void)
{
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    fake_hangs_up(client);
    ok(oribi__h2_make_room(fake_frontend()));
    ok_eq(fake_gauge(FAKE_CLIENTS_H2), 0);
    fake_end();
}

static void test_one_that_lingers_makes_room(void)
{
    fake_begin((struct fake_setup){0});
    lingering();
    ok(oribi__h2_make_room(fake_frontend()));
    ok_eq(fake_gauge(FAKE_CLIENTS_H2), 0);
    fake_end();
}

/* --- drain --- */

static void test_a_drain_answers_what_has_begun_and_takes_nothing_new(void)
{
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    int resting = fake_h2_settled();
    fake_asks(client, get);
    fake_settle();
    int far = fake_take(0);
    fake_drains();
    fake_settle();
    is_str(fake_frames(client), "G=0 G=0 ");
    is_str(fake_frames(resting), "G=0 "); /* without a stream libnghttp2 does not answer the PING */
    ok(!fake_is_ended(resting) && !fake_is_ended(client));
    passes(ORIBI_H2_GOAWAY_MS - 1);
    ok(!fake_is_ended(resting));
    passes(1);
    ok(fake_is_ended(resting) && !fake_is_ended(client));
    fake_replies(far, LENGTH "hello");
    is_str(fake_frames(client), "H1=200,content-length=5 D1+5 E1 ");
    fake_settle();
    ok(fake_is_ended(client));
    fake_hangs_up(client);
    fake_hangs_up(resting);
    fake_settle();
    ok_eq(fake_gauge(FAKE_CLIENTS_H2), 0);
    fake_end();
}

static void test_a_client_that_comes_in_a_drain_is_told(void)
{
    fake_begin((struct fake_setup){0});
    fake_drains();
    int client = fake_h2();
    fake_settle();
    ok(strncmp(fake_frames(client), "G=0 ", 4) == 0);
    fake_end();
}

static void test_a_drain_leaves_alone_who_lingers(void)
{
    fake_begin((struct fake_setup){0});
    lingering();
    fake_drains();
    fake_settle();
    passes(ORIBI_LINGER_SILENCE_MS_MAX);
    ok_eq(fake_gauge(FAKE_CLIENTS_H2), 0);
    fake_end();
}

/* --- when to look again --- */

static void test_the_loop_waits_until_the_first_deadline(void)
{
    fake_begin((struct fake_setup){0});
    ok_eq(fake_wait_ms(), -1);
    int client = fake_h2();
    ok_eq(fake_wait_ms(), 0);
    fake_settle();
    ok_eq(fake_wait_ms(), ASLEEP_AFTER_MS);
    fake_passes_ms(100);
    ok_eq(fake_wait_ms(), ASLEEP_AFTER_MS - 100);
    atomic_store(&fake_slot(0)->state, ORIBI_SLOT_BUSY); /* an idle one would be looked for (untaken.c) */
    fake_asks(client, get);
    fake_settle();
    fake_passes_ms(ASLEEP_AFTER_MS);
    fake_settle();
    ok_eq(fake_wait_ms(), -1);
    fake_hangs_up(client);
    fake_settle();
    ok_eq(fake_wait_ms(), -1);
    fake_end();
}

int main(void)
{
    test_each_client_has_room_for_its_deadline();
    test_bytes_of_a_client_are_counted();
    test_a_client_that_does_not_read_is_sent_the_rest_later();
    test_a_client_that_takes_nothing_is_let_go();
    test_a_client_that_takes_some_is_kept();
    test_a_turn_sends_so_much_and_the_next_one_goes_on();
    test_a_client_hangs_up();
    test_a_client_hangs_up_while_calls_run_on_without_their_streams();
    test_a_connection_waits_when_each_of_its_requests_does();
    test_a_client_that_sends_no_more_is_let_go();
    test_an_error_ends_the_connection_with_a_word();
    test_lingering_ends_with_silence();
    test_lingering_ends_after_a_time_whatever_comes();
    test_lingering_ends_after_so_many_bytes();
    test_a_connection_without_a_stream_rests();
    test_a_connection_that_rests_too_long_is_ended_without_a_loss();
    test_a_connection_with_a_stream_does_not_rest();
    test_a_connection_falls_asleep_and_wakes();
    test_the_one_that_has_rested_longest_makes_room();
    test_one_whose_request_is_on_its_way_makes_no_room();
    test_one_that_has_gone_makes_room();
    test_one_that_lingers_makes_room();
    test_a_drain_answers_what_has_begun_and_takes_nothing_new();
    test_a_client_that_comes_in_a_drain_is_told();
    test_a_drain_leaves_alone_who_lingers();
    test_the_loop_waits_until_the_first_deadline();
    return done_testing();
}
