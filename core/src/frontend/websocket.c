/* A WebSocket's life in the frontend: its states and deadlines, frames to the client, the closing handshake, the end.
 * Reading order: oribi__websocket_start, look, oribi__websocket_close_with, oribi__websocket_finish.
 *
 *   handshake ─► OPEN ─► CLOSING ─► ENDED ─► freed
 *                  └─────────────────┘
 *
 * handshake: it is accepted, the application's record is on its way. OPEN: frames are read, but while a call is out, or
 * more than websocket_pending_max waits for the client: so messages of one socket are called one after another, and a
 * client that sends faster, or reads slower than it is answered, waits. CLOSING: our Close frame is written; the
 * client's is awaited, messages are dropped. ENDED: the connection is gone; the socket stays for the call that is out,
 * and for on_close. */
#include "frontend/websocket.h"
#include "frontend/websocket_private.h"

#include "frontend/answers.h"
#include "frontend/canonical.h"
#include "frontend/count.h"
#include "frontend/frontend.h"
#include "frontend/upstream_request.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/escape.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/http/websocket.h"
#include "oribi/worker/logs/request_log.h"

#include <stdio.h>
#include <string.h>

enum {
    CLOSING_MS = ORIBI__FRONTEND_CLOSING_MS, /* for the client's Close frame, since it took the last of our bytes */
    PINGS_MAX = 2,                           /* without an answer */
    RATE_LOOK_MS = 1000,                     /* of a message that comes slowly */
    DRAIN_STEP_US = 5000,                    /* a drain closes at least so fast */
    PATH_BYTES_MAX = 255,                    /* of the opening request, as it is kept for log lines */
};

/* A handshake that the application has accepted. */
struct oribi__handshake {
    struct oribi__frontend *frontend;
    struct oribi_buf text;             /* the application's record, as far as it has come */
    struct oribi_socket_record record; /* read, in `text` */
    struct oribi_buf answer;           /* the head of the answer 101 */
    uint8_t path_len;
    char path[];
};

static void shut(struct oribi__websocket *socket);
static void look(void *self);

/* --- lines --- */

void oribi__websocket_say(struct oribi__websocket *socket, const char *what, uint16_t code)
{
    struct oribi__frontend *frontend = socket->frontend;
    struct oribi_slice path = path_of(socket);
    struct oribi_slice address = socket->addr_len ? address_of(socket) : ORIBI_SLICE("a unix socket");
    char shown[4 * PATH_BYTES_MAX + 1];
    if (!oribi_log_limit_allows(&frontend->log_limit, frontend->reactor.now_ms))
        return;
    *oribi_escape_text(shown, path) = '\0';
    oribi_log(ORIBI_LOG_INFO, "frontend: WebSocket %s from %.*s: %s; closing it with %u", shown, (int)address.n,
              address.p, what, code);
}

/* --- the peer --- */

struct oribi__peer oribi__websocket_peer(const struct oribi__websocket *socket)
{
    struct oribi__peer peer = {.fd = socket->watch.fd,
                               .transport = socket->transport,
                               .listener = socket->listener,
                               .proxy_tls = socket->tls,
                               .addr_len = socket->addr_len,
                               .port_len = socket->port_len};
    memcpy(peer.addr, address_of(socket).p, peer.addr_len);
    memcpy(peer.port, port_of(socket).p, peer.port_len);
    return peer;
}

/* --- deadlines --- */

void oribi__websocket_arm_by(struct oribi__websocket *socket, int64_t at_ms)
{
    if (at_ms < oribi_timer_at(&socket->work->timer))
        oribi_timers_arm(&socket->frontend->timers, &socket->work->timer, at_ms);
}

bool oribi__websocket_reads(const struct oribi__websocket *socket)
{
    const struct oribi__websocket_work *work = socket->work;
    return (socket->life == ORIBI__WEBSOCKET_OPEN && !(work && work->call) && !oribi__websocket_is_behind(socket)) ||
           (socket->life == ORIBI__WEBSOCKET_CLOSING && !work->heard_close);
}

/* Reads the socket again. No event will come for bytes that have come already: the end of this turn reads them. */
static void go_on_reading(struct oribi__websocket *socket)
{
    struct oribi__websocket_work *work = socket->work;
    oribi__websocket_note_heard(socket); /* it could not be heard */
    if (work->message_ms) {              /* nor could its message go on */
        work->message_ms = now_ms(socket);
        work->message_in = 0;
    }
    if (!work->feeding && (work->in.len || (socket->watch.ready & ORIBI_READ)))
        oribi__websocket_post(socket);
}

/* When the message on its way must have gone on; INT64_MAX: none is. */
int64_t oribi__websocket_message_deadline(const struct oribi__websocket *socket)
{
    const struct oribi_options *options = options_of(socket);
    const struct oribi__websocket_work *work = socket->work;
    if (!work->message_ms || !oribi__websocket_reads(socket))
        return INT64_MAX;
    int64_t rate_ms = work->message_ms + options->body_timeout_ms;
    if (rate_ms <= now_ms(socket))
        rate_ms = now_ms(socket) + RATE_LOOK_MS;
    return oribi_earlier(work->heard_ms + options->body_timeout_ms, options->body_rate_min ? rate_ms : INT64_MAX);
}

static bool is_slow(const struct oribi__websocket *socket)
{
    const struct oribi_options *options = options_of(socket);
    const struct oribi__websocket_work *work = socket->work;
    if (!work->message_ms || !oribi__websocket_reads(socket))
        return false;
    int64_t took_ms = now_ms(socket) - work->message_ms;
    return now_ms(socket) - work->heard_ms >= options->body_timeout_ms ||
           (options->body_rate_min && took_ms >= options->body_timeout_ms &&
            work->message_in < took_ms * (int64_t)options->body_rate_min / 1000);
}

void oribi__websocket_note_heard(struct oribi__websocket *socket)
{
    socket->quiet_ms = (uint32_t)now_ms(socket);
    socket->pings = 0;
    if (socket->work)
        socket->work->heard_ms = now_ms(socket);
}

/* Of a socket with work; websocket_idle.c has the others. */
static int64_t ping_deadline(const struct oribi__websocket *socket)
{
    int64_t ping_ms = options_of(socket)->websocket_ping_ms;
    int64_t quiet_for_ms = (int64_t)((uint32_t)now_ms(socket) - socket->quiet_ms);
    return ping_ms && socket->life == ORIBI__WEBSOCKET_OPEN ? now_ms(socket) - quiet_for_ms + ping_ms : INT64_MAX;
}

/* A drain waits for the call that is out. */
static int64_t end_deadline(const struct oribi__websocket *socket)
{
    const struct oribi__websocket_work *work = socket->work;
    bool waits = socket->life == ORIBI__WEBSOCKET_CLOSING || (socket->life == ORIBI__WEBSOCKET_OPEN && !work->call);
    return waits && work->end_ms ? work->end_ms : INT64_MAX;
}

void oribi__websocket_arm(struct oribi__websocket *socket)
{
    struct oribi__websocket_work *work = socket->work;
    int64_t at_ms = oribi_earlier(end_deadline(socket), ping_deadline(socket));
    at_ms = oribi_earlier(at_ms, oribi__websocket_message_deadline(socket));
    if (work->stalled_ms)
        at_ms = oribi_earlier(at_ms, work->stalled_ms + options_of(socket)->write_timeout_ms);
    oribi_timers_arm(&socket->frontend->timers, &work->timer, at_ms);
}

void oribi__websocket_go_on(struct oribi__websocket *socket)
{
    oribi__websocket_rest(socket);
    if (socket->work)
        oribi__websocket_arm(socket);
}

void oribi__websocket_work_init(struct oribi__websocket *socket)
{
    struct oribi__websocket_work *work = socket->work;
    work->timer = (struct oribi_timer){.expired = look, .owner = socket};
    work->heard_ms = now_ms(socket);
    oribi_websocket_init(&work->reader, ORIBI_WEBSOCKET_SERVER, (uint64_t)options_of(socket)->websocket_message_max);
}

void oribi__websocket_await_silence(struct oribi__websocket *socket)
{
    oribi__websocket_arm_by(socket, ping_deadline(socket));
}

/* --- memory --- */

void oribi__websocket_charge(struct oribi__websocket *socket)
{
    struct oribi__websocket_work *work = socket->work;
    uint64_t used = (uint64_t)work->in.cap + work->message.cap + work->out.cap + work->answer.cap + work->own_bytes;
    uint32_t now = used < UINT32_MAX ? (uint32_t)used : UINT32_MAX;
    socket->frontend->reactor.budget.memory_used += (int64_t)now - work->charged;
    work->charged = now;
}

/* --- frames to the client --- */

/* Appends a frame. False: out of memory, and the connection has ended. */
bool oribi__websocket_put(struct oribi__websocket *socket, enum oribi_websocket_opcode opcode, struct oribi_slice data)
{
    char head[ORIBI_WEBSOCKET_HEAD_CAP];
    size_t n = oribi_websocket_write_head(head, opcode, true, data.n, NULL);
    struct oribi__websocket_work *work = oribi__websocket_work(socket);
    int code = ORIBI_ENOMEM;
    if (work && work->wait_count)
        code = oribi__websocket_wait_frame(socket, oribi_slice(head, n), data);
    else if (work && (code = oribi_buf_try_append(&work->out, head, n)) == 0)
        code = oribi_buf_try_append(&work->out, data.p, data.n);
    if (code == 0)
        return true;
    oribi__websocket_finish(socket, ORIBI_WEBSOCKET_CODE_ABNORMAL);
    return false;
}

/* The client is told that nothing follows. */
static void shut(struct oribi__websocket *socket)
{
    struct oribi__peer peer = oribi__websocket_peer(socket);
    if (socket->work->shut)
        return;
    socket->work->shut = true;
    oribi__peer_shut(&peer);
}

static void await(struct oribi__websocket *socket, uint8_t interest)
{
    if (socket->watch.fd >= 0) /* a stream tells of both by itself */
        oribi_loop_interest(socket->frontend->reactor.loop, &socket->watch, interest);
}

ssize_t oribi__websocket_send_vec(struct oribi__websocket *socket, const struct iovec *vec, size_t count)
{
    ssize_t sent = oribi_transport_send(socket->transport, socket->watch.fd, vec, count, false);
    if (sent == ORIBI_AGAIN)
        socket->watch.ready &= (uint8_t)~ORIBI_WRITE;
    else if (sent > 0 && socket->watch.fd >= 0) /* else its connection counts them */
        socket->frontend->bytes_out += (uint64_t)sent;
    return sent;
}

/* Nothing waits any more. */
static void all_sent(struct oribi__websocket *socket)
{
    struct oribi__websocket_work *work = socket->work;
    if (work->out.cap > ORIBI__WEBSOCKET_SHORT_BYTES)
        oribi_buf_deinit(&work->out);
    work->out.len = work->out_at = work->answered_bytes = 0;
    work->stalled_ms = 0;
    oribi__websocket_charge(socket);
    if (socket->watch.interest & ORIBI_WRITE)
        await(socket, ORIBI_READ);
    if (socket->life == ORIBI__WEBSOCKET_CLOSING && work->heard_close)
        oribi__websocket_finish(socket, socket->code);
    else if (socket->life == ORIBI__WEBSOCKET_CLOSING && work->deaf)
        shut(socket);
}

/* Sends what waits, as far as the client takes it. */
void oribi__websocket_flush(struct oribi__websocket *socket)
{
    struct oribi__websocket_work *work = socket->work;
    bool progress = false;
    bool was_behind = oribi__websocket_is_behind(socket);
    while (oribi__websocket_waiting(socket)) {
        struct iovec vec[ORIBI__WEBSOCKET_VECS];
        char heads[ORIBI__WEBSOCKET_HEADS][ORIBI_WEBSOCKET_HEAD_CAP];
        size_t count = oribi__websocket_gather(socket, vec, heads);
        ssize_t sent = oribi__websocket_send_vec(socket, vec, count);
        if (sent == ORIBI_AGAIN)
            break;
        if (sent < 0) {
            oribi__websocket_finish(socket, ORIBI_WEBSOCKET_CODE_ABNORMAL);
            return;
        }
        size_t left = work->out.len - work->out_at;
        size_t of_out = (size_t)sent < left ? (size_t)sent : left;
        work->out_at += of_out;
        work->answered_bytes -= (size_t)sent < work->answered_bytes ? (size_t)sent : work->answered_bytes;
        progress = true;
        if (work->wait_count)
            oribi__websocket_taken(socket, (size_t)sent - of_out);
    }
    if (progress && socket->life == ORIBI__WEBSOCKET_CLOSING)
        work->end_ms = now_ms(socket) + CLOSING_MS; /* it reads what is before our Close frame */
    bool all = oribi__websocket_waiting(socket) == 0;
    if (!all && work->out_at >= work->out.len - work->out_at) { /* moving the rest costs less than what was sent */
        oribi_buf_consume(&work->out, work->out_at);
        work->out_at = 0;
    }
    if (was_behind && socket->life == ORIBI__WEBSOCKET_OPEN && (all || !oribi__websocket_is_behind(socket)))
        go_on_reading(socket);
    if (all) {
        all_sent(socket);
        return;
    }
    oribi__websocket_charge(socket);
    if (progress || !work->stalled_ms)
        work->stalled_ms = now_ms(socket);
    oribi__websocket_arm_by(socket, work->stalled_ms + options_of(socket)->write_timeout_ms);
    await(socket, ORIBI_READ | ORIBI_WRITE);
}

void oribi__websocket_count_sent(struct oribi__websocket *socket, size_t n)
{
    struct oribi_frontend_slot *slot = socket->frontend->slot;
    socket->messages[1]++;
    socket->bytes[1] += n;
    oribi_frontend_slot_count(&slot->websocket_messages[1], 1);
    oribi_frontend_slot_count(&slot->websocket_bytes[1], n);
}

/* All that a call sends may wait: none is made while the client is behind. What the client takes meanwhile leaves, so
 * that less is copied. */
void oribi__websocket_send(struct oribi__websocket *socket, enum oribi_websocket_opcode opcode, struct oribi_slice data)
{
    struct oribi__websocket_work *work = socket->work;
    if (socket->life != ORIBI__WEBSOCKET_OPEN)
        return;
    if (oribi__websocket_is_behind(socket) && (!work->stalled_ms || (socket->watch.ready & ORIBI_WRITE)))
        oribi__websocket_flush(socket);
    if (socket->life != ORIBI__WEBSOCKET_OPEN)
        return;
    size_t before = oribi__websocket_waiting(socket);
    oribi__websocket_count_sent(socket, data.n);
    if (oribi__websocket_put(socket, opcode, data)) /* else it has ended */
        work->answered_bytes += oribi__websocket_waiting(socket) - before;
}

/* --- the end --- */

void oribi__websocket_note_code(struct oribi__websocket *socket, uint16_t code, struct oribi_slice reason)
{
    struct oribi__websocket_work *work = socket->work;
    if (socket->code)
        return;
    socket->code = code;
    size_t n = reason.n < ORIBI_WEBSOCKET_REASON_BYTES_MAX ? reason.n : ORIBI_WEBSOCKET_REASON_BYTES_MAX;
    if (n == 0)
        return;
    work->close_reason = oribi_mem_try_alloc(1, n); /* without memory on_close has no reason */
    if (!work->close_reason)
        return;
    memcpy(work->close_reason, reason.p, n);
    work->close_len = (uint8_t)n;
}

/* Begins the closing handshake (RFC 6455 7.1.2); nothing where it has begun. */
void oribi__websocket_close_with(struct oribi__websocket *socket, uint16_t code, struct oribi_slice reason)
{
    char payload[ORIBI_WEBSOCKET_CONTROL_BYTES_MAX];
    if (socket->life != ORIBI__WEBSOCKET_OPEN)
        return;
    struct oribi__websocket_work *work = oribi__websocket_work(socket);
    if (!work) {
        oribi__websocket_finish(socket, code);
        return;
    }
    ssize_t n = oribi_websocket_write_close(payload, code, reason);
    if (n < 0)
        n = oribi_websocket_write_close(payload, code, oribi_slice(NULL, 0)); /* a reason that is no UTF-8 */
    oribi__websocket_note_code(socket, code, reason);
    if (oribi__websocket_is_behind(socket))
        go_on_reading(socket);
    socket->life = ORIBI__WEBSOCKET_CLOSING;
    work->end_ms = now_ms(socket) + CLOSING_MS;
    work->message_ms = 0;
    oribi__unsubscribe_all(socket->frontend->topics, &socket->subscriber);
    oribi__websocket_arm_by(socket, work->end_ms);
    if (oribi__websocket_put(socket, ORIBI_WEBSOCKET_CLOSE, oribi_slice(payload, n > 0 ? (size_t)n : 0)))
        oribi__websocket_flush(socket);
}

static void count_code(const struct oribi__websocket *socket)
{
    uint32_t i = 0;
    while (oribi_frontend_close_codes[i] && oribi_frontend_close_codes[i] != socket->code)
        i++;
    oribi_frontend_slot_count(&socket->frontend->slot->websocket_closed[i], 1);
}

/* An ended socket: on_close, where that is due; else it goes. */
void oribi__websocket_after_end(struct oribi__websocket *socket)
{
    if (socket->work && socket->work->call)
        return;
    if (socket->close_due) {
        socket->close_due = false;
        oribi__websocket_call(socket, ORIBI_SOCKET_CLOSE);
        return;
    }
    oribi__websocket_move(socket, ORIBI__WEBSOCKETS_CLOSED);
}

static void write_line(struct oribi__websocket *socket, const struct oribi__peer *peer)
{
    char id[ORIBI__ID_LEN];
    oribi__websocket_id(socket, id);
    struct oribi__socket_end end = {.path = path_of(socket),
                                    .peer = peer,
                                    .id = oribi_slice(id, sizeof(id)),
                                    .code = socket->code,
                                    .over_h2 = socket->watch.fd < 0,
                                    .opened_us = socket->opened_us,
                                    .messages = {socket->messages[0], socket->messages[1]},
                                    .bytes = {socket->bytes[0], socket->bytes[1]}};
    oribi__answer_log_socket(socket->frontend, &end);
}

/* The connection ends. `code`: unless the socket has one. */
void oribi__websocket_finish(struct oribi__websocket *socket, uint16_t code)
{
    struct oribi__frontend *frontend = socket->frontend;
    struct oribi__websocket_work *work = socket->work;
    struct oribi__peer peer = oribi__websocket_peer(socket);
    if (socket->life == ORIBI__WEBSOCKET_ENDED)
        return;
    oribi__websocket_note_code(socket, code, oribi_slice(NULL, 0));
    socket->life = ORIBI__WEBSOCKET_ENDED;
    oribi__peer_unwatch(&peer, frontend->reactor.loop, &socket->watch);
    oribi__peer_close(&peer, work && work->heard_close);
    socket->transport = NULL;
    oribi__unsubscribe_all(frontend->topics, &socket->subscriber);
    if (work) {
        oribi_timers_stop(&frontend->timers, &work->timer);
        oribi_buf_deinit(&work->in);
        oribi_buf_deinit(&work->out);
        work->out_at = 0;
        oribi__websocket_forget_waits(socket);
        oribi__websocket_charge(socket);
    }
    frontend->websocket_count--;
    count_code(socket);
    write_line(socket, &peer);
    socket->close_due = socket->open_called && (socket->wants & ORIBI_SOCKET_WANTS_CLOSE);
    oribi__websocket_after_end(socket);
}

static void on_ready(void *self, struct oribi_watch *watch)
{
    struct oribi__websocket *socket = (struct oribi__websocket *)watch;
    if (socket->life == ORIBI__WEBSOCKET_ENDED)
        return;
    if (!oribi__websocket_work(socket)) {
        oribi__websocket_finish(socket, ORIBI_WEBSOCKET_CODE_ABNORMAL);
        return;
    }
    if (oribi__websocket_waiting(socket) && (watch->ready & ORIBI_WRITE))
        oribi__websocket_flush(socket);
    if (socket->life != ORIBI__WEBSOCKET_ENDED)
        oribi__websocket_read_on(socket);
    oribi__websocket_rest(socket);
}

/* --- deadlines that have come --- */

/* False: the client has not answered, and the connection has ended. */
static bool send_ping(struct oribi__websocket *socket)
{
    if (!oribi__websocket_reads(socket) || (socket->watch.ready & ORIBI_READ)) {
        socket->quiet_ms = (uint32_t)now_ms(socket); /* it is not listened to */
    } else if (socket->pings >= PINGS_MAX) {
        oribi__websocket_say(socket, "no answer to two Pings (websocket_ping)", ORIBI_WEBSOCKET_CODE_ABNORMAL);
        oribi__websocket_finish(socket, ORIBI_WEBSOCKET_CODE_ABNORMAL);
        return false;
    } else {
        socket->pings++;
        socket->quiet_ms = (uint32_t)now_ms(socket);
        if (oribi__websocket_put(socket, ORIBI_WEBSOCKET_PING, oribi_slice(NULL, 0)))
            oribi__websocket_flush(socket);
    }
    return true;
}

static void look(void *self)
{
    struct oribi__websocket *socket = self;
    struct oribi__websocket_work *work = socket->work;
    int64_t now = now_ms(socket);
    if (socket->life == ORIBI__WEBSOCKET_CLOSING && now >= work->end_ms) {
        oribi__websocket_finish(socket, ORIBI_WEBSOCKET_CODE_ABNORMAL);
        return;
    }
    if (work->stalled_ms && now - work->stalled_ms >= options_of(socket)->write_timeout_ms) {
        oribi_frontend_slot_count(&socket->frontend->slot->timeouts[ORIBI_TIMEOUT_WRITE], 1);
        oribi__websocket_say(socket, "the client takes nothing (write_timeout)", ORIBI_WEBSOCKET_CODE_ABNORMAL);
        oribi__websocket_finish(socket, ORIBI_WEBSOCKET_CODE_ABNORMAL);
        return;
    }
    if (socket->life == ORIBI__WEBSOCKET_OPEN && now >= end_deadline(socket)) {
        oribi__topics_hurry(socket->frontend->topics, &socket->subscriber);
        oribi__websocket_close_with(socket, work->drain_code, oribi_slice(NULL, 0));
    }
    if (socket->life == ORIBI__WEBSOCKET_OPEN && is_slow(socket)) {
        oribi__websocket_say(socket, "a message comes too slowly (body_timeout, body_rate_min)",
                             ORIBI_WEBSOCKET_CODE_POLICY);
        oribi__websocket_close_with(socket, ORIBI_WEBSOCKET_CODE_POLICY, ORIBI_SLICE("too slow"));
    }
    if (socket->life == ORIBI__WEBSOCKET_OPEN && now >= ping_deadline(socket) && !send_ping(socket))
        return;
    if (socket->life == ORIBI__WEBSOCKET_ENDED)
        return;
    oribi__websocket_go_on(socket);
}

void oribi__websocket_ping(struct oribi__websocket *socket)
{
    if (!oribi__websocket_work(socket))
        oribi__websocket_finish(socket, ORIBI_WEBSOCKET_CODE_ABNORMAL);
    else if (send_ping(socket) && socket->life != ORIBI__WEBSOCKET_ENDED)
        oribi__websocket_go_on(socket);
}

/* --- ids: digits as bytes, "0123abcd-…" --- */

static uint8_t nibble(char digit)
{
    return (uint8_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

static void make_id(struct oribi__websocket *socket)
{
    char text[ORIBI__ID_LEN];
    size_t n = 0;
    oribi__id_make(&socket->frontend->answers->ids, socket->frontend->reactor.now_us, text);
    for (size_t i = 0; i < sizeof(text); i++)
        if (text[i] != '-') {
            socket->id[n / 2] = (uint8_t)(socket->id[n / 2] << 4 | nibble(text[i]));
            n++;
        }
}

void oribi__websocket_id(const struct oribi__websocket *socket, char text[ORIBI__ID_LEN])
{
    size_t at = 0;
    for (size_t i = 0; i < sizeof(socket->id); i++) {
        if (at == 8 || at == 13 || at == 18 || at == 23)
            text[at++] = '-';
        text[at++] = "0123456789abcdef"[socket->id[i] >> 4];
        text[at++] = "0123456789abcdef"[socket->id[i] & 15];
    }
}

/* --- the begin --- */

struct oribi__handshake *oribi__websocket_create(struct oribi__frontend *frontend, struct oribi_slice path)
{
    size_t n = path.n < PATH_BYTES_MAX ? path.n : PATH_BYTES_MAX;
    struct oribi__handshake *handshake = oribi_mem_try_alloc(1, sizeof(*handshake) + n);
    if (!handshake)
        return NULL;
    handshake->frontend = frontend;
    handshake->path_len = (uint8_t)n;
    memcpy(handshake->path, path.p, n);
    return handshake;
}

int oribi__websocket_answer(struct oribi__handshake *handshake, const struct oribi_head *head,
                            const struct oribi_answer *answer)
{
    return oribi__websocket_write_answer(handshake->frontend, head, answer, &handshake->answer);
}

void oribi__websocket_discard(struct oribi__handshake *handshake)
{
    oribi_buf_deinit(&handshake->answer);
    oribi_buf_deinit(&handshake->text);
    oribi_mem_free(handshake);
}

int oribi__websocket_take_record(struct oribi__handshake *handshake, struct oribi_slice part, bool last)
{
    struct oribi_socket_record *record = &handshake->record;
    if (handshake->text.len + part.n > ORIBI_SOCKET_RECORD_BYTES_MAX)
        return ORIBI_EBAD;
    int code = oribi_buf_try_append(&handshake->text, part.p, part.n);
    if (code < 0 || !last)
        return code;
    code = oribi_socket_record_read(oribi_slice(handshake->text.p, handshake->text.len), record);
    bool good = code == 0 && record->event == ORIBI_SOCKET_ACCEPTED && record->handler.n &&
                oribi__websocket_channels_are_valid(record->channels);
    return good ? 0 : ORIBI_EBAD;
}

static char *put(char *at, struct oribi_slice text)
{
    if (text.n)
        memcpy(at, text.p, text.n);
    return at + text.n;
}

int oribi__websocket_set_state(struct oribi__websocket *socket, struct oribi_slice state)
{
    char *kept = state.n ? oribi_mem_try_alloc(1, state.n) : NULL;
    if (state.n && !kept)
        return ORIBI_ENOMEM;
    if (kept)
        memcpy(kept, state.p, state.n);
    oribi_mem_free(socket->state);
    socket->state = kept;
    socket->state_len = (uint16_t)state.n;
    return 0;
}

static void free_socket(struct oribi__websocket *socket)
{
    oribi__websocket_end_work(socket);
    oribi_mem_free(socket->state);
    oribi_mem_free(socket);
}

/* The socket, in no list, with all that it keeps. NULL: out of memory. */
static struct oribi__websocket *make(const struct oribi__handshake *handshake, const struct oribi__peer *peer)
{
    const struct oribi_socket_record *record = &handshake->record;
    struct oribi_slice path = oribi_slice(handshake->path, handshake->path_len);
    size_t n = record->handler.n + record->protocol.n + record->kept.n + path.n + peer->addr_len + peer->port_len;
    struct oribi__websocket *socket = oribi_mem_try_alloc(1, offsetof(struct oribi__websocket, text) + n);
    if (!socket)
        return NULL;
    socket->frontend = handshake->frontend;
    socket->watch.handler = on_ready;
    socket->watch.fd = peer->fd;
    socket->transport = peer->transport;
    oribi__websocket_channels_init(socket);
    char *at = put(put(put(put(socket->text, record->handler), record->protocol), record->kept), path);
    (void)put(put(at, oribi_slice(peer->addr, peer->addr_len)), oribi_slice(peer->port, peer->port_len));
    socket->handler_len = (uint8_t)record->handler.n;
    socket->protocol_len = (uint8_t)record->protocol.n;
    socket->kept_len = (uint16_t)record->kept.n;
    socket->path_len = handshake->path_len;
    socket->addr_len = peer->addr_len;
    socket->port_len = peer->port_len;
    socket->listener = (uint8_t)peer->listener;
    socket->tls = peer->tls || peer->proxy_tls;
    socket->wants = record->code & (ORIBI_SOCKET_WANTS_OPEN | ORIBI_SOCKET_WANTS_CLOSE);
    socket->ids = record->code & ORIBI_SOCKET_WITH_IDS;
    socket->opened_us = handshake->frontend->reactor.now_us;
    socket->quiet_ms = (uint32_t)handshake->frontend->reactor.now_ms;
    socket->life = ORIBI__WEBSOCKET_OPEN;
    make_id(socket);
    oribi__websocket_enlist(socket, ORIBI__WEBSOCKETS_IDLE);
    if (oribi__websocket_set_state(socket, record->state) == 0 && oribi__websocket_work(socket))
        return socket;
    oribi__websocket_move(socket, ORIBI__WEBSOCKETS_CLOSED);
    return NULL;
}

/* The socket goes on by itself: its first event is the application's, or the client's. */
static void begin(struct oribi__websocket *socket, struct oribi_slice channels)
{
    oribi__websocket_flush(socket);
    if (socket->life == ORIBI__WEBSOCKET_OPEN && channels.n)
        oribi__websocket_subscribe_all(socket, channels);
    if (socket->life != ORIBI__WEBSOCKET_OPEN)
        return;
    if (socket->wants & ORIBI_SOCKET_WANTS_OPEN) {
        oribi__websocket_call(socket, ORIBI_SOCKET_OPEN);
        return;
    }
    socket->open_called = true;
    oribi__websocket_read_on(socket);
    oribi__websocket_go_on(socket);
    if (!socket->work)
        oribi__websocket_spread(socket);
}

void oribi__websocket_start(struct oribi__handshake *handshake, const struct oribi__peer *peer,
                            struct oribi_slice early)
{
    struct oribi__frontend *frontend = handshake->frontend;
    struct oribi__peer way = *peer;
    if (!frontend->websockets->scratch)
        frontend->websockets->scratch = oribi_mem_alloc(1, ORIBI__WEBSOCKET_SCRATCH_BYTES);
    struct oribi__websocket *socket = make(handshake, peer);
    if (!socket) {
        oribi__peer_close(&way, false);
        oribi__websocket_discard(handshake);
        return;
    }
    if (peer->tls)
        oribi_tls_forget_info(peer->transport);
    frontend->websocket_count++;
    oribi_frontend_slot_count(&frontend->slot->websocket_count, 1);
    if (oribi__peer_watch(&way, frontend->reactor.loop, &socket->watch) < 0 ||
        oribi_buf_try_append(&socket->work->in, early.p, early.n) < 0 ||
        oribi_buf_try_append(&socket->work->out, handshake->answer.p, handshake->answer.len) < 0) {
        oribi__websocket_finish(socket, ORIBI_WEBSOCKET_CODE_ABNORMAL);
    } else {
        if (frontend->draining) {
            socket->work->end_ms = now_ms(socket);
            socket->work->drain_code = ORIBI_WEBSOCKET_CODE_RESTART;
        }
        begin(socket, handshake->record.channels);
    }
    oribi__websocket_discard(handshake);
}

/* --- all of them --- */

bool oribi__websockets_are_over(const struct oribi__frontend *frontend)
{
    const struct oribi__websockets *sockets = frontend->websockets;
    for (uint32_t i = 0; i < ORIBI__WEBSOCKETS_CLOSED; i++)
        if (sockets->lists[i].first)
            return false;
    return true;
}

/* Each has work from here on, so that it has a deadline of its own. */
static void drain_list(struct oribi__frontend *frontend, uint32_t list, int64_t *at_us, int64_t step_us, uint16_t code)
{
    struct oribi__websocket *next;
    for (struct oribi__websocket *socket = frontend->websockets->lists[list].first; socket; socket = next) {
        next = socket->next;
        if (socket->life != ORIBI__WEBSOCKET_OPEN || (socket->work && socket->work->end_ms))
            continue;
        struct oribi__websocket_work *work = oribi__websocket_work(socket);
        if (!work) {
            oribi__websocket_finish(socket, ORIBI_WEBSOCKET_CODE_ABNORMAL);
            continue;
        }
        work->drain_code = code;
        work->end_ms = now_ms(socket) + *at_us / 1000;
        *at_us += step_us;
        oribi__websocket_arm_by(socket, work->end_ms);
    }
}

void oribi__websockets_drain(struct oribi__frontend *frontend, bool last)
{
    const struct oribi_options *options = frontend->config->options;
    int64_t all_us = frontend->config->options->frontend_drain_ms * 1000;
    int64_t end_ms = options->shutdown_timeout_ms / 2;
    if (end_ms && all_us > end_ms * 1000)
        all_us = end_ms * 1000;
    int64_t step_us = frontend->websocket_count ? all_us / frontend->websocket_count : 0;
    int64_t at_us = 0;
    if (step_us > DRAIN_STEP_US)
        step_us = DRAIN_STEP_US;
    for (uint32_t i = 0; i < ORIBI__WEBSOCKETS_CLOSED; i++)
        drain_list(frontend, i, &at_us, step_us, last ? ORIBI_WEBSOCKET_CODE_GOING_AWAY : ORIBI_WEBSOCKET_CODE_RESTART);
}

void oribi__websockets_turn(struct oribi__frontend *frontend)
{
    struct oribi__websockets *sockets = frontend->websockets;
    struct oribi__websocket *posted = sockets->posted;
    oribi__websockets_forget_wrapped(sockets);
    sockets->posted = NULL;
    while (posted) {
        struct oribi__websocket *next = posted->work->posted_next;
        posted->work->posted = false;
        if (posted->life != ORIBI__WEBSOCKET_ENDED)
            oribi__websocket_read_on(posted);
        oribi__websocket_rest(posted);
        posted = next;
    }
    struct oribi__websocket *socket = sockets->lists[ORIBI__WEBSOCKETS_CLOSED].first;
    while (socket) {
        struct oribi__websocket *next = socket->next;
        if (!socket->work || !socket->work->posted) { /* else the next turn still sees it */
            oribi__websocket_leave(socket);
            free_socket(socket);
        }
        socket = next;
    }
}

void oribi__websockets_deinit(struct oribi__frontend *frontend)
{
    struct oribi__websockets *sockets = frontend->websockets;
    for (uint32_t i = 0; i < ORIBI__WEBSOCKETS_CLOSED; i++) {
        struct oribi__websocket *socket;
        while ((socket = sockets->lists[i].first)) {
            socket->wants = 0;
            socket->close_due = false;
            if (socket->work && socket->work->call)
                oribi__websocket_end_call(socket);
            if (socket->life == ORIBI__WEBSOCKET_ENDED)
                oribi__websocket_after_end(socket);
            else
                oribi__websocket_finish(socket, ORIBI_WEBSOCKET_CODE_GOING_AWAY);
        }
    }
    oribi__websockets_turn(frontend); /* those that were posted */
    oribi__websockets_turn(frontend);
    oribi__websockets_trim(sockets);
    oribi_buf_deinit(&sockets->record);
    oribi_buf_deinit(&sockets->marks);
    oribi_mem_free(sockets->scratch);
}
