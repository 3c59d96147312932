/* frontend/h2.h over sockets, for clients that others wrote: h2_server PORT [sleep] serves HTTP/2 by prior knowledge on
 * 127.0.0.1 until it is ended.
 *
 *     GET /        13 bytes            GET /N       N bytes             POST /…   says how many bytes came
 *     GET /hints   103 before it       GET /trailers   a trailer behind it
 *
 * One process, one thread, poll(2); no more than CLIENTS_MAX connections. */
#include "frontend/h2.h"
#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS_MAX = 1000, READ_BYTES = 64 * 1024, WANT_BYTES = 64 * 1024 };

struct call {
    struct oribi_h2_stream *stream;
    struct call *next;
    int64_t left;
    uint64_t received;
    bool posts;
    bool hints;
    bool trailers;
    bool refused;
};

struct client {
    int fd;
    struct oribi_h2 *h2;
    struct call *calls;
};

static struct oribi_h2_limits limits;
static struct client *clients[CLIENTS_MAX];
static struct pollfd polled[CLIENTS_MAX + 1];
static size_t client_count;
static volatile sig_atomic_t stopping;
static struct call *spare;

static void on_signal(int number)
{
    stopping = 1;
}

static struct oribi_field field_of(const char *name, const char *value)
{
    return (struct oribi_field){
        .name = name, .value = value, .name_len = (uint16_t)strlen(name), .value_len = (uint32_t)strlen(value)};
}

static struct call *add_call(struct client *client, struct oribi_h2_stream *stream)
{
    struct call *call = spare;
    if (call)
        spare = call->next;
    else
        call = oribi_mem_alloc(1, sizeof(*call));
    *call = (struct call){.stream = stream, .next = client->calls, .left = 13};
    client->calls = call;
    stream->user = call;
    return call;
}

static void answer(struct call *call, int status)
{
    char length[32];
    snprintf(length, sizeof(length), "%lld", (long long)call->left);
    struct oribi_field fields[] = {field_of("content-type", "text/plain"), field_of("server", "h2_server"),
                                   field_of("content-length", length)};
    if (oribi_h2_answer(call->stream, status, fields, call->trailers ? 2 : 3, false) == 0)
        oribi_h2_ready(call->stream);
}

static void on_request(void *self, struct oribi_h2_stream *stream, const struct oribi_h2_request *request)
{
    struct call *call = add_call(self, stream);
    const struct oribi_head *head = request->parsed;
    call->posts = !request->ended;
    call->hints = oribi_slice_equal(head->path, ORIBI_SLICE("/hints"));
    call->trailers = oribi_slice_equal(head->path, ORIBI_SLICE("/trailers"));
    if (head->path.n > 1 && head->path.p[1] >= '0' && head->path.p[1] <= '9')
        call->left = strtoll(head->path.p + 1, NULL, 10);
    if (head->expect_continue)
        (void)oribi_h2_interim(stream, 100, NULL, 0);
}

static void on_refused(void *self, struct oribi_h2_stream *stream, int error, const struct oribi_fault *fault,
                       bool is_head)
{
    struct call *call = stream->user ? stream->user : add_call(self, stream);
    if (fault && fault->reason)
        fprintf(stderr, "refused: %s\n", fault->reason);
    call->left = 13;
    answer(call, oribi_error_status(error));
}

static void on_malformed(void *self, uint32_t id, const char *reason)
{
    fprintf(stderr, "malformed: %s\n", reason);
}

static void on_data(void *self, struct oribi_h2_stream *stream, const char *p, size_t n)
{
    struct call *call = stream->user;
    call->received += n;
    oribi_h2_stored(stream, n);
}

static void on_trailers(void *self, struct oribi_h2_stream *stream, struct oribi_slice lines)
{
    fprintf(stderr, "trailers: %.*s", (int)lines.n, lines.p);
}

static void on_end(void *self, struct oribi_h2_stream *stream)
{
    struct call *call = stream->user;
    struct oribi_field link = field_of("link", "</x.css>; rel=preload");
    struct oribi_field sum = field_of("x-sum", "1");
    if (call->posts)
        call->left = snprintf(NULL, 0, "%llu", (unsigned long long)call->received);
    if (call->hints)
        (void)oribi_h2_interim(stream, 103, &link, 1);
    if (call->trailers)
        (void)oribi_h2_trailers(stream, &sum, 1);
    answer(call, 200);
}

static void on_reset(void *self, struct oribi_h2_stream *stream, uint32_t code)
{
}

static size_t on_pull(void *self, struct oribi_h2_stream *stream, char *dst, size_t cap, bool *last)
{
    struct call *call = stream->user;
    size_t n = (int64_t)cap < call->left ? cap : (size_t)call->left;
    if (cap == 0 && call->left)
        return 1;
    if (call->posts) {
        char text[32];
        int len = snprintf(text, sizeof(text), "%llu", (unsigned long long)call->received);
        memcpy(dst, text + len - call->left, n);
    } else {
        memset(dst, 'x', n);
    }
    call->left -= (int64_t)n;
    *last = call->left == 0;
    return n;
}

static const struct oribi_h2_events events = {on_request,  on_refused, on_malformed, on_data,
                                              on_trailers, on_end,     on_reset,     on_pull};

/* Frees the calls whose answer is through, or all of them. */
static void end_calls(struct client *client, bool all)
{
    struct call **at = &client->calls;
    while (*at) {
        struct call *call = *at;
        if (!all && !oribi_h2_is_answered(call->stream)) {
            at = &call->next;
            continue;
        }
        *at = call->next;
        oribi_h2_release(call->stream);
        call->next = spare;
        spare = call;
    }
}

/* False when the client is gone. */
static bool write_out(struct client *client)
{
    for (;;) {
        struct oribi_slice out = oribi_h2_output(client->h2, WANT_BYTES, oribi_clock_ms());
        end_calls(client, false);
        out = oribi_h2_output(client->h2, 0, oribi_clock_ms());
        if (out.n == 0)
            return true;
        ssize_t n = send(client->fd, out.p, out.n, MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN;
        oribi_h2_sent(client->h2, (size_t)n);
    }
}

static bool read_in(struct client *client)
{
    static char bytes[READ_BYTES];
    ssize_t n = read(client->fd, bytes, sizeof(bytes));
    if (n < 0)
        return errno == EAGAIN;
    return n > 0 && oribi_h2_feed(client->h2, bytes, (size_t)n, oribi_clock_ms()) == 0;
}

static void drop(size_t at)
{
    const char *reason;
    uint32_t code = oribi_h2_error(clients[at]->h2, &reason);
    if (reason)
        fprintf(stderr, "ended with %u: %s\n", code, reason);
    (void)write_out(clients[at]);
    end_calls(clients[at], true);
    oribi_h2_destroy(clients[at]->h2);
    close(clients[at]->fd);
    oribi_mem_free(clients[at]);
    clients[at] = clients[--client_count];
}

static void take_client(int listener)
{
    int on = 1;
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    if (fd < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    struct client *client = oribi_mem_alloc(1, sizeof(*client));
    clients[client_count++] = client;
    client->fd = fd;
    client->h2 = oribi_h2_create(&limits, &events, client, oribi_clock_ms());
}

static void turn(int listener)
{
    polled[0] = (struct pollfd){listener, client_count < CLIENTS_MAX ? POLLIN : 0, 0};
    for (size_t i = 0; i < client_count; i++) {
        bool unsent = oribi_h2_output(clients[i]->h2, 0, oribi_clock_ms()).n > 0;
        bool reads = oribi_h2_wants_input(clients[i]->h2);
        polled[i + 1] = (struct pollfd){clients[i]->fd, (short)((reads ? POLLIN : 0) | (unsent ? POLLOUT : 0)), 0};
    }
    size_t count = client_count;
    if (poll(polled, count + 1, 1000) < 0)
        return;
    for (size_t i = count; i-- > 0;) {
        struct client *client = clients[i];
        bool fine = true;
        if (polled[i + 1].revents & (POLLIN | POLLHUP | POLLERR))
            fine = read_in(client);
        oribi_h2_tick(client->h2, oribi_clock_ms());
        if (!fine || !write_out(client) || oribi_h2_is_over(client->h2))
            drop(i);
        else if (limits.sleeps)
            (void)oribi_h2_sleep(client->h2);
    }
    if (polled[0].revents)
        take_client(listener);
}

int main(int argc, char **argv)
{
    int on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    address.sin_port = htons((uint16_t)(argc > 1 ? strtol(argv[1], NULL, 10) : 0));
    oribi_h2_limits_init(&limits);
    limits.sleeps = argc > 2 && strcmp(argv[2], "sleep") == 0;
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(listener, 512) != 0) {
        perror("h2_server");
        return 1;
    }
    getsockname(listener, (struct sockaddr *)&address, &len);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    while (!stopping)
        turn(listener);
    while (client_count)
        drop(client_count - 1);
    return 0;
}
