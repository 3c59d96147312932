/* Frames of a WebSocket's client. Messages are put together and called one after another: while a call is out, or too
 * much waits for the client, nothing is read. Reading order: oribi__websocket_read_on, feed, take_event. */
#include "frontend/websocket_private.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include <string.h>

enum {
    READS_MAX = 16,          /* a turn of a socket */
    FRAMES_MAX = 1024,       /* of a read: after more the others come first */
    CROWDED_BYTES = 8192,    /* that are read then */
    LARGE_BYTES = 64 * 1024, /* of a message: longer ones leave a quarter of the budget to others */
};

static void heard(struct oribi__websocket *socket, size_t n)
{
    oribi__websocket_note_heard(socket);
    socket->work->message_in += (int64_t)n;
    if (socket->watch.fd >= 0) /* else its connection counts them */
        socket->frontend->bytes_in += n;
}

/* False: the client sends more messages than it may. */
static bool may_send(struct oribi__websocket *socket)
{
    uint32_t max = options_of(socket)->websocket_rate_max;
    uint32_t second = (uint32_t)(now_ms(socket) / 1000);
    if (second != socket->second) {
        socket->second = second;
        socket->second_count = 0;
    }
    return max == 0 || ++socket->second_count <= max;
}

/* Has the frontend room for n bytes more of the message? A short message always has. */
static bool has_memory(const struct oribi__websocket *socket, size_t n)
{
    const struct oribi_buf *message = &socket->work->message;
    int64_t wanted = (int64_t)(message->len + n);
    return wanted <= ORIBI__WEBSOCKET_SHORT_BYTES ||
           oribi_budget_large(&socket->frontend->reactor.budget, (int64_t)message->cap, wanted, LARGE_BYTES) >= wanted;
}

static void take_piece(struct oribi__websocket *socket, const struct oribi_websocket_event *event)
{
    struct oribi__frontend *frontend = socket->frontend;
    struct oribi__websocket_work *work = socket->work;
    if (socket->life != ORIBI__WEBSOCKET_OPEN)
        return;
    if (!has_memory(socket, event->payload.n)) {
        oribi__websocket_say(socket, "no room for a message (buffers_memory_max)", ORIBI_WEBSOCKET_CODE_TRY_LATER);
        oribi__websocket_close_with(socket, ORIBI_WEBSOCKET_CODE_TRY_LATER, ORIBI_SLICE("no room"));
        return;
    }
    if (oribi_buf_try_append(&work->message, event->payload.p, event->payload.n) < 0) {
        oribi__websocket_say(socket, "no memory for a message", ORIBI_WEBSOCKET_CODE_TRY_LATER);
        oribi__websocket_close_with(socket, ORIBI_WEBSOCKET_CODE_TRY_LATER, ORIBI_SLICE("no memory"));
        return;
    }
    if (!event->ends)
        return;
    work->message_ms = 0;
    if (!may_send(socket)) {
        oribi__websocket_say(socket, "more messages in a second than websocket_rate_max", ORIBI_WEBSOCKET_CODE_POLICY);
        oribi__websocket_close_with(socket, ORIBI_WEBSOCKET_CODE_POLICY, ORIBI_SLICE("too many messages"));
        return;
    }
    socket->messages[0]++;
    socket->bytes[0] += work->message.len;
    oribi_frontend_slot_count(&frontend->slot->websocket_messages[0], 1);
    oribi_frontend_slot_count(&frontend->slot->websocket_bytes[0], work->message.len);
    oribi__websocket_call(socket, event->binary ? ORIBI_SOCKET_BINARY : ORIBI_SOCKET_TEXT);
}

static void take_close(struct oribi__websocket *socket, const struct oribi_websocket_event *event)
{
    socket->work->heard_close = true;
    if (socket->life == ORIBI__WEBSOCKET_CLOSING) {
        oribi__websocket_flush(socket); /* what still waits goes first */
        if (socket->life == ORIBI__WEBSOCKET_CLOSING && oribi__websocket_waiting(socket) == 0)
            oribi__websocket_finish(socket, socket->code);
        return;
    }
    oribi__websocket_note_code(socket, event->code, event->payload);
    oribi__websocket_close_with(socket, event->code, oribi_slice(NULL, 0));
}

/* Nothing that follows can be read. It is dropped until the client closes: a connection that is closed with bytes
 * unread is reset, and the Close frame may be lost. */
static void take_fault(struct oribi__websocket *socket, const struct oribi_websocket_event *event)
{
    if (socket->life == ORIBI__WEBSOCKET_CLOSING) {
        oribi__websocket_finish(socket, socket->code);
        return;
    }
    oribi__websocket_say(socket, event->reason, event->code);
    socket->work->deaf = true;
    oribi__websocket_close_with(socket, event->code, oribi_slice(event->reason, strlen(event->reason)));
}

static void take_event(struct oribi__websocket *socket, const struct oribi_websocket_event *event)
{
    switch (event->type) {
    case ORIBI_WEBSOCKET_EVENT_PIECE:
        take_piece(socket, event);
        break;
    case ORIBI_WEBSOCKET_EVENT_PING:
        if (socket->life == ORIBI__WEBSOCKET_OPEN && oribi__websocket_put(socket, ORIBI_WEBSOCKET_PONG, event->payload))
            socket->work->pongs = true;
        break;
    case ORIBI_WEBSOCKET_EVENT_CLOSE:
        take_close(socket, event);
        break;
    case ORIBI_WEBSOCKET_EVENT_FAULT:
        take_fault(socket, event);
        break;
    default:
        break;
    }
}

/* Feeds [p, p+n) until a call begins or the bytes end; returns how many were used. */
static size_t feed(struct oribi__websocket *socket, char *p, size_t n)
{
    struct oribi__websocket_work *work = socket->work;
    size_t used = 0;
    uint32_t frames = 0;
    work->starved = false;
    work->feeding = true;
    while (!work->starved && !work->deaf && oribi__websocket_reads(socket)) {
        struct oribi_websocket_event event;
        used += oribi_websocket_feed(&work->reader, p + used, n - used, &event);
        work->starved = event.type == ORIBI_WEBSOCKET_EVENT_AGAIN;
        take_event(socket, &event);
        frames++;
    }
    work->crowded = frames > FRAMES_MAX;
    if (work->pongs && socket->life != ORIBI__WEBSOCKET_ENDED)
        oribi__websocket_flush(socket); /* of many Pings that were read at once: else each costs a system call */
    work->pongs = work->feeding = false;
    return work->deaf ? n : used;
}

/* A message has begun, or the begin of a frame has come: it has a deadline. */
static void await_rest(struct oribi__websocket *socket)
{
    struct oribi__websocket_work *work = socket->work;
    bool begun = work->reader.message || work->in.len;
    if (!oribi__websocket_reads(socket) || socket->life != ORIBI__WEBSOCKET_OPEN || !begun) {
        if (!begun)
            work->message_ms = 0;
        return;
    }
    if (!work->message_ms) {
        work->message_ms = now_ms(socket);
        work->message_in = 0;
    }
    oribi__websocket_arm_by(socket, oribi__websocket_message_deadline(socket));
}

/* Feeds the bytes that were read before a call, or did not make a frame. */
static void feed_kept(struct oribi__websocket *socket)
{
    struct oribi_buf kept = socket->work->in;
    socket->work->in = (struct oribi_buf){0};
    size_t used = feed(socket, kept.p, kept.len);
    if (socket->life == ORIBI__WEBSOCKET_ENDED || used >= kept.len) {
        oribi_buf_deinit(&kept);
        return;
    }
    oribi_buf_consume(&kept, used);
    socket->work->in = kept;
}

static bool keep(struct oribi__websocket *socket, const char *p, size_t n)
{
    if (n == 0 || oribi_buf_try_append(&socket->work->in, p, n) == 0)
        return true;
    oribi__websocket_finish(socket, ORIBI_WEBSOCKET_CODE_ABNORMAL);
    return false;
}

/* False: there is nothing to read now, or the connection has ended. */
static bool read_some(struct oribi__websocket *socket)
{
    char *scratch = socket->frontend->websockets->scratch;
    struct oribi_buf *in = &socket->work->in;
    size_t kept = in->len; /* the begin of a frame at most */
    size_t room = (socket->work->crowded ? CROWDED_BYTES : ORIBI__WEBSOCKET_SCRATCH_BYTES) - kept;
    if (kept)
        memcpy(scratch, in->p, kept);
    ssize_t n = oribi_transport_read(socket->transport, socket->watch.fd, scratch + kept, room);
    if (n == ORIBI_AGAIN) {
        socket->watch.ready &= (uint8_t)~ORIBI_READ;
        return false;
    }
    if (n <= 0) {
        oribi__websocket_finish(socket, ORIBI_WEBSOCKET_CODE_ABNORMAL);
        return false;
    }
    if (socket->watch.fd >= 0 && (size_t)n < room && !(socket->watch.ready & ORIBI_HANGUP))
        socket->watch.ready &= (uint8_t)~ORIBI_READ; /* a short read has emptied it, see epoll(7) */
    heard(socket, (size_t)n);
    oribi_buf_deinit(in);
    size_t len = kept + (size_t)n;
    size_t used = feed(socket, scratch, len);
    return socket->life != ORIBI__WEBSOCKET_ENDED && keep(socket, scratch + used, len - used);
}

void oribi__websocket_post(struct oribi__websocket *socket)
{
    struct oribi__websocket_work *work = socket->work;
    if (work->posted)
        return;
    work->posted = true;
    work->posted_next = socket->frontend->websockets->posted;
    socket->frontend->websockets->posted = socket;
}

/* Bytes that were read before come first: read_some() has room behind the begin of a frame alone. False: there is
 * nothing to read now, others come first, or the connection has ended. */
static bool read_step(struct oribi__websocket *socket)
{
    struct oribi__websocket_work *work = socket->work;
    bool more = true;
    if (work->in.len && !work->starved)
        feed_kept(socket);
    else
        more = (socket->watch.ready & ORIBI_READ) && read_some(socket);
    oribi__websocket_charge(socket);
    return more && !work->crowded;
}

void oribi__websocket_read_on(struct oribi__websocket *socket)
{
    struct oribi__websocket_work *work = socket->work;
    if (work->feeding)
        return;
    for (int i = 0; i < READS_MAX && oribi__websocket_reads(socket) && read_step(socket); i++)
        ;
    if (socket->life == ORIBI__WEBSOCKET_ENDED)
        return;
    await_rest(socket);
    bool left = (socket->watch.ready & ORIBI_READ) || (work->in.len && !work->starved);
    if (left && oribi__websocket_reads(socket))
        oribi__websocket_post(socket); /* a turn has not read all that is there, and readiness is told once */
}
