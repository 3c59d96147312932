/* Event streams of a frontend whose workers and clients are fakes, over HTTP/1.1 and HTTP/2: what a client gets at once
 * and later, resume and reset, slow readers, comments, limits, the end. */
#include "failing.h"

#include "frontend/events.c"

#include "fakes.h"

#include "frontend/publish.h"

#include <stdio.h>

#define ASKS     "GET /events HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n"
#define ANSWER   "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
#define FROM     "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\noribi-events: "
#define ANSWERED "\r\nContent-Length: 0\r\n\r\n"

enum { EPOCH = 9 };

static const struct oribi__history_rule rules[] = {{.prefix = "h:", .messages_max = 4, .age_max_ms = 60000}};

static uint32_t deliveries_max; /* of a turn; 0: no maximum */

static void begin(void)
{
    fake_begin((struct fake_setup){0});
    struct oribi__frontend *frontend = fake_frontend();
    const struct oribi__topics_config config = {.rules = rules,
                                                .rule_count = 1,
                                                .history_memory_max = 1 << 30,
                                                .subscriptions_max = 1000,
                                                .epoch = EPOCH,
                                                .seed = 1,
                                                .deliveries_max = deliveries_max,
                                                .pending_max = 100,
                                                .pending_bytes_max = 1 << 20};
    oribi__topics_destroy(frontend->topics);
    frontend->topics = oribi__topics_create(&config);
    fake_options()->events_ping_ms = 15000;
    fake_options()->websocket_pending_max = 64 * 1024;
}

static void publish_bytes(const char *topic, const char *event, struct oribi_slice data, bool binary)
{
    const struct oribi__publication publication = {.topic = oribi_slice(topic, strlen(topic)),
                                                   .event = oribi_slice(event, strlen(event)),
                                                   .data = data,
                                                   .binary = binary,
                                                   .now_ms = fake_now_us() / 1000};
    ok_eq(oribi__publish_from_call(fake_frontend(), &publication), 0);
    fake_settle();
}

static void publish(const char *topic, const char *data)
{
    publish_bytes(topic, "", oribi_slice(data, strlen(data)), false);
}

/* A worker's answer with this record. */
static void answers(int far, const char *record)
{
    char text[1024];
    (void)snprintf(text, sizeof(text), "%s%s%s", FROM, record, ANSWERED);
    fake_answers(far, text);
    fake_settle();
}

/* An event stream of HTTP/1.1 with this record; what the client hears at once is left unread. */
static int stream(int *far, const char *record)
{
    int client = fake_h1();
    fake_says(client, ASKS);
    fake_settle();
    if (fake_waiting())
        *far = fake_take(0);
    (void)fake_asked(*far);
    answers(*far, record);
    return client;
}

/* The client's next bytes are this piece as a chunk. */
static void hears(int client, const char *text)
{
    char chunk[4096];
    (void)snprintf(chunk, sizeof(chunk), "%zx\r\n%s\r\n", strlen(text), text);
    is_str(fake_hears(client), chunk);
}

static void hears_head(int client, const char *text)
{
    char wanted[4096];
    (void)snprintf(wanted, sizeof(wanted), "%s%zx\r\n%s\r\n", ANSWER, strlen(text), text);
    is_str(fake_hears(client), text ? wanted : ANSWER);
}

static const char *id_of(const char *first, const char *second, const char *positions)
{
    static char text[256];
    uint32_t hash = oribi_event_hash(0, oribi_slice(first, strlen(first)));
    if (second)
        hash = oribi_event_hash(hash, oribi_slice(second, strlen(second)));
    (void)snprintf(text, sizeof(text), "%08x.%s", hash, positions);
    return text;
}

static const char *with_id(const char *id, const char *rest)
{
    static char text[1024];
    (void)snprintf(text, sizeof(text), "id: %s\n%s", id, rest);
    return text;
}

static void add(char wanted[512], const char *more)
{
    size_t n = strlen(wanted);
    (void)snprintf(wanted + n, 512 - n, "%s", more);
}

static uint64_t ended_by(enum oribi_frontend_event_end end)
{
    return fake_counters()->event_streams_ended[end];
}

static void test_events_without_a_history(void)
{
    int far;
    begin();
    int client = stream(&far, "- - news");
    hears_head(client, ":\n\n");
    ok_eq(fake_gauge(FAKE_OUT), 0);
    ok_eq(fake_gauge(FAKE_IDLE_CHANNELS), 1);
    publish("news", "hello");
    hears(client, "data: hello\n\n");
    publish("other", "not here");
    is_str(fake_hears(client), "");
    publish_bytes("news", "note", ORIBI_SLICE("two\nlines"), false);
    hears(client, "event: note\ndata: two\ndata: lines\n\n");
    ok_eq(fake_counters()->event_count, 2);
    ok_eq(fake_counters()->event_stream_count, 1);
    fake_hangs_up(client);
    fake_settle();
    ok_eq(ended_by(ORIBI_FRONTEND_EVENTS_CLIENT), 1);
    ok_eq(fake_frontend()->event_stream_count, 0);
    fake_end();
}

static void test_a_stream_over_http2(void)
{
    begin();
    int client = fake_h2_settled();
    (void)fake_asks(client, (struct fake_ask){.path = "/events", .accept = "text/event-stream"});
    fake_settle();
    int far = fake_take(0);
    answers(far, "3000 - news");
    is_str(fake_frames(client), "H1=200,content-type=text/event-stream D1+16 ");
    publish("news", "hello");
    is_str(fake_frames(client), "D1+13 ");
    fake_resets(client, 1, 8);
    fake_settle();
    ok_eq(ended_by(ORIBI_FRONTEND_EVENTS_CLIENT), 1);
    publish("news", "nobody");
    ok_eq(fake_counters()->event_count, 1);
    fake_end();
}

static void test_an_ordinary_answer_to_the_same_request(void)
{
    begin();
    int client = fake_h1();
    fake_says(client, ASKS);
    fake_settle();
    int far = fake_take(0);
    fake_answers(far, "HTTP/1.1 204 No Content\r\n\r\n");
    fake_settle();
    is_str(fake_hears(client), "HTTP/1.1 204 No Content\r\n\r\n");
    fake_end();
}

static void test_the_field_means_nothing_to_another_request(void)
{
    begin();
    int client = fake_h1();
    fake_says(client, "GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
    fake_settle();
    int far = fake_take(0);
    answers(far, "- - news");
    ok_eq(fake_frontend()->event_stream_count, 0);
    ok(strstr(fake_hears(client), "Content-Length: 0") != NULL);
    fake_end();
}

static void test_resume(void)
{
    int far;
    char record[256];
    begin();
    publish("h:a", "1");
    int client = stream(&far, "- - h:a");
    hears_head(client, with_id(id_of("h:a", NULL, "9-1"), "\n"));
    publish("h:a", "2");
    hears(client, with_id(id_of("h:a", NULL, "9-2"), "data: 2\n\n"));
    fake_hangs_up(client);
    fake_settle();
    publish("h:a", "3");
    publish("h:a", "4");
    (void)snprintf(record, sizeof(record), "1000 %s h:a", id_of("h:a", NULL, "9-2"));
    client = stream(&far, record);
    char wanted[512];
    (void)snprintf(wanted, sizeof(wanted), "retry: 1000\n\n%s", with_id(id_of("h:a", NULL, "9-3"), "data: 3\n\n"));
    add(wanted, with_id(id_of("h:a", NULL, "9-4"), "data: 4\n\n"));
    hears_head(client, wanted);
    publish("h:a", "5");
    hears(client, with_id(id_of("h:a", NULL, "9-5"), "data: 5\n\n"));
    ok_eq(fake_counters()->event_resets, 0);
    fake_end();
}

static void test_resets(void)
{
    static const char *const ids[] = {"8-1", "9-0", "9-99", "oribi", "00000000.9-6"};
    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
        int far;
        char record[256];
        begin();
        for (int n = 0; n < 6; n++)
            publish("h:a", "x");
        (void)snprintf(record, sizeof(record), "- %s h:a", ids[i]);
        int client = stream(&far, record);
        hears_head(client, with_id(id_of("h:a", NULL, "9-6"), "event: oribi.reset\ndata: h:a\n\n"));
        ok_eq(fake_counters()->event_resets, 1);
        publish("h:a", "7");
        hears(client, with_id(id_of("h:a", NULL, "9-7"), "data: 7\n\n"));
        fake_end();
    }
}

/* Messages may be missing: a stream is told at once, with the id from which it goes on. */
static void test_missing_messages_are_told(void)
{
    int far = -1;
    begin();
    int client = stream(&far, "- - h:a news");
    publish("h:a", "1");
    (void)fake_hears(client);
    oribi__topics_restart(fake_frontend()->topics, 10, false);
    oribi__topics_tell_missed(fake_frontend()->topics);
    fake_settle();
    hears(client, with_id(id_of("h:a", "news", "10-0,"), "event: oribi.reset\ndata: h:a\n\n"));
    ok_eq(fake_counters()->event_resets, 1);
    publish("h:a", "2");
    hears(client, with_id(id_of("h:a", "news", "10-1,"), "data: 2\n\n"));
    fake_end();
}

static void test_an_id_says_nothing_of_channels_without_a_history(void)
{
    int far;
    begin();
    int client = stream(&far, "- oribi news");
    hears_head(client, ":\n\n");
    ok_eq(fake_counters()->event_resets, 0);
    fake_end();
}

static void test_several_channels(void)
{
    int far;
    char record[256];
    begin();
    publish("h:a", "a1");
    int client = stream(&far, "- - h:a h:b");
    hears_head(client, with_id(id_of("h:a", "h:b", "9-1,0"), "\n"));
    publish("h:b", "b1");
    hears(client, with_id(id_of("h:a", "h:b", "9-1,1"), "data: b1\n\n"));
    fake_hangs_up(client);
    fake_settle();
    publish("h:b", "b2");
    publish("h:a", "a2");
    (void)snprintf(record, sizeof(record), "- %s h:a h:b", id_of("h:a", "h:b", "9-1,1"));
    client = stream(&far, record);
    char wanted[512];
    (void)snprintf(wanted, sizeof(wanted), "%s", with_id(id_of("h:a", "h:b", "9-2,1"), "data: a2\n\n"));
    add(wanted, with_id(id_of("h:a", "h:b", "9-2,2"), "data: b2\n\n"));
    hears_head(client, wanted);
    fake_end();
}

static void test_a_message_for_many_is_the_same(void)
{
    int far;
    begin();
    int one = stream(&far, "- - h:a");
    int two = stream(&far, "- - h:a");
    int both = stream(&far, "- - h:a h:b");
    (void)fake_hears(one), (void)fake_hears(two), (void)fake_hears(both);
    publish("h:a", "x");
    hears(one, with_id(id_of("h:a", NULL, "9-1"), "data: x\n\n"));
    hears(two, with_id(id_of("h:a", NULL, "9-1"), "data: x\n\n"));
    hears(both, with_id(id_of("h:a", "h:b", "9-1,0"), "data: x\n\n"));
    fake_end();
}

static void test_comments_keep_a_stream_alive(void)
{
    int far;
    begin();
    int client = stream(&far, "- - news");
    (void)fake_hears(client);
    fake_passes_ms(14000);
    fake_settle();
    publish("news", "x");
    hears(client, "data: x\n\n");
    fake_passes_ms(14000);
    fake_settle();
    is_str(fake_hears(client), "");
    fake_passes_ms(1000);
    fake_settle();
    hears(client, ":\n\n");
    fake_passes_ms(15000);
    fake_settle();
    hears(client, ":\n\n");
    fake_end();
}

static void test_a_client_that_reads_nothing(void)
{
    int far;
    static char data[200 * 1000];
    begin();
    memset(data, 'x', sizeof(data));
    int slow = stream(&far, "- - news");
    int other = stream(&far, "- - news");
    fake_silent(slow, true);
    for (int i = 0; i < 200 && ended_by(ORIBI_FRONTEND_EVENTS_SLOW) == 0; i++) {
        publish_bytes("news", "", oribi_slice(data, sizeof(data)), false);
        (void)fake_hears(other);
    }
    ok_eq(ended_by(ORIBI_FRONTEND_EVENTS_SLOW), 1);
    ok(strstr(fake_logged(), "GET /events from") != NULL);
    ok_eq(fake_frontend()->event_stream_count, 1);
    publish("news", "still here");
    hears(other, "data: still here\n\n");
    fake_end();
}

static void test_a_client_that_reads_nothing_over_http2(void)
{
    static char data[70 * 1000];
    begin();
    memset(data, 'x', sizeof(data));
    int client = fake_h2_settled();
    fake_window(client, 3); /* for the comment at its begin */
    (void)fake_asks(client, (struct fake_ask){.path = "/events", .accept = "text/event-stream"});
    fake_settle();
    int far = fake_take(0);
    answers(far, "- - news");
    publish_bytes("news", "", oribi_slice(data, sizeof(data)), false); /* one may always wait */
    ok_eq(ended_by(ORIBI_FRONTEND_EVENTS_SLOW), 0);
    publish("news", "x");
    ok_eq(ended_by(ORIBI_FRONTEND_EVENTS_SLOW), 1);
    (void)fake_frames(client);
    fake_opens(client, 1, 1 << 20);
    fake_settle();
    ok(strstr(fake_frames(client), "E1 ") != NULL); /* its end comes behind what waits */
    fake_end();
}

/* The end of the stream comes behind what the client does not take. */
static void test_a_drain_of_a_client_that_reads_nothing_over_http2(void)
{
    begin();
    fake_options()->frontend_drain_ms = 0;
    int client = fake_h2_settled();
    fake_window(client, 3); /* for the comment at its begin */
    (void)fake_asks(client, (struct fake_ask){.path = "/events", .accept = "text/event-stream"});
    fake_settle();
    int far = fake_take(0);
    answers(far, "- - news");
    publish("news", "x");
    int32_t other = fake_asks(client, (struct fake_ask){0});
    fake_settle();
    (void)fake_asked(far);
    fake_answers(far, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    fake_settle();
    (void)fake_frames(client);
    fake_drains();
    fake_settle();
    fake_passes_ms(1);
    fake_settle();
    ok_eq(ended_by(ORIBI_FRONTEND_EVENTS_DRAINED), 1);
    fake_passes_ms(5000 - 1);
    fake_settle();
    ok_eq(fake_gauge(FAKE_STREAMS), 2);
    fake_passes_ms(1);
    fake_settle();
    ok(strstr(fake_frames(client), "R1=8 ") != NULL);
    ok_eq(fake_gauge(FAKE_STREAMS), 1); /* an ordinary answer has write_timeout, as over HTTP/1.1 */
    fake_opens(client, other, 5);
    fake_settle();
    ok(strstr(fake_frames(client), "E3 ") != NULL);
    fake_end();
}

/* More was missed than may wait at a time. */
static void test_a_client_catches_up_as_it_reads(void)
{
    int far = -1;
    static char data[30 * 1000];
    char record[256];
    begin();
    memset(data, 'x', sizeof(data));
    publish("h:a", "0");
    for (int i = 0; i < 4; i++)
        publish_bytes("h:a", "", oribi_slice(data, sizeof(data)), false);
    (void)snprintf(record, sizeof(record), "- %s h:a news", id_of("h:a", "news", "9-1,"));
    int client = fake_h1();
    fake_silent(client, true);
    fake_says(client, ASKS);
    fake_settle();
    far = fake_take(0);
    (void)fake_asked(far);
    answers(far, record);
    ok(fake_frontend()->events->behind != NULL);
    fake_silent(client, false);
    size_t got = 0;
    for (int i = 0; i < 20; i++) {
        fake_passes_ms(10);
        fake_settle();
        got += strlen(fake_hears(client));
    }
    ok(got > 4 * sizeof(data) && got < 4 * sizeof(data) + 1000);
    ok(fake_frontend()->events->behind == NULL);
    publish("h:a", "6");
    hears(client, with_id(id_of("h:a", "news", "9-6,"), "data: 6\n\n"));
    fake_end();
}

static void test_binary_messages_are_passed_over(void)
{
    int far;
    begin();
    int client = stream(&far, "- - h:a");
    (void)fake_hears(client);
    publish_bytes("h:a", "", ORIBI_SLICE("\xff\x00"), true);
    is_str(fake_hears(client), "");
    ok(strstr(fake_logged(), "a binary message is not sent to its event stream") != NULL);
    publish("h:a", "text");
    hears(client, with_id(id_of("h:a", NULL, "9-2"), "data: text\n\n"));
    fake_end();
}

static void test_limits(void)
{
    int far;
    begin();
    fake_options()->events_max = 1;
    int one = stream(&far, "- - news");
    int two = stream(&far, "- - news");
    ok(strncmp(fake_hears(two), "HTTP/1.1 503 ", 13) == 0);
    ok(strstr(fake_logged(), "events_max") != NULL);
    ok_eq(fake_counters()->refusals[ORIBI_REFUSAL_EVENTS], 1);
    fake_hangs_up(one);
    fake_settle();
    int three = stream(&far, "- - news");
    hears_head(three, ":\n\n");
    fake_end();
}

static void test_subscriptions_max(void)
{
    int far;
    begin();
    struct oribi__frontend *frontend = fake_frontend();
    const struct oribi__topics_config config = {.subscriptions_max = 3, .epoch = EPOCH};
    oribi__topics_destroy(frontend->topics);
    frontend->topics = oribi__topics_create(&config);
    int one = stream(&far, "- - a b");
    hears_head(one, ":\n\n");
    int two = stream(&far, "- - a b");
    ok(strncmp(fake_hears(two), "HTTP/1.1 503 ", 13) == 0);
    ok(strstr(fake_logged(), "subscriptions_max") != NULL);
    ok_eq(frontend->event_stream_count, 1);
    int three = stream(&far, "- - a");
    hears_head(three, ":\n\n");
    fake_end();
}

static void test_records_that_are_none(void)
{
    static const char *const bad[] = {"x", "- -", "- - a%", "- - a  b"};
    for (size_t i = 0; i < 4; i++) {
        int far;
        begin();
        int client = stream(&far, bad[i]);
        ok(strncmp(fake_hears(client), "HTTP/1.1 502 ", 13) == 0);
        fake_end();
    }
}

static void test_a_drain_ends_one_after_another(void)
{
    int far;
    int clients[4];
    begin();
    fake_options()->frontend_drain_ms = 16;
    for (int i = 0; i < 4; i++)
        clients[i] = stream(&far, "- - news");
    fake_drains();
    fake_settle();
    ok(ended_by(ORIBI_FRONTEND_EVENTS_DRAINED) < 4);
    for (int i = 0; i < 20; i++) {
        fake_passes_ms(1);
        fake_settle();
    }
    ok_eq(ended_by(ORIBI_FRONTEND_EVENTS_DRAINED), 4);
    for (int i = 0; i < 4; i++) {
        const char *text = fake_hears(clients[i]);
        ok_named(strlen(text) > 5 && strcmp(text + strlen(text) - 5, "0\r\n\r\n") == 0, "the last chunk");
    }
    fake_end();
}

static void test_a_drain_ends_behind_what_is_pending(void)
{
    static const struct oribi__publication publication = {.topic = ORIBI_SLICE("news"), .data = ORIBI_SLICE("x")};
    int far;
    int clients[4];
    begin();
    fake_options()->frontend_drain_ms = 0;
    for (int i = 0; i < 4; i++) {
        clients[i] = stream(&far, "- - news");
        (void)fake_hears(clients[i]);
    }
    ok_eq(oribi__publish_from_call(fake_frontend(), &publication), 0);
    ok(oribi__topics_is_pending(fake_frontend()->topics));
    fake_drains();
    fake_settle();
    fake_passes_ms(1);
    fake_settle();
    ok_eq(ended_by(ORIBI_FRONTEND_EVENTS_DRAINED), 4);
    for (int i = 0; i < 4; i++)
        is_str(fake_hears(clients[i]), "9\r\ndata: x\n\n\r\n0\r\n\r\n");
    fake_end();
}

static void test_a_client_that_shuts_its_sending_side_reads_on(void)
{
    int far;
    begin();
    int client = stream(&far, "- - news");
    (void)fake_hears(client);
    fake_shuts(client);
    fake_settle();
    hears(client, ":\n\n");
    publish("news", "x");
    hears(client, "data: x\n\n");
    fake_end();
}

static void test_http10_gets_no_chunks(void)
{
    begin();
    int client = fake_h1();
    fake_says(client, "GET /events HTTP/1.0\r\nAccept: text/event-stream\r\n\r\n");
    fake_settle();
    int far = fake_take(0);
    answers(far, "- - news");
    publish("news", "x");
    const char *text = fake_hears(client);
    ok(strstr(text, "chunked") == NULL && strstr(text, "\r\n\r\n:\n\ndata: x\n\n") != NULL);
    fake_end();
}

/* --- without memory --- */

static uint32_t refused; /* requests */
static uint32_t ended;   /* streams */

/* A stream that has missed something, gets something, and is told of a gap; true when no allocation failed any more.
 * One that goes on has all of it, and nothing is left of one that does not. */
static bool converse(void)
{
    static char data[20 * 1000]; /* more than the buffers of the last one have room for */
    char text[1024];
    uint32_t at = fail_at;
    const struct oribi__publication live = {.topic = ORIBI_SLICE("news"), .data = {data, sizeof(data)}};
    memset(data, 'l', sizeof(data));
    fail_at = 0;
    begin();
    publish("h:a", "missed");
    int client = fake_h1();
    fake_says(client, ASKS);
    fake_settle();
    int far = fake_take(0);
    (void)fake_asked(far);
    (void)snprintf(text, sizeof(text), "%s- %s h:a news%s", FROM, id_of("h:a", "news", "9-0,"), ANSWERED);
    fake_answers(far, text);
    asked = 0;
    fail_at = at;
    fake_turn();
    fake_turn();
    bool begun = fake_frontend()->event_stream_count == 1;
    bool published = oribi__publish_from_call(fake_frontend(), &live) == 0;
    oribi__topics_restart(fake_frontend()->topics, 10, false);
    oribi__topics_tell_missed(fake_frontend()->topics);
    bool none_failed = asked < at;
    fail_at = 0;
    fake_settle();
    const char *got = fake_hears(client);
    if (fake_frontend()->event_stream_count == 1)
        ok_named(strstr(got, "data: missed\n") && strstr(got, "oribi.reset") &&
                     (!published || strstr(got, "data: llll")),
                 "allocation %u failed: %s", at, got);
    else if (!begun)
        refused += strncmp(got, "HTTP/1.1 503 ", 13) == 0;
    else
        ended++;
    fake_end();
    fail_at = at;
    return none_failed;
}

static void test_each_allocation_that_fails(void)
{
    do {
        fail_at++;
    } while (!converse() && fail_at < 1000);
    diag("%u allocations failed: %u requests refused, %u streams ended", fail_at - 1, refused, ended);
    ok(fail_at > 8 && fail_at < 1000);
    ok(refused > 3 && ended > 0);
    fail_at = 0;
}

static void test_names_that_topics_do_not_take(void)
{
    int far = -1;
    begin();
    int client = stream(&far, "- - a%09b");
    ok(strncmp(fake_hears(client), "HTTP/1.1 502 ", 13) == 0);
    ok_eq(fake_frontend()->event_stream_count, 0);
    fake_end();
}

static void test_all(void)
{
    test_events_without_a_history();
    test_a_stream_over_http2();
    test_an_ordinary_answer_to_the_same_request();
    test_the_field_means_nothing_to_another_request();
    test_resume();
    test_resets();
    test_missing_messages_are_told();
    test_an_id_says_nothing_of_channels_without_a_history();
    test_several_channels();
    test_a_message_for_many_is_the_same();
    test_comments_keep_a_stream_alive();
    test_a_client_that_reads_nothing();
    test_a_client_that_reads_nothing_over_http2();
    test_a_drain_of_a_client_that_reads_nothing_over_http2();
    test_a_client_catches_up_as_it_reads();
    test_binary_messages_are_passed_over();
    test_limits();
    test_subscriptions_max();
    test_records_that_are_none();
    test_a_drain_ends_one_after_another();
    test_a_client_that_shuts_its_sending_side_reads_on();
    test_http10_gets_no_chunks();
    test_names_that_topics_do_not_take();
    test_each_allocation_that_fails();
}

int main(void)
{
    test_all();
    deliveries_max = 1;
    test_all();
    test_a_drain_ends_behind_what_is_pending();
    return done_testing();
}
