/* WebSockets and tunnels over streams of HTTP/2 (RFC 8441): the handshake, bytes both ways, windows, both ends of a
 * stream, and the end of its connection. */
#include "frontend/streams_h2_socket.c"

#include "fake_socket.h"

#include "frontend/arrive.h"

#include "oribi/base/buf.h"
#include "oribi/config/options.h"
#include "oribi/http/socket_call.h"

#include <stdio.h>

#define ASKED                                                                                                          \
    "GET /chat?x HTTP/1.1\r\nhost: a\r\nsec-websocket-version: 13\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"    \
    "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
#define MESSAGE "WS-MESSAGE /chat HTTP/1.1\r\nHost: websocket\r\nContent-Length: "
#define CLOSES  "WS-CLOSE /chat HTTP/1.1\r\nHost: websocket\r\nContent-Length: "
#define LENGTH  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

enum { CANCEL = 8 };

static const struct fake_ask chat = {.socket = "websocket", .version = "13", .path = "/chat?x", .open = true};

static size_t accepted(uint16_t wants)
{
    return fake_accepted("oribi-websocket: 1\r\nx-room: 7\r\nsec-websocket-accept: x\r\n", wants, ORIBI_SLICE("{}"),
                         oribi_slice(NULL, 0));
}

/* An open socket of a new stream. */
static int32_t open_stream(int client, uint16_t wants, int *far)
{
    char want[64];
    int32_t id = fake_asks(client, chat);
    fake_settle();
    if (fake_waiting())
        *far = fake_take(0);
    is_str(fake_asked(*far), ASKED);
    is_str(fake_frames(client), "");
    fake_answers_bytes(*far, fake_answer, accepted(wants));
    fake_settle();
    (void)snprintf(want, sizeof(want), "H%d=200,x-room=7 ", id);
    is_str(fake_frames(client), want);
    return id;
}

static void says(int client, int32_t id, int opcode, const char *data)
{
    char frame[FAKE_FRAME_CAP];
    fake_more_body(client, id, frame, fake_frame(frame, opcode, data), false);
    fake_settle();
}

static void answers(int far, struct oribi_buf *body)
{
    int head = snprintf(fake_answer, FAKE_ANSWER_CAP, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", body->len);
    fake_answers_bytes(far, fake_answer, (size_t)head);
    for (size_t at = 0; at < body->len; at += 32 * 1024) {
        fake_answers_bytes(far, body->p + at, body->len - at < 32 * 1024 ? body->len - at : 32 * 1024);
        fake_settle();
    }
    oribi_buf_deinit(body);
    fake_settle();
}

static void acts(int far, char type, uint16_t code, const char *data, size_t n)
{
    struct oribi_buf body = {0};
    static char large[2 * 1024 * 1024];
    const struct oribi_socket_action action = {
        .type = (enum oribi_socket_action_type)type, .code = code, .data = oribi_slice(data ? data : large, n)};
    if (type)
        ok_eq(oribi_socket_action_write(&body, &action), 0);
    answers(far, &body);
}

static bool hears(int client, const char *p, size_t n)
{
    return fake_is(fake_data(client), p, n);
}

/* --- the handshake --- */

static void test_a_message_and_its_answer(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    int32_t id = open_stream(client, 0, &far);
    ok_eq(fake_counters()->websocket_count, 1);
    ok_eq(fake_counters()->states[ORIBI_SLOT_CONN_IDLE], 1);
    ok_eq(fake_counters()->states[ORIBI_SLOT_CONN_CALLING], 0);
    ok_eq(oribi_frontend_slot_open(fake_counters()), 1);
    ok_eq(oribi__arrive_held(fake_frontend()), 1);
    says(client, id, 1, "hello");
    is_str(fake_asked(far), MESSAGE "5\r\n\r\nhello");
    acts(far, 't', 0, "hello too", 9);
    ok(hears(client, "\x81\x09hello too", 11));
    says(client, id, 9, "ping");
    ok(hears(client, "\x8a\x04ping", 6));
    fake_end();
}

static void test_bytes_before_the_answer(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    int32_t id = fake_asks(client, chat);
    says(client, id, 1, "early");
    far = fake_take(0);
    is_str(fake_asked(far), ASKED);
    fake_answers_bytes(far, fake_answer, accepted(0));
    fake_settle();
    is_str(fake_asked(far), MESSAGE "5\r\n\r\nearly");
    acts(far, 0, 0, "", 0);
    fake_end();
}

static void test_an_answer_without_a_field(void)
{
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    (void)fake_asks(client, chat);
    fake_settle();
    int far = fake_take(0);
    fake_answers(far, "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
    fake_settle();
    is_str(fake_frames(client), "H1=200 ");
    fake_end();
}

static void test_the_record_in_pieces(void)
{
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    (void)fake_asks(client, chat);
    fake_settle();
    int far = fake_take(0);
    size_t n = accepted(0);
    for (size_t i = 0; i < n; i++) {
        is_str(fake_frames(client), "");
        fake_answers_bytes(far, fake_answer + i, 1);
        fake_turn();
    }
    fake_settle();
    is_str(fake_frames(client), "H1=200,x-room=7 ");
    fake_end();
}

static void test_ends_before_the_record_is_whole(void)
{
    for (int i = 0; i < 3; i++) {
        fake_begin((struct fake_setup){0});
        int client = fake_h2_settled();
        int32_t id = fake_asks(client, chat);
        fake_settle();
        int far = fake_take(0);
        fake_answers_bytes(far, fake_answer, accepted(0) - 1);
        fake_settle();
        if (i == 0)
            fake_far_dies(far);
        else if (i == 1)
            fake_resets(client, id, CANCEL);
        else
            fake_hangs_up(client);
        fake_settle();
        if (i == 0)
            ok(strncmp(fake_frames(client), "H1=502,", 7) == 0);
        ok_eq(fake_counters()->websocket_count, 0);
        fake_end();
    }
}

static void test_refusals(void)
{
    static const struct {
        struct fake_ask ask;
        const char *frames;
    } rows[] = {
        {{.socket = "websocket", .open = true}, "H1=426,"},
        {{.socket = "websocket", .version = "8", .open = true}, "H1=426,"},
        {{.socket = "websocket", .version = "13", .origin = "https://b", .open = true}, "H1=403,"},
        {{.socket = "connect-udp", .version = "13", .open = true}, "H1=501,"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fake_begin((struct fake_setup){0});
        int client = fake_h2_settled();
        int32_t id = fake_asks(client, rows[i].ask);
        says(client, id, 1, "never read");
        const char *got = fake_frames(client);
        ok_named(strncmp(got, rows[i].frames, 7) == 0, "%zu: %s", i, got);
        ok((strstr(got, ",sec-websocket-version=13") != NULL) == (i < 2));
        ok_eq(fake_waiting(), 0);
        fake_passes_ms(ORIBI_LINGER_SILENCE_MS_MAX);
        fake_settle();
        is_str(fake_frames(client), "R1=0 ");
        ok_eq(fake_gauge(FAKE_STREAMS), 0);
        fake_end();
    }
}

static void test_ordinary_answers(void)
{
    static const struct {
        const char *answer;
        const char *frames;
    } rows[] = {
        {"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", "H1=404,content-length=2 D1+2 E1 "},
        {"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", "H1=302,location=/,content-length=0 E1 "},
        {LENGTH, "H1=403,content-length=5 D1+5 E1 "}, /* a 2xx would say that the socket is open */
        {"HTTP/1.1 204 No Content\r\n\r\n", "H1=403 E1 "},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fake_begin((struct fake_setup){0});
        int client = fake_h2_settled();
        (void)fake_asks(client, chat);
        fake_settle();
        int far = fake_take(0);
        fake_answers(far, rows[i].answer);
        fake_settle();
        is_str(fake_frames(client), rows[i].frames);
        ok_eq(fake_counters()->websocket_count, 0);
        fake_end();
    }
}

static void test_sockets_max(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    fake_options()->websockets_max = 1;
    int client = fake_h2_settled();
    int32_t id = open_stream(client, 0, &far);
    (void)fake_asks(client, chat);
    fake_settle();
    ok(strncmp(fake_frames(client), "H3=503,", 7) == 0);
    fake_resets(client, id, CANCEL);
    fake_settle();
    (void)fake_frames(client);
    (void)fake_asks(client, chat);
    fake_settle();
    is_str(fake_asked(far), ASKED);
    fake_end();
}

/* --- ends --- */

static void test_the_client_closes(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    int32_t id = open_stream(client, ORIBI_SOCKET_WANTS_CLOSE, &far);
    says(client, id, 8, "\x0f\xa0");
    ok(hears(client, "\x88\x02\x0f\xa0", 4));
    is_str(fake_frames(client), "D1+4 E1 ");
    is_str(fake_asked(far), CLOSES "0\r\n\r\n");
    acts(far, 0, 0, "", 0);
    ok_eq(fake_closed_with(0), 1);
    fake_more_body(client, id, NULL, 0, true);
    fake_settle();
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    ok_eq(fake_gauge(FAKE_RESTING_H2), 1);
    ok_eq(fake_counters()->reset_count, 0);
    fake_end();
}

static void test_a_client_that_goes_on_behind_its_close(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    int32_t id = open_stream(client, 0, &far);
    says(client, id, 8, "");
    is_str(fake_frames(client), "D1+2 E1 ");
    says(client, id, 1, "nobody hears it");
    fake_passes_ms(ORIBI_LINGER_SILENCE_MS_MAX);
    fake_settle();
    is_str(fake_frames(client), "R1=0 ");
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    fake_end();
}

static void test_ends_without_a_close(void)
{
    for (int i = 0; i < 4; i++) {
        int far;
        fake_begin((struct fake_setup){0});
        int client = fake_h2_settled();
        int32_t id = open_stream(client, ORIBI_SOCKET_WANTS_CLOSE, &far);
        bool in_call = i >= 2;
        if (in_call) {
            says(client, id, 1, "x");
            (void)fake_asked(far);
        }
        if (i == 0)
            fake_more_body(client, id, NULL, 0, true);
        else if (i == 3)
            fake_hangs_up(client);
        else
            fake_resets(client, id, CANCEL);
        fake_settle();
        if (in_call) {
            is_str(fake_asked(far), "");
            acts(far, 't', 0, "nobody hears it", 15);
        }
        is_str(fake_asked(far), CLOSES "0\r\n\r\n");
        acts(far, 0, 0, "", 0);
        ok_eq(fake_closed_with(1006), 1);
        if (i == 0)
            is_str(fake_frames(client), "E1 ");
        ok_eq(fake_gauge(FAKE_STREAMS), 0);
        fake_end();
    }
}

static void test_frames_that_are_none(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    int32_t id = open_stream(client, 0, &far);
    says(client, id, 3, "x");
    const char *got = fake_data(client);
    ok(fake_hears_len() > 4 && got[0] == '\x88' && memcmp(got + 2, "\x03\xea", 2) == 0);
    ok(strstr(fake_frames(client), "E1 ") != NULL);
    ok_eq(fake_closed_with(1002), 1);
    fake_end();
}

static void test_a_client_that_does_not_answer_a_close(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    int32_t id = open_stream(client, 0, &far);
    says(client, id, 1, "x");
    (void)fake_asked(far);
    acts(far, 'c', 1000, "", 0);
    ok(hears(client, "\x88\x02\x03\xe8", 4));
    is_str(fake_frames(client), "D1+4 ");
    fake_passes_ms(5000);
    fake_settle();
    is_str(fake_frames(client), "E1 ");
    ok_eq(fake_closed_with(1000), 1);
    fake_end();
}

static void test_pings(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    fake_options()->websocket_ping_ms = 4000;
    int client = fake_h2_settled();
    (void)open_stream(client, 0, &far);
    for (int i = 0; i < 2; i++) {
        fake_passes_ms(4000);
        fake_settle();
        ok(hears(client, "\x89\0", 2));
    }
    fake_passes_ms(4000);
    fake_settle();
    ok_eq(fake_closed_with(1006), 1);
    fake_end();
}

static void test_a_drain(void)
{
    int far;
    fake_begin((struct fake_setup){0});
    fake_options()->shutdown_timeout_ms = 30 * 1000;
    int client = fake_h2_settled();
    int32_t id = open_stream(client, 0, &far);
    fake_drains();
    fake_settle();
    ok(hears(client, "\x88\x02\x03\xf4", 4));
    says(client, id, 8, "\x03\xf4");
    fake_more_body(client, id, NULL, 0, true);
    fake_settle();
    ok(strstr(fake_frames(client), "E1 ") != NULL);
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    fake_end();
}

/* --- windows --- */

/* Bytes for a socket in a call wait in its stream's window, and no other stream does. */
static void test_a_socket_that_is_not_read(void)
{
    enum { SOCKETS = 5, WINDOW = ORIBI_H2_STREAM_WINDOW_DEFAULT };
    int far;
    int32_t ids[SOCKETS];
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    for (int i = 0; i < SOCKETS; i++)
        ids[i] = open_stream(client, 0, &far);
    for (int i = 0; i < SOCKETS; i++)
        says(client, ids[i], 1, "x");
    ok_eq(fake_gauge(FAKE_OUT) + fake_gauge(FAKE_QUEUED), SOCKETS);
    (void)fake_asked(far);
    for (int i = 0; i < SOCKETS; i++)
        fake_more_body(client, ids[i], NULL, 2 * WINDOW, false);
    fake_settle();
    ok(fake_gauge(FAKE_MEMORY) > SOCKETS * (WINDOW - 1000));
    int32_t post = fake_asks(client, (struct fake_ask){.method = "POST", .open = true});
    fake_more_body(client, post, NULL, 100 * 1000, true);
    fake_settle();
    ok_eq(fake_gauge(FAKE_OUT) + fake_gauge(FAKE_QUEUED), SOCKETS + 1);
    acts(far, 't', 0, "y", 1);
    ok_eq(fake_closed_with(1002), 1); /* what it was sent were no frames */
    ok(fake_gauge(FAKE_MEMORY) < SOCKETS * (WINDOW - 1000));
    fake_end();
}

static void test_a_budget_without_room_holds_the_connection(void)
{
    int far;
    fake_begin((struct fake_setup){.memory_max = 64 * 1024});
    int client = fake_h2_settled();
    int32_t id = open_stream(client, ORIBI_SOCKET_WANTS_OPEN, &far);
    (void)fake_asked(far);
    fake_more_body(client, id, NULL, 200 * 1000, false);
    fake_settle();
    ok(fake_gauge(FAKE_MEMORY) >= 200 * 1000);
    acts(far, 0, 0, "", 0);
    ok_eq(fake_closed_with(1002), 1);
    ok_eq(fake_gauge(FAKE_MEMORY) < 200 * 1000, 1);
    fake_end();
}

/* An open socket of a client that opens a window of so many bytes, and no more by itself. */
static int begin_with_window(int32_t bytes, int32_t *id, int *far)
{
    fake_begin((struct fake_setup){0});
    fake_options()->websocket_pending_max = 100 * 1000;
    int client = fake_h2();
    fake_window(client, bytes);
    fake_settle();
    (void)fake_frames(client);
    *id = open_stream(client, 0, far);
    return client;
}

/* A client with a small window reads, but slower than it is answered: its next message waits until it has read. */
static void test_a_client_that_reads_a_long_answer(void)
{
    int far;
    int32_t id;
    int client = begin_with_window(1000, &id, &far);
    says(client, id, 1, "x");
    (void)fake_asked(far);
    acts(far, 'b', 0, NULL, 600 * 1000);
    (void)fake_data(client);
    ok_eq(fake_hears_len(), 1000);
    says(client, id, 1, "next");
    says(client, id, 9, "ping");
    is_str(fake_asked(far), "");
    fake_opens(client, id, 400 * 1000);
    fake_settle();
    is_str(fake_asked(far), "");
    fake_opens(client, id, 100 * 1000);
    fake_settle();
    is_str(fake_asked(far), MESSAGE "4\r\n\r\nnext");
    acts(far, 'b', 0, NULL, 600 * 1000); /* behind the rest of the first one */
    fake_opens(client, id, 800 * 1000);
    fake_settle();
    is_str(fake_frames(client), "D1+1200026 "); /* and the answer to the Ping */
    (void)fake_data(client);
    says(client, id, 1, "y");
    is_str(fake_asked(far), MESSAGE "1\r\n\r\ny");
    acts(far, 't', 0, "y", 1);
    ok(hears(client, "\x81\x01y", 3));
    ok(strstr(fake_logged(), "websocket_pending_max") == NULL);
    fake_end();
}

/* It is not pinged while it is not read, nor is its message slow. */
static void test_a_client_that_is_not_read_is_not_silent(void)
{
    int far;
    int32_t id;
    int client = begin_with_window(1000, &id, &far);
    fake_options()->websocket_ping_ms = 1000;
    fake_options()->body_timeout_ms = 3000;
    says(client, id, 1, "x");
    (void)fake_asked(far);
    acts(far, 'b', 0, NULL, 600 * 1000);
    says(client, id, 1, "next");
    for (int i = 1; i <= 10; i++) {
        fake_opens(client, id, 1000); /* else it reads nothing */
        fake_passes_ms(1000);
        fake_settle();
    }
    fake_opens(client, id, 600 * 1000);
    fake_settle();
    is_str(fake_frames(client), "D1+600010 ");
    is_str(fake_asked(far), MESSAGE "4\r\n\r\nnext");
    fake_end();
}

/* Pings beside a message of which a part has come, until `n` of their answers wait. */
static void floods(int client, int32_t id, size_t n)
{
    static char flood[40 * 1000 * 6];
    size_t len = 0;
    for (size_t i = 0; i < n; i++, len += 6)
        memcpy(flood + len, "\x89\x80\0\0\0\0", 6);
    fake_more_body(client, id, flood, len, false);
    fake_settle();
}

static void test_a_message_whose_client_is_not_read_is_not_slow(void)
{
    int far;
    int32_t id;
    int client = begin_with_window(1000, &id, &far);
    fake_options()->body_timeout_ms = 3000;
    fake_options()->body_rate_min = 100 * 1000;
    fake_options()->websocket_pending_max = 1024;
    fake_more_body(client, id, "\x01\x81\0\0\0\0x", 7, false);
    floods(client, id, 34 * 1000);
    for (int i = 0; i < 10; i++) {
        fake_opens(client, id, 1);
        fake_passes_ms(1000);
        fake_settle();
    }
    fake_opens(client, id, 600 * 1000);
    fake_settle();
    fake_passes_ms(2000);
    fake_settle();
    fake_more_body(client, id, "\x80\x81\0\0\0\0y", 7, false);
    fake_settle();
    is_str(fake_asked(far), MESSAGE "2\r\n\r\nxy");
    acts(far, 0, 0, "", 0);
    fake_end();
}

/* More Pongs than may wait are put, sent, and put again: what is read beside them has no more room than it has. */
static void test_a_flood_of_pings_that_is_behind_again_and_again(void)
{
    int far;
    int32_t id;
    int client = begin_with_window(600 * 1000, &id, &far);
    fake_options()->websocket_pending_max = 2400;
    says(client, id, 1, "x");
    (void)fake_asked(far);
    floods(client, id, 33 * 1000);
    acts(far, 0, 0, "", 0);
    (void)fake_frames(client);
    says(client, id, 1, "y");
    is_str(fake_asked(far), MESSAGE "1\r\n\r\ny");
    acts(far, 0, 0, "", 0);
    fake_end();
}

/* A Close frame behind a long answer waits as long as its client reads. */
static void test_a_client_that_reads_before_a_close(void)
{
    static char data[600 * 1000];
    const struct oribi_socket_action actions[] = {
        {.type = ORIBI_SOCKET_SEND_BINARY, .data = oribi_slice(data, sizeof(data))},
        {.type = ORIBI_SOCKET_DO_CLOSE, .code = 1000}};
    struct oribi_buf body = {0};
    int far;
    int32_t id;
    int client = begin_with_window(1000, &id, &far);
    says(client, id, 1, "x");
    (void)fake_asked(far);
    for (int i = 0; i < 2; i++)
        ok_eq(oribi_socket_action_write(&body, &actions[i]), 0);
    answers(far, &body);
    for (int i = 0; i < 10; i++) {
        fake_passes_ms(ORIBI__FRONTEND_CLOSING_MS - 1);
        fake_opens(client, id, 60 * 1000);
        fake_settle();
    }
    is_str(fake_frames(client), "D1+600014 ");
    fake_passes_ms(ORIBI__FRONTEND_CLOSING_MS);
    fake_settle();
    ok_eq(fake_closed_with(1000), 1);
    fake_end();
}

static void test_a_client_that_opens_no_window(void)
{
    int far;
    int32_t id;
    int client = begin_with_window(1000, &id, &far);
    fake_options()->write_timeout_ms = 20 * 1000;
    says(client, id, 1, "x");
    (void)fake_asked(far);
    acts(far, 'b', 0, NULL, 600 * 1000);
    says(client, id, 1, "x");
    fake_passes_ms(20 * 1000 - 1);
    fake_settle();
    ok_eq(fake_gauge(FAKE_STREAMS), 1);
    fake_passes_ms(1);
    fake_settle();
    is_str(fake_asked(far), "");
    ok(strstr(fake_frames(client), "R1=8 ") != NULL);
    ok_eq(fake_closed_with(1006), 1);
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    fake_end();
}

/* A socket that is not read because its client is behind closes as any other, and hears the client's Close. */
static void test_a_drain_of_a_client_that_reads_late(void)
{
    int far;
    int32_t id;
    int client = begin_with_window(1000, &id, &far);
    says(client, id, 1, "x");
    (void)fake_asked(far);
    acts(far, 'b', 0, NULL, 600 * 1000);
    says(client, id, 1, "nobody hears it");
    says(client, id, 8, "\x03\xe8");
    fake_drains();
    fake_settle();
    is_str(fake_asked(far), "");
    is_str(fake_frames(client), "D1+1000 G=0 G=0 ");
    fake_opens(client, id, 700 * 1000);
    fake_settle();
    is_str(fake_frames(client), "D1+599014 E1 ");
    ok_eq(fake_closed_with(1012), 1);
    fake_end();
}

/* Neither the Close frame of a drain nor the answer to the client's own can be sent. */
static void test_a_drain_of_a_client_that_opens_no_window(void)
{
    for (int closes = 0; closes < 2; closes++) {
        int far;
        int32_t id;
        int client = begin_with_window(0, &id, &far);
        fake_drains();
        fake_settle();
        if (closes)
            says(client, id, 8, "\x03\xe8");
        fake_passes_ms(5000 - 1);
        fake_settle();
        ok_eq(fake_gauge(FAKE_STREAMS), 1);
        ok(strstr(fake_frames(client), "R1=") == NULL);
        fake_passes_ms(1);
        fake_settle();
        is_str(fake_frames(client), "R1=8 ");
        ok_eq(fake_gauge(FAKE_STREAMS), 0);
        ok_eq(fake_closed_with(1012), 1);
        fake_end();
    }
}

static void test_other_streams_go_on(void)
{
    int far;
    int get;
    fake_begin((struct fake_setup){.workers = 2});
    int client = fake_h2_settled();
    int32_t id = open_stream(client, 0, &far);
    says(client, id, 1, "x");
    (void)fake_asked(far);
    int32_t other = fake_asks(client, (struct fake_ask){0});
    fake_settle();
    get = fake_take(1);
    ok(strncmp(fake_asked(get), "GET / HTTP/1.1\r\n", 16) == 0);
    fake_answers(get, LENGTH);
    fake_settle();
    ok_eq(other, 3);
    is_str(fake_frames(client), "H3=200,content-length=5 D3+5 E3 ");
    (void)fake_data(client);
    acts(far, 't', 0, "y", 1);
    ok(hears(client, "\x81\x01y", 3));
    fake_end();
}

/* --- applications that take their socket over --- */

static void test_a_tunnel(void)
{
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    int32_t id = fake_asks(client, chat);
    fake_settle();
    int far = fake_take(0);
    is_str(fake_asked(far), ASKED);
    fake_answers(far, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                      "Sec-WebSocket-Accept: x\r\nSec-WebSocket-Protocol: p\r\n\r\nfirst");
    fake_settle();
    is_str(fake_frames(client), "H1=200,sec-websocket-protocol=p D1+5 ");
    is_str(fake_data(client), "first");
    ok_eq(fake_gauge(FAKE_TUNNELS), 1);
    fake_more_body(client, id, "hello", 5, false);
    fake_settle();
    is_str(fake_asked(far), "hello");
    ok_eq(fake_floods(far, 600 * 1000), 600 * 1000);
    fake_settle();
    is_str(fake_frames(client), "D1+600000 ");
    fake_far_dies(far);
    fake_settle();
    is_str(fake_frames(client), "E1 ");
    ok_eq(fake_gauge(FAKE_TUNNELS), 0);
    fake_more_body(client, id, NULL, 0, true);
    fake_settle();
    ok_eq(fake_gauge(FAKE_STREAMS), 0);
    fake_end();
}

static void test_ends_of_tunnels(void)
{
    for (int i = 0; i < 3; i++) {
        fake_begin((struct fake_setup){0});
        int client = fake_h2_settled();
        int32_t id = fake_asks(client, chat);
        fake_settle();
        int far = fake_take(0);
        (void)fake_asked(far);
        fake_answers(far, "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
        fake_settle();
        if (i == 0)
            fake_resets(client, id, CANCEL);
        else if (i == 1)
            fake_hangs_up(client);
        else
            fake_more_body(client, id, NULL, 0, true);
        fake_settle();
        ok(fake_is_over(far));
        if (i == 2)
            fake_far_dies(far);
        fake_settle();
        ok_eq(fake_gauge(FAKE_TUNNELS), 0);
        ok_eq(fake_gauge(FAKE_STREAMS), 0);
        fake_end();
    }
}

static void test_101_for_an_ordinary_request(void)
{
    fake_begin((struct fake_setup){0});
    int client = fake_h2_settled();
    (void)fake_asks(client, (struct fake_ask){0});
    fake_settle();
    int far = fake_take(0);
    fake_answers(far, "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
    fake_settle();
    ok(strncmp(fake_frames(client), "H1=502,", 7) == 0);
    fake_end();
}

int main(void)
{
    test_a_message_and_its_answer();
    test_bytes_before_the_answer();
    test_an_answer_without_a_field();
    test_the_record_in_pieces();
    test_ends_before_the_record_is_whole();
    test_refusals();
    test_ordinary_answers();
    test_sockets_max();
    test_the_client_closes();
    test_a_client_that_goes_on_behind_its_close();
    test_ends_without_a_close();
    test_frames_that_are_none();
    test_a_client_that_does_not_answer_a_close();
    test_pings();
    test_a_drain();
    test_a_socket_that_is_not_read();
    test_a_budget_without_room_holds_the_connection();
    test_a_client_that_reads_a_long_answer();
    test_a_client_that_is_not_read_is_not_silent();
    test_a_message_whose_client_is_not_read_is_not_slow();
    test_a_flood_of_pings_that_is_behind_again_and_again();
    test_a_client_that_reads_before_a_close();
    test_a_client_that_opens_no_window();
    test_a_drain_of_a_client_that_reads_late();
    test_a_drain_of_a_client_that_opens_no_window();
    test_other_streams_go_on();
    test_a_tunnel();
    test_ends_of_tunnels();
    test_101_for_an_ordinary_request();
    return done_testing();
}
