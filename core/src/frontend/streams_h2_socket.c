/* WebSockets over HTTP/2 (RFC 8441): the handshake of a stream, and its bytes as a transport, so that a WebSocket or a
 * tunnel lives over a stream as over a socket.
 *
 *     client ─ DATA ─► in ─ read() ─► WebSocket, tunnel      the window opens again as they read
 *     client ◄─ DATA ─ out ◄─ send_vec() ─┘                  takes OUT_BYTES_MAX at most, as a socket's buffer does
 *
 * END_STREAM is the end of a direction, RST_STREAM that of both (RFC 8441 5). Within events of a session nobody is
 * told: oribi__streams_tell() does that, once a turn, as the loop would. */
#include "frontend/streams_h2_private.h"

#include "frontend/channel.h"
#include "frontend/clients_h2.h"
#include "frontend/frontend.h"
#include "frontend/local.h"
#include "frontend/streams_h2.h"
#include "frontend/tunnel.h"
#include "frontend/websocket.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/head.h"
#include "oribi/http/proxy.h"

#include <string.h>

enum {
    OUT_BYTES_MAX = 64 * 1024, /* that the client has not taken */
    IN_KEPT_BYTES = 4096,      /* of an empty buffer */
    LATE_MS = 1000,            /* for what was sent last: a client that has not taken it then does not read */
};

struct oribi__stream_bytes {
    struct oribi_transport transport; /* first: the functions cast */
    struct oribi__frontend *frontend;
    struct oribi__stream *stream; /* NULL: it was reset, or is released */
    struct oribi_watch *watch;    /* of whom it is told; NULL: the handshake is not over, and the stream owns this */
    struct oribi__stream_bytes *told_next;
    struct oribi_buf in; /* from in_at on */
    size_t in_at;
    int64_t sent_ms; /* when something was sent last */
    bool ended;      /* END_STREAM has come */
    bool full;       /* `out` takes no more */
    bool shut;       /* nothing more is sent */
    bool told;       /* in clients' list `told` */
};

static struct oribi__stream_bytes *bytes_of(struct oribi_transport *transport)
{
    return (struct oribi__stream_bytes *)transport;
}

/* --- who is told --- */

static void tell(struct oribi__stream_bytes *bytes, uint8_t ready)
{
    struct oribi__h2_clients *clients = bytes->frontend->h2;
    if (!bytes->watch)
        return;
    bytes->watch->ready |= ready;
    if (bytes->told)
        return;
    bytes->told = true;
    bytes->told_next = clients->told;
    clients->told = bytes;
}

static void tell_no_more(struct oribi__stream_bytes *bytes)
{
    struct oribi__stream_bytes **at = &bytes->frontend->h2->told;
    if (!bytes->told)
        return;
    while (*at != bytes)
        at = &(*at)->told_next;
    *at = bytes->told_next;
    bytes->told = false;
}

void oribi__streams_tell(struct oribi__frontend *frontend)
{
    struct oribi__stream_bytes *bytes;
    while ((bytes = frontend->h2->told)) {
        tell_no_more(bytes);
        bytes->watch->handler(frontend, bytes->watch); /* may release it; tells of nobody */
    }
}

static void count_open(const struct oribi__stream_bytes *bytes, int change)
{
    if (!bytes->watch || !bytes->stream)
        return;
    bytes->stream->client->open_count += (uint32_t)change;
    bytes->frontend->carried_count += (uint32_t)change;
    oribi__client_waits(bytes->stream->client);
}

void oribi__stream_watch(struct oribi_transport *transport, struct oribi_watch *watch)
{
    struct oribi__stream_bytes *bytes = bytes_of(transport);
    bytes->watch = watch;
    watch->ready |= ORIBI_WRITE;
    count_open(bytes, 1);
    if (bytes->in.len || bytes->ended || !bytes->stream)
        watch->ready |= ORIBI_READ;
}

/* --- the transport --- */

static void drop_read(struct oribi__stream_bytes *bytes)
{
    if (bytes->in_at == bytes->in.len) {
        bytes->in_at = bytes->in.len = 0;
        if (bytes->in.cap > IN_KEPT_BYTES)
            oribi_buf_deinit(&bytes->in);
    } else if (bytes->in_at > OUT_BYTES_MAX) {
        oribi_buf_consume(&bytes->in, bytes->in_at);
        bytes->in_at = 0;
    }
}

static ssize_t read_bytes(struct oribi_transport *self, void *dst, size_t n)
{
    struct oribi__stream_bytes *bytes = bytes_of(self);
    size_t left = bytes->in.len - bytes->in_at;
    if (left == 0)
        return bytes->ended ? 0 : bytes->stream ? ORIBI_AGAIN : ORIBI_ECLOSED;
    if (n > left)
        n = left;
    memcpy(dst, bytes->in.p + bytes->in_at, n);
    bytes->in_at += n;
    drop_read(bytes);
    if (bytes->stream) {
        oribi_h2_stored(bytes->stream->h2, n);
        oribi__stream_charge(bytes->stream);
        oribi__client_dirty(bytes->stream->client); /* the window may be open again */
    }
    return (ssize_t)n;
}

static void pull_again(struct oribi__stream *stream)
{
    oribi_h2_ready(stream->h2);
    oribi__client_dirty(stream->client);
}

static ssize_t send_bytes(struct oribi_transport *self, const struct iovec *vec, size_t count, bool more)
{
    struct oribi__stream_bytes *bytes = bytes_of(self);
    struct oribi__stream *stream = bytes->stream;
    size_t sent = 0;
    if (!stream || bytes->shut)
        return ORIBI_ECLOSED;
    size_t room = OUT_BYTES_MAX - (size_t)oribi__stream_pending(stream);
    if (room == 0) {
        bytes->full = stream->client->has_blocked = true;
        return ORIBI_AGAIN;
    }
    for (size_t i = 0; i < count && room > 0; i++) {
        size_t n = vec[i].iov_len < room ? vec[i].iov_len : room;
        if (oribi_buf_try_append(&stream->out, vec[i].iov_base, n) < 0)
            return ORIBI_ENOMEM;
        sent += n;
        room -= n;
    }
    bytes->sent_ms = bytes->frontend->reactor.now_ms;
    oribi__stream_charge(stream);
    pull_again(stream);
    return (ssize_t)sent;
}

static ssize_t send_file(struct oribi_transport *self, int in_fd, int64_t *offset, int64_t n)
{
    return ORIBI_EINVAL; /* neither WebSockets nor tunnels have files */
}

/* The session drops what the client still sends, and says so by RST_STREAM when that goes on: nothing more is heard. */
static void shut(struct oribi_transport *self)
{
    struct oribi__stream_bytes *bytes = bytes_of(self);
    if (bytes->shut || !bytes->stream)
        return;
    bytes->shut = bytes->ended = true;
    bytes->stream->whole = true;
    pull_again(bytes->stream);
    tell(bytes, ORIBI_READ);
}

static void free_bytes(struct oribi__stream_bytes *bytes)
{
    tell_no_more(bytes);
    oribi_buf_deinit(&bytes->in);
    oribi_mem_free(bytes);
}

static bool is_late(const struct oribi__stream_bytes *bytes)
{
    return bytes->full ||
           (oribi__stream_pending(bytes->stream) > 0 && bytes->frontend->reactor.now_ms - bytes->sent_ms >= LATE_MS);
}

/* Bytes that were sent still leave, unless the client is behind; those that it sends from now on are dropped. */
static void release(struct oribi_transport *self)
{
    struct oribi__stream_bytes *bytes = bytes_of(self);
    struct oribi__stream *stream = bytes->stream;
    if (stream) {
        bool late = is_late(bytes);
        size_t unread = bytes->in.len - bytes->in_at;
        shut(self);
        count_open(bytes, -1);
        stream->bytes = NULL;
        if (unread)
            oribi_h2_stored(stream->h2, unread);
        oribi__stream_charge(stream);
        stream->over_ms = bytes->frontend->reactor.now_ms;
        if (late)
            oribi__stream_reset(stream, ORIBI_H2_CANCEL);
        else
            oribi__stream_ends(stream);
    }
    free_bytes(bytes);
}

static const struct oribi_transport functions = {
    .read = read_bytes, .send_vec = send_bytes, .send_file = send_file, .shut = shut, .release = release};

/* --- the client --- */

/* As long as the budget has room the connection's window is opened at once: the streams beside this one go on while its
 * bytes wait to be read. */
void oribi__stream_heard(struct oribi__stream *stream, const char *p, size_t n)
{
    struct oribi__stream_bytes *bytes = stream->bytes;
    bool refused = !bytes->watch && (!stream->call || stream->call->begun);
    if (refused) {
        oribi_h2_stored(stream->h2, n);
        return;
    }
    int64_t cap = (int64_t)(bytes->in.len + n);
    if (oribi_budget_memory(&bytes->frontend->reactor.budget, (int64_t)bytes->in.cap, cap) == cap)
        oribi_h2_kept(stream->h2, n);
    if (oribi_buf_try_append(&bytes->in, p, n) < 0) {
        oribi__stream_reset(stream, ORIBI_H2_INTERNAL_ERROR);
        return;
    }
    oribi__stream_charge(stream);
    tell(bytes, ORIBI_READ);
}

void oribi__stream_heard_end(struct oribi__stream *stream)
{
    stream->bytes->ended = true;
    tell(stream->bytes, ORIBI_READ);
}

bool oribi__stream_has_taken(struct oribi__stream *stream)
{
    struct oribi__stream_bytes *bytes = stream->bytes;
    if (bytes->full && oribi__stream_pending(stream) <= OUT_BYTES_MAX / 2) {
        bytes->full = false;
        tell(bytes, ORIBI_WRITE);
    }
    return bytes->full;
}

void oribi__stream_bytes_end(struct oribi__stream *stream)
{
    struct oribi__stream_bytes *bytes = stream->bytes;
    if (!bytes)
        return;
    count_open(bytes, -1);
    stream->bytes = NULL;
    bytes->stream = NULL;
    if (bytes->watch)
        tell(bytes, ORIBI_READ | ORIBI_WRITE);
    else
        free_bytes(bytes);
}

int64_t oribi__stream_bytes_memory(const struct oribi__stream *stream)
{
    return (int64_t)stream->bytes->in.cap;
}

/* --- the handshake --- */

static int begin(struct oribi__stream *stream, const struct oribi_h2_request *request)
{
    struct oribi__upstream_request *call = stream->call;
    stream->bytes = oribi_mem_try_alloc(1, sizeof(*stream->bytes));
    if (!stream->bytes)
        return ORIBI_ENOMEM;
    stream->bytes->transport = functions;
    stream->bytes->frontend = call->frontend;
    stream->bytes->stream = stream;
    int code = oribi__upstream_about(call, &stream->client->peer, request->parsed, 20, true);
    return code < 0 ? code : oribi_buf_try_append(&call->head, request->head.p, request->head.n);
}

void oribi__stream_offer(struct oribi__stream *stream, const struct oribi_h2_request *request)
{
    struct oribi__upstream_request *call = stream->call;
    struct oribi__frontend *frontend = call->frontend;
    const char *reason;
    stream->is_socket = call->upgrades = call->safe = true;
    enum oribi_refusal refusal = oribi__websocket_check(frontend, request->parsed, &call->offers, &reason);
    if (call->offers)
        call->websocket = ORIBI_SLICE("O");
    if (begin(stream, request) < 0)
        oribi__upstream_failed(call, 503, ORIBI_REFUSAL_MEMORY, "out of memory");
    else if (refusal != ORIBI_REFUSAL_OTHER)
        oribi__upstream_failed(call, oribi_refusal_status(refusal), refusal, reason);
    else if (!oribi__frontend_local_claims(frontend, call, request->parsed) || !oribi__frontend_local_submit(call))
        oribi__upstream_submit(call);
}

/* Keeps the fields of an answer until it is sent, as "name NUL value NUL" in stream->out. 0 or ORIBI_ENOMEM. */
static int keep_fields(struct oribi__stream *stream, const struct oribi_answer *answer, bool tunnel)
{
    int code = 0;
    for (uint32_t i = 0; i < answer->count && code == 0; i++) {
        const struct oribi_header *header = &answer->headers[i];
        if (oribi__websocket_drops(header, tunnel))
            continue;
        code = oribi_buf_try_append(&stream->out, header->name, header->name_len);
        code = code < 0 ? code : oribi_buf_try_append(&stream->out, "", 1);
        code = code < 0 ? code : oribi_buf_try_append(&stream->out, header->value, header->value_len);
        code = code < 0 ? code : oribi_buf_try_append(&stream->out, "", 1);
    }
    return code;
}

/* Sends the answer 200 with the fields that were kept. As oribi_h2_answer(). */
static int answer(struct oribi__stream *stream)
{
    struct oribi_field *fields = stream->client->frontend->h2->fields;
    uint32_t count = 0;
    for (size_t at = 0; at < stream->out.len && count < ORIBI_RESPONSE_FIELDS_MAX;) {
        struct oribi_field *field = &fields[count++];
        const char *name = stream->out.p + at;
        *field = (struct oribi_field){.name = name, .name_len = (uint16_t)strlen(name)};
        field->value = name + field->name_len + 1;
        field->value_len = (uint32_t)strlen(field->value);
        at += (size_t)field->name_len + field->value_len + 2;
    }
    int code = oribi_h2_answer(stream->h2, 200, fields, count, false);
    stream->out.len = 0;
    oribi__client_dirty(stream->client);
    return code;
}

/* The answer cannot be sent: a code of oribi_h2_answer(). */
static void fail(struct oribi__stream *stream, int code)
{
    stream->call->begun = false;
    stream->out.len = 0;
    if (code == ORIBI_EAPP)
        oribi__upstream_failed(stream->call, 502, ORIBI_REFUSAL_OTHER,
                               "an answer to a handshake that cannot be passed on");
    else
        oribi__stream_reset(stream, ORIBI_H2_INTERNAL_ERROR);
}

/* The stream as a peer, of which only the session knows what TLS had to tell. */
static struct oribi__peer peer_of(const struct oribi__stream *stream)
{
    struct oribi__peer peer = stream->client->peer;
    peer.proxy_tls |= peer.tls != NULL;
    peer.tls = NULL;
    peer.fd = -1;
    peer.transport = &stream->bytes->transport;
    return peer;
}

static void open_socket(struct oribi__stream *stream)
{
    int code = answer(stream);
    if (code < 0) {
        fail(stream, code);
        return;
    }
    struct oribi__handshake *handshake = stream->call->accepted;
    struct oribi__peer peer = peer_of(stream);
    stream->call->accepted = NULL;
    oribi__stream_end_call(stream);
    oribi__websocket_start(handshake, &peer, oribi_slice(NULL, 0));
}

void oribi__stream_take_record(struct oribi__stream *stream, struct oribi_slice part, bool last)
{
    if (oribi__websocket_take_record(stream->call->accepted, part, last) < 0)
        oribi__upstream_failed(stream->call, 502, ORIBI_REFUSAL_OTHER, "the record of a WebSocket that cannot be read");
    else if (last)
        open_socket(stream);
}

/* The path of the request, which stands in the call's head behind "GET ". */
static struct oribi_slice path_of(const struct oribi__upstream_request *call)
{
    struct oribi_channel_head about;
    ssize_t at = oribi_channel_head_read(call->head.p, call->head.len, &about); /* our own */
    const char *p = call->head.p + at + 4;
    size_t n = 0;
    while (p[n] != ' ' && p[n] != '?')
        n++;
    return oribi_slice(p, n);
}

void oribi__stream_accept(struct oribi__stream *stream, const struct oribi_answer *answer, struct oribi_slice record,
                          bool last)
{
    struct oribi__upstream_request *call = stream->call;
    call->begun = false; /* the client has nothing yet */
    if (!oribi__websocket_room(call->frontend)) {
        oribi__upstream_failed(call, 503, ORIBI_REFUSAL_WEBSOCKETS, "too many WebSockets are open (websockets_max)");
        return;
    }
    call->accepted = oribi__websocket_create(call->frontend, path_of(call));
    if (!call->accepted || keep_fields(stream, answer, false) < 0)
        oribi__upstream_failed(call, 503, ORIBI_REFUSAL_MEMORY, "no memory for a WebSocket");
    else
        oribi__stream_take_record(stream, record, last);
}

void oribi__stream_tunnel(struct oribi__upstream_request *call, struct oribi_answer *head, struct oribi_slice rest)
{
    struct oribi__stream *stream = call->owner;
    struct oribi__frontend *frontend = call->frontend;
    int code = stream->is_socket ? keep_fields(stream, head, true) : ORIBI_EAPP;
    code = code < 0 ? code : answer(stream);
    if (code < 0) {
        fail(stream, code);
        return;
    }
    struct oribi__peer peer = peer_of(stream);
    int channel_fd = oribi__channel_release(call->channel);
    oribi__stream_end_call(stream);
    oribi__tunnel_begin(frontend, &peer, channel_fd, rest, oribi_slice(NULL, 0));
}
