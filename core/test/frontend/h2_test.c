/* Answers, maxima, memory and reentrancy of a session; what frames of a client do is in spec/http2. */
#include "frontend/h2_private.h"

#include "h2_frame.h"
#include "h2_lab.h"
#include "tap.h"

#include <malloc.h>

static struct lab lab;
static struct oribi_buf bytes;

static void send_now(void)
{
    (void)lab_feed(&lab, bytes.p, bytes.len);
    bytes.len = 0;
}

static void send_line(const char *line)
{
    frame_put_str(&bytes, line);
    send_now();
}

/* A connection whose SETTINGS are exchanged. */
static void begin(enum lab_manner manner)
{
    lab.manner = manner;
    lab_begin(&lab);
    lab.skip_frames++;
    frame_put_str(&bytes, "preface");
    frame_put_str(&bytes, "SETTINGS 0");
    frame_put_str(&bytes, "SETTINGS 0 ACK");
    send_now();
    lab_drain(&lab, 1);
}

static void begin_call(void)
{
    lab_init(&lab);
    begin(LAB_HOLDS);
    send_line("HEADERS 1 END_STREAM END_HEADERS get");
}

static void end(void)
{
    lab_deinit(&lab);
    oribi_buf_deinit(&bytes);
}

static bool has_sent(const char *text)
{
    lab_drain(&lab, 1 << 20);
    oribi_buf_append(&lab.frames, "", 1);
    lab.frames.len--;
    if (strcmp(lab.frames.p, text) == 0)
        return true;
    diag("sent: %s", lab.frames.p);
    return false;
}

static struct oribi_field field_of(const char *name, const char *value)
{
    return (struct oribi_field){
        .name = name, .value = value, .name_len = (uint16_t)strlen(name), .value_len = (uint32_t)strlen(value)};
}

static int answer_with(const char *name, const char *value, bool last)
{
    struct oribi_field field = field_of(name, value);
    return oribi_h2_answer(lab.streams[0].stream, 200, &field, 1, last);
}

/* ---- answers ---- */

static void test_names_become_lower_case(void)
{
    begin_call();
    ok_eq(answer_with("X-Mixed-Case", " \tva lue ", true), 0);
    ok(has_sent("HEADERS 1 END_STREAM :status=200 x-mixed-case=va lue\n"));
    end();
}

static void test_fields_of_a_connection_are_left_out(void)
{
    struct oribi_field fields[] = {
        field_of("Connection", "close, X-Hop ,Other"),
        field_of("Keep-Alive", "timeout=5"),
        field_of("Transfer-Encoding", "chunked"),
        field_of("Upgrade", "h2c"),
        field_of("Proxy-Connection", "close"),
        field_of("TE", "trailers"),
        field_of("x-hop", "1"),
        field_of("X-Stays", "2"),
        field_of("OTHER", "3"),
    };
    begin_call();
    ok_eq(oribi_h2_answer(lab.streams[0].stream, 200, fields, 9, true), 0);
    ok(has_sent("HEADERS 1 END_STREAM :status=200 x-stays=2\n"));
    end();
}

/* RFC 9110 8.6; a client that is strict resets the stream. */
static void test_the_length_of_what_has_no_body_is_left_out(void)
{
    struct oribi_field fields[] = {field_of("Content-Length", "5"), field_of("x", "y")};
    begin_call();
    ok_eq(oribi_h2_interim(lab.streams[0].stream, 103, fields, 2), 0);
    ok_eq(oribi_h2_answer(lab.streams[0].stream, 204, fields, 2, true), 0);
    ok(has_sent("HEADERS 1 :status=103 x=y\nHEADERS 1 END_STREAM :status=204 x=y\n"));
    end();
    begin_call();
    ok_eq(oribi_h2_answer(lab.streams[0].stream, 304, fields, 2, true), 0);
    ok(has_sent("HEADERS 1 END_STREAM :status=304 content-length=5 x=y\n"));
    end();
}

static void test_what_no_answer_may_have(void)
{
    struct oribi_field field = field_of("x", "y");
    struct oribi_field lengths[] = {field_of("content-length", "1"), field_of("Content-Length", "1")};
    begin_call();
    struct oribi_h2_stream *stream = lab.streams[0].stream;
    ok_eq(answer_with("x y", "z", true), ORIBI_EAPP);
    ok_eq(answer_with(":status", "z", true), ORIBI_EAPP);
    ok_eq(answer_with("", "z", true), ORIBI_EAPP);
    ok_eq(answer_with("x", "a\r\nb: c", true), ORIBI_EAPP);
    ok_eq(answer_with("content-length", "5x", false), ORIBI_EAPP);
    ok_eq(answer_with("content-length", "", false), ORIBI_EAPP);
    ok_eq(answer_with("content-length", "9223372036854775808", false), ORIBI_EAPP);
    ok_eq(answer_with("content-length", "5", true), ORIBI_EAPP);
    ok_eq(oribi_h2_answer(stream, 200, lengths, 2, false), ORIBI_EAPP);
    ok_eq(oribi_h2_answer(stream, 199, &field, 1, true), ORIBI_EAPP);
    ok_eq(oribi_h2_answer(stream, 1000, &field, 1, true), ORIBI_EAPP);
    ok_eq(oribi_h2_interim(stream, 99, &field, 1), ORIBI_EAPP);
    ok_eq(oribi_h2_interim(stream, 101, &field, 1), ORIBI_EAPP);
    ok_eq(oribi_h2_interim(stream, 200, &field, 1), ORIBI_EAPP);
    ok(has_sent(""));
    ok_eq(oribi_h2_interim(stream, 103, &field, 1), 0);
    ok_eq(oribi_h2_answer(stream, 999, &field, 1, false), 0);
    ok_eq(oribi_h2_interim(stream, 103, &field, 1), ORIBI_EAPP);
    ok_eq(oribi_h2_answer(stream, 200, &field, 1, false), ORIBI_EAPP);
    ok(has_sent("HEADERS 1 :status=103 x=y\nHEADERS 1 :status=999 x=y\n"));
    oribi_h2_reset(stream, ORIBI_H2_CANCEL);
    ok_eq(oribi_h2_answer(stream, 200, &field, 1, false), ORIBI_ECLOSED);
    ok_eq(oribi_h2_interim(stream, 103, &field, 1), ORIBI_ECLOSED);
    ok_eq(oribi_h2_trailers(stream, &field, 1), ORIBI_ECLOSED);
    end();
}

static void test_as_many_fields_as_an_answer_may_have(void)
{
    static struct oribi_field fields[ORIBI_RESPONSE_FIELDS_MAX + 1];
    for (size_t i = 0; i < ORIBI_RESPONSE_FIELDS_MAX + 1; i++)
        fields[i] = field_of("x", "y");
    begin_call();
    ok_eq(oribi_h2_answer(lab.streams[0].stream, 200, fields, ORIBI_RESPONSE_FIELDS_MAX + 1, true), ORIBI_EAPP);
    ok_eq(oribi_h2_answer(lab.streams[0].stream, 200, fields, ORIBI_RESPONSE_FIELDS_MAX, true), 0);
    end();
}

static int feed_client(nghttp2_session *client)
{
    struct oribi_slice out = oribi_h2_output(lab.h2, 0, lab.now_ms);
    ssize_t n = nghttp2_session_mem_recv(client, (const uint8_t *)out.p, out.n);
    oribi_h2_sent(lab.h2, out.n);
    return n == (ssize_t)out.n ? 0 : (int)n;
}

static int count_field(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
                       const uint8_t *value, size_t value_len, uint8_t flags, void *self)
{
    *(size_t *)self += value_len;
    return 0;
}

static void test_a_head_longer_than_a_frame(void)
{
    enum { LONG = 20 * 1000, FIELDS = 5 };
    nghttp2_session_callbacks *callbacks;
    nghttp2_session *client;
    struct oribi_field fields[FIELDS];
    const uint8_t *p;
    char *value = oribi_mem_alloc(LONG, 1);
    size_t got = 0;
    memset(value, 'X', LONG); /* eight bits in Huffman's code */
    for (size_t i = 0; i < FIELDS; i++) {
        fields[i] = field_of("x-long", "");
        fields[i].value = value;
        fields[i].value_len = LONG;
    }
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, count_field);
    nghttp2_session_client_new(&client, callbacks, &got);
    nghttp2_nv request[] = {{(uint8_t *)":method", (uint8_t *)"GET", 7, 3, 0},
                            {(uint8_t *)":scheme", (uint8_t *)"http", 7, 4, 0},
                            {(uint8_t *)":path", (uint8_t *)"/", 5, 1, 0},
                            {(uint8_t *)":authority", (uint8_t *)"a", 10, 1, 0}};
    nghttp2_submit_settings(client, 0, NULL, 0);
    nghttp2_submit_request(client, NULL, request, 4, NULL, NULL);
    lab_init(&lab);
    lab.manner = LAB_HOLDS;
    lab_begin(&lab);
    for (ssize_t n; (n = nghttp2_session_mem_send(client, &p)) > 0;)
        (void)lab_feed(&lab, p, (size_t)n);
    ok_eq(feed_client(client), 0);
    ok_eq(oribi_h2_answer(lab.streams[0].stream, 200, fields, FIELDS, true), 0);
    ok(oribi_h2_output(lab.h2, 0, lab.now_ms).n > LONG * FIELDS);
    ok_eq(feed_client(client), 0);
    ok_eq(got, LONG * FIELDS + 3);
    nghttp2_session_del(client);
    nghttp2_session_callbacks_del(callbacks);
    oribi_mem_free(value);
    end();
}

static void test_a_body_other_than_its_length_is_no_whole_answer(void)
{
    begin_call();
    lab.streams[0].body_left = 4;
    ok_eq(answer_with("content-length", "5", false), 0);
    oribi_h2_ready(lab.streams[0].stream);
    ok(has_sent("HEADERS 1 :status=200 content-length=5\nRST_STREAM 1 INTERNAL_ERROR\n"));
    end();
    begin_call();
    lab.streams[0].body_left = 6;
    ok_eq(answer_with("content-length", "5", false), 0);
    oribi_h2_ready(lab.streams[0].stream);
    ok(has_sent("HEADERS 1 :status=200 content-length=5\nRST_STREAM 1 INTERNAL_ERROR\n"));
    end();
    begin_call();
    lab.streams[0].body_left = 5;
    ok_eq(answer_with("content-length", "5", false), 0);
    oribi_h2_ready(lab.streams[0].stream);
    ok(has_sent("HEADERS 1 :status=200 content-length=5\nDATA 1 END_STREAM 5\n"));
    end();
}

static void test_a_body_that_is_lost_resets_its_stream(void)
{
    begin_call();
    struct lab_stream *mine = &lab.streams[0];
    mine->open_end = true;
    mine->body_left = 3;
    ok_eq(oribi_h2_answer(mine->stream, 200, NULL, 0, false), 0);
    oribi_h2_ready(mine->stream);
    ok(has_sent("HEADERS 1 :status=200\nDATA 1 3\n"));
    mine->is_lost = true;
    oribi_h2_ready(mine->stream);
    ok(has_sent("HEADERS 1 :status=200\nDATA 1 3\nRST_STREAM 1 INTERNAL_ERROR\n"));
    ok(strstr(lab.events.p, "reset 1 INTERNAL_ERROR\n") != NULL);
    end();
}

static void test_an_answer_in_pieces(void)
{
    begin_call();
    struct lab_stream *mine = &lab.streams[0];
    mine->open_end = true;
    mine->body_left = 3;
    oribi_h2_ready(mine->stream); /* before the head: nothing yet */
    ok(has_sent(""));
    ok_eq(oribi_h2_answer(mine->stream, 200, NULL, 0, false), 0);
    ok(has_sent("HEADERS 1 :status=200\n"));
    oribi_h2_ready(mine->stream);
    ok(has_sent("HEADERS 1 :status=200\nDATA 1 3\n"));
    ok(!oribi_h2_is_answered(mine->stream));
    mine->open_end = false;
    oribi_h2_ready(mine->stream);
    ok(has_sent("HEADERS 1 :status=200\nDATA 1 3\nDATA 1 END_STREAM 0\n"));
    ok(oribi_h2_is_answered(mine->stream));
    end();
}

static void test_nothing_to_send_is_no_window_that_stands_still(void)
{
    lab_init(&lab);
    begin(LAB_HOLDS);
    send_line("SETTINGS 0 u16:4 u32:3");
    send_line("HEADERS 1 END_STREAM END_HEADERS get");
    struct lab_stream *mine = &lab.streams[0];
    mine->open_end = true;
    mine->body_left = 3;
    ok_eq(oribi_h2_answer(mine->stream, 200, NULL, 0, false), 0);
    oribi_h2_ready(mine->stream);
    lab_drain(&lab, 1000);
    ok(oribi_h2_deadline(lab.h2) == INT64_MAX);
    mine->body_left = 1;
    oribi_h2_ready(mine->stream);
    lab_drain(&lab, 1000);
    ok_eq(oribi_h2_deadline(lab.h2), lab.now_ms + lab.limits.write_timeout_ms);
    end();
}

static void test_trailers_behind_an_answer(void)
{
    struct oribi_field fields[] = {field_of("X-Sum", "1"), field_of("Connection", "x-no"), field_of("x-no", "2")};
    begin_call();
    lab.streams[0].body_left = 3;
    ok_eq(oribi_h2_answer(lab.streams[0].stream, 200, NULL, 0, false), 0);
    ok_eq(oribi_h2_trailers(lab.streams[0].stream, fields, 3), 0);
    ok_eq(oribi_h2_trailers(lab.streams[0].stream, fields, 3), ORIBI_EAPP);
    oribi_h2_ready(lab.streams[0].stream);
    ok(has_sent("HEADERS 1 :status=200\nDATA 1 3\nHEADERS 1 END_STREAM x-sum=1\n"));
    end();
}

static void test_trailers_as_long_as_may_be(void)
{
    static char value[ORIBI_TRAILER_BYTES_MAX];
    memset(value, 'v', sizeof(value) - 1);
    struct oribi_field field = field_of("x", value);
    begin_call();
    field.value_len = ORIBI_TRAILER_BYTES_MAX - 2;
    ok_eq(oribi_h2_trailers(lab.streams[0].stream, &field, 1), ORIBI_EAPP);
    field.value_len--;
    ok_eq(oribi_h2_trailers(lab.streams[0].stream, &field, 1), 0);
    field.value = "a\nb";
    field.value_len = 3;
    ok_eq(oribi_h2_trailers(lab.streams[0].stream, &field, 1), ORIBI_EAPP);
    end();
}

/* ---- events that call back ---- */

static void release_at_once(void *self, struct oribi_h2_stream *stream, const struct oribi_h2_request *request)
{
    oribi_h2_release(stream);
}

static void answer_at_once(void *self, struct oribi_h2_stream *stream, const struct oribi_h2_request *request)
{
    (void)oribi_h2_answer(stream, 204, NULL, 0, true);
    oribi_h2_release(stream);
}

static void fail_at_once(void *self, struct oribi_h2_stream *stream, const struct oribi_h2_request *request)
{
    oribi_h2_fail(stream->h2, ORIBI_H2_INTERNAL_ERROR);
    oribi_h2_release(stream);
}

/* Two requests in one read, the first with a body, to an application that does `what` with each. */
static bool run_hasty(void (*what)(void *, struct oribi_h2_stream *, const struct oribi_h2_request *), const char *sent)
{
    struct oribi_h2_events events = lab_events;
    int64_t blocks = oribi_mem_blocks();
    lab_init(&lab);
    events.request = what;
    begin(LAB_HOLDS);
    oribi_h2_destroy(lab.h2);
    lab.h2 = oribi_h2_create(&lab.limits, &events, &lab, lab.now_ms);
    lab.skip_frames = 3;
    frame_put_str(&bytes, "preface");
    frame_put_str(&bytes, "SETTINGS 0");
    frame_put_str(&bytes, "HEADERS 1 END_HEADERS post");
    frame_put_str(&bytes, "DATA 1 END_STREAM text:hello");
    frame_put_str(&bytes, "HEADERS 3 END_STREAM END_HEADERS get");
    send_now();
    bool fine = has_sent(sent) && oribi_h2_streams(lab.h2) == 0;
    end();
    return fine && oribi_mem_blocks() == blocks;
}

static void test_a_request_released_within_its_event(void)
{
    ok(run_hasty(release_at_once, "RST_STREAM 1 CANCEL\nRST_STREAM 3 CANCEL\n"));
    ok(run_hasty(answer_at_once, "HEADERS 1 END_STREAM :status=204\n"
                                 "HEADERS 3 END_STREAM :status=204\n"));
    ok(run_hasty(fail_at_once, "GOAWAY 1 INTERNAL_ERROR\n"));
}

/* ---- memory ---- */

static size_t heap_bytes(void) /* in use */
{
    return mallinfo2().uordblks;
}

/* False under a sanitizer, whose allocator keeps no such books. */
static bool heap_counts(void)
{
    size_t before = heap_bytes();
    void *p = oribi_mem_alloc(1, 100 * 1000);
    bool counts = heap_bytes() > before + 90 * 1000;
    oribi_mem_free(p);
    return counts;
}

/* Blocks that the session has: the test's own are given up before. */
static int64_t session_blocks(int64_t before)
{
    oribi_buf_deinit(&bytes);
    oribi_buf_deinit(&lab.frames);
    oribi_buf_deinit(&lab.events);
    oribi_buf_deinit(&lab.bytes);
    return oribi_mem_blocks() - before;
}

static void test_a_session_that_sleeps_is_small(void)
{
    int64_t before = oribi_mem_blocks();
    lab_init(&lab);
    lab.limits.sleeps = true;
    begin(LAB_ANSWERS);
    ok(oribi_h2_sleep(lab.h2));
    ok_eq(session_blocks(before), 1);
    send_line("HEADERS 1 END_STREAM END_HEADERS get indexed:user-agent=\\{120*a}");
    lab_drain(&lab, 1 << 20);
    ok_eq(oribi_h2_streams(lab.h2), 0);
    ok(session_blocks(before) > 10);
    ok(oribi_h2_sleep(lab.h2));
    ok_eq(session_blocks(before), 2);
    size_t asleep = malloc_usable_size(lab.h2) + malloc_usable_size(lab.h2->remembered.p);
    diag("bytes asleep: %zu", asleep);
    ok(asleep <= 1024);
    end();
}

static void test_sleep_is_refused(void)
{
    lab_init(&lab);
    begin(LAB_HOLDS);
    ok(!oribi_h2_sleep(lab.h2)); /* limits.sleeps is off */
    end();
    lab_init(&lab);
    lab.limits.sleeps = true;
    begin(LAB_HOLDS);
    ok(oribi_h2_sleep(lab.h2));
    (void)lab_feed(&lab, "\0\0", 2);
    ok(!oribi_h2_sleep(lab.h2)); /* half a frame's head */
    (void)lab_feed(&lab, "\10\6\0\0\0\0\0\0\0\0\0\0\0\0\0", 15);
    ok(!oribi_h2_sleep(lab.h2)); /* PING is not answered yet */
    lab_drain(&lab, 1);
    ok(oribi_h2_sleep(lab.h2));
    send_line("HEADERS 1 END_STREAM END_HEADERS hex:20 get");
    ok(!oribi_h2_sleep(lab.h2)); /* a stream */
    lab_release(&lab, 1);
    lab_drain(&lab, 1);
    ok(oribi_h2_sleep(lab.h2));
    oribi_h2_shutdown(lab.h2, lab.now_ms);
    lab_drain(&lab, 1);
    ok(!oribi_h2_sleep(lab.h2)); /* the second GOAWAY is due */
    end();
}

/* Everything that a client can have us keep at once. */
static void test_memory_of_one_client_is_bounded(void)
{
    char line[200];
    lab_init(&lab);
    lab.stores = true;
    size_t before = heap_bytes();
    begin(LAB_HOLDS);
    size_t most = 0;
    for (uint32_t id = 1; id < 400; id += 2) { /* streams, large heads, a table that is always full */
        snprintf(line, sizeof(line), "HEADERS %u END_HEADERS post indexed:x-%u=\\{3000*a} field:y=\\{12000*b}", id, id);
        lab.events.len = 0;
        send_line(line);
        snprintf(line, sizeof(line), "DATA %u zero:10000", id);
        if (id < 200)
            send_line(line);
        lab.frames.len = 0;
        lab_drain(&lab, 1);
        if (heap_bytes() - before > most)
            most = heap_bytes() - before;
    }
    ok_eq(oribi_h2_streams(lab.h2), 100);
    diag("most bytes on the heap, the test's own among them: %zu", most);
    ok(most < 256 * 1024 || !heap_counts());
    end();
}

static void test_no_input_is_wanted_while_much_is_unsent(void)
{
    struct oribi_field field = field_of("x", "");
    char *value = oribi_mem_alloc(1, ORIBI_H2_UNSENT_BYTES_MAX);
    memset(value, 'X', ORIBI_H2_UNSENT_BYTES_MAX);
    begin_call();
    field.value = value;
    field.value_len = 60 * 1000;
    ok_eq(oribi_h2_interim(lab.streams[0].stream, 103, &field, 1), 0);
    ok_eq(oribi_h2_interim(lab.streams[0].stream, 103, &field, 1), 0);
    ok(oribi_h2_wants_input(lab.h2));
    ok_eq(oribi_h2_interim(lab.streams[0].stream, 103, &field, 1), 0);
    ok(!oribi_h2_wants_input(lab.h2));
    ok_eq(oribi_h2_interim(lab.streams[0].stream, 103, &field, 1), ORIBI_ELIMIT);
    oribi_mem_free(value);
    end();
}

/* A caller that goes on reading all the same: acknowledgements that nobody reads have an end. */
static void test_unread_acknowledgements_have_an_end(void)
{
    lab_init(&lab);
    lab.limits.frames_max = 1000 * 1000;
    begin(LAB_HOLDS);
    size_t count = 0;
    while (!oribi_h2_is_over(lab.h2) && count++ < 100 * 1000)
        send_line("PING 0 zero:8");
    ok_eq(count, ORIBI_H2_CONTROL_BYTES_MAX / 17 + 2);
    end();
}

/* A read may bring many frames too many: they are taken, and then nothing is read until one more is due. */
static void test_a_trusted_client_that_floods_waits(void)
{
    lab_init(&lab);
    lab.limits.trusted = true;
    lab.limits.frames_max = 4; /* SETTINGS and its acknowledgement are two */
    lab.limits.frames_per_s = 100;
    begin(LAB_ANSWERS);
    for (int i = 0; i < 2; i++)
        send_line("PING 0 zero:8");
    ok(oribi_h2_wants_input(lab.h2));
    ok(oribi_h2_deadline(lab.h2) == INT64_MAX);
    for (int i = 0; i < 1000; i++)
        send_line("PING 0 zero:8");
    lab_drain(&lab, 1);
    ok(!oribi_h2_wants_input(lab.h2));
    ok_eq(oribi_h2_deadline(lab.h2), lab.now_ms + 10);
    lab.now_ms += 9;
    oribi_h2_tick(lab.h2, lab.now_ms);
    ok(!oribi_h2_wants_input(lab.h2));
    lab.now_ms += 1;
    oribi_h2_tick(lab.h2, lab.now_ms);
    ok(oribi_h2_wants_input(lab.h2));
    ok(oribi_h2_deadline(lab.h2) == INT64_MAX);
    ok(!oribi_h2_is_over(lab.h2));
    end();
}

/* ---- the rest ---- */

static void test_rates(void)
{
    struct h2_rate rate = {2000, 1000};
    ok(oribi__h2_rate_take(&rate, 2, 10, 1000));
    ok(oribi__h2_rate_take(&rate, 2, 10, 1000));
    ok(!oribi__h2_rate_take(&rate, 2, 10, 1099));
    ok(oribi__h2_rate_take(&rate, 2, 10, 1100));
    ok(oribi__h2_rate_take(&rate, 2, 10, INT64_MAX / 2)); /* a day later, and no more than all */
    ok(oribi__h2_rate_take(&rate, 2, 10, INT64_MAX / 2));
    ok(!oribi__h2_rate_take(&rate, 2, 10, INT64_MAX / 2));
    rate = (struct h2_rate){1000, 0};
    ok(oribi__h2_rate_take(&rate, 1, 0, 0));
    ok(!oribi__h2_rate_take(&rate, 1, 0, 1000 * 1000));
}

static int priority_of(const char *text)
{
    uint8_t urgency = 3;
    bool incremental = false;
    char *copy = oribi_mem_alloc(1, strlen(text) + 1);
    memcpy(copy, text, strlen(text));
    oribi__h2_priority_read(oribi_slice(copy, strlen(text)), &urgency, &incremental);
    oribi_mem_free(copy);
    return urgency * 10 + incremental;
}

static void test_priority_fields(void)
{
    ok_eq(priority_of(""), 30);
    ok_eq(priority_of("u=0"), 0);
    ok_eq(priority_of("u=7"), 70);
    ok_eq(priority_of("u=8"), 30);
    ok_eq(priority_of("u=-1"), 30);
    ok_eq(priority_of("u=10"), 30);
    ok_eq(priority_of("u="), 30);
    ok_eq(priority_of("i"), 31);
    ok_eq(priority_of("i=?1"), 31);
    ok_eq(priority_of("i, i=?0"), 30);
    ok_eq(priority_of("i=?"), 30);
    ok_eq(priority_of("u=1, i"), 11);
    ok_eq(priority_of(" u=1 ,\ti "), 11);
    ok_eq(priority_of("u=1;x=2, i;y"), 11);
    ok_eq(priority_of("x=\"a,u=0\\\",i\", u=5"), 50);
    ok_eq(priority_of("x=\"u=0"), 30);
    ok_eq(priority_of("ui, iu, u"), 30);
    ok_eq(priority_of("u=1, u=2"), 20);
}

static void test_settings_are_what_the_limits_say(void)
{
    lab_init(&lab);
    lab.limits.streams_max = 7;
    lab.limits.stream_window = 70000;
    lab.limits.http.head_bytes_max = 5000;
    lab_begin(&lab);
    struct oribi_slice out = oribi_h2_output(lab.h2, 0, lab.now_ms);
    static const char expected[] = "\0\0\x1e\4\0\0\0\0\0"            /* SETTINGS */
                                   "\0\1\0\0\x10\0"                  /* HEADER_TABLE_SIZE 4096 */
                                   "\0\3\0\0\0\7"                    /* MAX_CONCURRENT_STREAMS */
                                   "\0\4\0\1\x11\x70"                /* INITIAL_WINDOW_SIZE */
                                   "\0\6\0\0\x13\x88"                /* MAX_HEADER_LIST_SIZE */
                                   "\0\x09\0\0\0\1"                  /* NO_RFC7540_PRIORITIES */
                                   "\0\0\4\x08\0\0\0\0\0\0\x0f\0\1"; /* WINDOW_UPDATE to 1 MiB */
    is_bytes(out.p, out.n, expected, sizeof(expected) - 1);
    end();
}

int main(void)
{
    test_names_become_lower_case();
    test_fields_of_a_connection_are_left_out();
    test_the_length_of_what_has_no_body_is_left_out();
    test_what_no_answer_may_have();
    test_as_many_fields_as_an_answer_may_have();
    test_a_head_longer_than_a_frame();
    test_a_body_other_than_its_length_is_no_whole_answer();
    test_a_body_that_is_lost_resets_its_stream();
    test_an_answer_in_pieces();
    test_nothing_to_send_is_no_window_that_stands_still();
    test_trailers_behind_an_answer();
    test_trailers_as_long_as_may_be();
    test_a_request_released_within_its_event();
    test_a_session_that_sleeps_is_small();
    test_sleep_is_refused();
    test_memory_of_one_client_is_bounded();
    test_no_input_is_wanted_while_much_is_unsent();
    test_unread_acknowledgements_have_an_end();
    test_a_trusted_client_that_floods_waits();
    test_rates();
    test_priority_fields();
    test_settings_are_what_the_limits_say();
    return done_testing();
}
