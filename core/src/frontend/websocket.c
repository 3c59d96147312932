/* A WebSocket's life in the frontend: its states and deadlines, frames to the client, the closing handshake, the end.
 * Reading order: oribi__websocket_start, look, oribi__websocket_close_with, oribi__websocket_finish.
 *
 *   WAITING ─► OPEN ─► CLOSING ─► ENDED ─► freed
 *      │         └─────────────────┘
 *      └ the application's record is not whole
 *
 * WAITING: handshake accepted, record on its way. OPEN: frames are read, but while a call is out: so messages of one
 * socket are called one after another, and a client that sends faster waits. CLOSING: our Close frame is written; the
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
    CLOSING_MS = 5000,    /* for the client's Close frame, and for our bytes before it */
    PINGS_MAX = 2,        /* without an answer */
    RATE_LOOK_MS = 1000,  /* of a message that comes slowly */
    DRAIN_STEP_US = 5000, /* a drain closes at least so fast */
    PATH_BYTES_MAX = 255, /* of the opening request, as it is kept for log lines */
};

static void shut(struct oribi__websocket *socket);
static void look(void *self);

/* --- lines --- */

void oribi__websocket_say(struct oribi__websocket *socket, const char *what, uint16_t code)
{
    struct oribi__frontend *frontend = socket->frontend;
    struct oribi_slice path = path_of(socket);
    char shown[4 * PATH_BYTES_MAX + 1];
    if (!oribi_log_limit_allows(&frontend->log_limit, frontend->reactor.now_ms))
        return;
    *oribi_escape_text(shown, path) = '\0';
    oribi_log(ORIBI_LOG_INFO, "frontend: WebSocket %s from %.*s: %s; closing it with %u", shown,
              socket->peer.addr_len ? socket->peer.addr_len : 13,
              socket->peer.addr_len ? socket->peer.addr : "a unix socket", what, code);
}

/* --- deadlines --- */

void oribi__websocket_arm_by(struct oribi__websocket *socket, int64_t at_ms)
{
    if (at_ms < oribi_timer_at(&socket->timer))
        oribi_timers_arm(&socket->frontend->timers, &socket->timer, at_ms);
}

bool oribi__websocket_reads(const struct oribi__websocket *socket)
{
    return (socket->life == ORIBI__WEBSOCKET_OPEN && !socket->call) ||
           (socket->life == ORIBI__WEBSOCKET_CLOSING && !socket->heard_close);
}

/* When the message on its way must have gone on; INT64_MAX: none is. */
int64_t oribi__websocket_message_deadline(const struct oribi__websocket *socket)
{
    const struct oribi_options *options = options_of(socket);
    if (!socket->message_ms || !oribi__websocket_reads(socket))
        return INT64_MAX;
    int64_t rate_ms = socket->message_ms + options->body_timeout_ms;
    if (rate_ms <= now_ms(socket))
        rate_ms = now_ms(socket) + RATE_LOOK_MS;
    return oribi_earlier(socket->heard_ms + options->body_timeout_ms, options->body_rate_min ? rate_ms : INT64_MAX);
}

static bool is_slow(const struct oribi__websocket *socket)
{
    const struct oribi_options *options = options_of(socket);
    if (!socket->message_ms || !oribi__websocket_reads(socket))
        return false;
    int64_t took_ms = now_ms(socket) - socket->message_ms;
    return now_ms(socket) - socket->heard_ms >= options->body_timeout_ms ||
           (options->body_rate_min && took_ms >= options->body_timeout_ms &&
            socket->message_in < took_ms * (int64_t)options->body_rate_min / 1000);
}

static int64_t ping_deadline(const struct oribi__websocket *socket)
{
    int64_t ping_ms = options_of(socket)->websocket_ping_ms;
    return ping_ms && socket->life == ORIBI__WEBSOCKET_OPEN ? socket->heard_ms + ping_ms * (socket->pings + 1)
                                                            : INT64_MAX;
}

/* A drain waits for the call that is out. */
static int64_t end_deadline(const struct oribi__websocket *socket)
{
    bool waits = socket->life == ORIBI__WEBSOCKET_CLOSING || (socket->life == ORIBI__WEBSOCKET_OPEN && !socket->call);
    return waits && socket->end_ms ? socket->end_ms : INT64_MAX;
}

void oribi__websocket_arm(struct oribi__websocket *socket)
{
    int64_t at_ms = oribi_earlier(end_deadline(socket), ping_deadline(socket));
    at_ms = oribi_earlier(at_ms, oribi__websocket_message_deadline(socket));
    if (socket->stalled_ms)
        at_ms = oribi_earlier(at_ms, socket->stalled_ms + options_of(socket)->write_timeout_ms);
    oribi_timers_arm(&socket->frontend->timers, &socket->timer, at_ms);
}

/* --- memory --- */

void oribi__websocket_charge(struct oribi__websocket *socket)
{
    uint64_t used = (uint64_t)socket->in.cap + socket->message.cap + socket->out.cap + socket->answer.cap;
    uint32_t now = used < UINT32_MAX ? (uint32_t)used : UINT32_MAX;
    socket->frontend->reactor.budget.memory_used += (int64_t)now - socket->charged;
    socket->charged = now;
}

/* --- frames to the client --- */

/* Appends a frame. False: out of memory, and the connection has ended. */
bool oribi__websocket_put(struct oribi__websocket *socket, enum oribi_websocket_opcode opcode, struct oribi_slice data)
{
    char head[ORIBI_WEBSOCKET_HEAD_CAP];
    size_t n = oribi_websocket_write_head(head, opcode, true, data.n, NULL);
    if (socket->wait_count) {
        struct oribi__message *message = oribi__message_create(oribi_slice(head, n), data, false);
        int code = message ? oribi__websocket_wait(socket, message, true) : ORIBI_ENOMEM;
        if (message)
            oribi__message_release(message);
        if (code == 0)
            return true;
    } else if (oribi_buf_try_append(&socket->out, head, n) == 0 &&
               oribi_buf_try_append(&socket->out, data.p, data.n) == 0) {
        return true;
    }
    oribi__websocket_finish(socket, ORIBI_WEBSOCKET_CODE_ABNORMAL);
    return false;
}

/* The client is told that nothing follows. */
static void shut(struct oribi__websocket *socket)
{
    if (socket->shut)
        return;
    socket->shut = true;
    oribi__peer_shut(&socket->peer);
}

/* Sends what waits, as far as the client takes it. */
void oribi__websocket_flush(struct oribi__websocket *socket)
{
    struct oribi__frontend *frontend = socket->frontend;
    size_t done = 0; /* of `out` */
    bool progress = false;
    while (socket->life != ORIBI__WEBSOCKET_ENDED && (done < socket->out.len || socket->wait_count)) {
        struct iovec vec[ORIBI__WEBSOCKET_VECS];
        char heads[ORIBI__WEBSOCKET_HEADS][ORIBI_WEBSOCKET_HEAD_CAP];
        size_t count = oribi__websocket_gather(socket, done, vec, heads);
        ssize_t sent = oribi__peer_send(&socket->peer, vec, count);
        if (sent == ORIBI_AGAIN) {
            socket->watch.ready &= (uint8_t)~ORIBI_WRITE;
            break;
        }
        if (sent < 0) {
            oribi__websocket_finish(socket, ORIBI_WEBSOCKET_CODE_ABNORMAL);
            return;
        }
        size_t left = socket->out.len - done;
        size_t of_out = (size_t)sent < left ? (size_t)sent : left;
        done += of_out;
        progress = true;
        if (socket->wait_count)
            oribi__websocket_taken(socket, (size_t)sent - of_out);
        if (socket->peer.fd >= 0) /* else its connection counts them */
            frontend->bytes_out += (uint64_t)sent;
    }
    if (socket->life == ORIBI__WEBSOCKET_ENDED)
        return;
    if (done == socket->out.len && !socket->wait_count) {
        oribi_buf_deinit(&socket->out);
        if (socket->charged)
            oribi__websocket_charge(socket);
        socket->stalled_ms = 0;
        if (socket->watch.interest & ORIBI_WRITE)
            oribi__peer_await(&socket->peer, frontend->reactor.loop, &socket->watch, ORIBI_READ);
        if (socket->life == ORIBI__WEBSOCKET_CLOSING && socket->heard_close)
            oribi__websocket_finish(socket, socket->code);
        else if (socket->life == ORIBI__WEBSOCKET_CLOSING && socket->deaf)
            shut(socket);
        return;
    }
    if (done)
        oribi_buf_consume(&socket->out, done);
    oribi__websocket_charge(socket);
    if (progress || !socket->stalled_ms)
        socket->stalled_ms = now_ms(socket);
    oribi__websocket_arm_by(socket, socket->stalled_ms + options_of(socket)->write_timeout_ms);
    oribi__peer_await(&socket->peer, frontend->reactor.loop, &socket->watch, ORIBI_READ | ORIBI_WRITE);
}

bool oribi__websocket_has_room(struct oribi__websocket *socket, size_t n)
{
    size_t waiting = oribi__websocket_waiting(socket) - socket->owed_bytes;
    if (waiting == 0 || waiting + n <= (uint64_t)options_of(socket)->websocket_pending_max)
        return true;
    oribi__websocket_say(socket, "the client reads too slowly (websocket_pending_max)", ORIBI_WEBSOCKET_CODE_TRY_LATER);
    oribi__websocket_close_with(socket, ORIBI_WEBSOCKET_CODE_TRY_LATER, ORIBI_SLICE("too slow"));
    return false;
}

void oribi__websocket_count_sent(struct oribi__websocket *socket, size_t n)
{
    struct oribi_frontend_slot *slot = socket->frontend->slot;
    socket->messages[1]++;
    socket->bytes[1] += n;
    oribi_frontend_slot_count(&slot->websocket_messages[1], 1);
    oribi_frontend_slot_count(&slot->websocket_bytes[1], n);
}

/* A message of the application's. One may always wait; beyond that the client is too slow. */
void oribi__websocket_send(struct oribi__websocket *socket, enum oribi_websocket_opcode opcode, struct oribi_slice data)
{
    if (socket->life != ORIBI__WEBSOCKET_OPEN)
        return;
    if (oribi__websocket_waiting(socket)) {
        oribi__websocket_flush(socket);
        if (socket->life != ORIBI__WEBSOCKET_OPEN)
            return;
    }
    if (!oribi__websocket_has_room(socket, data.n))
        return;
    oribi__websocket_count_sent(socket, data.n);
    (void)oribi__websocket_put(socket, opcode, data); /* else it has ended */
}

/* --- the end --- */

void oribi__websocket_note_code(struct oribi__websocket *socket, uint16_t code, struct oribi_slice reason)
{
    if (socket->code)
        return;
    socket->code = code;
    size_t n = reason.n < ORIBI_WEBSOCKET_REASON_BYTES_MAX ? reason.n : ORIBI_WEBSOCKET_REASON_BYTES_MAX;
    socket->close_reason = n ? oribi_mem_try_alloc(1, n) : NULL; /* without memory on_close has no reason */
    if (!socket->close_reason)
        return;
    memcpy(socket->close_reason, reason.p, n);
    socket->close_len = (uint8_t)n;
}

/* Begins the closing handshake (RFC 6455 7.1.2); nothing where it has begun. */
void oribi__websocket_close_with(struct oribi__websocket *socket, uint16_t code, struct oribi_slice reason)
{
    char payload[ORIBI_WEBSOCKET_CONTROL_BYTES_MAX];
    if (socket->life != ORIBI__WEBSOCKET_OPEN)
        return;
    ssize_t n = oribi_websocket_write_close(payload, code, reason);
    if (n < 0)
        n = oribi_websocket_write_close(payload, code, oribi_slice(NULL, 0)); /* a reason that is no UTF-8 */
    oribi__websocket_note_code(socket, code, reason);
    socket->life = ORIBI__WEBSOCKET_CLOSING;
    socket->end_ms = now_ms(socket) + CLOSING_MS;
    socket->message_ms = 0;
    oribi__unsubscribe_all(socket->frontend->topics, &socket->subscriber);
    oribi__websocket_arm_by(socket, socket->end_ms);
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

static void unlink_socket(struct oribi__websocket *socket)
{
    struct oribi__frontend *frontend = socket->frontend;
    *(socket->prev ? &socket->prev->next : &frontend->websockets->first) = socket->next;
    if (socket->next)
        socket->next->prev = socket->prev;
    socket->prev = NULL;
    socket->next = frontend->websockets->closed;
    frontend->websockets->closed = socket;
}

static void free_buffers(struct oribi__websocket *socket)
{
    socket->frontend->reactor.budget.memory_used -= socket->charged;
    socket->charged = 0;
    oribi_buf_deinit(&socket->in);
    oribi_buf_deinit(&socket->message);
    oribi_buf_deinit(&socket->out);
    oribi_buf_deinit(&socket->answer);
    oribi_buf_deinit(&socket->state);
    oribi_mem_free(socket->close_reason);
    oribi_mem_free(socket->text);
    socket->close_reason = socket->text = NULL;
}

/* An ended socket: on_close, where that is due; else it goes. */
void oribi__websocket_after_end(struct oribi__websocket *socket)
{
    if (socket->call)
        return;
    if (socket->close_due) {
        socket->close_due = false;
        oribi__websocket_call(socket, ORIBI_SOCKET_CLOSE);
        return;
    }
    unlink_socket(socket);
}

/* The connection ends. `code`: unless the socket has one. */
void oribi__websocket_finish(struct oribi__websocket *socket, uint16_t code)
{
    struct oribi__frontend *frontend = socket->frontend;
    if (socket->life == ORIBI__WEBSOCKET_ENDED)
        return;
    oribi__websocket_note_code(socket, code, oribi_slice(NULL, 0));
    socket->life = ORIBI__WEBSOCKET_ENDED;
    oribi__peer_unwatch(&socket->peer, frontend->reactor.loop, &socket->watch);
    oribi_timers_stop(&frontend->timers, &socket->timer);
    oribi__peer_close(&socket->peer, socket->heard_close);
    oribi__unsubscribe_all(frontend->topics, &socket->subscriber);
    oribi_buf_deinit(&socket->in);
    oribi_buf_deinit(&socket->out);
    oribi__websocket_forget_waits(socket);
    oribi__websocket_charge(socket);
    frontend->websocket_count--;
    count_code(socket);
    struct oribi__socket_end end = {.path = path_of(socket),
                                    .peer = &socket->peer,
                                    .id = oribi_slice(socket->id, sizeof(socket->id)),
                                    .code = socket->code,
                                    .opened_us = socket->opened_us,
                                    .messages = {socket->messages[0], socket->messages[1]},
                                    .bytes = {socket->bytes[0], socket->bytes[1]}};
    oribi__answer_log_socket(frontend, &end);
    socket->close_due = socket->open_called && (socket->wants & ORIBI_SOCKET_WANTS_CLOSE);
    oribi__websocket_after_end(socket);
}

static void on_ready(void *self, struct oribi_watch *watch)
{
    struct oribi__websocket *socket = (struct oribi__websocket *)watch;
    if (socket->life == ORIBI__WEBSOCKET_ENDED)
        return;
    if (oribi__websocket_waiting(socket) && (watch->ready & ORIBI_WRITE))
        oribi__websocket_flush(socket);
    if (socket->life != ORIBI__WEBSOCKET_ENDED)
        oribi__websocket_read_on(socket);
}

/* --- deadlines that have come --- */

static void look(void *self)
{
    struct oribi__websocket *socket = self;
    int64_t now = now_ms(socket);
    if (socket->life == ORIBI__WEBSOCKET_CLOSING && now >= socket->end_ms) {
        oribi__websocket_finish(socket, ORIBI_WEBSOCKET_CODE_ABNORMAL);
        return;
    }
    if (socket->stalled_ms && now - socket->stalled_ms >= options_of(socket)->write_timeout_ms) {
        oribi_frontend_slot_count(&socket->frontend->slot->timeouts[ORIBI_TIMEOUT_WRITE], 1);
        oribi__websocket_finish(socket, ORIBI_WEBSOCKET_CODE_ABNORMAL);
        return;
    }
    if (socket->life == ORIBI__WEBSOCKET_OPEN && now >= end_deadline(socket))
        oribi__websocket_close_with(socket, socket->drain_code, oribi_slice(NULL, 0));
    if (socket->life == ORIBI__WEBSOCKET_OPEN && is_slow(socket)) {
        oribi__websocket_say(socket, "a message comes too slowly (body_timeout, body_rate_min)",
                             ORIBI_WEBSOCKET_CODE_POLICY);
        oribi__websocket_close_with(socket, ORIBI_WEBSOCKET_CODE_POLICY, ORIBI_SLICE("too slow"));
    }
    if (socket->life == ORIBI__WEBSOCKET_OPEN && now >= ping_deadline(socket)) {
        if (socket->call || (socket->watch.ready & ORIBI_READ)) {
            socket->heard_ms = now; /* it is not listened to */
        } else if (socket->pings >= PINGS_MAX) {
            oribi__websocket_say(socket, "no answer to two Pings (websocket_ping)", ORIBI_WEBSOCKET_CODE_ABNORMAL);
            oribi__websocket_finish(socket, ORIBI_WEBSOCKET_CODE_ABNORMAL);
            return;
        } else {
            socket->pings++;
            if (oribi__websocket_put(socket, ORIBI_WEBSOCKET_PING, oribi_slice(NULL, 0)))
                oribi__websocket_flush(socket);
        }
    }
    if (socket->life != ORIBI__WEBSOCKET_ENDED)
        oribi__websocket_arm(socket);
}

/* --- the begin --- */

struct oribi__websocket *oribi__websocket_create(struct oribi__frontend *frontend, struct oribi_slice path)
{
    struct oribi__websocket *socket = oribi_mem_try_alloc(1, sizeof(*socket));
    if (!socket)
        return NULL;
    socket->frontend = frontend;
    socket->watch.handler = on_ready;
    socket->watch.fd = -1;
    socket->timer = (struct oribi_timer){.expired = look, .owner = socket};
    oribi__websocket_channels_init(socket);
    oribi_websocket_init(&socket->reader, ORIBI_WEBSOCKET_SERVER,
                         (uint64_t)frontend->config->options->websocket_message_max);
    size_t n = path.n < PATH_BYTES_MAX ? path.n : PATH_BYTES_MAX;
    socket->path_len = (uint8_t)n;
    if (oribi_buf_try_append(&socket->message, path.p, n) < 0) {
        oribi__websocket_discard(socket);
        return NULL;
    }
    return socket;
}

int oribi__websocket_answer(struct oribi__websocket *socket, const struct oribi_head *head,
                            const struct oribi_answer *answer)
{
    return oribi__websocket_write_answer(socket->frontend, head, answer, &socket->out);
}

void oribi__websocket_discard(struct oribi__websocket *socket)
{
    free_buffers(socket);
    oribi_mem_free(socket);
}

static char *put(char *at, struct oribi_slice text)
{
    if (text.n)
        memcpy(at, text.p, text.n);
    return at + text.n;
}

int oribi__websocket_take_record(struct oribi__websocket *socket, struct oribi_slice part, bool last)
{
    struct oribi_socket_record record;
    if (socket->answer.len + part.n > ORIBI_SOCKET_RECORD_BYTES_MAX)
        return ORIBI_EBAD;
    int code = oribi_buf_try_append(&socket->answer, part.p, part.n);
    if (code < 0 || !last)
        return code;
    code = oribi_socket_record_read(oribi_slice(socket->answer.p, socket->answer.len), &record);
    if (code < 0 || record.event != ORIBI_SOCKET_ACCEPTED || record.handler.n == 0 ||
        !oribi__websocket_channels_are_valid(record.channels))
        return ORIBI_EBAD;
    socket->text = oribi_mem_try_alloc(1, record.handler.n + record.protocol.n + record.kept.n + socket->path_len);
    if (!socket->text || oribi_buf_try_append(&socket->state, record.state.p, record.state.n) < 0)
        return ORIBI_ENOMEM;
    char *at = put(put(put(socket->text, record.handler), record.protocol), record.kept);
    (void)put(at, oribi_slice(socket->message.p, socket->path_len));
    socket->handler_len = (uint8_t)record.handler.n;
    socket->protocol_len = (uint8_t)record.protocol.n;
    socket->kept_len = (uint16_t)record.kept.n;
    socket->wants = (uint8_t)record.code;
    socket->ids = record.code & ORIBI_SOCKET_WITH_IDS;
    socket->message.len = 0;
    oribi_buf_consume(&socket->answer, socket->answer.len - record.channels.n); /* the last part */
    return 0;
}

static uint64_t next_random(struct oribi__websockets *sockets)
{
    sockets->random = sockets->random * 6364136223846793005u + 1442695040888963407u;
    return sockets->random >> 33;
}

void oribi__websocket_start(struct oribi__websocket *socket, const struct oribi__peer *peer, struct oribi_slice early)
{
    struct oribi__frontend *frontend = socket->frontend;
    struct oribi__websockets *sockets = frontend->websockets;
    int64_t spread_ms = frontend->config->options->websocket_ping_ms / 4;
    if (!sockets->scratch)
        sockets->scratch = oribi_mem_alloc(1, ORIBI__WEBSOCKET_SCRATCH_BYTES);
    socket->peer = *peer;
    socket->life = ORIBI__WEBSOCKET_OPEN;
    socket->over_h2 = peer->fd < 0;
    socket->next = sockets->first;
    if (sockets->first)
        sockets->first->prev = socket;
    sockets->first = socket;
    frontend->websocket_count++;
    socket->opened_us = frontend->reactor.now_us;
    oribi__id_make(&frontend->answers->ids, frontend->reactor.now_us, socket->id);
    oribi_frontend_slot_count(&frontend->slot->websocket_count, 1);
    socket->watch.fd = peer->fd;
    bool watched = oribi__frontend_reserve_timer(frontend) == 0 &&
                   oribi__peer_watch(peer, frontend->reactor.loop, &socket->watch) == 0;
    if (!watched || oribi_buf_try_append(&socket->in, early.p, early.n) < 0) {
        oribi__websocket_finish(socket, ORIBI_WEBSOCKET_CODE_ABNORMAL);
        return;
    }
    socket->heard_ms = now_ms(socket) - (spread_ms ? (int64_t)(next_random(sockets) % (uint64_t)spread_ms) : 0);
    if (frontend->draining) {
        socket->end_ms = now_ms(socket);
        socket->drain_code = ORIBI_WEBSOCKET_CODE_RESTART;
    }
    oribi__websocket_flush(socket);
    if (socket->life == ORIBI__WEBSOCKET_OPEN && socket->answer.len)
        oribi__websocket_subscribe_all(socket, oribi_slice(socket->answer.p, socket->answer.len));
    oribi_buf_deinit(&socket->answer);
    if (socket->life != ORIBI__WEBSOCKET_OPEN)
        return;
    oribi__websocket_arm(socket);
    if (socket->wants & ORIBI_SOCKET_WANTS_OPEN) {
        oribi__websocket_call(socket, ORIBI_SOCKET_OPEN);
        return;
    }
    socket->open_called = true;
    oribi__websocket_read_on(socket);
}

/* --- all of them --- */

bool oribi__websockets_are_over(const struct oribi__frontend *frontend)
{
    return frontend->websockets->first == NULL;
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
    for (struct oribi__websocket *socket = frontend->websockets->first; socket; socket = socket->next) {
        if (socket->life != ORIBI__WEBSOCKET_OPEN)
            continue;
        socket->drain_code = last ? ORIBI_WEBSOCKET_CODE_GOING_AWAY : ORIBI_WEBSOCKET_CODE_RESTART;
        socket->end_ms = now_ms(socket) + at_us / 1000;
        at_us += step_us;
        oribi__websocket_arm_by(socket, socket->end_ms);
    }
}

void oribi__websockets_turn(struct oribi__frontend *frontend)
{
    struct oribi__websocket *posted = frontend->websockets->posted;
    oribi__websockets_forget_wrapped(frontend->websockets);
    frontend->websockets->posted = NULL;
    while (posted) {
        struct oribi__websocket *next = posted->posted_next;
        posted->posted = false;
        if (posted->life != ORIBI__WEBSOCKET_ENDED)
            oribi__websocket_read_on(posted);
        posted = next;
    }
    struct oribi__websocket **at = &frontend->websockets->closed;
    while (*at) {
        struct oribi__websocket *socket = *at;
        if (socket->posted) { /* the next turn still sees it */
            at = &socket->next;
            continue;
        }
        *at = socket->next;
        free_buffers(socket);
        oribi_mem_free(socket);
    }
}

void oribi__websockets_deinit(struct oribi__frontend *frontend)
{
    struct oribi__websocket *socket;
    while ((socket = frontend->websockets->first)) {
        socket->wants = 0;
        socket->close_due = false;
        if (socket->call)
            oribi__websocket_end_call(socket);
        if (socket->life == ORIBI__WEBSOCKET_ENDED)
            oribi__websocket_after_end(socket);
        else
            oribi__websocket_finish(socket, ORIBI_WEBSOCKET_CODE_GOING_AWAY);
    }
    oribi__websockets_turn(frontend); /* those that were posted */
    oribi__websockets_turn(frontend);
    oribi_buf_deinit(&frontend->websockets->record);
    oribi_buf_deinit(&frontend->websockets->marks);
    oribi_mem_free(frontend->websockets->scratch);
}
