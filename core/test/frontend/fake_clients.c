/* Real clients in front of the frontend of fakes.c, each at the other end of a socket pair. */
#include "frontend/arrive.h"
#include "frontend/clients_h2.h"
#include "frontend/frontend.h"

#include "fakes_private.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"

#include <arpa/inet.h>
#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    HEAR_CAP = 16 * 1024 * 1024,
    DATA_CAP = 64 * 1024,
    BODIES_MAX = 256,
    READ_BYTES = 64 * 1024,
    SEND_BUFFER_BYTES = 1024 * 1024
};

/* A request's body on its way, of which libnghttp2 pulls. */
struct sent_body {
    int32_t stream;
    struct oribi_buf left;
    bool last;
    const char *trailer;
};

struct client {
    int fd;
    bool silent;
    bool ended;
    bool reset;
    struct oribi_buf heard; /* bytes, or frames as text */
    struct oribi_buf data;
    nghttp2_session *h2; /* NULL: HTTP/1.1 */
    int32_t joined;      /* stream of the DATA at the end of `heard`; 0: something else stands there */
    size_t joined_at;
    size_t joined_bytes;
    struct oribi_buf unsent;
    struct sent_body bodies[BODIES_MAX];
    int body_count;
    uint32_t hash;
    struct oribi__client *of; /* the frontend's, of HTTP/2 */
};

static struct client clients[FAKE_CLIENTS_MAX];
static int client_count;
static char hear[HEAR_CAP];
static size_t hear_len;

static int open_client(int *far_fd)
{
    int fds[2];
    int size = SEND_BUFFER_BYTES;
    fake_must(client_count < FAKE_CLIENTS_MAX, "too many clients");
    fake_must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0, "no client");
    fake_must(setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) == 0, "no buffer");
    clients[client_count] = (struct client){.fd = fds[0]};
    *far_fd = fds[1];
    return client_count++;
}

int fake_h1(void)
{
    struct sockaddr_storage from = {0};
    struct sockaddr_in *in = (struct sockaddr_in *)&from;
    int fd;
    int client = open_client(&fd);
    in->sin_family = AF_INET;
    in->sin_port = htons(4711);
    fake_must(inet_pton(AF_INET, "10.0.0.1", &in->sin_addr) == 1, "no address");
    oribi__arrive(fake_frontend(), 0, fd, &from);
    return client;
}

/* --- bytes --- */

static bool read_more(struct client *c, char *dst, size_t cap, size_t *len)
{
    ssize_t n = c->fd >= 0 && !c->ended ? recv(c->fd, dst, cap, MSG_DONTWAIT) : -1;
    *len = n > 0 ? (size_t)n : 0;
    if (c->fd < 0 || c->ended || n > 0)
        return n > 0;
    c->ended = n == 0 || errno != EAGAIN;
    c->reset = n < 0 && errno == ECONNRESET;
    return c->ended;
}

static bool read_client(struct client *c)
{
    static char bytes[READ_BYTES];
    size_t n;
    bool any = false;
    while (!c->silent && read_more(c, bytes, sizeof(bytes), &n)) {
        any = true;
        if (!c->h2)
            oribi_buf_append(&c->heard, bytes, n);
        else if (n)
            fake_must(nghttp2_session_mem_recv(c->h2, (const uint8_t *)bytes, n) == (ssize_t)n, "frames");
    }
    return any;
}

/* Returns whether the socket has taken some. */
static bool send_unsent(struct client *c)
{
    bool any = false;
    while (c->unsent.len && c->fd >= 0) {
        ssize_t n = send(c->fd, c->unsent.p, c->unsent.len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n <= 0)
            break;
        oribi_buf_consume(&c->unsent, (size_t)n);
        any = true;
    }
    if (!c->unsent.len)
        oribi_buf_deinit(&c->unsent);
    return any;
}

static bool send_frames(struct client *c)
{
    const uint8_t *p;
    ssize_t n;
    while (c->h2 && (n = nghttp2_session_mem_send(c->h2, &p)) > 0)
        oribi_buf_append(&c->unsent, p, (size_t)n);
    return send_unsent(c);
}

bool fake_clients_read(void)
{
    bool any = false;
    for (int i = 0; i < client_count; i++) {
        any |= read_client(&clients[i]);
        any |= send_frames(&clients[i]);
    }
    return any;
}

void fake_says(int client, const char *text)
{
    oribi_buf_append(&clients[client].unsent, text, strlen(text));
    (void)send_unsent(&clients[client]);
    ok_named(clients[client].unsent.len == 0, "the client speaks");
}

void fake_says_bytes(int client, size_t n)
{
    char bytes[4096];
    memset(bytes, 'b', sizeof(bytes));
    for (size_t part; n > 0; n -= part) {
        part = n < sizeof(bytes) ? n : sizeof(bytes);
        oribi_buf_append(&clients[client].unsent, bytes, part);
    }
    for (int i = 0; i < 10000 && clients[client].unsent.len; i++) {
        (void)send_unsent(&clients[client]);
        fake_turn();
    }
    ok_named(clients[client].unsent.len == 0, "the client speaks");
}

/* Lines of Date differ from run to run. */
static void drop_dates(struct oribi_buf *heard)
{
    static const char date[] = "\r\nDate: ";
    char *at;
    while (heard->len && (at = memmem(heard->p, heard->len, date, sizeof(date) - 1)) != NULL) {
        size_t n = sizeof("\r\nDate: Sat, 28 Nov 2026 20:48:47 GMT") - 1;
        size_t behind = heard->len - (size_t)(at - heard->p);
        fake_must(behind >= n, "a date that is cut");
        memmove(at, at + n, behind - n);
        heard->len -= n;
    }
}

static const char *give_heard(struct client *c)
{
    drop_dates(&c->heard);
    hear_len = c->heard.len < sizeof(hear) - 1 ? c->heard.len : sizeof(hear) - 1;
    if (hear_len)
        memcpy(hear, c->heard.p, hear_len);
    hear[hear_len] = '\0';
    oribi_buf_deinit(&c->heard);
    c->joined = 0;
    return hear;
}

const char *fake_hears(int client)
{
    (void)read_client(&clients[client]);
    return give_heard(&clients[client]);
}

size_t fake_hears_len(void)
{
    return hear_len;
}

size_t fake_hears_some(int client, size_t n)
{
    size_t all = 0;
    size_t part;
    while (all < n && read_more(&clients[client], hear, n - all < READ_BYTES ? n - all : READ_BYTES, &part) && part) {
        if (clients[client].h2)
            fake_must(nghttp2_session_mem_recv(clients[client].h2, (const uint8_t *)hear, part) == (ssize_t)part,
                      "frames");
        all += part;
    }
    return all;
}

void fake_silent(int client, bool silent)
{
    clients[client].silent = silent;
}

bool fake_is_ended(int client)
{
    (void)read_client(&clients[client]);
    return clients[client].ended;
}

bool fake_is_reset(int client)
{
    return fake_is_ended(client) && clients[client].reset;
}

void fake_shuts(int client)
{
    fake_must(shutdown(clients[client].fd, SHUT_WR) == 0, "no shutdown");
}

void fake_hangs_up(int client)
{
    oribi_os_close(clients[client].fd);
    clients[client].fd = -1;
}

void fake_clients_end(void)
{
    for (int i = 0; i < client_count; i++) {
        struct client *c = &clients[i];
        fake_hangs_up(i);
        nghttp2_session_del(c->h2);
        oribi_buf_deinit(&c->heard);
        oribi_buf_deinit(&c->data);
        oribi_buf_deinit(&c->unsent);
        for (int k = 0; k < c->body_count; k++)
            oribi_buf_deinit(&c->bodies[k].left);
    }
    client_count = 0;
}

/* --- HTTP/2: what the client reads --- */

static int on_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
                     const uint8_t *value, size_t value_len, uint8_t flags, void *self)
{
    struct client *c = self;
    bool is_status = name_len == 7 && memcmp(name, ":status", 7) == 0;
    if (is_status)
        oribi_buf_print(&c->heard, "H%d=%.*s", frame->hd.stream_id, (int)value_len, (const char *)value);
    else if (frame->headers.cat == NGHTTP2_HCAT_HEADERS && !(name_len == 4 && memcmp(name, "date", 4) == 0) &&
             (c->heard.len == 0 || c->heard.p[c->heard.len - 1] == ' '))
        oribi_buf_print(&c->heard, "T%d,%.*s=%.*s", frame->hd.stream_id, (int)name_len, (const char *)name,
                        (int)value_len, (const char *)value);
    else if (!(name_len == 4 && memcmp(name, "date", 4) == 0))
        oribi_buf_print(&c->heard, ",%.*s=%.*s", (int)name_len, (const char *)name, (int)value_len,
                        (const char *)value);
    c->joined = 0;
    return 0;
}

static int on_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *self)
{
    struct client *c = self;
    if (frame->hd.type == NGHTTP2_HEADERS)
        oribi_buf_append(&c->heard, " ", 1);
    if (frame->hd.type == NGHTTP2_RST_STREAM)
        oribi_buf_print(&c->heard, "R%d=%u ", frame->hd.stream_id, frame->rst_stream.error_code);
    if (frame->hd.type == NGHTTP2_GOAWAY)
        oribi_buf_print(&c->heard, "G=%u ", frame->goaway.error_code);
    bool ends = (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
                (frame->hd.flags & NGHTTP2_FLAG_END_STREAM);
    if (ends)
        oribi_buf_print(&c->heard, "E%d ", frame->hd.stream_id);
    if (frame->hd.type != NGHTTP2_DATA || ends)
        c->joined = 0;
    return 0;
}

static int on_chunk(nghttp2_session *h2, uint8_t flags, int32_t stream, const uint8_t *p, size_t n, void *self)
{
    struct client *c = self;
    if (c->joined == stream) {
        c->heard.len = c->joined_at;
    } else {
        c->joined = stream;
        c->joined_at = c->heard.len;
        c->joined_bytes = 0;
    }
    c->joined_bytes += n;
    if (c->data.len + n < DATA_CAP)
        oribi_buf_append(&c->data, (const char *)p, n);
    for (size_t i = 0; i < n; i++)
        c->hash = c->hash * 31 + p[i];
    oribi_buf_print(&c->heard, "D%d+%zu ", stream, c->joined_bytes);
    return 0;
}

int fake_h2(void)
{
    int fd;
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    int client = open_client(&fd);
    struct client *c = &clients[client];
    struct oribi__peer peer = {.fd = fd, .addr_len = 8, .port_len = 4, .addr = "10.0.0.2", .port = "4712"};
    fake_must(nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0, "no session");
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_chunk);
    nghttp2_option_set_no_auto_window_update(option, 1);
    fake_must(nghttp2_session_client_new2(&c->h2, callbacks, c, option) == 0, "no session");
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    fake_window(client, 16 * 1024 * 1024);
    fake_must(nghttp2_session_set_local_window_size(c->h2, NGHTTP2_FLAG_NONE, 0, INT32_MAX) == 0, "no window");
    oribi__h2_begin(fake_frontend(), &peer, oribi_slice("", 0));
    c->of = fake_frontend()->h2->first;
    (void)send_frames(c);
    return client;
}

int fake_h2_settled(void)
{
    int client = fake_h2();
    fake_settle();
    (void)fake_frames(client);
    return client;
}

void fake_sends_raw(int client, const char *p, size_t n)
{
    oribi_buf_append(&clients[client].unsent, p, n);
    (void)send_unsent(&clients[client]);
}

void fake_hashes(int client)
{
    clients[client].hash = 0;
}

uint32_t fake_hash(int client)
{
    return clients[client].hash;
}

const char *fake_data(int client)
{
    struct client *c = &clients[client];
    (void)read_client(c);
    (void)send_frames(c);
    hear_len = c->data.len;
    if (hear_len)
        memcpy(hear, c->data.p, hear_len);
    hear[hear_len] = '\0';
    oribi_buf_deinit(&c->data);
    return hear;
}

struct oribi__client *fake_client_of(int client)
{
    return clients[client].of;
}

uint32_t fake_sessions_streams(int client)
{
    return oribi_h2_streams(clients[client].of->h2);
}

uint32_t fake_left_of(int client)
{
    return clients[client].of->left_count;
}

void fake_window(int client, int32_t bytes)
{
    nghttp2_settings_entry entry = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, (uint32_t)bytes};
    fake_must(nghttp2_submit_settings(clients[client].h2, NGHTTP2_FLAG_NONE, &entry, 1) == 0, "no settings");
    (void)send_frames(&clients[client]);
}

void fake_opens(int client, int32_t stream, int32_t bytes)
{
    fake_must(nghttp2_submit_window_update(clients[client].h2, NGHTTP2_FLAG_NONE, stream, bytes) == 0, "no window");
    (void)send_frames(&clients[client]);
}

/* --- HTTP/2: what it asks --- */

static nghttp2_nv field(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(void *)name, (uint8_t *)(void *)value, strlen(name), strlen(value),
                        NGHTTP2_NV_FLAG_NONE};
}

static ssize_t read_body(nghttp2_session *h2, int32_t stream, uint8_t *dst, size_t cap, uint32_t *flags,
                         nghttp2_data_source *source, void *self)
{
    struct sent_body *body = source->ptr;
    size_t n = body->left.len < cap ? body->left.len : cap;
    if (n == 0 && !body->last)
        return NGHTTP2_ERR_DEFERRED;
    if (n)
        memcpy(dst, body->left.p, n);
    oribi_buf_consume(&body->left, n);
    if (!body->last || body->left.len)
        return (ssize_t)n;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (body->trailer) {
        nghttp2_nv trailer = field("x", body->trailer);
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        fake_must(nghttp2_submit_trailer(h2, stream, &trailer, 1) == 0, "no trailer");
    }
    return (ssize_t)n;
}

int32_t fake_asks(int client, struct fake_ask ask)
{
    struct client *c = &clients[client];
    nghttp2_nv fields[9];
    size_t count = 0;
    fields[count++] = field(":method", ask.socket ? "CONNECT" : ask.method ? ask.method : "GET");
    fields[count++] = field(":scheme", "http");
    fields[count++] = field(":path", ask.path ? ask.path : "/");
    fields[count++] = field(":authority", "a");
    if (ask.accept)
        fields[count++] = field("accept", ask.accept);
    if (ask.socket)
        fields[count++] = field(":protocol", ask.socket);
    if (ask.version)
        fields[count++] = field("sec-websocket-version", ask.version);
    if (ask.origin)
        fields[count++] = field("origin", ask.origin);
    if (ask.expects)
        fields[count++] = field("expect", ask.expects);
    if (ask.length)
        fields[count++] = field("content-length", ask.length);
    fake_must(c->body_count < BODIES_MAX, "too many bodies");
    struct sent_body *body = &c->bodies[c->body_count++];
    *body = (struct sent_body){.last = !ask.open, .trailer = ask.trailer};
    if (ask.body)
        oribi_buf_append(&body->left, ask.body, strlen(ask.body));
    nghttp2_data_provider provider = {.source = {.ptr = body}, .read_callback = read_body};
    bool sends = ask.body || ask.open || ask.trailer;
    body->stream = nghttp2_submit_request(c->h2, NULL, fields, count, sends ? &provider : NULL, NULL);
    fake_must(body->stream > 0, "no request");
    (void)send_frames(c);
    return body->stream;
}

void fake_more_body(int client, int32_t stream, const char *text, size_t n, bool last)
{
    struct client *c = &clients[client];
    struct sent_body *body = NULL;
    for (int i = 0; i < c->body_count; i++)
        if (c->bodies[i].stream == stream)
            body = &c->bodies[i];
    fake_must(body != NULL, "no such stream");
    for (size_t i = 0; i < n; i++)
        oribi_buf_append(&body->left, text ? text + i : "b", 1);
    body->last = last;
    (void)nghttp2_session_resume_data(c->h2, stream); /* fails where the stream is over */
    (void)send_frames(c);
}

void fake_resets(int client, int32_t stream, uint32_t code)
{
    fake_must(nghttp2_submit_rst_stream(clients[client].h2, NGHTTP2_FLAG_NONE, stream, code) == 0, "no reset");
    (void)send_frames(&clients[client]);
}

const char *fake_frames(int client)
{
    (void)read_client(&clients[client]);
    (void)send_frames(&clients[client]);
    return give_heard(&clients[client]);
}
