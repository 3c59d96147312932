/* Streams of HTTP/2: their requests on their way to workers, and the answers, resets and failures that come back. */
#include "frontend/streams_h2.c"

#include "fake_stream.h"
#include "fakes.h"

#define LENGTH  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define ENDLESS "HTTP/1.1 200 OK\r\n\r\n"

enum { CANCEL = 8, INTERNAL_ERROR = 2 };

static const struct fake_ask get;

/* A stream's request, which worker 0 has. */
static int32_t ask(int client, struct fake_ask ask, int *far)
{
    int32_t id = fake_asks(client, ask);
    fake_settle();
    *far = fake_take(0);
    return id;
}

/* --- requests --- */

static void test_a_request_and_its_answer(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    ask(client, (struct fake_ask){.path = "/x?y"}, &far);
    is_str(fake_asked(far), "GET /x?y HTTP/1.1\r\nhost: a\r\n\r\n");
    ok_eq(fake_gauge(FAKE_STREAMS), 1);
    ok_eq(fake_gauge(FAKE_RESTING_H2), 0);
    fake_replies(far, "HTTP/1.1 201 Created\r\nX: y\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello");
    is_str(fake_frames(client), "H1=201,x=y,content-length=5 D1+5 E1 ");
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    ok_eq(fake_gauge(FAKE_RESTING_H2), 1);
    ok_eq(fake_counters()->requests[1], 1);
    ok_eq(fake_counters()->reset_count, 0);
    fake_end();
}

static void test_requests_of_a_connection_go_out_together(void)
{
    fake_begin((struct fake_setup){.workers = 3});
    int client = fake_h2_settled();
    for (int i = 0; i < 3; i++)
        fake_asks(client, get);
    fake_settle();
    ok_eq(fake_gauge(FAKE_OUT), 3);
    int far[3] = {fake_take(0), fake_take(1), fake_take(2)};
    fake_replies(far[2], LENGTH "third");
    fake_replies(far[0], LENGTH "first");
    is_str(fake_frames(client), "H5=200,content-length=5 D5+5 E5 H1=200,content-length=5 D1+5 E1 ");
    fake_end();
}

static void test_a_body_makes_the_request_complete(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    int32_t id = fake_asks(client, (struct fake_ask){.method = "POST", .body = "he", .open = true});
    fake_settle();
    ok_eq(fake_gauge(FAKE_OUT), 0);
    ok_eq(fake_gauge(FAKE_STREAMS), 1);
    fake_more_body(client, id, "llo", 3, true);
    fake_settle();
    far = fake_take(0);
    is_str(fake_asked(far), "POST / HTTP/1.1\r\nhost: a\r\nContent-Length: 5\r\n\r\nhello");
    fake_end();
}

static void test_an_empty_body_is_announced_and_none_is_not(void)
{
    int far;
    fake_begin((struct fake_setup){.workers = 2});
    int client = fake_h2_settled();
    int32_t id = fake_asks(client, (struct fake_ask){.method = "POST", .open = true});
    fake_settle();
    fake_more_body(client, id, NULL, 0, true);
    fake_settle();
    is_str(fake_asked(fake_take(0)), "POST / HTTP/1.1\r\nhost: a\r\nContent-Length: 0\r\n\r\n");
    ask(client, (struct fake_ask){.method = "POST"}, &far);
    is_str(fake_asked(far), "POST / HTTP/1.1\r\nhost: a\r\n\r\n");
    fake_end();
}

static void test_trailers_make_a_body_chunked(void)
{
    int far;
    fake_begin((struct fake_setup){.workers = 2});
    int client = fake_h2_settled();
    ask(client, (struct fake_ask){.method = "POST", .body = "abc", .trailer = "y"}, &far);
    is_str(fake_asked(far),
           "POST / HTTP/1.1\r\nhost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx: y\r\n\r\n");
    ask(client, (struct fake_ask){.method = "POST", .trailer = "y"}, &far);
    is_str(fake_asked(far), "POST / HTTP/1.1\r\nhost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nx: y\r\n\r\n");
    fake_end();
}

static void test_trailers_stand_behind_a_body_in_a_file(void)
{
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    int32_t id = fake_asks(client, (struct fake_ask){.method = "POST", .open = true, .trailer = "y"});
    fake_more_body(client, id, NULL, 200 * 1000, true);
    fake_settle();
    int far = fake_take(0);
    is_str(fake_asked(far), "POST / HTTP/1.1\r\nhost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nx: y\r\n\r\n");
    ok(fake_asked_body(far) && fake_asked_len() == 200 * 1000);
    fake_end();
}

static void test_bodies_travel_whatever_holds_them(void)
{
    static const size_t sizes[] = {48 * 1024, 48 * 1024 + 1, 128 * 1024, 128 * 1024 + 1, 500 * 1000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        fake_begin((struct fake_setup){0});
        int client = fake_h2_settled();
        int32_t id = fake_asks(client, (struct fake_ask){.method = "POST", .open = true});
        fake_more_body(client, id, NULL, sizes[i], true);
        fake_settle();
        int far = fake_take(0);
        size_t n = strlen(strstr(fake_asked(far), "\r\n\r\n") + 4);
        if (fake_asked_body(far))
            n += fake_asked_len();
        ok_eq(n, sizes[i]);
        ok_named((fake_gauge(FAKE_FILE) > 0) == (sizes[i] > 128 * 1024), "a body of %zu is in a file or not", sizes[i]);
        fake_replies(far, LENGTH "hello");
        is_str(fake_frames(client), "H1=200,content-length=5 D1+5 E1 ");
        ok_eq(fake_gauge(FAKE_FILE), 0);
        ok_eq(fake_gauge(FAKE_MEMORY), 0);
        fake_end();
    }
}

static void test_a_client_that_expects_100_gets_it_at_once(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    int32_t id =
        fake_asks(client, (struct fake_ask){.method = "POST", .open = true, .expects = "100-continue", .length = "1"});
    fake_settle();
    is_str(fake_frames(client), "H1=100 ");
    fake_more_body(client, id, "x", 1, true);
    fake_settle();
    far = fake_take(0);
    fake_replies(far, "HTTP/1.1 100 Continue\r\n\r\n" LENGTH "hello"); /* which is not passed on */
    is_str(fake_frames(client), "H1=200,content-length=5 D1+5 E1 ");
    fake_end();
}

static void test_a_connection_waits_when_each_of_its_requests_does(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int busy = fake_h2_settled();
    ask(busy, get, &far);
    int client = fake_h2_settled();
    int32_t id = fake_asks(client, (struct fake_ask){.method = "POST", .open = true});
    int32_t second = fake_asks(client, get);
    fake_settle();
    ok_eq(fake_gauge(FAKE_QUEUED), 1);
    ok_eq(fake_gauge(FAKE_WAITING_H2), 0);
    fake_more_body(client, id, "x", 1, true);
    fake_settle();
    ok_eq(fake_gauge(FAKE_QUEUED), 2);
    ok_eq(fake_gauge(FAKE_WAITING_H2), 1);
    fake_resets(client, second, CANCEL);
    fake_settle();
    ok_eq(fake_gauge(FAKE_WAITING_H2), 1);
    (void)fake_asked(far);
    fake_passes_ms(1);
    fake_replies(far, LENGTH "hello");
    ok_eq(fake_gauge(FAKE_WAITING_H2), 0);
    fake_end();
}

/* --- answers --- */

struct answer {
    const char *method;
    const char *answer;
    const char *frames;
};

static const struct answer answers[] = {
    {NULL, LENGTH "hello", "H1=200,content-length=5 D1+5 E1 "},
    {NULL, CHUNKED "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", "H1=200 D1+5 E1 "},
    {NULL, CHUNKED "5\r\nhello\r\n0\r\nX: y\r\n\r\n", "H1=200 D1+5 T1,x=y E1 "},
    {NULL, CHUNKED "0\r\n\r\n", "H1=200 E1 "},
    {NULL, CHUNKED "0\r\nX: y\r\n\r\n", "H1=200 T1,x=y E1 "},
    {NULL, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "H1=200,content-length=0 E1 "},
    {NULL, "HTTP/1.1 204 No Content\r\n\r\n", "H1=204 E1 "},
    {NULL, "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n", "H1=304,etag=\"a\" E1 "},
    {"HEAD", LENGTH, "H1=200,content-length=5 E1 "},
    {NULL, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" LENGTH "hello",
     "H1=103,link=</a> H1=200,content-length=5 D1+5 E1 "},
    {NULL, "HTTP/1.1 200 OK\r\nConnection: x\r\nX: y\r\nKeep-Alive: z\r\nContent-Length: 1\r\n\r\na",
     "H1=200,content-length=1 D1+1 E1 "},
};

static void test_answers_as_clients_read_them(void)
{
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        int far;
        fake_begin((struct fake_setup){0});
        int client = fake_h2_settled();
        ask(client, (struct fake_ask){.method = answers[i].method}, &far);
        fake_replies(far, answers[i].answer);
        is_str(fake_frames(client), answers[i].frames);
        ok_eq(fake_gauge(FAKE_STREAMS), 0);
        ok_eq(fake_gauge(FAKE_MEMORY), 0);
        fake_end();
    }
}

static void test_an_answer_that_lasts_until_the_worker_closes(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    ask(client, get, &far);
    fake_replies(far, ENDLESS "he");
    is_str(fake_frames(client), "H1=200 D1+2 ");
    fake_replies(far, "llo");
    is_str(fake_frames(client), "D1+3 ");
    fake_far_closes(far);
    fake_settle();
    is_str(fake_frames(client), "E1 ");
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    fake_end();
}

/* --- failures --- */

static void test_a_failure_before_the_answer_has_an_answer(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    ask(client, (struct fake_ask){.method = "POST"}, &far);
    fake_far_dies(far);
    fake_settle();
    is_str(fake_frames(client), "H1=502,content-type=text/plain,content-length=16 D1+16 E1 ");
    ok_eq(fake_counters()->uncalled_count, 1);
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    ok_eq(fake_counters()->reset_count, 0);
    fake_end();
}

static void test_a_full_queue_asks_to_come_again(void)
{
    fake_begin((struct fake_setup){.queue_max = 1});
    int client = fake_h2_settled();
    for (int i = 0; i < 3; i++) { /* the queue is full before anything is out */
        fake_asks(client, get);
    }
    fake_asks(client, (struct fake_ask){.method = "HEAD"});
    fake_settle();
    is_str(fake_frames(client), "H5=503,content-type=text/plain,content-length=24,retry-after=1 "
                                "H7=503,content-type=text/plain,content-length=24,retry-after=1 E7 D5+24 E5 ");
    ok_eq(fake_counters()->refusals[ORIBI_REFUSAL_QUEUE], 2);
    ok_eq(fake_gauge(FAKE_STREAMS), 2);
    fake_end();
}

static void test_a_failure_within_the_answer_is_a_reset(void)
{
    static const struct {
        const char *begun;
        const char *frames;
    } cases[] = {{LENGTH "he", "H1=200,content-length=5 D1+2 R1=2 "}, {CHUNKED, "H1=200 R1=2 "}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int far;
        fake_begin((struct fake_setup){.workers = 2});
        int client = fake_h2_settled();
        ask(client, get, &far);
        fake_replies(far, cases[i].begun);
        fake_far_dies(far);
        fake_settle();
        is_str(fake_frames(client), cases[i].frames);
        ok_eq(fake_counters()->reset_count, 1);
        ok_eq(fake_gauge(FAKE_STREAMS), 0);
        fake_asks(client, get); /* the connection goes on */
        fake_settle();
        far = fake_take(1);
        fake_replies(far, LENGTH "again");
        is_str(fake_frames(client), "H3=200,content-length=5 D3+5 E3 ");
        fake_end();
    }
}

static void test_an_answer_that_cannot_be_passed_on_fails(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    ask(client, get, &far);
    fake_replies(far, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nx: a\x01\r\n\r\nhello");
    is_str(fake_frames(client), "H1=502,content-type=text/plain,content-length=16 D1+16 E1 ");
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    fake_end();
}

/* Its fields pass the reader of heads, and not HTTP/2's. */
static void test_an_answer_whose_fields_cannot_be_passed_on_fails(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    int32_t id = ask(client, get, &far);
    struct oribi__upstream_request *call = fake_stream(client, id)->call;
    struct oribi_header header = {.name = "x", .value = "a\nb", .name_len = 1, .value_len = 3};
    struct oribi_answer answer = {.status = 200, .count = 1, .headers = &header, .content_length = -1};
    call->begun = true;
    begin(call, &answer, ORIBI_SLICE("hello"), false);
    fake_settle();
    is_str(fake_frames(client), "H1=502,content-type=text/plain,content-length=16 D1+16 E1 ");
    ok_eq(fake_counters()->uncalled_count, 1);
    ok_eq(fake_counters()->reset_count, 0);
    fake_end();
}

static void test_a_request_that_is_none_is_reset_or_refused(void)
{
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    (void)fake_logged();
    fake_asks(client, (struct fake_ask){.method = "G(T"});
    fake_settle();
    is_str(fake_frames(client), "R1=1 ");
    ok(strstr(fake_logged(), "10.0.0.2") != NULL);
    ok_eq(fake_gauge(FAKE_OUT), 0);
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    fake_end();
}

static void test_a_body_over_its_maximum_is_refused(void)
{
    for (int over = 0; over < 2; over++) {
        fake_begin((struct fake_setup){0});
        fake_body_max(1000);
        int client = fake_h2_settled();
        int32_t id = fake_asks(client, (struct fake_ask){.method = "POST", .open = true});
        fake_more_body(client, id, NULL, (size_t)(1000 + over), true);
        fake_settle();
        ok_eq(fake_gauge(FAKE_OUT), 1 - over);
        const char *frames = fake_frames(client);
        ok_named(over ? strncmp(frames, "H1=413,", 7) == 0 : !*frames, "a body of %d: %s", 1000 + over, frames);
        ok_eq(fake_counters()->status_class[4], over);
        fake_end();
    }
}

static void test_a_body_that_no_file_has_room_for_is_refused(void)
{
    for (int over = 0; over < 2; over++) {
        fake_begin((struct fake_setup){.file_max = 200 * 1000});
        int client = fake_h2_settled();
        int32_t id = fake_asks(client, (struct fake_ask){.method = "POST", .open = true});
        fake_more_body(client, id, NULL, (size_t)(200 * 1000 + over), true);
        fake_settle();
        const char *frames = fake_frames(client);
        ok_eq(fake_gauge(FAKE_OUT), 1 - over);
        ok_named(over ? strncmp(frames, "H1=503,", 7) == 0 : !*frames, "a body of %d: %s", 200 * 1000 + over, frames);
        ok_eq(fake_counters()->refusals[ORIBI_REFUSAL_BUFFERS_FILE], over);
        if (over)
            ok_eq(fake_gauge(FAKE_FILE), 0);
        fake_end();
    }
}

static void test_a_body_beyond_memory_goes_to_a_file(void)
{
    fake_begin((struct fake_setup){.memory_max = 10 * 1000});
    int client = fake_h2_settled();
    int32_t id = fake_asks(client, (struct fake_ask){.method = "POST", .open = true});
    fake_more_body(client, id, NULL, 40 * 1000, true);
    fake_settle();
    int far = fake_take(0);
    ok(fake_asked_body(far) && fake_asked_len() == 40 * 1000);
    ok_eq(fake_gauge(FAKE_FILE), 40 * 1000);
    fake_end();
}

/* --- resets of the client --- */

static void test_a_client_resets_a_stream_before_its_body_is_whole(void)
{
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    int32_t id = fake_asks(client, (struct fake_ask){.method = "POST", .body = "x", .open = true});
    fake_settle();
    fake_resets(client, id, CANCEL);
    fake_settle();
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    ok_eq(fake_gauge(FAKE_MEMORY), 0);
    ok_eq(fake_counters()->reset_count, 1);
    ok_eq(fake_counters()->gone_count, 0);
    fake_end();
}

static void test_a_client_resets_a_stream_that_waits(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    ask(client, get, &far);
    int32_t id = fake_asks(client, get);
    fake_settle();
    ok_eq(fake_gauge(FAKE_QUEUED), 1);
    fake_resets(client, id, CANCEL);
    fake_settle();
    ok_eq(fake_gauge(FAKE_QUEUED), 0);
    ok_eq(fake_gauge(FAKE_STREAMS), 1);
    ok_eq(fake_counters()->gone_count, 1);
    fake_end();
}

static void test_a_client_resets_a_stream_that_a_worker_has(void)
{
    static const char *const begun[] = {"", "HTTP/1.1 2", LENGTH, LENGTH "he", CHUNKED "2\r\nhe\r\n"};
    for (size_t i = 0; i < sizeof(begun) / sizeof(begun[0]); i++) {
        int far;
        fake_begin((struct fake_setup){0});
        int client = fake_h2_settled();
        int32_t id = ask(client, get, &far);
        (void)fake_asked(far);
        fake_replies(far, begun[i]);
        fake_resets(client, id, CANCEL);
        fake_settle();
        ok_named(fake_is_over(far), "the worker sees that its client has gone, after %zu bytes", strlen(begun[i]));
        ok_eq(fake_gauge(FAKE_STREAMS), 0);
        ok_eq(fake_gauge(FAKE_ABANDONED), 1);
        ok_eq(fake_left_of(client), 1);
        ok_eq(fake_counters()->gone_count, 0);
        fake_far_closes(far);
        fake_settle();
        ok_eq(fake_gauge(FAKE_OUT), 0);
        ok_eq(fake_left_of(client), 0);
        fake_end();
    }
}

static void test_a_client_resets_a_stream_that_is_answered(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    fake_window(client, 3);
    fake_settle();
    int32_t id = ask(client, get, &far);
    fake_replies(far, LENGTH "hello");
    is_str(fake_frames(client), "H1=200,content-length=5 D1+3 ");
    ok_eq(fake_gauge(FAKE_STREAMS), 1);
    ok_eq(fake_gauge(FAKE_OUT), 0);
    fake_resets(client, id, CANCEL);
    fake_settle();
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    ok_eq(fake_gauge(FAKE_MEMORY), 0);
    ok_eq(fake_counters()->reset_count, 1);
    fake_end();
}

int main(void)
{
    test_a_request_and_its_answer();
    test_requests_of_a_connection_go_out_together();
    test_a_body_makes_the_request_complete();
    test_an_empty_body_is_announced_and_none_is_not();
    test_trailers_make_a_body_chunked();
    test_trailers_stand_behind_a_body_in_a_file();
    test_bodies_travel_whatever_holds_them();
    test_a_client_that_expects_100_gets_it_at_once();
    test_a_connection_waits_when_each_of_its_requests_does();
    test_answers_as_clients_read_them();
    test_an_answer_that_lasts_until_the_worker_closes();
    test_a_failure_before_the_answer_has_an_answer();
    test_a_full_queue_asks_to_come_again();
    test_a_failure_within_the_answer_is_a_reset();
    test_an_answer_that_cannot_be_passed_on_fails();
    test_an_answer_whose_fields_cannot_be_passed_on_fails();
    test_a_request_that_is_none_is_reset_or_refused();
    test_a_body_over_its_maximum_is_refused();
    test_a_body_that_no_file_has_room_for_is_refused();
    test_a_body_beyond_memory_goes_to_a_file();
    test_a_client_resets_a_stream_before_its_body_is_whole();
    test_a_client_resets_a_stream_that_waits();
    test_a_client_resets_a_stream_that_a_worker_has();
    test_a_client_resets_a_stream_that_is_answered();
    return done_testing();
}
