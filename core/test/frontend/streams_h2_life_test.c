/* Streams of HTTP/2 from their requests to their release, and the deadlines of their bodies. */
#include "frontend/streams_h2.c"

#include "fake_stream.h"
#include "fakes.h"

#define LENGTH "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"

enum { CANCEL = 8, SECOND = 1000 };

static const struct fake_ask get;
static const struct fake_ask upload = {.method = "POST", .open = true};

static void passes(int64_t ms)
{
    fake_passes_ms(ms);
    fake_settle();
}

/* --- life --- */

static void test_a_stream_lives_until_its_answer_has_left(void)
{
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    fake_window(client, 3);
    fake_settle();
    int32_t id = fake_asks(client, get);
    fake_settle();
    ok_eq(fake_gauge(FAKE_STREAMS), 1);
    fake_replies(fake_take(0), LENGTH "hello");
    ok_eq(fake_gauge(FAKE_OUT), 0);
    ok_eq(fake_gauge(FAKE_IDLE_CHANNELS), 1);
    ok_eq(fake_gauge(FAKE_STREAMS), 1);
    ok_eq(fake_gauge(FAKE_RESTING_H2), 0);
    fake_opens(client, id, 1);
    fake_settle();
    ok_eq(fake_gauge(FAKE_STREAMS), 1);
    fake_opens(client, id, 1);
    fake_settle();
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    ok_eq(fake_gauge(FAKE_RESTING_H2), 1);
    fake_end();
}

static void test_streams_end_in_any_order(void)
{
    for (int first = 0; first < 3; first++) {
        int far[3];
        fake_begin((struct fake_setup){.workers = 3});
        int client = fake_h2_settled();
        int32_t ids[3];
        for (int i = 0; i < 3; i++)
            ids[i] = fake_asks(client, get);
        fake_settle();
        for (uint32_t i = 0; i < 3; i++)
            far[i] = fake_take(i);
        for (int i = 0; i < 3; i++) {
            int which = (first + i) % 3;
            if (i == 1)
                fake_resets(client, ids[which], CANCEL);
            else
                fake_answers(far[which], LENGTH "hello");
            fake_settle();
            ok_eq(fake_gauge(FAKE_STREAMS), 2 - i);
        }
        ok_eq(fake_gauge(FAKE_RESTING_H2), 1);
        fake_end();
    }
}

static void test_streams_that_end_in_one_turn(void)
{
    int far[3];
    fake_begin((struct fake_setup){.workers = 3});
    int client = fake_h2_settled();
    for (int i = 0; i < 3; i++)
        fake_asks(client, get);
    fake_settle();
    for (uint32_t i = 0; i < 3; i++)
        far[i] = fake_take(i);
    for (int i = 0; i < 3; i++)
        fake_answers(far[i], LENGTH "hello");
    fake_settle();
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    ok_eq(fake_gauge(FAKE_MEMORY), 0);
    fake_end();
}

static void test_a_stream_ends_twice_as_once(void)
{
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    int32_t id = fake_asks(client, get);
    fake_settle();
    struct oribi__stream *stream = fake_stream(client, id);
    oribi__stream_let_go(stream); /* ends it */
    oribi__stream_ends(stream);
    oribi__stream_end_call(stream);
    ok_eq(fake_gauge(FAKE_OUT), 0);
    fake_settle();
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    fake_end();
}

static void test_a_connection_that_ends_takes_its_streams_along(void)
{
    int far;
    fake_begin((struct fake_setup){.workers = 2});
    int client = fake_h2_settled();
    fake_asks(client, get);
    fake_settle();
    far = fake_take(0);
    (void)fake_asked(far);
    fake_asks(client, (struct fake_ask){.method = "POST", .body = "x", .open = true});
    fake_asks(client, get);
    fake_asks(client, get);
    fake_settle();
    ok(fake_gauge(FAKE_MEMORY) > 0);
    ok_eq(fake_gauge(FAKE_STREAMS), 4);
    ok_eq(fake_gauge(FAKE_OUT), 2);
    ok_eq(fake_gauge(FAKE_QUEUED), 1);
    fake_hangs_up(client);
    fake_settle();
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    ok_eq(fake_gauge(FAKE_QUEUED), 0);
    ok_eq(fake_gauge(FAKE_ABANDONED), 1);
    ok_eq(fake_gauge(FAKE_OUT), 1);
    ok_eq(fake_gauge(FAKE_MEMORY), 0);
    ok(fake_is_over(far));
    fake_end();
}

static void test_streams_have_a_maximum(void)
{
    fake_begin((struct fake_setup){.streams_max = 2, .workers = 3});
    int client = fake_h2_settled();
    int32_t ids[3];
    for (int i = 0; i < 2; i++)
        ids[i] = fake_asks(client, get);
    fake_settle();
    ok_eq(fake_gauge(FAKE_STREAMS), 2);
    ids[2] = fake_asks(client, get); /* libnghttp2 keeps it until there is room */
    fake_settle();
    ok_eq(fake_gauge(FAKE_STREAMS), 2);
    fake_replies(fake_take(0), LENGTH "hello");
    ok_eq(fake_gauge(FAKE_STREAMS), 2);
    ok_eq(fake_gauge(FAKE_OUT), 2);
    ok(ids[2] > ids[1] && ids[1] > ids[0]);
    fake_end();
}

/* --- calls that run on --- */

static void test_a_stream_that_was_reset_counts_until_its_call_has_ended(void)
{
    fake_begin((struct fake_setup){.workers = 2});
    int client = fake_h2_settled();
    int32_t ids[2] = {fake_asks(client, get), fake_asks(client, get)};
    fake_settle();
    int far[2] = {fake_take(0), fake_take(1)};
    fake_resets(client, ids[0], CANCEL);
    fake_resets(client, ids[1], CANCEL);
    fake_settle();
    ok_eq(fake_left_of(client), 2);
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    ok_eq(fake_sessions_streams(client), 2);
    fake_far_closes(far[1]);
    fake_settle();
    ok_eq(fake_left_of(client), 1);
    ok_eq(fake_sessions_streams(client), 1);
    fake_far_closes(far[0]);
    fake_settle();
    ok_eq(fake_left_of(client), 0);
    ok_eq(fake_sessions_streams(client), 0);
    fake_end();
}

static void test_a_stream_that_no_worker_had_counts_no_longer(void)
{
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    int32_t id = fake_asks(client, get);
    fake_settle();
    ok_eq(fake_gauge(FAKE_OUT), 1);
    fake_resets(client, id, CANCEL);
    fake_settle();
    ok_eq(fake_left_of(client), 0);
    ok_eq(fake_sessions_streams(client), 0);
    ok_eq(fake_gauge(FAKE_OUT), 0);
    fake_end();
}

static void test_resets_that_run_on_have_a_maximum(void)
{
    int far = -1;
    fake_begin((struct fake_setup){.workers = 4, .left_max = 2});
    int client = fake_h2_settled();
    for (uint32_t i = 0; i < 2; i++) {
        int32_t id = fake_asks(client, get);
        fake_settle();
        far = fake_take(i);
        fake_resets(client, id, CANCEL);
        fake_settle();
        ok_eq(fake_left_of(client), i + 1);
    }
    is_str(fake_frames(client), "");
    fake_asks(client, get);
    fake_settle();
    is_str(fake_frames(client), "R5=7 "); /* REFUSED_STREAM */
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    ok_eq(fake_take(3), -1);
    fake_far_closes(far);
    fake_settle();
    fake_asks(client, get);
    fake_settle();
    ok_eq(fake_gauge(FAKE_STREAMS), 1);
    ok(fake_take(3) >= 0);
    fake_end();
}

/* --- deadlines --- */

static void test_a_body_has_to_go_on(void)
{
    fake_begin((struct fake_setup){0});
    fake_options()->body_timeout_ms = 10 * SECOND;
    fake_options()->body_rate_min = 0;
    int client = fake_h2_settled();
    int32_t id = fake_asks(client, upload);
    fake_settle();
    passes(9 * SECOND);
    fake_more_body(client, id, "x", 1, false);
    fake_settle();
    passes(10 * SECOND - 1);
    is_str(fake_frames(client), "");
    passes(1);
    const char *frames = fake_frames(client);
    ok(strncmp(frames, "H1=408,", 7) == 0);
    ok_eq(fake_counters()->refusals[ORIBI_REFUSAL_BODY_TIMEOUT], 1);
    ok_eq(fake_gauge(FAKE_OUT), 0);
    fake_end();
}

static void test_a_body_has_to_be_as_fast_as_the_minimum_rate(void)
{
    for (int late = 0; late < 2; late++) {
        fake_begin((struct fake_setup){0});
        fake_options()->body_timeout_ms = 10 * SECOND;
        fake_options()->body_rate_min = 100;
        int client = fake_h2_settled();
        int32_t id = fake_asks(client, upload);
        fake_settle();
        for (int i = 0; i < 12; i++) {
            fake_more_body(client, id, NULL, i == 0 ? 0 : i == 11 && late ? 99 : 100, false);
            fake_settle();
            if (i < 11)
                passes(SECOND);
        }
        const char *frames = fake_frames(client);
        ok_named(late ? strncmp(frames, "H1=408,", 7) == 0 : !*frames, "%d bytes in 11 s", 1100 - late);
        ok_eq(fake_counters()->refusals[ORIBI_REFUSAL_BODY_RATE], late);
        fake_end();
    }
}

static void test_a_whole_body_has_no_deadline(void)
{
    fake_begin((struct fake_setup){0});
    fake_options()->body_timeout_ms = 10 * SECOND;
    int client = fake_h2_settled();
    int32_t id = fake_asks(client, upload);
    fake_settle();
    ok_eq(oribi__streams_deadline(fake_stream(client, id)->client, fake_now_us() / 1000),
          fake_now_us() / 1000 + 10 * SECOND);
    fake_more_body(client, id, "x", 1, true);
    fake_settle();
    ok_eq(oribi__streams_deadline(fake_stream(client, id)->client, fake_now_us() / 1000), INT64_MAX);
    passes(60 * SECOND);
    is_str(fake_frames(client), "");
    fake_replies(fake_take(0), LENGTH "hello");
    is_str(fake_frames(client), "H1=200,content-length=5 D1+5 E1 ");
    fake_end();
}

static void test_the_first_deadline_of_a_connection_counts(void)
{
    fake_begin((struct fake_setup){0});
    fake_options()->body_timeout_ms = 10 * SECOND;
    fake_options()->body_rate_min = 0;
    int client = fake_h2_settled();
    int32_t first = fake_asks(client, upload);
    fake_settle();
    passes(3 * SECOND);
    fake_asks(client, upload);
    fake_settle();
    int64_t now_ms = fake_now_us() / 1000;
    ok_eq(oribi__streams_deadline(fake_stream(client, first)->client, now_ms), now_ms + 7 * SECOND);
    passes(7 * SECOND);
    const char *frames = fake_frames(client);
    ok(strncmp(frames, "H1=408,", 7) == 0 && !strstr(frames, "H3="));
    passes(3 * SECOND);
    ok(strstr(fake_frames(client), " H3=408,") != NULL);
    fake_end();
}

static void test_the_first_deadline_may_be_the_newest_stream_s(void)
{
    fake_begin((struct fake_setup){0});
    fake_options()->body_timeout_ms = 10 * SECOND;
    fake_options()->body_rate_min = 0;
    int client = fake_h2_settled();
    int32_t first = fake_asks(client, upload);
    fake_asks(client, upload);
    fake_settle();
    passes(3 * SECOND);
    fake_more_body(client, first, "x", 1, false);
    fake_settle();
    int64_t now_ms = fake_now_us() / 1000;
    ok_eq(oribi__streams_deadline(fake_client_of(client), now_ms), now_ms + 7 * SECOND);
    fake_end();
}

static void test_a_timeout_may_be_switched_off(void)
{
    fake_begin((struct fake_setup){0});
    fake_options()->body_timeout_ms = 0;
    int client = fake_h2_settled();
    int32_t id = fake_asks(client, upload);
    fake_settle();
    ok_eq(oribi__streams_deadline(fake_stream(client, id)->client, fake_now_us() / 1000), INT64_MAX);
    passes(3600 * SECOND);
    is_str(fake_frames(client), "");
    fake_end();
}

int main(void)
{
    test_a_stream_lives_until_its_answer_has_left();
    test_streams_end_in_any_order();
    test_streams_that_end_in_one_turn();
    test_a_stream_ends_twice_as_once();
    test_a_connection_that_ends_takes_its_streams_along();
    test_streams_have_a_maximum();
    test_a_stream_that_was_reset_counts_until_its_call_has_ended();
    test_a_stream_that_no_worker_had_counts_no_longer();
    test_resets_that_run_on_have_a_maximum();
    test_a_body_has_to_go_on();
    test_a_body_has_to_be_as_fast_as_the_minimum_rate();
    test_a_whole_body_has_no_deadline();
    test_the_first_deadline_of_a_connection_counts();
    test_the_first_deadline_may_be_the_newest_stream_s();
    test_a_timeout_may_be_switched_off();
    return done_testing();
}
