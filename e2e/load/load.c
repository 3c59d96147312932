/* Clients that never stop asking while a server is restarted below them, and that know when a request was lost. One
 * thread each, blocking sockets, so that what a client does reads like what a client is.
 *
 *   load ADDRESS CLIENTS REQUESTS RATE    ADDRESS: 127.0.0.1:PORT or a path; RATE: requests a second, 0: no limit
 *
 * Half of the clients keep their connection, half open one for each request. A request is lost when it was sent on a
 * fresh connection, or on a kept one that the server had not announced to close, and no full and right answer came.
 * A kept connection that is found closed before a request is sent loses nothing: the client opens a new one. Nothing
 * is ever sent twice.
 *
 * At the end of the input, or after REQUESTS requests (0: no end of its own), it writes a line "lost MS KIND WORKER
 * REASON" for each lost request, MS being the monotonic clock, and then one line of JSON. */
#define _GNU_SOURCE
#include "../../bench/load/http_client.h"

#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>

enum {
    CLIENTS_MAX = 256,
    ANSWER_CAP = 1 << 20,
    HEAD_CAP = 4096,
    UPLOAD_MAX = 24000,
    BIG_BYTES = 200000,
    PATIENCE_S = 60,      /* a server that starts anew on a busy machine keeps clients waiting, and loses none */
    REPORTED_MAX = 20000, /* lost requests that get a line */
};

/* Shared by all clients; set before they start, except the counters. */
static struct {
    struct http_address address;
    long requests; /* 0: until the input ends */
    double rate;   /* of one client */
    atomic_long taken;
    atomic_bool stop;
    pthread_mutex_t mouth; /* of the lines about lost requests */
    long reported;
    char upload[UPLOAD_MAX];
} load;

struct client {
    pthread_t thread;
    unsigned number;
    bool keeps;
    int fd; /* -1: no connection */
    bool fresh;
    long worker; /* pid that answered last on this connection; 0: none yet */
    long answered, lost, connections, found_closed;
    double slowest_ms;
    unsigned seed;
    char why[160]; /* the request was lost */
    char got[ANSWER_CAP];
    size_t got_len;
};

static double now_ms(void)
{
    return http_now_s() * 1e3;
}

__attribute__((format(printf, 2, 3))) static bool fail(struct client *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(c->why, sizeof(c->why), format, args);
    va_end(args);
    return false;
}

/* --- connections --- */

static void hang_up(struct client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

/* Between two requests nothing may come but the end. */
static bool closed_meanwhile(const struct client *c)
{
    struct pollfd look = {.fd = c->fd, .events = POLLIN};
    return poll(&look, 1, 0) > 0;
}

static bool have_connection(struct client *c)
{
    c->fresh = c->fd < 0;
    if (c->fd >= 0 && closed_meanwhile(c)) {
        hang_up(c);
        c->found_closed++;
        c->fresh = true;
    }
    if (c->fd >= 0)
        return true;
    c->worker = 0;
    c->fd = http_connect(&load.address, (struct http_connecting){.patience_s = PATIENCE_S});
    c->connections++;
    return c->fd >= 0 || fail(c, "connect: %s", strerror(errno));
}

/* --- one request --- */

struct request {
    const char *method;
    const char *target;
    size_t upload; /* bytes of a body that comes back */
    size_t expected;
};

/* Mostly small ones, among them uploads, answers that do not fit into a socket, and calls that take a while. */
static struct request choose(struct client *c)
{
    unsigned dice = (unsigned)rand_r(&c->seed) % 64;
    if (dice < 12) {
        size_t n = 1 + (size_t)rand_r(&c->seed) % UPLOAD_MAX;
        return (struct request){"POST", "/echo", n, n};
    }
    if (dice < 14)
        return (struct request){"GET", "/big", 0, BIG_BYTES};
    if (dice < 16)
        return (struct request){"GET", "/slow", 0, 4};
    return (struct request){"GET", "/", 0, 13};
}

static bool send_request(struct client *c, const struct request *request)
{
    char head[HEAD_CAP];
    int n = snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\nHost: localhost\r\n%s", request->method, request->target,
                     c->keeps ? "" : "Connection: close\r\n");
    if (request->upload)
        n += snprintf(head + n, sizeof(head) - (size_t)n, "Content-Length: %zu\r\n", request->upload);
    n += snprintf(head + n, sizeof(head) - (size_t)n, "\r\n");
    if (http_send_all(c->fd, head, (size_t)n) && http_send_all(c->fd, load.upload, request->upload))
        return true;
    return fail(c, "send: %s", strerror(errno));
}

/* More of the answer. */
static bool receive(struct client *c)
{
    ssize_t n = http_receive(c->fd, c->got + c->got_len, sizeof(c->got) - 1 - c->got_len);
    if (n < 0)
        return fail(c, "after %zu bytes: %s", c->got_len, strerror(errno));
    if (n == 0)
        return fail(c, "closed after %zu bytes", c->got_len);
    c->got_len += (size_t)n;
    c->got[c->got_len] = '\0';
    return true;
}

static bool is_right(struct client *c, const struct request *request, const char *body, size_t n)
{
    if (n != request->expected)
        return fail(c, "%zu bytes instead of %zu", n, request->expected);
    if (request->upload && memcmp(body, load.upload, n) != 0)
        return fail(c, "another body than sent");
    if (!request->upload && n == 13 && memcmp(body, "Hello, World!", 13) != 0)
        return fail(c, "another body");
    for (size_t i = 0; n == BIG_BYTES && i < n; i++)
        if (body[i] != 'x')
            return fail(c, "another byte at %zu", i);
    return true;
}

/* One answer of known length; *closes when the server says that it closes. */
static bool read_answer(struct client *c, const struct request *request, bool *closes)
{
    struct http_answer_head head;
    int there;
    c->got_len = 0;
    while ((there = http_answer_head(c->got, c->got_len, &head)) == 0)
        if (!receive(c))
            return false;
    if (there < 0 || head.status != 200 || head.content_length < 0)
        return fail(c, "answer: %.40s", c->got);
    size_t n = (size_t)head.content_length;
    c->worker = (long)http_head_number(c->got, head.len, "x-worker", 0);
    *closes = head.closes;
    if (n > sizeof(c->got) - 1 - head.len)
        return fail(c, "answer of %zu bytes", n);
    while (c->got_len < head.len + n)
        if (!receive(c))
            return false;
    if (c->got_len > head.len + n)
        return fail(c, "%zu bytes behind the answer", c->got_len - head.len - n);
    return is_right(c, request, c->got + head.len, n);
}

static bool ask(struct client *c)
{
    struct request request = choose(c);
    bool closes = false;
    double start = now_ms();
    if (!have_connection(c) || !send_request(c, &request) || !read_answer(c, &request, &closes)) {
        hang_up(c);
        return false;
    }
    double took = now_ms() - start;
    if (took > c->slowest_ms)
        c->slowest_ms = took;
    if (closes || !c->keeps)
        hang_up(c);
    return true;
}

/* --- clients --- */

static void report(const struct client *c)
{
    pthread_mutex_lock(&load.mouth);
    if (load.reported++ < REPORTED_MAX)
        printf("lost %.0f %s %ld %s\n", now_ms(), c->fresh ? "fresh" : "kept", c->worker, c->why);
    pthread_mutex_unlock(&load.mouth);
}

/* Keeps to the rate, with a little disorder so that clients do not march in step. */
static void pace(struct client *c, double start, long asked)
{
    if (load.rate <= 0)
        return;
    double due = start + ((double)asked + (double)(rand_r(&c->seed) % 1000) / 1000) * 1000 / load.rate;
    double wait = due - now_ms();
    if (wait > 0)
        poll(NULL, 0, (int)wait);
}

static void *run(void *p)
{
    struct client *c = p;
    double start = now_ms();
    for (long asked = 0; !atomic_load(&load.stop); asked++) {
        pace(c, start, asked);
        if (load.requests && atomic_fetch_add(&load.taken, 1) >= load.requests)
            break;
        if (ask(c)) {
            c->answered++;
        } else {
            c->lost++;
            report(c);
        }
    }
    hang_up(c);
    return NULL;
}

static void *listen_to_input(void *p)
{
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0)
        continue;
    atomic_store(&load.stop, true);
    return NULL;
}

static void sum_up(struct client *clients, long count, double seconds)
{
    struct client all = {0};
    for (long i = 0; i < count; i++) {
        all.answered += clients[i].answered;
        all.lost += clients[i].lost;
        all.connections += clients[i].connections;
        all.found_closed += clients[i].found_closed;
        if (clients[i].slowest_ms > all.slowest_ms)
            all.slowest_ms = clients[i].slowest_ms;
    }
    printf("{\"answered\":%ld,\"lost\":%ld,\"connections\":%ld,\"found_closed\":%ld,", all.answered, all.lost,
           all.connections, all.found_closed);
    printf("\"seconds\":%.3f,\"slowest_ms\":%.1f}\n", seconds, all.slowest_ms);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "load ADDRESS CLIENTS REQUESTS RATE\n");
        return 2;
    }
    long count = strtol(argv[2], NULL, 10);
    if (count < 1 || count > CLIENTS_MAX)
        return 2;
    if (!http_address_parse(&load.address, argv[1]))
        return 2;
    load.requests = strtol(argv[3], NULL, 10);
    load.rate = strtod(argv[4], NULL) / (double)count;
    pthread_mutex_init(&load.mouth, NULL);
    for (size_t i = 0; i < sizeof(load.upload); i++)
        load.upload[i] = (char)('a' + i % 26);
    struct client *clients = calloc((size_t)count, sizeof(*clients));
    pthread_t listener;
    pthread_create(&listener, NULL, listen_to_input, NULL);
    double start = now_ms();
    for (long i = 0; i < count; i++) {
        clients[i].number = (unsigned)i;
        clients[i].seed = (unsigned)i + 1;
        clients[i].keeps = i % 2 == 0;
        clients[i].fd = -1;
        pthread_create(&clients[i].thread, NULL, run, &clients[i]);
    }
    for (long i = 0; i < count; i++)
        pthread_join(clients[i].thread, NULL);
    sum_up(clients, count, (now_ms() - start) / 1000);
    return 0;
}
