/* Clients that never stop asking while a server is restarted below them, and that know when a request was lost. One thread each, blocking
 * sockets, so that what a client does reads like what a client is.
 *
 *   load ADDRESS CLIENTS REQUESTS RATE        ADDRESS: 127.0.0.1:PORT or a path; RATE: requests a second of all together, 0: as fast as it goes
 *
 * Half of the clients keep their connection, half open one for each request. A request is lost when it was sent on a fresh connection, or on
 * a kept one that the server had not announced to close, and no full and right answer came. A kept connection that is found closed before a
 * request is sent loses nothing: the client opens a new one. Nothing is ever sent twice.
 *
 * At the end of the input, or after REQUESTS requests (0: no end of its own), it writes a line "lost MS KIND WORKER REASON" for each lost request, MS being
 * the monotonic clock, and then one line of JSON. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    CLIENTS_MAX = 256,
    ANSWER_CAP = 1 << 20,
    HEAD_CAP = 4096,
    UPLOAD_MAX = 24000,
    BIG_BYTES = 200000,
    PATIENCE_S = 20,
    REPORTED_MAX = 20000, /* lost requests that get a line */
};

/* What all clients share; set before they start, but for the counters. */
static struct {
    const char *address;
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
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
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

static int open_socket(void)
{
    const char *colon = strchr(load.address, ':');
    int result;
    int fd = socket(colon ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (colon) {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10))};
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        result = connect(fd, (struct sockaddr *)&to, sizeof(to));
    } else {
        struct sockaddr_un to = {.sun_family = AF_UNIX};
        snprintf(to.sun_path, sizeof(to.sun_path), "%s", load.address);
        result = connect(fd, (struct sockaddr *)&to, sizeof(to));
    }
    if (result == 0)
        return fd;
    int kept = errno;
    close(fd);
    errno = kept;
    return -1;
}

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
    c->fd = open_socket();
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

static bool send_all(struct client *c, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(c->fd, p, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return fail(c, "send: %s", strerror(errno));
        p += sent;
        n -= (size_t)sent;
    }
    return true;
}

static bool send_request(struct client *c, const struct request *request)
{
    char head[HEAD_CAP];
    int n = snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\nHost: localhost\r\n%s", request->method, request->target,
                     c->keeps ? "" : "Connection: close\r\n");
    if (request->upload)
        n += snprintf(head + n, sizeof(head) - (size_t)n, "Content-Length: %zu\r\n", request->upload);
    n += snprintf(head + n, sizeof(head) - (size_t)n, "\r\n");
    return send_all(c, head, (size_t)n) && send_all(c, load.upload, request->upload);
}

/* More of the answer. */
static bool receive(struct client *c)
{
    ssize_t n;
    do { /* with SO_RCVTIMEO a process that was stopped for a while is told, signal(7) */
        n = recv(c->fd, c->got + c->got_len, sizeof(c->got) - 1 - c->got_len, 0);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return fail(c, "after %zu bytes: %s", c->got_len, strerror(errno));
    if (n == 0)
        return fail(c, "closed after %zu bytes", c->got_len);
    c->got_len += (size_t)n;
    c->got[c->got_len] = '\0';
    return true;
}

static const char *field(const char *head, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = strstr(head, "\r\n"); line; line = strstr(line + 2, "\r\n"))
        if (strncasecmp(line + 2, name, n) == 0 && line[2 + n] == ':')
            return line + 2 + n + strspn(line + 3 + n, " ") + 1;
    return NULL;
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
    char *end = NULL;
    c->got_len = 0;
    c->got[0] = '\0';
    while (!(end = strstr(c->got, "\r\n\r\n")))
        if (!receive(c))
            return false;
    size_t head = (size_t)(end - c->got) + 4;
    end[2] = '\0';
    const char *length = field(c->got, "Content-Length");
    const char *connection = field(c->got, "Connection");
    const char *worker = field(c->got, "X-Worker");
    if (strncmp(c->got, "HTTP/1.1 200 ", 13) != 0 || !length)
        return fail(c, "answer: %.40s", c->got);
    size_t n = strtoul(length, NULL, 10);
    c->worker = worker ? strtol(worker, NULL, 10) : 0;
    *closes = connection && strncasecmp(connection, "close", 5) == 0;
    if (n > sizeof(c->got) - 1 - head)
        return fail(c, "answer of %zu bytes", n);
    while (c->got_len < head + n)
        if (!receive(c))
            return false;
    if (c->got_len > head + n)
        return fail(c, "%zu bytes behind the answer", c->got_len - head - n);
    return is_right(c, request, c->got + head, n);
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
    load.address = argv[1];
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
