/* Clients of HTTP/1.1: their requests on their way to workers, answers in each framing, and deaths at either end. */
#include "frontend/clients_h1.c"

#include "fakes.h"

#define GET      "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define GET_10   "GET / HTTP/1.0\r\n\r\n"
#define LENGTH   "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
#define CHUNKED  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define ENDLESS  "HTTP/1.1 200 OK\r\n\r\n"
#define SWITCHES "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"
#define UPGRADES "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"

enum { BIG = 8 * 1024 * 1024 };

/* The request of a new client, which worker 0 has. */
static int ask(const char *request, int *far)
{
    int client = fake_h1();
    fake_says(client, request);
    fake_settle();
    *far = fake_take(0);
    return client;
}

/* --- requests --- */

static void test_a_request_and_its_answer(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = ask("GET /x?y HTTP/1.1\r\nHost: a\r\nAccept: b\r\nConnection: keep-alive\r\n\r\n", &far);
    is_str(fake_asked(far), "GET /x?y HTTP/1.1\r\nHost: a\r\nAccept: b\r\n\r\n");
    fake_replies(far, "HTTP/1.1 201 Created\r\nX: y\r\nContent-Length: 5\r\n\r\nhello");
    is_str(fake_hears(client), "HTTP/1.1 201 Created\r\nX: y\r\nContent-Length: 5\r\n\r\nhello");
    ok(!fake_is_ended(client));
    ok_eq(fake_counters()->requests[0], 1);
    ok_eq(fake_gauge(FAKE_CONNS_H1), 1);
    fake_end();
}

static void test_bodies_travel_whatever_holds_them(void)
{
    static const size_t sizes[] = {1,          2000,           40 * 1024, 48 * 1024, 48 * 1024 + 1,
                                   128 * 1024, 128 * 1024 + 1, 500 * 1000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char head[128];
        fake_begin((struct fake_setup){0});
        int client = fake_h1();
        (void)snprintf(head, sizeof(head), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", sizes[i]);
        fake_says(client, head);
        fake_says_bytes(client, sizes[i]);
        fake_settle();
        int far = fake_take(0);
        const char *text = fake_asked(far);
        size_t n = strlen(strstr(text, "\r\n\r\n") + 4);
        ok_named(strncmp(text, head, strlen(head)) == 0, "head of a body of %zu", sizes[i]);
        if (fake_asked_body(far))
            n += fake_asked_len();
        ok_eq(n, sizes[i]);
        fake_replies(far, LENGTH "hello");
        ok(strstr(fake_hears(client), "\r\n\r\nhello") != NULL);
        fake_end();
    }
}

static void test_a_chunked_body_has_a_length_or_its_trailers(void)
{
    int far;
    fake_begin((struct fake_setup){.workers = 2});
    (void)ask("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", &far);
    is_str(fake_asked(far), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    (void)ask("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n0\r\nX: y\r\n\r\n", &far);
    is_str(strstr(fake_asked(far), "\r\n\r\n"), "\r\n\r\n2\r\nhe\r\n0\r\nX: y\r\n\r\n");
    fake_end();
}

static void test_a_chunked_body_of_nothing_has_its_trailers(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    (void)ask("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n", &far);
    is_str(strstr(fake_asked(far), "\r\n\r\n"), "\r\n\r\n0\r\nX: y\r\n\r\n");
    fake_end();
}

static void test_requests_of_a_connection_go_out_one_after_the_other(void)
{
    int far;
    fake_begin((struct fake_setup){.workers = 2});
    int client = ask("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n", &far);
    is_str(fake_asked(far), "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n");
    ok_eq(fake_waiting(), 0);
    fake_replies(far, LENGTH "hello");
    is_str(fake_asked(far), "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
    fake_replies(far, LENGTH "again");
    is_str(fake_hears(client), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
                               "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nagain");
    fake_end();
}

static void test_connections_whose_requests_wait_are_counted(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    (void)ask(GET, &far);
    ok_eq(fake_gauge(FAKE_WAITING_H1), 0);
    int second = fake_h1();
    fake_says(second, GET);
    int third = fake_h1();
    fake_says(third, GET);
    fake_settle();
    ok_eq(fake_gauge(FAKE_WAITING_H1), 2);
    fake_hangs_up(second);
    fake_settle();
    ok_eq(fake_gauge(FAKE_WAITING_H1), 1);
    (void)fake_asked(far);
    fake_passes_ms(1);
    fake_replies(far, LENGTH "hello");
    ok_eq(fake_gauge(FAKE_WAITING_H1), 0);
    fake_end();
}

static void test_a_refused_request_is_counted_and_asks_no_worker(void)
{
    fake_begin((struct fake_setup){0});
    (void)fake_logged();
    int client = fake_h1();
    fake_says(client, "GET / HTTP/1.1\r\nA b: c\r\n\r\n");
    fake_settle();
    ok(strncmp(fake_hears(client), "HTTP/1.1 400 Bad Request\r\n", 26) == 0);
    ok_eq(fake_waiting(), 0);
    ok_eq(fake_counters()->status_class[4], 1);
    ok_eq(fake_counters()->requests[0], 0);
    ok(strstr(fake_logged(), "10.0.0.1") != NULL);
    fake_end();
}

/* --- answers --- */

struct answer {
    const char *request;
    const char *answer; /* the worker's */
    const char *heard;
    bool ends; /* the connection, with it */
};

static const struct answer answers[] = {
    {GET, LENGTH "hello", LENGTH "hello", false},
    {GET, CHUNKED "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", CHUNKED "5\r\nhello\r\n0\r\n\r\n", false},
    {GET, CHUNKED "0\r\n\r\n", CHUNKED "0\r\n\r\n", false},
    {GET, CHUNKED "2\r\nhe\r\n0\r\nX: y\r\n\r\n", CHUNKED "2\r\nhe\r\n0\r\nX: y\r\n\r\n", false},
    {GET, CHUNKED "0\r\nX: y\r\n\r\n", CHUNKED "0\r\nX: y\r\n\r\n", false},
    {GET, "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n", false},
    {GET, "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n",
     false},
    {GET, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
     "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", true},
    {GET, "HTTP/1.1 200 OK\r\nConnection: x, keep-alive\r\nContent-Length: 2\r\n\r\nok",
     "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false},
    {GET, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" LENGTH "hello",
     "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" LENGTH "hello", false},
    {GET, "HTTP/1.1 100 Continue\r\n\r\n" LENGTH "hello", LENGTH "hello", false},
    {"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", LENGTH, LENGTH, false},
    {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", LENGTH "hello",
     "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", true},
    {GET_10, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" LENGTH "hello",
     "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", true},
    {GET_10, CHUNKED "5\r\nhello\r\n0\r\nX: y\r\n\r\n", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello", true},
};

static void test_answers_as_clients_read_them(void)
{
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        int far;
        fake_begin((struct fake_setup){0});
        int client = ask(answers[i].request, &far);
        fake_replies(far, answers[i].answer);
        is_str(fake_hears(client), answers[i].heard);
        ok_named(fake_is_ended(client) == answers[i].ends, "answer %zu ends the connection or not", i);
        fake_end();
    }
}

/* Short pieces are copied behind the head, longer ones are sent from where they lie. */
static void test_a_body_follows_its_head_whatever_its_length(void)
{
    static const int sizes[] = {1, JOINED_BYTES - 1, JOINED_BYTES, JOINED_BYTES + 1, 20000};
    static const char *const frames[][3] = {{"Content-Length: %d\r\n\r\n", "", ""},
                                            {"Transfer-Encoding: chunked\r\n\r\n", "%x\r\n", "\r\n0\r\nX: y\r\n\r\n"}};
    for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
        const char *const *frame = frames[i % 2];
        int size = sizes[i / 2];
        int far;
        char answer[20000 + 128];
        int n = snprintf(answer, sizeof(answer), "HTTP/1.1 200 OK\r\n");
        n += snprintf(answer + n, sizeof(answer) - (size_t)n, frame[0], size);
        n += snprintf(answer + n, sizeof(answer) - (size_t)n, frame[1], size);
        for (int k = 0; k < size; k++)
            answer[n++] = (char)('a' + k % 26);
        (void)snprintf(answer + n, sizeof(answer) - (size_t)n, "%s", frame[2]);
        fake_begin((struct fake_setup){0});
        int client = ask(GET, &far);
        fake_replies(far, answer);
        ok_named(strcmp(fake_hears(client), answer) == 0, "a body of %d after %.14s", size, frame[0]);
        fake_end();
    }
}

/* A worker's answer that comes byte by byte is the same, but for the cut of its chunks. */
static void test_a_body_is_passed_on_as_it_comes(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = ask(GET, &far);
    fake_replies(far, CHUNKED);
    is_str(fake_hears(client), CHUNKED);
    fake_replies(far, "2\r\nhe\r\n");
    is_str(fake_hears(client), "2\r\nhe\r\n");
    fake_replies(far, "1\r\nl\r\n0\r\n");
    is_str(fake_hears(client), "1\r\nl\r\n");
    fake_replies(far, "X: y\r\n\r\n");
    is_str(fake_hears(client), "0\r\nX: y\r\n\r\n");
    ok_eq(fake_gauge(FAKE_OUT), 0);
    fake_end();
}

static void test_an_answer_that_lasts_until_the_worker_closes_is_chunked_for_the_client(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = ask(GET, &far);
    fake_replies(far, ENDLESS "hello");
    is_str(fake_hears(client), CHUNKED "5\r\nhello\r\n");
    fake_far_closes(far);
    fake_settle();
    is_str(fake_hears(client), "0\r\n\r\n");
    ok(!fake_is_ended(client));
    fake_end();
}

static void test_connections_have_a_maximum_of_requests(void)
{
    int far;
    fake_begin((struct fake_setup){.keepalive_requests_max = 2});
    int client = ask(GET, &far);
    fake_replies(far, LENGTH "hello");
    is_str(fake_hears(client), LENGTH "hello");
    fake_says(client, GET);
    fake_settle();
    fake_replies(far, LENGTH "hello");
    is_str(fake_hears(client), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
    ok(fake_is_ended(client));
    fake_end();
}

static void test_a_drain_ends_connections_with_their_answers(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = ask(GET, &far);
    fake_drains();
    fake_replies(far, LENGTH "hello");
    is_str(fake_hears(client), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
    ok(fake_is_ended(client));
    fake_end();
}

/* --- failures --- */

static void test_a_failure_before_the_answer_has_an_answer(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", &far);
    fake_far_closes(far);
    fake_settle();
    const char *heard = fake_hears(client);
    ok(strncmp(heard, "HTTP/1.1 502 Bad Gateway\r\n", 26) == 0 && !strstr(heard, "Retry-After"));
    is_str(strstr(heard, "\r\n\r\n"), "\r\n\r\n502 Bad Gateway\n");
    ok(fake_is_ended(client) && !fake_is_reset(client));
    fake_end();
}

static void test_a_full_queue_asks_to_come_again(void)
{
    int far;
    fake_begin((struct fake_setup){.queue_max = 1});
    (void)ask(GET, &far);
    for (int i = 0; i < 2; i++)
        fake_says(fake_h1(), GET);
    fake_settle();
    ok_eq(fake_gauge(FAKE_QUEUED), 2);
    int client = ask("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", &far);
    const char *heard = fake_hears(client);
    ok(strncmp(heard, "HTTP/1.1 503 Service Unavailable\r\n", 34) == 0 && strstr(heard, "\r\nRetry-After: 1\r\n"));
    is_str(strstr(heard, "\r\n\r\n"), "\r\n\r\n");
    ok_eq(fake_gauge(FAKE_QUEUED), 2);
    fake_end();
}

static void test_a_failure_within_the_answer_is_a_reset(void)
{
    static const char *const begun[] = {LENGTH "he", CHUNKED "2\r\nhe\r\n", CHUNKED};
    for (size_t i = 0; i < sizeof(begun) / sizeof(begun[0]); i++) {
        int far;
        fake_begin((struct fake_setup){0});
        int client = ask(GET, &far);
        fake_replies(far, begun[i]);
        is_str(fake_hears(client), begun[i]);
        fake_far_dies(far);
        fake_settle();
        is_str(fake_hears(client), "");
        ok(fake_is_ended(client));
        ok_eq(fake_gauge(FAKE_CONNS_H1), 0);
        fake_end();
    }
}

static void test_an_answer_that_cannot_be_passed_on_fails(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = ask(GET, &far);
    static char head[ORIBI_RESPONSE_HEAD_BYTES_MAX + 1];
    size_t n = (size_t)snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\na: ");
    memset(head + n, 'a', sizeof(head) - n);
    (void)snprintf(head + ORIBI_RESPONSE_HEAD_BYTES_MAX - 4, 5, "\r\n\r\n"); /* a Date is added to that */
    fake_replies(far, head);
    ok(strncmp(fake_hears(client), "HTTP/1.1 502 Bad Gateway\r\n", 26) == 0);
    ok(fake_is_over(far));
    fake_end();
}

/* --- back-pressure --- */

static void test_the_worker_of_a_streamed_answer_waits_for_a_slow_client(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = ask(GET, &far);
    fake_silent(client, true);
    fake_replies(far, ENDLESS);
    size_t sent = 0;
    for (int i = 0; i < 64 && fake_gauge(FAKE_BLOCKED) == 0; i++) {
        sent += fake_floods(far, 64 * 1024);
        fake_settle();
    }
    ok_eq(fake_gauge(FAKE_BLOCKED), 1);
    ok_eq(fake_gauge(FAKE_LISTED), 1);
    size_t more = 0;
    for (int i = 0; i < 64; i++) {
        more += fake_floods(far, 64 * 1024);
        fake_settle();
    }
    ok(more < BIG); /* as much as the socket takes */
    fake_silent(client, false);
    fake_settle();
    ok_eq(fake_gauge(FAKE_BLOCKED), 0);
    ok_eq(fake_gauge(FAKE_LISTED), 0);
    fake_far_closes(far);
    fake_settle();
    const char *heard = fake_hears(client);
    ok_eq(strspn(strchr(heard, 'x'), "x") > 0, 1);
    size_t xs = 0;
    for (const char *p = strstr(heard, "\r\n\r\n"); *p; p++)
        xs += *p == 'x';
    ok_eq(xs, sent + more);
    is_str(heard + fake_hears_len() - 5, "0\r\n\r\n");
    fake_end();
}

static void test_the_worker_of_an_answer_with_a_length_waits_for_nobody(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = ask(GET, &far);
    fake_silent(client, true);
    fake_replies(far, "HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n");
    size_t sent = 0;
    while (sent < BIG) {
        size_t n = fake_floods(far, BIG - sent);
        if (n == 0)
            break;
        sent += n;
        fake_settle();
    }
    ok_eq(sent, BIG);
    ok_eq(fake_gauge(FAKE_OUT), 0);
    ok_eq(fake_gauge(FAKE_BLOCKED), 0);
    fake_silent(client, false);
    fake_settle();
    const char *heard = strstr(fake_hears(client), "\r\n\r\n");
    ok(heard && strlen(heard + 4) == BIG);
    fake_end();
}

static void test_a_client_that_takes_nothing_is_let_go(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = ask(GET, &far);
    fake_silent(client, true);
    fake_replies(far, ENDLESS);
    for (int i = 0; i < 64 && fake_gauge(FAKE_BLOCKED) == 0; i++) {
        (void)fake_floods(far, 64 * 1024);
        fake_settle();
    }
    int64_t timeout_ms = fake_options()->write_timeout_ms;
    fake_passes_ms(timeout_ms - 1000);
    fake_settle();
    ok_eq(fake_gauge(FAKE_CONNS_H1), 1);
    fake_passes_ms(2000);
    fake_settle();
    ok_eq(fake_gauge(FAKE_CONNS_H1), 0);
    ok_eq(fake_gauge(FAKE_BLOCKED), 0);
    ok_eq(fake_gauge(FAKE_LISTED), 0);
    ok_eq(fake_counters()->timeouts[ORIBI_TIMEOUT_WRITE], 1);
    (void)fake_asked(far);
    ok(fake_is_over(far));
    fake_end();
}

/* --- the client goes --- */

static void test_a_client_goes_while_its_request_waits(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    (void)ask(GET, &far);
    int client = fake_h1();
    fake_says(client, GET);
    fake_settle();
    ok_eq(fake_gauge(FAKE_QUEUED), 1);
    fake_hangs_up(client);
    fake_settle();
    ok_eq(fake_gauge(FAKE_QUEUED), 0);
    ok_eq(fake_counters()->gone_count, 1);
    fake_end();
}

static void test_a_client_goes_while_a_worker_has_its_request(void)
{
    static const char *const begun[] = {"", "HTTP/1.1 2", LENGTH, LENGTH "he", CHUNKED "2\r\nhe\r\n"};
    for (size_t i = 0; i < sizeof(begun) / sizeof(begun[0]); i++) {
        int far;
        fake_begin((struct fake_setup){0});
        int client = ask(GET, &far);
        (void)fake_asked(far);
        fake_replies(far, begun[i]);
        fake_hangs_up(client);
        fake_settle();
        ok_named(fake_is_over(far), "the worker sees that its client has gone, after %zu bytes", strlen(begun[i]));
        ok_eq(fake_gauge(FAKE_CONNS_H1), 0);
        ok_eq(fake_gauge(FAKE_ABANDONED), 1);
        ok_eq(fake_counters()->gone_count, 0);
        fake_far_closes(far);
        fake_settle();
        ok_eq(fake_gauge(FAKE_OUT), 0);
        fake_end();
    }
}

static void test_a_client_goes_between_requests(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = ask(GET, &far);
    fake_replies(far, LENGTH "hello");
    fake_hangs_up(client);
    fake_settle();
    ok_eq(fake_gauge(FAKE_CONNS_H1), 0);
    ok_eq(fake_gauge(FAKE_IDLE_CHANNELS), 1);
    fake_end();
}

static void test_a_client_that_sends_no_more_reads_its_answer(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = ask(GET, &far);
    (void)fake_asked(far);
    ok(!fake_is_over(far));
    fake_shuts(client);
    fake_settle();
    ok(fake_is_over(far));
    ok_eq(fake_gauge(FAKE_OUT), 1);
    fake_replies(far, LENGTH "hello");
    is_str(fake_hears(client), LENGTH "hello");
    ok(fake_is_ended(client));
    ok_eq(fake_gauge(FAKE_CHANNELS), 0);
    fake_end();
}

static void test_a_client_that_has_sent_more_before_its_end_is_no_reason(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = ask("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n", &far);
    (void)fake_asked(far);
    fake_shuts(client);
    fake_settle();
    ok(!fake_is_over(far));
    fake_replies(far, LENGTH "hello");
    is_str(fake_asked(far), "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
    fake_end();
}

static void test_a_client_that_sends_no_more_while_it_waits_tells_its_worker(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    (void)ask(GET, &far);
    int client = fake_h1();
    fake_says(client, GET);
    fake_settle();
    fake_shuts(client);
    fake_settle();
    ok_eq(fake_gauge(FAKE_QUEUED), 1);
    fake_passes_ms(1);
    (void)fake_asked(far);
    fake_replies(far, LENGTH "hello");
    is_str(fake_asked(far), GET);
    ok(fake_is_over(far));
    fake_replies(far, LENGTH "again");
    is_str(fake_hears(client), LENGTH "again");
    fake_end();
}

/* --- tunnels --- */

static void test_after_101_bytes_go_both_ways(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = ask(UPGRADES "early", &far);
    is_str(fake_asked(far), "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n");
    fake_replies(far, SWITCHES "first");
    const char *heard = fake_hears(client);
    ok(strncmp(heard, "HTTP/1.1 101 Switching Protocols\r\n", 34) == 0);
    is_str(strstr(heard, "\r\n\r\n"), "\r\n\r\nfirst");
    is_str(fake_asked(far), "early");
    fake_says(client, "ping");
    fake_settle();
    is_str(fake_asked(far), "ping");
    fake_replies(far, "pong");
    is_str(fake_hears(client), "pong");
    ok_eq(fake_gauge(FAKE_TUNNELS), 1);
    ok_eq(fake_gauge(FAKE_OUT), 0);
    ok_eq(fake_gauge(FAKE_CONNS_H1), 0);
    fake_hangs_up(client);
    fake_settle();
    ok(fake_is_over(far));
    ok_eq(fake_gauge(FAKE_TUNNELS), 1); /* the worker may have more to say */
    fake_far_closes(far);
    fake_settle();
    ok_eq(fake_gauge(FAKE_TUNNELS), 0);
    fake_end();
}

static void test_101_that_nobody_asked_for_fails(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = ask(GET, &far);
    fake_replies(far, SWITCHES "first");
    ok(strncmp(fake_hears(client), "HTTP/1.1 502 Bad Gateway\r\n", 26) == 0);
    ok_eq(fake_gauge(FAKE_TUNNELS), 0);
    fake_end();
}

static void test_a_worker_refuses_an_upgrade(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = ask(UPGRADES, &far);
    fake_replies(far, LENGTH "hello");
    is_str(fake_hears(client), LENGTH "hello");
    ok(!fake_is_ended(client));
    fake_end();
}

int main(void)
{
    test_a_request_and_its_answer();
    test_bodies_travel_whatever_holds_them();
    test_a_chunked_body_has_a_length_or_its_trailers();
    test_a_chunked_body_of_nothing_has_its_trailers();
    test_requests_of_a_connection_go_out_one_after_the_other();
    test_connections_whose_requests_wait_are_counted();
    test_a_refused_request_is_counted_and_asks_no_worker();
    test_answers_as_clients_read_them();
    test_a_body_follows_its_head_whatever_its_length();
    test_a_body_is_passed_on_as_it_comes();
    test_an_answer_that_lasts_until_the_worker_closes_is_chunked_for_the_client();
    test_connections_have_a_maximum_of_requests();
    test_a_drain_ends_connections_with_their_answers();
    test_a_failure_before_the_answer_has_an_answer();
    test_a_full_queue_asks_to_come_again();
    test_a_failure_within_the_answer_is_a_reset();
    test_an_answer_that_cannot_be_passed_on_fails();
    test_the_worker_of_a_streamed_answer_waits_for_a_slow_client();
    test_the_worker_of_an_answer_with_a_length_waits_for_nobody();
    test_a_client_that_takes_nothing_is_let_go();
    test_a_client_goes_while_its_request_waits();
    test_a_client_goes_while_a_worker_has_its_request();
    test_a_client_goes_between_requests();
    test_a_client_that_sends_no_more_reads_its_answer();
    test_a_client_that_has_sent_more_before_its_end_is_no_reason();
    test_a_client_that_sends_no_more_while_it_waits_tells_its_worker();
    test_after_101_bytes_go_both_ways();
    test_101_that_nobody_asked_for_fails();
    test_a_worker_refuses_an_upgrade();
    return done_testing();
}
