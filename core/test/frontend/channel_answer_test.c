/* Answers on channels: their framing, the deaths of workers at every step, and whether the channel is used again. */
#include "frontend/channel_answer.c"

#include "fakes.h"

#define LENGTH  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define ENDLESS "HTTP/1.1 200 OK\r\n\r\n"

static const struct fake_request get;
static const struct fake_request post = {.method = "POST", .body = "abc"};
static const struct fake_request slow = {.streams = true};

static void says(int far, const char *text)
{
    fake_answers(far, text);
    fake_turn();
}

/* --- framing --- */

struct answer {
    const char *text;
    const char *heard;
    bool keeps; /* the channel is idle afterwards */
};

static const struct answer answers[] = {
    {LENGTH "hello", "begin 200 hello. ", true},
    {"HTTP/1.1 204 No Content\r\n\r\n", "begin 204 . ", true},
    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "begin 304 . ", true},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "begin 200 . ", true},
    {CHUNKED "5\r\nhello\r\n0\r\n\r\n", "begin 200 hello. ", true},
    {CHUNKED "2\r\nhe\r\n3\r\nllo\r\n0\r\nX-A: b\r\n\r\n", "begin 200 hello. trailers 8 ", true},
    {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", "begin 200 hello. ", false},
    {"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" LENGTH "hello", "interim 103 begin 200 hello. ", true},
    {"HTTP/1.1 102 A\r\n\r\nHTTP/1.1 103 B\r\n\r\n" LENGTH "hello", "interim 102 interim 103 begin 200 hello. ", true},
};

static void test_answers_end_where_their_framing_says(void)
{
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        int far;
        fake_begin((struct fake_setup){0});
        int call = fake_out(get, &far);
        says(far, answers[i].text);
        is_str(fake_heard(call) + 4, answers[i].heard);
        ok_named(fake_gauge(FAKE_IDLE_CHANNELS) == answers[i].keeps, "answer %zu keeps its channel or not", i);
        ok_named(fake_gauge(FAKE_OUT) == 0, "answer %zu is over", i);
        fake_end();
    }
}

/* The bytes of a transcript, whatever pieces they came in. */
static void join(const char *heard, char *dst)
{
    char *at = dst;
    for (const char *p = heard + 4; *p; p++) {
        if (strncmp(p, "more ", 5) == 0) {
            p += 4;
            at -= at > dst && at[-1] == ' ';
            continue;
        }
        *at++ = *p;
    }
    *at = '\0';
}

static void test_answers_are_the_same_at_every_cut(void)
{
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        size_t n = strlen(answers[i].text);
        size_t wrong = 0;
        fake_begin((struct fake_setup){0});
        int far = -1;
        for (size_t cut = 1; cut < n; cut++) {
            char joined[256];
            char first[256];
            int call = fake_submit(get);
            fake_dispatch();
            if (!answers[i].keeps || far < 0)
                far = fake_take(0);
            (void)fake_asked(far);
            fake_passes_ms(1);
            (void)snprintf(first, sizeof(first), "%.*s", (int)cut, answers[i].text);
            wrong += !fake_tries_answer(far, first);
            fake_turn();
            wrong += !fake_tries_answer(far, answers[i].text + cut);
            fake_turn();
            join(fake_heard(call), joined);
            wrong += strcmp(joined, answers[i].heard) != 0;
        }
        ok_named(wrong == 0, "answer %zu at each of %zu cuts", i, n - 1);
        fake_end();
    }
}

static void test_trailers_of_a_request_are_none_of_its_answer(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = fake_out((struct fake_request){.method = "POST", .body = "abc", .chunked = true}, &far);
    says(far, CHUNKED "5\r\nhello\r\n0\r\n\r\n");
    is_str(fake_heard(call), "+ - begin 200 hello. ");
    fake_end();
}

static void test_an_answer_to_head_has_no_body(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = fake_out((struct fake_request){.method = "HEAD"}, &far);
    says(far, LENGTH);
    is_str(fake_heard(call), "+ - begin 200 . ");
    ok_eq(fake_gauge(FAKE_IDLE_CHANNELS), 1);
    fake_end();
}

static void test_an_answer_without_an_end_lasts_until_the_worker_closes(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = fake_out(get, &far);
    says(far, ENDLESS "a");
    says(far, "b");
    is_str(fake_heard(call), "+ - begin 200 a more b ");
    fake_far_closes(far);
    fake_turn();
    is_str(fake_heard(call), "+ - begin 200 a more b more . ");
    ok_eq(fake_gauge(FAKE_CHANNELS), 0);
    fake_end();
}

static void test_no_event_tells_of_nothing(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = fake_out(get, &far);
    says(far, CHUNKED);
    says(far, "5\r\n");
    says(far, "hello\r\n");
    is_str(fake_heard(call), "+ - begin 200  more hello ");
    says(far, "0\r\n\r\n");
    is_str(fake_heard(call), "+ - begin 200  more hello more . ");
    fake_end();
}

/* --- answers that are none --- */

static void test_a_bad_answer_fails_the_call_and_ends_the_channel(void)
{
    static const char *const bad[] = {
        "nonsense\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA b: c\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        CHUNKED "x\r\n",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int far;
        fake_begin((struct fake_setup){0});
        int call = fake_out(get, &far);
        says(far, bad[i]);
        is_str(fake_heard(call), "+ - fail 502 ");
        ok(fake_reason(call) != NULL);
        ok_eq(fake_gauge(FAKE_CHANNELS), 0);
        ok(fake_is_over(far));
        fake_end();
    }
}

static void test_a_head_has_a_maximum(void)
{
    for (int over = 0; over < 2; over++) {
        static char head[ORIBI_RESPONSE_HEAD_BYTES_MAX + 8];
        int far;
        fake_begin((struct fake_setup){0});
        int call = fake_out(get, &far);
        size_t n = (size_t)snprintf(head, sizeof(head), "HTTP/1.1 204 No Content\r\na: ");
        memset(head + n, 'a', sizeof(head) - n);
        (void)snprintf(head + ORIBI_RESPONSE_HEAD_BYTES_MAX - 4 + over, 8, "\r\n\r\n");
        size_t half = ORIBI_RESPONSE_HEAD_BYTES_MAX / 2;
        char kept = head[half];
        head[half] = '\0';
        says(far, head);
        head[half] = kept;
        is_str(fake_heard(call), "+ - ");
        says(far, head + half);
        is_str(fake_heard(call), over ? "+ - fail 502 " : "+ - begin 204 . ");
        fake_end();
    }
}

static void test_fields_have_a_maximum(void)
{
    for (int over = 0; over < 2; over++) {
        static char head[16 * 1024];
        int far;
        fake_begin((struct fake_setup){0});
        int call = fake_out(get, &far);
        size_t n = (size_t)snprintf(head, sizeof(head), "HTTP/1.1 204 No Content\r\n");
        for (int i = 0; i < ORIBI_RESPONSE_FIELDS_MAX + over; i++)
            n += (size_t)snprintf(head + n, sizeof(head) - n, "a: b\r\n");
        (void)snprintf(head + n, sizeof(head) - n, "\r\n");
        says(far, head);
        is_str(fake_heard(call), over ? "+ - fail 502 " : "+ - begin 204 . ");
        fake_end();
    }
}

static void test_a_bad_chunk_cuts_the_answer(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = fake_out(get, &far);
    says(far, CHUNKED "5\r\nhello\r\n");
    says(far, "x\r\n");
    is_str(fake_heard(call), "+ - begin 200 hello cut 502 ");
    ok_eq(fake_gauge(FAKE_CHANNELS), 0);
    fake_end();
}

static void test_bytes_behind_an_answer_end_the_channel_and_not_the_answer(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = fake_out(get, &far);
    says(far, LENGTH "hello!");
    is_str(fake_heard(call), "+ - begin 200 hello. ");
    ok_eq(fake_gauge(FAKE_CHANNELS), 0);
    call = fake_out(get, &far);
    says(far, "HTTP/1.1 204 No Content\r\n\r\n!");
    is_str(fake_heard(call), "+ - begin 204 . ");
    ok_eq(fake_gauge(FAKE_CHANNELS), 0);
    fake_end();
}

static void test_a_channel_that_an_application_has_had_is_used_no_more(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = fake_out(get, &far);
    fake_lends(far);
    says(far, LENGTH "hello");
    is_str(fake_heard(call), "+ - begin 200 hello. ");
    ok_eq(fake_gauge(FAKE_CHANNELS), 0);
    fake_end();
}

static void test_a_channel_whose_worker_has_hung_up_is_used_no_more(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = fake_out(get, &far);
    fake_answers(far, LENGTH "hello");
    fake_far_closes(far);
    fake_turn();
    is_str(fake_heard(call), "+ - begin 200 hello. ");
    ok_eq(fake_gauge(FAKE_CHANNELS), 0);
    fake_end();
}

/* --- deaths of workers --- */

static void test_a_safe_request_goes_to_another_worker_twice(void)
{
    int far;
    fake_begin((struct fake_setup){.workers = 3});
    int call = fake_out(get, &far);
    fake_far_dies(far);
    fake_turn();
    is_str(fake_heard(call), "+ - + - ");
    ok_eq(fake_counters()->posted_count, 1);
    fake_far_dies(fake_take(1));
    fake_turn();
    is_str(fake_heard(call), "+ - + - + - ");
    fake_far_dies(fake_take(2));
    fake_turn();
    is_str(fake_heard(call), "+ - + - + - fail 502 ");
    ok_eq(fake_counters()->posted_count, 2);
    ok_eq(fake_counters()->call_count, 3);
    ok_eq(fake_counters()->uncalled_count, 1);
    fake_end();
}

static void test_a_request_that_is_made_again_goes_before_others(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = fake_out(get, &far);
    int later = fake_submit(get);
    fake_far_dies(far);
    fake_turn();
    ok(fake_is_out(call) && fake_is_queued(later));
    is_str(fake_asked(fake_take(0)), "GET /0 HTTP/1.1\r\nHost: a\r\n\r\n");
    fake_end();
}

static void test_an_unsafe_request_is_made_once(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = fake_out(post, &far);
    fake_far_dies(far);
    fake_turn();
    is_str(fake_heard(call), "+ - fail 502 ");
    is_str(fake_reason(call), "the worker ended in the call");
    fake_end();
}

static void test_a_request_that_has_an_answer_s_first_byte_is_not_made_again(void)
{
    static const char *const begun[] = {"H", "HTTP/1.1 103 A\r\n\r\n", LENGTH, LENGTH "hell",
                                        CHUNKED "5\r\nhello\r\n0\r\n"};
    for (size_t i = 0; i < sizeof(begun) / sizeof(begun[0]); i++) {
        int far;
        fake_begin((struct fake_setup){0});
        int call = fake_out(get, &far);
        fake_answers(far, begun[i]);
        fake_far_dies(far);
        fake_turn();
        const char *heard = fake_heard(call);
        ok_named(strstr(heard, i < 2 ? "fail 502 " : "cut 502 ") != NULL, "after %zu bytes", strlen(begun[i]));
        ok_eq(fake_counters()->posted_count, 0);
        ok_eq(fake_gauge(FAKE_CHANNELS), 0);
        fake_end();
    }
}

static void test_a_worker_that_sends_no_more_is_as_one_that_died(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = fake_out(get, &far);
    fake_answers(far, LENGTH "he");
    fake_far_shuts(far);
    fake_turn();
    is_str(fake_heard(call), "+ - begin 200 he cut 502 ");
    fake_end();
}

/* --- long records, which are taken where they lie --- */

/* One record: a head with `fields` bytes of a field, and n bytes in the framing of `how`. */
static void says_long(int far, const char *how, size_t fields, size_t n)
{
    static char record[ORIBI_RING_RECORD_MAX];
    int len = snprintf(record, sizeof(record), "HTTP/1.1 200 OK\r\n");
    if (fields) {
        len += snprintf(record + len, sizeof(record) - (size_t)len, "X-Long: ");
        memset(record + len, 'l', fields);
        len += (int)fields;
        len += snprintf(record + len, sizeof(record) - (size_t)len, "\r\n");
    }
    if (how[0] == 'l')
        len += snprintf(record + len, sizeof(record) - (size_t)len, "Content-Length: %zu\r\n\r\n", n);
    else if (how[0] == 'c')
        len += snprintf(record + len, sizeof(record) - (size_t)len, "Transfer-Encoding: chunked\r\n\r\n%zx\r\n", n);
    else
        len += snprintf(record + len, sizeof(record) - (size_t)len, "\r\n");
    memset(record + len, 'b', n);
    len += (int)n;
    if (how[0] == 'c')
        len += snprintf(record + len, sizeof(record) - (size_t)len, "\r\n0\r\n\r\n");
    fake_answers_bytes(far, record, (size_t)len);
}

static void test_long_records_are_answers_as_others(void)
{
    static const size_t fields[] = {0, 7000, 12 * 1000};
    for (int i = 0; i < 3; i++) {
        for (int times = 0; times < 2; times++) {
            int far;
            fake_begin((struct fake_setup){0});
            int call = fake_out(get, &far);
            says_long(far, times ? "chunked" : "length", fields[i], 100 * 1000);
            fake_turn();
            is_str(fake_heard(call), "+ - begin 200 100000. ");
            ok(fake_gauge(FAKE_IDLE_CHANNELS) == 1);
            call = fake_submit(get);
            fake_dispatch();
            (void)fake_asked(far);
            says(far, LENGTH "hello");
            is_str(fake_heard(call), "+ - begin 200 hello. ");
            fake_end();
        }
    }
}

static void test_a_client_goes_while_a_long_record_is_taken(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = fake_out((struct fake_request){.goes_in = 'b'}, &far);
    says_long(far, "endless", 0, 100 * 1000);
    fake_turn();
    ok(!fake_upstream(call));
    fake_end();
    fake_begin((struct fake_setup){0});
    call = fake_out((struct fake_request){.goes_in = 'm'}, &far);
    says(far, ENDLESS);
    fake_floods(far, 60 * 1000);
    fake_turn();
    ok(!fake_upstream(call));
    fake_end();
}

static void test_interim_heads_in_front_of_a_long_record(void)
{
    static char text[50 * 1000];
    int far;
    int len = snprintf(text, sizeof(text), "HTTP/1.1 103 A\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 40000\r\n\r\n");
    memset(text + len, 'b', 40000);
    fake_begin((struct fake_setup){0});
    int call = fake_out(get, &far);
    fake_answers_bytes(far, text, (size_t)len + 40000);
    fake_turn();
    is_str(fake_heard(call), "+ - interim 103 begin 200 40000. ");
    fake_end();
}

/* --- back-pressure --- */

static void test_a_worker_waits_above_the_high_mark_until_the_low_one(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = fake_out(slow, &far);
    says(far, ENDLESS);
    size_t sent = 0;
    for (int i = 0; i < 64; i++) {
        sent += fake_floods(far, 64 * 1024);
        fake_turn();
    }
    ok(fake_is_blocked(call));
    ok(fake_untaken(call) > FAKE_HIGH && fake_untaken(call) <= FAKE_HIGH + ORIBI__CHANNEL_SCRATCH_BYTES);
    ok(sent < 64 * 64 * 1024);
    int64_t before = fake_untaken(call);
    fake_takes(call, before - FAKE_LOW - 1);
    ok(fake_is_blocked(call) && fake_untaken(call) == FAKE_LOW + 1);
    fake_takes(call, 1);
    ok(fake_is_blocked(call) && fake_untaken(call) > FAKE_HIGH); /* the channel was read on */
    fake_end();
}

static void test_exactly_the_high_mark_does_not_block(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = fake_out(slow, &far);
    says(far, ENDLESS);
    for (size_t sent = 0; sent < FAKE_HIGH; sent += 32 * 1024) {
        ok_eq(fake_floods(far, 32 * 1024), 32 * 1024);
        fake_turn();
    }
    ok_eq(fake_untaken(call), FAKE_HIGH);
    ok(!fake_is_blocked(call));
    ok_eq(fake_floods(far, 1), 1);
    fake_turn();
    ok(fake_is_blocked(call));
    fake_end();
}

/* The loop tells of a socket once, maybe together with what the ring has. */
static void test_a_long_answer_is_read_to_its_end_without_another_event(void)
{
    enum { BYTES = 200 * 1024 };
    int far;
    fake_begin((struct fake_setup){0});
    int call = fake_out((struct fake_request){.streams = true}, &far);
    fake_answers(far, ENDLESS);
    ok_eq(fake_floods(far, BYTES), BYTES);
    for (int i = 0; i < 20; i++)
        fake_channels();
    ok_eq(fake_untaken(call), BYTES);
    fake_end();
}

/* Others have their turn beside a worker that writes as fast as it is read. */
static void test_a_turn_reads_so_much_and_the_next_one_goes_on(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = fake_out((struct fake_request){.feeds = true}, &far);
    fake_answers(far, ENDLESS);
    struct oribi__channel *channel = fake_upstream(call)->channel;
    fake_reads(channel);
    ok_eq(fake_events(call), READS_MAX); /* the head from the ring, and what follows from the socket */
    fake_reads(channel);
    ok_eq(fake_events(call), 2 * READS_MAX);
    fake_channels();
    ok_eq(fake_events(call), 3 * READS_MAX);
    fake_channels();
    ok_eq(fake_events(call), 4 * READS_MAX);
    fake_end();
}

static void test_much_is_read_in_several_turns(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = fake_out((struct fake_request){.keeps = true}, &far);
    says(far, ENDLESS);
    size_t sent = fake_floods(far, 8 * 1024 * 1024);
    fake_far_closes(far); /* the socket still has it all */
    for (int i = 0; i < 4; i++)
        fake_turn();
    ok(sent > 2 * ORIBI__CHANNEL_SCRATCH_BYTES);
    ok(strstr(fake_heard(call), "more . ") != NULL);
    fake_end();
}

/* --- clients that go in an event --- */

static void test_a_client_goes_in_each_event(void)
{
    static const struct {
        char event;
        const char *heard;
    } cases[] = {
        {'i', "+ - interim 103 "},
        {'b', "+ - interim 103 begin 200 he "},
        {'m', "+ - interim 103 begin 200 he more l "},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int far;
        fake_begin((struct fake_setup){0});
        int call = fake_out((struct fake_request){.goes_in = cases[i].event}, &far);
        says(far, "HTTP/1.1 103 A\r\n\r\n" LENGTH "he");
        if (fake_upstream(call))
            says(far, "l");
        is_str(fake_heard(call), cases[i].heard);
        ok(!fake_upstream(call) && fake_is_over(far));
        ok_eq(fake_gauge(FAKE_ABANDONED), 1);
        fake_far_closes(far);
        fake_turn();
        ok_eq(fake_gauge(FAKE_OUT), 0);
        fake_end();
    }
}

static void test_a_tunnel_takes_the_channel(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = fake_out((struct fake_request){.upgrades = true}, &far);
    says(far, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nrest");
    is_str(fake_heard(call), "+ - tunnel rest ");
    ok_eq(fake_gauge(FAKE_CHANNELS), 0);
    ok_eq(fake_gauge(FAKE_OUT), 0);
    fake_end();
}

static void test_a_client_goes_when_its_tunnel_begins(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = fake_out((struct fake_request){.upgrades = true, .goes_in = 't'}, &far);
    says(far, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n");
    ok(!fake_upstream(call) && fake_is_over(far));
    fake_far_closes(far);
    fake_turn();
    ok_eq(fake_gauge(FAKE_CHANNELS), 0);
    fake_end();
}

/* --- what is learnt of a worker --- */

/* The worker has made `calls` more, which took so long together. */
static void made(uint64_t calls, uint64_t us)
{
    struct oribi_slot *slot = fake_slot(0);
    atomic_fetch_add(&slot->call_time.sum_us, us);
    atomic_fetch_add(&slot->request_count, calls);
}

static void answered_in(int far, int ms)
{
    (void)fake_submit(get);
    fake_dispatch();
    fake_passes_ms(ms);
    says(far, LENGTH "hello");
}

/* By the worker's count, and not by the clock: what a call has waited for the processor is no part of it. */
static void test_how_long_calls_take_is_averaged(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int call = fake_out(get, &far);
    made(1, 8000);
    fake_passes_ms(50);
    says(far, LENGTH "hello");
    ok_eq(fake_average_of(0), 8000);
    made(4, 4 * 16000);
    answered_in(far, 50);
    ok_eq(fake_average_of(0), 8000); /* one that is longer may be chance */
    made(4, 4 * 16000);
    answered_in(far, 50);
    ok_eq(fake_average_of(0), 9000);
    answered_in(far, 50); /* it was answered without a call */
    ok_eq(fake_average_of(0), 9000);
    for (int i = 0; i < 2; i++) {
        made(1, 5 * 1000 * 1000);
        answered_in(far, 50);
    }
    ok_eq(fake_average_of(0), ((9000 * 7 + 16000) / 8 * 7 + 1000 * 1000) / 8);
    ok(!fake_upstream(call));
    fake_end();
}

/* Its counters begin again at 0. */
static void test_another_process_in_the_slot(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    (void)fake_out(get, &far);
    made(10, 10 * 1000);
    fake_passes_ms(1);
    says(far, LENGTH "hello");
    ok_eq(fake_average_of(0), 1000);
    atomic_store(&fake_slot(0)->request_count, 2);
    atomic_store(&fake_slot(0)->call_time.sum_us, 2 * 9000);
    answered_in(far, 1);
    ok_eq(fake_average_of(0), 1000);
    for (int i = 0; i < 2; i++) {
        made(1, 9000);
        answered_in(far, 1);
    }
    ok_eq(fake_average_of(0), 2000);
    fake_end();
}

int main(void)
{
    test_answers_end_where_their_framing_says();
    test_answers_are_the_same_at_every_cut();
    test_trailers_of_a_request_are_none_of_its_answer();
    test_an_answer_to_head_has_no_body();
    test_an_answer_without_an_end_lasts_until_the_worker_closes();
    test_no_event_tells_of_nothing();
    test_a_bad_answer_fails_the_call_and_ends_the_channel();
    test_a_head_has_a_maximum();
    test_fields_have_a_maximum();
    test_a_bad_chunk_cuts_the_answer();
    test_bytes_behind_an_answer_end_the_channel_and_not_the_answer();
    test_a_channel_that_an_application_has_had_is_used_no_more();
    test_a_channel_whose_worker_has_hung_up_is_used_no_more();
    test_a_safe_request_goes_to_another_worker_twice();
    test_a_request_that_is_made_again_goes_before_others();
    test_an_unsafe_request_is_made_once();
    test_a_request_that_has_an_answer_s_first_byte_is_not_made_again();
    test_a_worker_that_sends_no_more_is_as_one_that_died();
    test_long_records_are_answers_as_others();
    test_a_client_goes_while_a_long_record_is_taken();
    test_interim_heads_in_front_of_a_long_record();
    test_a_worker_waits_above_the_high_mark_until_the_low_one();
    test_exactly_the_high_mark_does_not_block();
    test_a_long_answer_is_read_to_its_end_without_another_event();
    test_a_turn_reads_so_much_and_the_next_one_goes_on();
    test_much_is_read_in_several_turns();
    test_a_client_goes_in_each_event();
    test_a_tunnel_takes_the_channel();
    test_a_client_goes_when_its_tunnel_begins();
    test_how_long_calls_take_is_averaged();
    test_another_process_in_the_slot();
    return done_testing();
}
