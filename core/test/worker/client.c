/* The laboratory of this folder; see the header. */
#include "worker/client.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

bool over_unix;
const char *where_name = "tcp, epoll";
char unix_path[108];

void site_init(struct site *site)
{
    memset(site, 0, sizeof(*site));
    site->life_fd = -1;
    oribi_options_init(&site->options);
    /* helper_test.c has it; elsewhere a long call, on a busy machine, must not bring in a second thread */
    site->options.helper = false;
    site->options.access_log = NULL;
}

void site_open(struct site *site, void (*app)(struct oribi_req *req))
{
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    char bind_text[160] = "tcp://127.0.0.1:0";
    site->app = app;
    if (over_unix) {
        (void)snprintf(unix_path, sizeof(unix_path), "/tmp/oribi-test-%d.sock", (int)getpid());
        (void)snprintf(bind_text, sizeof(bind_text), "unix://%s", unix_path);
    }
    if (oribi_options_set(&site->options, "bind", bind_text, error) < 0 ||
        oribi_listeners_open(&site->listeners, &site->options, error) < 0) {
        diag("%s", error);
        exit(2);
    }
    int off = 0; /* connections must show up before their first byte */
    if (!over_unix)
        (void)setsockopt(site->listeners.items[0].fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &off, sizeof(off));
    struct oribi_worker_setup setup = {
        .options = &site->options,
        .listeners = &site->listeners,
        .slot = &site->slot,
        .board = site->board.slots ? &site->board : NULL,
        .access_log = site->access_log,
        .life_fd = site->life_fd,
    };
    if (oribi_worker_create(&setup, &site->worker) < 0) {
        diag("no worker");
        exit(2);
    }
}

int connect_socket(const struct site *site)
{
    int fd = socket(over_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int result;
    if (over_unix) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        memcpy(address.sun_path, unix_path, strlen(unix_path));
        result = connect(fd, (struct sockaddr *)&address, sizeof(address));
    } else {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                      .sin_port = htons((uint16_t)strtoul(site->listeners.items[0].port, NULL, 10))};
        result = connect(fd, (struct sockaddr *)&address, sizeof(address));
        int on = 1;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    if (result < 0) {
        perror("connect");
        exit(2);
    }
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

struct client *client_open(struct site *site)
{
    struct client *c = calloc(1, sizeof(*c));
    c->fd = connect_socket(site);
    for (uint32_t i = 0; i < site->client_count; i++) {
        if (!site->clients[i]) {
            site->clients[i] = c;
            return c;
        }
    }
    if (site->client_count == CLIENTS_MAX) {
        diag("too many clients");
        exit(2);
    }
    site->clients[site->client_count++] = c;
    return c;
}

void client_hold_little(struct client *c)
{
    int bytes = 128 * 1024;
    (void)setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

void client_close(struct site *site, struct client *c)
{
    for (uint32_t i = 0; i < site->client_count; i++)
        if (site->clients[i] == c)
            site->clients[i] = NULL;
    oribi_os_close(c->fd);
    free(c->got);
    free(c);
}

bool client_read(struct client *c)
{
    bool news = false;
    size_t left = c->slice ? c->slice : SIZE_MAX;
    while (c->fd >= 0 && !c->paused && !c->eof && !c->error && left > 0) {
        if (c->got_cap - c->got_len < 65536)
            c->got = realloc(c->got, c->got_cap = c->got_cap * 2 + 131072);
        size_t room = c->got_cap - c->got_len < left ? c->got_cap - c->got_len : left;
        ssize_t n = recv(c->fd, c->got + c->got_len, room, 0);
        if (n < 0) {
            if (errno != EAGAIN)
                c->error = errno;
            return news || errno != EAGAIN;
        }
        news = true;
        if (n == 0)
            c->eof = true;
        c->got_len += (size_t)n;
        left -= (size_t)n;
    }
    return news;
}

void pump(struct site *site)
{
    bool news = false;
    struct oribi_req *req;
    while (!oribi_worker_abandoned(site->worker) && (req = oribi_worker_take(site->worker)) != NULL) {
        news = true;
        site->calls++;
        site->app(req);
    }
    for (uint32_t i = 0; i < site->client_count; i++)
        if (site->clients[i] && client_read(site->clients[i]))
            news = true;
    if (!news)
        oribi_reactor_wait(&site->worker->reactor, 2);
}

void settle(struct site *site)
{
    for (int i = 0; i < 3; i++) {
        struct oribi_req *req;
        while ((req = oribi_worker_take(site->worker)) != NULL) {
            site->calls++;
            site->app(req);
        }
    }
}

bool client_send_bytes(struct site *site, struct client *c, const char *p, size_t n)
{
    int64_t deadline = real_ms() + PUMP_MS_MAX;
    while (n > 0 && real_ms() < deadline) {
        ssize_t sent = send(c->fd, p, n, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN)
            return false;
        if (sent < 0)
            pump(site);
        p += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    }
    return n == 0;
}

bool client_send(struct site *site, struct client *c, const char *text)
{
    return client_send_bytes(site, c, text, strlen(text));
}

bool has_line(const struct answer *answer, const char *line)
{
    char with_ends[256];
    (void)snprintf(with_ends, sizeof(with_ends), "\r\n%s\r\n", line);
    return memmem(answer->head, answer->head_len, with_ends, strlen(with_ends)) != NULL;
}

static const char *field_value(const struct answer *answer, const char *name)
{
    char start[64];
    (void)snprintf(start, sizeof(start), "\r\n%s: ", name);
    const char *at = memmem(answer->head, answer->head_len, start, strlen(start));
    return at ? at + strlen(start) : NULL;
}

/* Takes one chunked body that starts at p; 0 when it is not all there. */
static size_t take_chunked(char *p, size_t n, struct answer *answer)
{
    size_t pos = 0;
    size_t out = 0;
    for (;;) {
        char *end = memmem(p + pos, n - pos, "\r\n", 2);
        if (!end)
            return 0;
        size_t size = strtoul(p + pos, NULL, 16);
        size_t data = (size_t)(end - p) + 2;
        if (n - data < size + 2)
            return 0;
        if (size == 0) {
            answer->body = p;
            answer->body_len = out;
            return data + 2;
        }
        memmove(p + out, p + data, size);
        out += size;
        pos = data + size + 2;
    }
}

bool peek_answer(struct client *c, bool bodiless, struct answer *answer, size_t *len)
{
    char *p = c->got + c->pos;
    size_t n = c->got_len - c->pos;
    char *end = n ? memmem(p, n, "\r\n\r\n", 4) : NULL;
    if (!end)
        return false;
    *answer = (struct answer){.head = p, .head_len = (size_t)(end - p) + 4, .content_length = -1};
    answer->status = (int)strtol(p + 9, NULL, 10);
    answer->closes = has_line(answer, "Connection: close");
    answer->chunked = has_line(answer, "Transfer-Encoding: chunked");
    const char *length = field_value(answer, "Content-Length");
    if (length)
        answer->content_length = strtoll(length, NULL, 10);
    answer->body = end + 4;
    size_t rest = n - answer->head_len;
    *len = answer->head_len;
    if (bodiless || answer->status < 200 || answer->status == 204 || answer->status == 304)
        return true;
    if (answer->content_length >= 0) {
        answer->body_len = (size_t)answer->content_length;
        *len += answer->body_len;
        return rest >= answer->body_len;
    }
    if (answer->chunked) {
        char *copy = malloc(rest + 1); /* decoding in place must not spoil an answer that is not all there */
        memcpy(copy, answer->body, rest);
        size_t used = take_chunked(copy, rest, answer);
        free(copy);
        if (used > 0)
            (void)take_chunked(end + 4, rest, answer);
        *len += used;
        return used > 0;
    }
    answer->body_len = rest;
    *len += rest;
    return c->eof;
}

bool next_answer_to(struct site *site, struct client *c, bool bodiless, struct answer *answer)
{
    size_t len = 0;
    bool found = false;
    (void)pump_until(site, (found = peek_answer(c, bodiless, answer, &len)) || c->eof || c->error);
    if (!found)
        return false;
    c->pos += len;
    return true;
}

bool closed_after(struct site *site, struct client *c)
{
    (void)pump_until(site, c->eof || c->error);
    if (c->error)
        diag("closed with: %s", strerror(c->error));
    if (c->got_len != c->pos)
        diag("%zu more bytes", c->got_len - c->pos);
    return c->eof && c->got_len == c->pos;
}

bool nothing_open(struct site *site)
{
    return site->worker->reactor.conn_count == 0;
}

void site_close(struct site *site)
{
    for (uint32_t i = 0; i < site->client_count; i++)
        if (site->clients[i])
            client_close(site, site->clients[i]);
    struct oribi_reactor *r = &site->worker->reactor;
    struct oribi_event events[4];
    bool empty = pump_until(site, r->conn_pool.lent_count == 0 && oribi_loop_poll(r->loop, 0, events, 4) == 0);
    ok_named(empty && atomic_load(&site->slot.connections_open) == 0, "%s: every connection is closed", where_name);
    ok_named(r->conn_pool.lent_count == 0 && r->buf_pool.lent_count == 0 && r->exchange_pool.lent_count == 0 &&
                 r->queue_len == 0 && !r->posted && !r->run_first,
             "%s: everything lent is back", where_name);
    oribi_worker_destroy(site->worker);
    oribi_listeners_close(&site->listeners, true);
    oribi_options_deinit(&site->options);
}

void run_everywhere(void (*test)(void))
{
    static const char *const names[] = {"tcp, epoll", "tcp, poll", "unix, epoll", "unix, poll"};
    for (int i = 0; i < 4; i++) {
        over_unix = i >= 2;
        where_name = names[i];
        if (i % 2)
            setenv("ORIBI_EVENT_SOURCE", "poll", 1);
        else
            unsetenv("ORIBI_EVENT_SOURCE");
        test();
    }
    unsetenv("ORIBI_EVENT_SOURCE");
    over_unix = false;
}

bool path_is(const struct oribi_req *req, const char *path)
{
    return req->head->path.n == strlen(path) && memcmp(req->head->path.p, path, req->head->path.n) == 0;
}

long path_number(const struct oribi_req *req, const char *prefix)
{
    size_t n = strlen(prefix);
    if (req->head->path.n <= n || memcmp(req->head->path.p, prefix, n) != 0)
        return -1;
    long number = strtol(req->head->path.p + n, NULL, 10); /* a space stands behind the target */
    return number > 0 ? number : 0;
}

void reply_text(struct oribi_req *req, int status, const char *text)
{
    struct iovec body = {(char *)text, strlen(text)};
    (void)oribi_reply(req, status, &text_type, 1, &body, 1);
}

char big_byte(size_t i)
{
    return (char)('A' + (i * 7 + i / 251) % 53);
}

char *big_text(size_t n)
{
    char *p = malloc(n + 1);
    for (size_t i = 0; i < n; i++)
        p[i] = big_byte(i);
    p[n] = '\0';
    return p;
}

bool is_big_text(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != big_byte(i))
            return false;
    return true;
}

void reply_echo(struct oribi_req *req)
{
    struct oribi_conn_request *exchange = &oribi__exchange_of(req)->base;
    const char *place = req->body_fd >= 0 ? "file" : exchange->body.len > 0 ? "memory" : "in-place";
    struct oribi_header headers[] = {text_type, {"X-Place", place, 7, (uint32_t)strlen(place)}};
    uint32_t count = path_is(req, "/place") ? 2 : 1;
    if (req->body_fd >= 0) {
        (void)oribi_reply_file(req, 200, headers, count, req->body_fd, 0, req->body_len);
        return;
    }
    struct iovec body = {(char *)req->body.p, req->body.n};
    (void)oribi_reply(req, 200, headers, count, &body, 1);
}

void reply_parts(struct oribi_req *req, size_t count)
{
    static struct iovec parts[1000];
    for (size_t i = 0; i < count; i++)
        parts[i] = (struct iovec){"p", 1};
    (void)oribi_reply(req, 200, &text_type, 1, parts, count);
}

void route(struct oribi_req *req)
{
    long n;
    if (path_is(req, "/hello")) {
        reply_text(req, 200, "hello\n");
    } else if (path_is(req, "/echo") || path_is(req, "/place")) {
        reply_echo(req);
    } else if ((n = path_number(req, "/big/")) >= 0) {
        char *text = big_text((size_t)n);
        struct iovec body = {text, (size_t)n};
        (void)oribi_reply(req, 200, &text_type, 1, &body, 1);
        memset(text, '!', (size_t)n); /* whoever still looks at it gives himself away */
        free(text);
    } else if ((n = path_number(req, "/parts/")) >= 0) {
        reply_parts(req, (size_t)n);
    } else if ((n = path_number(req, "/status/")) >= 0) {
        reply_text(req, (int)n, "body");
    } else {
        struct iovec body = {(char *)req->head->target.p, req->head->target.n};
        (void)oribi_reply(req, 200, &text_type, 1, &body, 1);
    }
}

void quiet_log(void)
{
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    oribi_log_init(getenv("TEST_LOG") ? 2 : fd, ORIBI_LOG_DEBUG);
}
