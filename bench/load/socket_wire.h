/* TLS 1.3 and HTTP/2 of a driver's client: bytes of its socket to bytes of its WebSocket or event stream, and back. A
 * connection of HTTP/2 has one stream: a GET, or an extended CONNECT (RFC 8441) once the server allows it.
 *
 *     socket ─ TLS ─┬───────────── HTTP/1.1: the bytes themselves
 *                   └─ HTTP/2 ──── DATA of the stream */
#ifndef BENCH_LOAD_SOCKET_WIRE_H
#define BENCH_LOAD_SOCKET_WIRE_H

#include "http_client.h"

#include <nghttp2/nghttp2.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

enum { WIRE_READ_BYTES = 64 * 1024, WIRE_WINDOW_BYTES = 1 << 20, WIRE_NAMES_MAX = 8 };

struct socket_wire {
    int fd;
    SSL *ssl;               /* NULL: plain */
    nghttp2_session *http2; /* NULL: HTTP/1.1 */
    char *head;             /* of HTTP/1.1: the request; of HTTP/2: its fields; NULL once it is sent */
    int32_t stream;
    int status; /* of HTTP/2's answer; 0: none yet */
    bool over;  /* the stream has ended */
    char *out;  /* bytes that wait to become DATA */
    size_t out_len;
};

static struct {
    char bytes[WIRE_READ_BYTES];
    size_t len;
} wire_data; /* DATA of the one read that is under way */

static SSL_CTX *wire_context(bool http2)
{
    static SSL_CTX *made[2];
    if (made[http2])
        return made[http2];
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    const char *protocols = http2 ? "\x02h2" : "\x08http/1.1";
    if (!context || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_alpn_protos(context, (const unsigned char *)protocols, (unsigned)strlen(protocols)) != 0) {
        fprintf(stderr, "no TLS 1.3 here\n");
        exit(1);
    }
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    return made[http2] = context;
}

/* --- bytes of the socket --- */

/* As send(2) of all n bytes; false: the connection is broken, or does not take them. */
static bool wire_put(struct socket_wire *wire, const void *p, size_t n)
{
    if (!wire->ssl)
        return send(wire->fd, p, n, MSG_NOSIGNAL) == (ssize_t)n;
    ERR_clear_error();
    return SSL_write(wire->ssl, p, (int)n) == (int)n;
}

/* As recv(2), errno included. */
static ssize_t wire_get(struct socket_wire *wire, void *p, size_t room)
{
    if (!wire->ssl)
        return recv(wire->fd, p, room, 0);
    ERR_clear_error();
    int n = SSL_read(wire->ssl, p, (int)room);
    if (n > 0)
        return n;
    bool later = SSL_get_error(wire->ssl, n) == SSL_ERROR_WANT_READ;
    errno = later ? EAGAIN : ECONNRESET;
    return later ? -1 : 0;
}

/* --- HTTP/2 --- */

static bool wire_flush(struct socket_wire *wire)
{
    const uint8_t *bytes;
    ssize_t n;
    while ((n = nghttp2_session_mem_send(wire->http2, &bytes)) > 0)
        if (!wire_put(wire, bytes, (size_t)n))
            return false;
    return n == 0;
}

static int wire_on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
                          const uint8_t *value, size_t value_len, uint8_t flags, void *self)
{
    struct socket_wire *wire = self;
    if (frame->hd.stream_id == wire->stream && name_len == 7 && memcmp(name, ":status", 7) == 0)
        wire->status = (int)strtol((const char *)value, NULL, 10);
    return 0;
}

static int wire_on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *p, size_t n, void *self)
{
    memcpy(wire_data.bytes + wire_data.len, p, n); /* no more than was read */
    wire_data.len += n;
    return 0;
}

static int wire_on_stream_closed(nghttp2_session *session, int32_t stream, uint32_t error, void *self)
{
    ((struct socket_wire *)self)->over = true;
    return 0;
}

static ssize_t wire_on_source(nghttp2_session *session, int32_t stream, uint8_t *p, size_t room, uint32_t *flags,
                              nghttp2_data_source *source, void *self)
{
    struct socket_wire *wire = self;
    size_t n = wire->out_len < room ? wire->out_len : room;
    if (n == 0)
        return NGHTTP2_ERR_DEFERRED;
    memcpy(p, wire->out, n);
    wire->out_len -= n;
    memmove(wire->out, wire->out + n, wire->out_len);
    return (ssize_t)n;
}

/* `head` is "NAME\nVALUE\n…". A request without a body is one whose method is GET. */
static void wire_ask(struct socket_wire *wire)
{
    nghttp2_nv fields[WIRE_NAMES_MAX];
    size_t count = 0;
    char *rest = wire->head;
    for (char *name; count < WIRE_NAMES_MAX && (name = strsep(&rest, "\n")) && rest; count++) {
        char *value = strsep(&rest, "\n");
        fields[count] = (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), 0};
    }
    const nghttp2_data_provider provider = {.read_callback = wire_on_source};
    bool connects = fields[0].value[0] == 'C';
    wire->stream = nghttp2_submit_request(wire->http2, NULL, fields, count, connects ? &provider : NULL, NULL);
    wire->over = wire->stream < 0;
    free(wire->head);
    wire->head = NULL;
}

/* The server's first SETTINGS say whether it takes an extended CONNECT. */
static int wire_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *self)
{
    struct socket_wire *wire = self;
    if (frame->hd.type == NGHTTP2_SETTINGS && !(frame->hd.flags & NGHTTP2_FLAG_ACK) && wire->head)
        wire_ask(wire);
    return 0;
}

static bool wire_begin_http2(struct socket_wire *wire)
{
    static nghttp2_session_callbacks *callbacks;
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WIRE_WINDOW_BYTES},
                                               {NGHTTP2_SETTINGS_ENABLE_PUSH, 0}};
    if (!callbacks) {
        if (nghttp2_session_callbacks_new(&callbacks) != 0)
            exit(1);
        nghttp2_session_callbacks_set_on_header_callback(callbacks, wire_on_header);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, wire_on_data);
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, wire_on_stream_closed);
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, wire_on_frame);
    }
    return nghttp2_session_client_new(&wire->http2, callbacks, wire) == 0 &&
           nghttp2_submit_settings(wire->http2, NGHTTP2_FLAG_NONE, settings, 2) == 0 && wire_flush(wire);
}

/* --- its life --- */

HTTP_CLIENT_FN void socket_wire_destroy(struct socket_wire *wire)
{
    if (!wire)
        return;
    nghttp2_session_del(wire->http2);
    SSL_free(wire->ssl);
    free(wire->head);
    free(wire->out);
    free(wire);
}

/* Goes on with what comes before the answer: the handshake of TLS, the request. False: it has failed. */
static bool wire_go_on(struct socket_wire *wire, bool http2)
{
    if (wire->ssl && !SSL_is_init_finished(wire->ssl)) {
        ERR_clear_error();
        int result = SSL_do_handshake(wire->ssl);
        if (result != 1)
            return SSL_get_error(wire->ssl, result) == SSL_ERROR_WANT_READ;
    }
    if (http2)
        return wire->http2 || wire_begin_http2(wire);
    if (!wire->head)
        return true;
    bool sent = wire_put(wire, wire->head, strlen(wire->head));
    free(wire->head);
    wire->head = NULL;
    return sent;
}

/* Begins on a connected socket, which stays the caller's. `head`: a whole request of HTTP/1.1, or the fields of one of
 * HTTP/2. NULL: the connection is broken. */
HTTP_CLIENT_FN struct socket_wire *socket_wire_create(int fd, bool tls, bool http2, const char *head)
{
    struct socket_wire *wire = calloc(1, sizeof(*wire));
    wire->fd = fd;
    wire->head = strdup(head);
    if (tls) {
        wire->ssl = SSL_new(wire_context(http2));
        (void)SSL_set_fd(wire->ssl, fd);
        SSL_set_connect_state(wire->ssl);
    }
    if (wire_go_on(wire, http2))
        return wire;
    socket_wire_destroy(wire);
    return NULL;
}

static ssize_t wire_get_http2(struct socket_wire *wire, char *p, size_t room)
{
    static uint8_t bytes[WIRE_READ_BYTES];
    ssize_t got = wire_get(wire, bytes, room < sizeof(bytes) ? room : sizeof(bytes));
    if (got < 0)
        return -1;
    wire_data.len = 0;
    wire->over |= got == 0 || nghttp2_session_mem_recv(wire->http2, bytes, (size_t)got) < 0 || !wire_flush(wire);
    memcpy(p, wire_data.bytes, wire_data.len);
    errno = EAGAIN;
    return wire_data.len > 0 ? (ssize_t)wire_data.len : wire->over ? 0 : -1;
}

/* Bytes of the stream, as recv(2) tells it: 0 is its end, -1 with EAGAIN none as yet. With the last bytes of a stream
 * of HTTP/2 `over` is set. */
HTTP_CLIENT_FN ssize_t socket_wire_receive(struct socket_wire *wire, bool http2, char *p, size_t room)
{
    if (!wire_go_on(wire, http2))
        return 0;
    errno = EAGAIN;
    if (wire->ssl && !SSL_is_init_finished(wire->ssl))
        return -1;
    return http2 ? wire_get_http2(wire, p, room) : wire_get(wire, p, room);
}

/* All n bytes to the stream. */
HTTP_CLIENT_FN bool socket_wire_send(struct socket_wire *wire, const char *p, size_t n)
{
    if (!wire->http2)
        return wire_put(wire, p, n);
    wire->out = realloc(wire->out, wire->out_len + n);
    memcpy(wire->out + wire->out_len, p, n);
    wire->out_len += n;
    (void)nghttp2_session_resume_data(wire->http2, wire->stream);
    return wire_flush(wire);
}

#endif
