/* WebSockets and event streams of a driver: the handshake, frames (RFC 6455) and events (WHATWG HTML) in, frames out,
 * over sockets that do not block; plain or TLS, HTTP/1.1 or HTTP/2. One struct a client; bytes that make no whole frame
 * or line are kept with it. Clients come from many addresses of 127.0.0.0/8, so that ports do not run out. */
#ifndef BENCH_LOAD_SOCKET_CLIENT_H
#define BENCH_LOAD_SOCKET_CLIENT_H

#include "http_client.h"
#include "socket_wire.h"

#include <sys/epoll.h>

enum socket_kind { SOCKET_WEBSOCKET, SOCKET_EVENTS };
enum socket_state { SOCKET_CLOSED, SOCKET_SHAKING, SOCKET_OPEN };
enum socket_opcode { SOCKET_TEXT = 1, SOCKET_CLOSE = 8, SOCKET_PING = 9, SOCKET_PONG = 10 };

enum {
    SOCKET_READ_BYTES = 256 * 1024,
    SOCKET_CLIENTS_OF_ADDRESS = 10000, /* ports that one address may use */
    SOCKET_FRAME_MAX = 1024,           /* bytes that are sent in a frame */
};

struct socket_client {
    int fd;
    uint8_t kind;  /* enum socket_kind */
    uint8_t state; /* enum socket_state */
    bool tls;      /* it connects to socket_tls_server */
    bool http2;
    uint16_t code; /* of the server's Close frame; 0: there was none */
    int status;    /* of the handshake's answer, of a WebSocket over HTTP/2 101 for 200; 0: none has come */
    char *kept;    /* bytes that were read, and are not whole */
    size_t kept_len;
    struct socket_wire *wire; /* NULL: plain HTTP/1.1, or no connection */
};

/* Functions that hear of a client's events. Any of them may close the client. */
struct socket_hooks {
    void (*opened)(struct socket_client *client);
    void (*message)(struct socket_client *client, char *text, size_t n); /* of a WebSocket; with room for a NUL */
    void (*line)(struct socket_client *client, char *text, size_t n);    /* of an event stream, without its end */
    void (*ended)(struct socket_client *client);  /* by the server, or the handshake was refused; it is closed */
    void (*pinged)(struct socket_client *client); /* of a WebSocket, after its Pong; NULL: nobody cares */
};

static struct http_address socket_server;
static struct http_address socket_tls_server;
static int socket_epoll = -1;
static char socket_bytes[SOCKET_READ_BYTES + 1];

HTTP_CLIENT_FN void socket_die(const char *what)
{
    perror(what);
    exit(1);
}

/* 127.0.0.2, 127.0.0.3, …: of client `number`. */
static bool socket_bind(int fd, uint32_t number)
{
    int on = 1;
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(0x7f000002 + number / SOCKET_CLIENTS_OF_ADDRESS)};
    (void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    return bind(fd, (struct sockaddr *)&from, sizeof(from)) == 0;
}

/* A socket that does not block, and is connecting. -1 with errno. */
static int socket_connect(uint32_t number, const struct http_address *server)
{
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (socket_bind(fd, number) && (connect(fd, &server->to.any, server->len) == 0 || errno == EINPROGRESS))
        return fd;
    close(fd);
    return -1;
}

/* `reset`: with RST, as a network that is gone. Tells nobody. */
HTTP_CLIENT_FN void socket_close(struct socket_client *client, bool reset)
{
    const struct linger at_once = {1, 0};
    if (client->state == SOCKET_CLOSED)
        return;
    if (reset)
        (void)setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(client->fd);
    socket_wire_destroy(client->wire);
    client->wire = NULL;
    free(client->kept);
    client->kept = NULL;
    client->kept_len = 0;
    client->fd = -1;
    client->state = SOCKET_CLOSED;
}

/* Gives the length of the text: a request of HTTP/1.1, or the fields of one of HTTP/2 (socket_wire.h). */
static int socket_request(const struct socket_client *client, char *text, size_t room, const char *target,
                          const char *last)
{
    const char *scheme = client->tls ? "https" : "http";
    if (client->http2 && client->kind == SOCKET_WEBSOCKET)
        return snprintf(text, room,
                        ":method\nCONNECT\n:protocol\nwebsocket\n:scheme\n%s\n:path\n%s\n:authority\nlocalhost\n"
                        "sec-websocket-version\n13",
                        scheme, target);
    if (client->http2)
        return snprintf(text, room,
                        ":method\nGET\n:scheme\n%s\n:path\n%s\n:authority\nlocalhost\naccept\ntext/event-stream%s%s",
                        scheme, target, last ? "\nlast-event-id\n" : "", last ? last : "");
    if (client->kind == SOCKET_WEBSOCKET)
        return snprintf(text, room,
                        "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
                        target);
    return snprintf(text, room, "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n%s%s%s\r\n", target,
                    last ? "Last-Event-ID: " : "", last ? last : "", last ? "\r\n" : "");
}

/* Begins a handshake; `last`: for Last-Event-ID, or NULL. The request waits in the socket until it is connected, since
 * connecting within a machine ends at once. False: the socket could not be made, or the server takes none. */
HTTP_CLIENT_FN bool socket_begin(struct socket_client *client, uint32_t number, const char *target, const char *last)
{
    char request[1024];
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = client};
    client->fd = socket_connect(number, client->tls ? &socket_tls_server : &socket_server);
    if (client->fd < 0)
        return false;
    client->state = SOCKET_SHAKING;
    client->status = 0;
    client->code = 0;
    int n = socket_request(client, request, sizeof(request), target, last);
    bool begun;
    if (client->tls || client->http2) {
        client->wire = socket_wire_create(client->fd, client->tls, client->http2, request);
        begun = client->wire != NULL;
    } else {
        begun = send(client->fd, request, (size_t)n, MSG_NOSIGNAL) == n;
    }
    if (begun && epoll_ctl(socket_epoll, EPOLL_CTL_ADD, client->fd, &event) == 0)
        return true;
    socket_close(client, false);
    return false;
}

/* A frame with a mask of zeros. False: the connection is broken, or does not take it. */
HTTP_CLIENT_FN bool socket_send(struct socket_client *client, enum socket_opcode opcode, const char *text, size_t n)
{
    char frame[8 + SOCKET_FRAME_MAX] = {(char)(0x80 | opcode), (char)(0x80 | (n < 126 ? n : 126))};
    size_t head = n < 126 ? 6 : 8;
    if (n > SOCKET_FRAME_MAX)
        return false;
    if (head == 8) {
        frame[2] = (char)(n >> 8);
        frame[3] = (char)n;
    }
    memcpy(frame + head, text, n);
    if (client->wire)
        return socket_wire_send(client->wire, frame, head + n);
    return send(client->fd, frame, head + n, MSG_NOSIGNAL) == (ssize_t)(head + n);
}

static void socket_end(struct socket_client *client, const struct socket_hooks *hooks)
{
    socket_close(client, false);
    hooks->ended(client);
}

/* Whether the answer's status opens the client; else it has ended. */
static bool socket_take_status(struct socket_client *client, const struct socket_hooks *hooks, int status)
{
    client->status = status;
    if (status != (client->kind == SOCKET_WEBSOCKET ? 101 : 200)) {
        socket_end(client, hooks);
        return false;
    }
    client->state = SOCKET_OPEN;
    hooks->opened(client);
    return true;
}

/* Takes the head of an answer. Bytes that were used, 0: more are needed. */
static size_t socket_take_head(struct socket_client *client, const struct socket_hooks *hooks, char *p, size_t n)
{
    struct http_answer_head head;
    int there = http_answer_head(p, n, &head);
    if (there == 0)
        return 0;
    return socket_take_status(client, hooks, there > 0 ? head.status : -1) ? head.len : n;
}

static size_t socket_take_frame(struct socket_client *client, const struct socket_hooks *hooks, char *p, size_t n)
{
    if (n < 2)
        return 0;
    size_t head = 2;
    uint64_t len = (uint8_t)p[1];
    if (len == 126 || len == 127) {
        size_t bytes = len == 126 ? 2 : 8;
        if (n < 2 + bytes)
            return 0;
        len = 0;
        for (size_t i = 0; i < bytes; i++)
            len = len << 8 | (uint8_t)p[2 + i];
        head += bytes;
    }
    if (n - head < len)
        return 0;
    int opcode = p[0] & 15;
    char *text = p + head;
    if (opcode == SOCKET_PING) {
        (void)socket_send(client, SOCKET_PONG, text, len);
        if (hooks->pinged)
            hooks->pinged(client);
    }
    if (opcode == SOCKET_CLOSE) {
        client->code = len >= 2 ? (uint16_t)((uint8_t)text[0] << 8 | (uint8_t)text[1]) : 1005;
        (void)socket_send(client, SOCKET_CLOSE, text, len < 2 ? len : 2);
        socket_end(client, hooks);
    } else if (opcode <= 2) {
        char kept = text[len];
        text[len] = '\0';
        hooks->message(client, text, len);
        text[len] = kept;
    }
    return head + len;
}

/* Chunk heads are lines too, which no field of an event looks like. */
static size_t socket_take_line(struct socket_client *client, const struct socket_hooks *hooks, char *p, size_t n)
{
    char *end = memchr(p, '\n', n);
    if (!end)
        return 0;
    size_t len = (size_t)(end - p);
    len -= len > 0 && p[len - 1] == '\r';
    if (len == 1 && p[0] == '0') { /* the last chunk */
        socket_end(client, hooks);
        return n;
    }
    char kept = p[len];
    p[len] = '\0';
    hooks->line(client, p, len);
    p[len] = kept;
    return (size_t)(end - p) + 1;
}

static size_t socket_take(struct socket_client *client, const struct socket_hooks *hooks, char *p, size_t n)
{
    if (client->state == SOCKET_SHAKING)
        return socket_take_head(client, hooks, p, n);
    return client->kind == SOCKET_WEBSOCKET ? socket_take_frame(client, hooks, p, n)
                                            : socket_take_line(client, hooks, p, n);
}

/* Keeps [p, p+n) for the next bytes. */
static void socket_keep(struct socket_client *client, const char *p, size_t n)
{
    char *kept = n ? malloc(n) : NULL;
    if (n)
        memcpy(kept, p, n);
    free(client->kept);
    client->kept = kept;
    client->kept_len = n;
}

/* Bytes of the client's stream, as recv(2). */
static ssize_t socket_receive(struct socket_client *client, const struct socket_hooks *hooks, char *p, size_t room)
{
    if (!client->wire)
        return recv(client->fd, p, room, 0);
    ssize_t n = socket_wire_receive(client->wire, client->http2, p, room);
    int status = client->wire->status;
    if (status == 0 || client->state != SOCKET_SHAKING)
        return n;
    int kept = errno;
    bool opens = status == 200 && client->kind == SOCKET_WEBSOCKET;
    (void)socket_take_status(client, hooks, opens ? 101 : status);
    errno = kept;
    return n;
}

/* Reads what is there. */
HTTP_CLIENT_FN void socket_read(struct socket_client *client, const struct socket_hooks *hooks)
{
    size_t n = client->kept_len;
    if (client->state == SOCKET_CLOSED)
        return;
    if (n)
        memcpy(socket_bytes, client->kept, n);
    int fd = client->fd;
    ssize_t got = socket_receive(client, hooks, socket_bytes + n, SOCKET_READ_BYTES - n);
    if (client->state == SOCKET_CLOSED || client->fd != fd || (got < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    if (got <= 0) {
        socket_end(client, hooks);
        return;
    }
    n += (size_t)got;
    size_t used = 0;
    size_t part = 1;
    while (used < n && part > 0 && client->fd == fd && client->state != SOCKET_CLOSED) {
        part = socket_take(client, hooks, socket_bytes + used, n - used);
        used += part;
    }
    if (client->fd != fd || client->state == SOCKET_CLOSED)
        return;
    if (client->wire && client->wire->over)
        socket_end(client, hooks);
    else
        socket_keep(client, socket_bytes + used, n - used);
}

#endif
