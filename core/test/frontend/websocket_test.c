/* WebSockets of a frontend whose workers and clients are fakes: the handshake, one call at a time, every kind of
 * answer, deadlines with a clock that stands still, and deaths at either end. */
#include "../base/mem_counted.h"

#include "oribi/event/out.h"

static int sends;

static ssize_t counted_send(struct oribi_transport *transport, int fd, const struct iovec *vec, size_t count, bool more)
{
    sends++;
    return oribi_transport_send(transport, fd, vec, count, more);
}

#define oribi_transport_send counted_send
#include "frontend/websocket.c"
#undef oribi_transport_send

#include "fakes.h"

#define HANDSHAKE                                                                                                      \
    "GET /chat?x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"    \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
#define ANSWER                                                                                                         \
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"                                \
    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nx-room: 7\r\n\r\n"
#define MESSAGE "WS-MESSAGE /chat HTTP/1.1\r\nHost: websocket\r\nContent-Length: "
#define CLOSES  "WS-CLOSE /chat HTTP/1.1\r\nHost: websocket\r\nContent-Length: "

enum { TEXT_CAP = 16 * 1024 };

static char text[TEXT_CAP];

/* An answer of a worker: the head, and a body that may hold zeros. */
static size_t answer_of(const char *fields, const struct oribi_buf *body)
{
    int n = snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\n%sContent-Length: %zu\r\n\r\n", fields, body->len);
    if (body->len)
        memcpy(text + n, body->p, body->len);
    return (size_t)n + body->len;
}

static size_t accepted_with(uint16_t wants, struct oribi_slice state, uint32_t channels)
{
    struct oribi_buf body = {0};
    struct oribi_buf list = {0};
    for (uint32_t i = 0; i < channels; i++) {
        char name[16];
        int n = snprintf(name, sizeof(name), "room:%u", i);
        ok_eq(oribi_subscription_write(&list, oribi_slice(name, (size_t)n), oribi_slice(NULL, 0)), 0);
    }
    const struct oribi_socket_record record = {.event = ORIBI_SOCKET_ACCEPTED,
                                               .code = wants,
                                               .handler = ORIBI_SLICE("Room"),
                                               .state = state,
                                               .channels = oribi_slice(list.p, list.len)};
    ok_eq(oribi_socket_record_write(&body, &record), 0);
    oribi_buf_deinit(&list);
    size_t n = answer_of("oribi-websocket: 1\r\nx-room: 7\r\n", &body);
    oribi_buf_deinit(&body);
    return n;
}

static size_t accepted(uint16_t wants)
{
    return accepted_with(wants, ORIBI_SLICE("{\"n\":1}"), 0);
}

/* An open socket, whose worker's channel is *far: that which is there, or a new one. `n`: of the answer in `text`. */
static int open_with(int *far, size_t n)
{
    char answer[TEXT_CAP];
    memcpy(answer, text, n);
    int client = fake_h1();
    fake_says(client, HANDSHAKE);
    fake_settle();
    if (fake_waiting())
        *far = fake_take(0);
    ok(strncmp(fake_asked(*far), "GET /chat?x HTTP/1.1\r\n", 22) == 0);
    fake_answers_bytes(*far, answer, n);
    fake_settle();
    is_str(fake_hears(client), ANSWER);
    return client;
}

static int open_socket(uint16_t wants, int *far)
{
    return open_with(far, accepted(wants));
}

/* A frame whose mask is zeros, so that it is text but for its head. */
static void says(int client, int opcode, const char *data)
{
    char frame[256];
    size_t n = strlen(data);
    frame[0] = (char)(0x80 | opcode);
    frame[1] = (char)(0x80 | n);
    memcpy(frame + 2, "\0\0\0\0", 4);
    memcpy(frame + 6, data, n);
    fake_sends_raw(client, frame, n + 6);
    fake_settle();
}

/* One action is the answer; type 0: none is. */
static void acts(int far, char type, uint16_t code, const char *data)
{
    struct oribi_buf body = {0};
    const struct oribi_socket_action action = {
        .type = (enum oribi_socket_action_type)type, .code = code, .data = oribi_slice(data, strlen(data))};
    if (type)
        ok_eq(oribi_socket_action_write(&body, &action), 0);
    fake_answers_bytes(far, text, answer_of("", &body));
    oribi_buf_deinit(&body);
    fake_settle();
}

static bool hears(int client, const char *p, size_t n)
{
    const char *got = fake_hears(client);
    return fake_hears_len() == n && memcmp(got, p, n) == 0;
}

static uint64_t closed_with(uint16_t code)
{
    for (uint32_t i = 0; i < ORIBI_FRONTEND_CLOSE_CODES; i++)
        if (oribi_frontend_close_codes[i] == code)
            return fake_counters()->websocket_closed[i];
    return 0;
}

static void test_a_message_and_its_answer(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = open_socket(0, &far);
    ok_eq(fake_counters()->websocket_count, 1);
    ok_eq(fake_gauge(FAKE_CONNS_H1), 0);
    says(client, 1, "hello");
    is_str(fake_asked(far), MESSAGE "5\r\n\r\nhello");
    acts(far, 't', 0, "hello too");
    ok(hears(client, "\x81\x09hello too", 11));
    says(client, 2, "");
    is_str(fake_asked(far), MESSAGE "0\r\n\r\n");
    acts(far, 'b', 0, "x");
    ok(hears(client, "\x82\x01x", 3));
    ok_eq(fake_counters()->websocket_messages[0], 2);
    ok_eq(fake_counters()->websocket_bytes[1], 10);
    fake_end();
}

static void test_the_record_in_pieces(void)
{
    fake_begin((struct fake_setup){0});
    int client = fake_h1();
    fake_says(client, HANDSHAKE);
    fake_settle();
    int far = fake_take(0);
    size_t n = accepted(0);
    for (size_t i = 0; i < n; i++) {
        is_str(fake_hears(client), "");
        fake_answers_bytes(far, text + i, 1);
        fake_turn();
    }
    fake_settle();
    is_str(fake_hears(client), ANSWER);
    fake_end();
}

static void test_records_that_are_none(void)
{
    static const char *const bad[] = {"x", "A", "O\0\0"};
    for (size_t i = 0; i < 3; i++) {
        struct oribi_buf body = {0};
        fake_begin((struct fake_setup){0});
        int client = fake_h1();
        fake_says(client, HANDSHAKE);
        fake_settle();
        int far = fake_take(0);
        oribi_buf_append(&body, bad[i], 1);
        fake_answers_bytes(far, text, answer_of("oribi-websocket: 1\r\n", &body));
        oribi_buf_deinit(&body);
        fake_settle();
        ok(strncmp(fake_hears(client), "HTTP/1.1 502 ", 13) == 0);
        fake_end();
    }
}

static void test_ends_before_the_record_is_whole(void)
{
    for (int i = 0; i < 2; i++) {
        fake_begin((struct fake_setup){0});
        int client = fake_h1();
        fake_says(client, HANDSHAKE);
        fake_settle();
        int far = fake_take(0);
        fake_answers_bytes(far, text, accepted(0) - 1);
        fake_settle();
        if (i == 0)
            fake_far_dies(far);
        else
            fake_hangs_up(client);
        fake_settle();
        if (i == 0)
            ok(strncmp(fake_hears(client), "HTTP/1.1 502 ", 13) == 0);
        ok_eq(fake_counters()->websocket_count, 0);
        fake_end();
    }
}

static void test_one_call_at_a_time(void)
{
    int far;
    fake_begin((struct fake_setup){.workers = 2});
    int client = open_socket(0, &far);
    says(client, 1, "one");
    says(client, 1, "two");
    says(client, 9, "ping");
    is_str(fake_asked(far), MESSAGE "3\r\n\r\none");
    is_str(fake_hears(client), "");
    ok_eq(fake_gauge(FAKE_OUT), 1);
    acts(far, 's', 0, "{}");
    is_str(fake_asked(far), MESSAGE "3\r\n\r\ntwo");
    is_str(fake_hears(client), "");
    acts(far, 0, 0, "");
    ok(hears(client, "\x8a\x04ping", 6));
    fake_end();
}

static void test_open_and_close_are_called(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = open_socket(ORIBI_SOCKET_WANTS_OPEN | ORIBI_SOCKET_WANTS_CLOSE, &far);
    says(client, 1, "early");
    is_str(fake_asked(far), "WS-OPEN /chat HTTP/1.1\r\nHost: websocket\r\nContent-Length: 0\r\n\r\n");
    acts(far, 't', 0, "hi");
    ok(hears(client, "\x81\x02hi", 4));
    is_str(fake_asked(far), MESSAGE "5\r\n\r\nearly");
    acts(far, 'c', 4000, "bye");
    ok(hears(client,
             "\x88\x05\x0f\xa0"
             "bye",
             7));
    ok(!fake_is_ended(client));
    says(client, 8, "\x0f\xa0");
    ok(fake_is_ended(client));
    is_str(fake_asked(far), CLOSES "3\r\n\r\nbye");
    ok_eq(closed_with(0), 1);
    acts(far, 't', 0, "too late");
    fake_end();
}

static void test_answers_that_are_failures(void)
{
    static const struct {
        const char *answer;
        uint16_t code;
    } rows[] = {{"500 Internal Server Error", 1011},
                {"504 Gateway Timeout", 1011},
                {"410 Gone", 1012},
                {"503 Service Unavailable", 1013},
                {"302 Found", 1011}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int far;
        char answer[128];
        fake_begin((struct fake_setup){0});
        int client = open_socket(0, &far);
        says(client, 1, "x");
        (void)fake_asked(far);
        (void)snprintf(answer, sizeof(answer), "HTTP/1.1 %s\r\nContent-Length: 2\r\n\r\nno", rows[i].answer);
        fake_answers(far, answer);
        fake_settle();
        const char want[] = {'\x88', 2, (char)(rows[i].code >> 8), (char)rows[i].code};
        ok_named(hears(client, want, 4), "%s", rows[i].answer);
        fake_hangs_up(client);
        fake_settle();
        ok_eq(closed_with(rows[i].code), 1);
        fake_end();
    }
}

/* As in development: the body of a marked answer is the reason. What is no text, or too long, is none. */
static void test_failures_that_say_why(void)
{
    static const struct {
        const char *body;
        const char *want;
        size_t want_len;
    } rows[] = {
        {"said so", "\x88\x09\x03\xf3said so", 11}, {"", "\x88\x02\x03\xf3", 4}, {"\xff", "\x88\x02\x03\xf3", 4}};
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        int far;
        char answer[128];
        const char *body = rows[i / 2].body;
        size_t cut = i % 2 ? strlen(body) / 2 : 0;
        fake_begin((struct fake_setup){0});
        int client = open_socket(ORIBI_SOCKET_WANTS_CLOSE, &far);
        says(client, 1, "x");
        (void)fake_asked(far);
        int n = snprintf(answer, sizeof(answer),
                         "HTTP/1.1 500 No\r\noribi-websocket: 1\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
        fake_answers_bytes(far, answer, (size_t)n - cut);
        fake_settle();
        if (cut)
            fake_answers_bytes(far, answer + n - cut, cut);
        fake_settle();
        ok_named(hears(client, rows[i / 2].want, rows[i / 2].want_len), "\"%s\", cut %zu", body, cut);
        fake_hangs_up(client);
        fake_settle();
        const char *asked = fake_asked(far);
        ok_named(strstr(asked, body) != NULL, "on_close is told: %s", asked);
        fake_end();
    }
}

static void test_actions_that_are_none(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = open_socket(0, &far);
    says(client, 1, "x");
    (void)fake_asked(far);
    fake_answers(far, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    fake_settle();
    ok(hears(client, "\x88\x02\x03\xf3", 4));
    ok(strstr(fake_logged(), "a worker's answer cannot be read") != NULL);
    fake_end();
}

static void test_a_worker_that_dies_in_a_call(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = open_socket(ORIBI_SOCKET_WANTS_CLOSE, &far);
    int other = open_socket(0, &far);
    says(client, 1, "x");
    (void)fake_asked(far); /* unread, another worker would have it */
    fake_far_dies(far);
    fake_settle();
    ok(hears(client, "\x88\x02\x03\xf3", 4));
    ok(!fake_is_ended(other));
    ok(strstr(fake_logged(), "the worker ended in the call; closing the WebSocket with 1011") != NULL);
    fake_end();
}

static void test_pings(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    fake_options()->websocket_ping_ms = 4000;
    int client = open_socket(0, &far);
    fake_passes_ms(4000);
    fake_settle();
    ok(hears(client, "\x89\0", 2));
    says(client, 10, "");
    fake_passes_ms(3999);
    fake_settle();
    is_str(fake_hears(client), "");
    fake_passes_ms(1);
    fake_settle();
    ok(hears(client, "\x89\0", 2));
    fake_passes_ms(4000);
    fake_settle();
    ok(hears(client, "\x89\0", 2));
    ok(!fake_is_ended(client));
    fake_passes_ms(4000);
    fake_settle();
    ok(fake_is_ended(client));
    ok_eq(closed_with(1006), 1);
    fake_end();
}

static void test_a_call_is_no_silence(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    fake_options()->websocket_ping_ms = 1000;
    int client = open_socket(0, &far);
    says(client, 1, "x");
    (void)fake_asked(far);
    for (int i = 0; i < 20; i++) {
        fake_passes_ms(1000);
        fake_settle();
    }
    is_str(fake_hears(client), "");
    acts(far, 't', 0, "y");
    ok(hears(client, "\x81\x01y", 3));
    fake_end();
}

static void test_a_client_that_does_not_answer_a_close(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = open_socket(0, &far);
    says(client, 1, "x");
    (void)fake_asked(far);
    acts(far, 'c', 1000, "");
    ok(hears(client, "\x88\x02\x03\xe8", 4));
    fake_passes_ms(CLOSING_MS - 1);
    fake_settle();
    ok(!fake_is_ended(client));
    fake_passes_ms(1);
    fake_settle();
    ok(fake_is_ended(client));
    ok_eq(closed_with(1000), 1);
    fake_end();
}

static void test_a_slow_message(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    fake_options()->body_timeout_ms = 1000;
    fake_options()->body_rate_min = 10;
    int client = open_socket(0, &far);
    fake_sends_raw(client, "\x81\xa0\0\0\0\0", 6);
    for (int i = 0; i < 2; i++) {
        fake_settle();
        fake_passes_ms(600);
        fake_sends_raw(client, "xxxxxxxx", 8);
    }
    fake_settle();
    is_str(fake_hears(client), "");
    fake_passes_ms(1000);
    fake_settle();
    const char *got = fake_hears(client);
    ok(fake_hears_len() > 4 && memcmp(got, "\x88\x0a\x03\xf0", 4) == 0);
    fake_end();
}

static void test_a_drain_closes_one_after_another(void)
{
    int far;
    int clients[3];
    fake_begin((struct fake_setup){0});
    fake_options()->frontend_drain_ms = 9000;
    fake_options()->shutdown_timeout_ms = 30 * 1000;
    for (int i = 0; i < 3; i++)
        clients[i] = open_socket(0, &far);
    fake_drains();
    for (int round = 0; round < 2; round++) {
        int closed = 0;
        fake_settle();
        for (int i = 0; i < 3; i++)
            closed += hears(clients[i], "\x88\x02\x03\xf4", 4);
        ok_eq(closed, round ? 2 : 1);
        fake_passes_ms(10);
    }
    fake_end();
}

static void test_a_client_that_goes_in_a_call(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = open_socket(ORIBI_SOCKET_WANTS_CLOSE, &far);
    says(client, 1, "x");
    (void)fake_asked(far);
    fake_hangs_up(client);
    fake_settle();
    is_str(fake_asked(far), "");
    acts(far, 't', 0, "nobody hears it");
    is_str(fake_asked(far), CLOSES "0\r\n\r\n");
    acts(far, 0, 0, "");
    ok_eq(closed_with(1006), 1);
    fake_end();
}

/* --- memory, as the allocator spends it --- */

enum { IDLE_SOCKETS = 40, IDLE_BYTES_MAX = 256, ADDRESS_BYTES = 8 }; /* of a longer address and port */

/* One more that has had a message, and rests. */
static void open_idle(int *far, uint32_t channels)
{
    int client = open_with(far, accepted_with(0, oribi_slice(NULL, 0), channels));
    says(client, 1, "x");
    (void)fake_asked(*far);
    acts(*far, 't', 0, "y");
    ok(hears(client, "\x81\x01y", 3));
}

static int64_t bytes_of_idle(uint32_t channels)
{
    int far;
    fake_begin((struct fake_setup){0});
    open_idle(&far, channels); /* what all share */
    int64_t before = memory_bytes;
    for (int i = 0; i < IDLE_SOCKETS; i++)
        open_idle(&far, channels);
    int64_t bytes = memory_bytes - before;
    ok_eq(fake_frontend()->websocket_busy, 0);
    ok_eq(fake_frontend()->websockets->spare_count, 1);
    fake_end();
    return bytes / IDLE_SOCKETS;
}

static void test_what_an_idle_socket_holds(void)
{
    int64_t bytes = bytes_of_idle(0);
    ok_named(bytes + ADDRESS_BYTES <= IDLE_BYTES_MAX, "an idle socket has %d bytes", (int)bytes);
    /* arrays of channels that were grown for more sockets than there are cost them all the same */
    for (uint32_t channels = 1; channels <= 16; channels *= 2) {
        int64_t each = (bytes_of_idle(channels) - bytes) / channels;
        ok_named(each <= 32, "a subscription of %u has %d bytes", channels, (int)each);
    }
}

/* Pings that were read at once are answered at once: a flood of them costs one system call, not one each. */
static void test_many_pings(void)
{
    static char pings[50 * 6];
    static char pongs[50 * 2];
    int far;
    fake_begin((struct fake_setup){0});
    int client = open_socket(0, &far);
    for (size_t i = 0; i < 50; i++) {
        memcpy(pings + i * 6, "\x89\x80\0\0\0\0", 6);
        memcpy(pongs + i * 2, "\x8a\0", 2);
    }
    fake_sends_raw(client, pings, sizeof(pings));
    sends = 0;
    fake_settle();
    ok(hears(client, pongs, sizeof(pongs)));
    ok_eq(sends, 1);
    fake_end();
}

/* A flood of short frames is read a little in each turn, and the message of a neighbour is called beside it. */
static void test_a_flood_of_short_frames(void)
{
    enum { FRAMES = 15000, FRAME_BYTES = 6, FIRST_BYTES = 64 * 1024, NEXT_BYTES = 8 * 1024 };
    static char flood[FRAMES * FRAME_BYTES];
    int far;
    fake_begin((struct fake_setup){0});
    int client = open_socket(0, &far);
    int neighbour = open_socket(0, &far);
    for (size_t i = 0; i < FRAMES; i++)
        memcpy(flood + i * FRAME_BYTES, "\x89\x80\0\0\0\0", FRAME_BYTES);
    for (size_t i = 0; i < 3; i++)
        fake_sends_raw(client, flood + i * (sizeof(flood) / 3), sizeof(flood) / 3);
    fake_sends_raw(neighbour, "\x81\x81\0\0\0\0x", 7);
    uint64_t before = fake_frontend()->bytes_in;
    fake_turn();
    uint64_t first = fake_frontend()->bytes_in - before;
    is_str(fake_asked(far), MESSAGE "1\r\n\r\nx");
    fake_turn();
    uint64_t next = fake_frontend()->bytes_in - before - first;
    ok_named(first > 0 && first <= FIRST_BYTES + NEXT_BYTES + 7, "%d bytes in the first turn", (int)first);
    ok_named(next > 0 && next <= NEXT_BYTES, "%d bytes in the next turn", (int)next);
    acts(far, 0, 0, "");
    ok_eq(fake_frontend()->bytes_in - before, sizeof(flood) + 7);
    says(client, 1, "after it");
    is_str(fake_asked(far), MESSAGE "8\r\n\r\nafter it");
    acts(far, 0, 0, "");
    fake_end();
}

/* More Pongs than may wait are put, sent, and put again: what is read beside them has no more room than it has. */
static void test_a_flood_that_is_behind_again_and_again(void)
{
    enum { FRAMES = 30000, FRAME_BYTES = 6 };
    static char flood[FRAMES * FRAME_BYTES];
    int far;
    fake_begin((struct fake_setup){0});
    fake_options()->websocket_pending_max = 2400;
    int client = open_socket(0, &far);
    size_t heard = 0;
    for (size_t i = 0; i < FRAMES; i++)
        memcpy(flood + i * FRAME_BYTES, "\x89\x80\0\0\0\0", FRAME_BYTES);
    for (size_t i = 0; i < 6; i++)
        fake_sends_raw(client, flood + i * (sizeof(flood) / 6), sizeof(flood) / 6);
    for (size_t i = 0; i < 100 && heard < (size_t)FRAMES * 2; i++) {
        fake_settle();
        (void)fake_hears(client);
        heard += fake_hears_len();
    }
    ok_eq(heard, FRAMES * 2);
    says(client, 1, "after it");
    is_str(fake_asked(far), MESSAGE "8\r\n\r\nafter it");
    acts(far, 0, 0, "");
    fake_end();
}

/* Memory of the first message serves all that follow it. */
static void test_a_message_allocates_nothing(void)
{
    int far;
    struct oribi_buf body = {0};
    const struct oribi_socket_action action = {.type = ORIBI_SOCKET_SEND_TEXT, .data = ORIBI_SLICE("hello too")};
    fake_begin((struct fake_setup){0});
    int client = open_socket(0, &far);
    ok_eq(oribi_socket_action_write(&body, &action), 0);
    size_t n = answer_of("", &body);
    oribi_buf_deinit(&body);
    for (int i = 0; i < 5; i++) {
        fake_sends_raw(client, "\x81\x85\0\0\0\0hello", 11);
        allocations = 0;
        fake_settle();
        uint64_t on_the_way = allocations;
        is_str(fake_asked(far), MESSAGE "5\r\n\r\nhello");
        fake_answers_bytes(far, text, n);
        allocations = 0;
        fake_turn();
        ok_named(i == 0 || on_the_way + allocations == 0, "message %d: %d and %d allocations", i, (int)on_the_way,
                 (int)allocations);
        fake_settle();
        ok(hears(client, "\x81\x09hello too", 11));
    }
    fake_end();
}

/* A frame of which `n` bytes 'm' come, behind a mask of zeros, and is not the message's last. */
static void begins(int client, size_t n)
{
    static char frame[128 * 1024] = {0x01, (char)(0x80 | 127)};
    for (size_t i = 0; i < 8; i++)
        frame[2 + i] = (char)(n >> (8 * (7 - i)));
    memset(frame + 10, 0, 4);
    memset(frame + 14, 'm', n);
    for (size_t sent = 0; sent < n + 14; sent += 32 * 1024) {
        fake_sends_raw(client, frame + sent, n + 14 - sent < 32 * 1024 ? n + 14 - sent : 32 * 1024);
        fake_settle();
    }
}

static void test_messages_stay_within_the_budget(void)
{
    int far;
    fake_begin((struct fake_setup){.memory_max = 256 * 1024});
    int large = open_socket(0, &far);
    int other = open_socket(0, &far);
    int small = open_socket(0, &far);
    begins(large, 100 * 1024);
    ok(fake_gauge(FAKE_MEMORY) >= 100 * 1024);
    is_str(fake_hears(large), "");
    begins(other, 120 * 1024);
    ok(strncmp(fake_hears(other), "\x88\x09\x03\xf5no room", 11) == 0); /* 1013 */
    says(small, 1, "hello");
    is_str(fake_asked(far), MESSAGE "5\r\n\r\nhello");
    acts(far, 0, 0, "");
    fake_hangs_up(large);
    fake_hangs_up(other);
    fake_hangs_up(small);
    fake_settle();
    ok_eq(fake_gauge(FAKE_MEMORY), 0);
    fake_end();
}

/* An answer of three million bytes, which its client does not take. */
static void sends_large(int client, int far)
{
    static char large[3000 * 1000];
    struct oribi_buf body = {0};
    const struct oribi_socket_action action = {.type = ORIBI_SOCKET_SEND_BINARY,
                                               .data = oribi_slice(large, sizeof(large))};
    says(client, 1, "x");
    (void)fake_asked(far);
    fake_silent(client, true);
    ok_eq(oribi_socket_action_write(&body, &action), 0);
    int head = snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", body.len);
    fake_answers_bytes(far, text, (size_t)head);
    for (size_t at = 0; at < body.len; at += 32 * 1024) {
        fake_answers_bytes(far, body.p + at, body.len - at < 32 * 1024 ? body.len - at : 32 * 1024);
        fake_settle();
    }
    oribi_buf_deinit(&body);
    fake_settle();
}

/* Of clients that take nothing the one ends whose answer has no room; the memory of what was taken is given back,
 * though a message is on its way. */
static void test_what_waits_stays_within_the_budget(void)
{
    int far;
    fake_begin((struct fake_setup){.memory_max = 6 * 1024 * 1024});
    fake_options()->websocket_pending_max = 64 * 1024;
    int slow = open_socket(0, &far);
    int slower = open_socket(ORIBI_SOCKET_WANTS_CLOSE, &far);
    sends_large(slow, far);
    ok(fake_gauge(FAKE_MEMORY) > 3000 * 1000);
    sends_large(slower, far);
    ok_eq(closed_with(1013), 1);
    ok(strstr(fake_logged(), "no room for what waits (buffers_memory_max); closing it with 1013") != NULL);
    fake_sends_raw(slow, "\x01\x81\0\0\0\0x", 7);
    fake_silent(slow, false);
    fake_silent(slower, false);
    fake_settle();
    (void)fake_hears(slow);
    (void)fake_asked(far);
    ok_eq(fake_is_ended(slow) + fake_is_ended(slower), 1);
    ok(fake_gauge(FAKE_MEMORY) < 32 * 1024);
    fake_end();
}

int main(void)
{
    test_many_pings();
    test_a_flood_of_short_frames();
    test_a_flood_that_is_behind_again_and_again();
    test_a_message_allocates_nothing();
    test_messages_stay_within_the_budget();
    test_what_waits_stays_within_the_budget();
    test_what_an_idle_socket_holds();
    test_a_message_and_its_answer();
    test_the_record_in_pieces();
    test_records_that_are_none();
    test_ends_before_the_record_is_whole();
    test_one_call_at_a_time();
    test_open_and_close_are_called();
    test_answers_that_are_failures();
    test_failures_that_say_why();
    test_actions_that_are_none();
    test_a_worker_that_dies_in_a_call();
    test_pings();
    test_a_call_is_no_silence();
    test_a_client_that_does_not_answer_a_close();
    test_a_slow_message();
    test_a_drain_closes_one_after_another();
    test_a_client_that_goes_in_a_call();
    return done_testing();
}
