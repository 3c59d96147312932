/* An open-loop load driver with honest timing. Requests are due at times drawn in advance (exponential gaps); each
 * is sent on a kept-alive connection that has nothing under way, or waits in the driver for one, and its time counts
 * from when it was due, so a server that stalls cannot slow down its own measurement.
 *
 *     load ADDRESS[:PORT] -r RATE [-c 64] [-d SECONDS] [-w SECONDS] [-p PATH[,PATH:SHARE...]] [-s SEED]
 *          [-k SERVERS] [-t SECONDS] [-o FILE] [-j]
 *
 * ADDRESS is 127.0.0.1:9292 or the path of a unix socket. Several paths are mixed by their shares: -p /1ms,/500ms:0.01.
 * In a path ~20 stands for a number drawn from an exponential distribution with that mean: the same seed gives the same
 * arrivals and the same numbers. A server that answers with a field `X-Service-Us` (time in the application) is also
 * given a mean and percentiles of the wait: the answer's time less that. With -k its calls are then played once more
 * through one queue before so many servers, at no cost: what those very arrivals and calls allow at best ("ideal", and
 * "least" of the wait), so that luck does not pass for the server's merit or fault. One that answers with `X-Begun-Us`
 * (of the monotonic clock, when the call began) is also given how many requests that were sent later were begun sooner
 * ("overtaken"): none, in one queue; and a machine that stands still changes nothing in that. Answers may come for -t
 * seconds after the end (15); what has none by then, sent or still waiting for a connection, is an error, and its time
 * is what it has waited so far: left out, it would make a server look better for the requests that it fails. -o writes
 * arrivals and calls as a trace for bench/simulate: a line "ARRIVAL SERVICE" in seconds for each request that the
 * server gave a time in the application. One line a path and one for all: count, errors, mean, p50, p90, p99, p99.9,
 * max in ms; -j: in JSON, with more percentiles. */
#define _GNU_SOURCE
#include "http_client.h"
#include "rows.h"

#include <math.h>
#include <sys/epoll.h>
#include <sys/prctl.h>

enum { CONNS_MAX = 4096, PATHS_MAX = 8, BUF_BYTES = 64 * 1024 };

struct conn {
    int fd;
    bool busy;
    double due;
    double sent;
    int path;
    size_t len;
    char buf[BUF_BYTES];
};

struct series {
    double *ms;
    double *wait_ms;
    size_t count;
    size_t cap;
    size_t wait_count;
    size_t errors;
};

/* An answered request, for the ideal queue and the order of calls. Times in seconds. */
struct past {
    double due;
    double sent;
    double begun; /* below 0: the server does not say */
    double service_ms;
    int path;
    bool counted;
};

struct waiting {
    double due;
    double number; /* for a path with ~ */
    int path;
};

static struct {
    const char *name; /* of the address */
    struct http_address address;
    double rate;
    double seconds;
    double warm_s;
    int conns;
    int servers; /* of the ideal queue; 0: none */
    int path_count;
    char paths[PATHS_MAX][256];
    double shares[PATHS_MAX];
    uint64_t seed;
    double tail_s;     /* for answers after the end */
    const char *trace; /* a file for arrivals and calls; NULL: none */
    bool json;
} setup = {
    .seconds = 10, .warm_s = 1, .tail_s = 15, .conns = 64, .path_count = 1, .paths = {"/"}, .shares = {1}, .seed = 1};

static struct conn *conns;
static int *free_conns;
static int free_count;
static struct series series[PATHS_MAX + 1];
static struct past *pasts;
static size_t past_count, past_cap;
static struct waiting *queue;
static size_t queue_head, queue_tail, queue_cap = 1 << 16;
static int epoll_fd;

static double draw(void)
{
    setup.seed ^= setup.seed << 13;
    setup.seed ^= setup.seed >> 7;
    setup.seed ^= setup.seed << 17;
    return ((double)(setup.seed >> 11) + 1) / 9007199254740993.0;
}

static int draw_path(void)
{
    double at = draw();
    for (int i = 1; i < setup.path_count; i++) {
        if (at < setup.shares[i])
            return i;
        at -= setup.shares[i];
    }
    return 0;
}

static void open_conn(int i)
{
    struct conn *c = &conns[i];
    c->fd = http_connect(&setup.address, (struct http_connecting){.patience_s = 0});
    if (c->fd < 0) {
        perror(setup.name);
        exit(1);
    }
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &event);
    c->len = 0;
    c->busy = false;
    free_conns[free_count++] = i;
}

static void add(struct series *s, double ms, double wait_ms)
{
    if (s->count == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 4096;
        s->ms = realloc(s->ms, s->cap * sizeof(double));
        s->wait_ms = realloc(s->wait_ms, s->cap * sizeof(double));
    }
    s->ms[s->count++] = ms;
    if (wait_ms >= 0)
        s->wait_ms[s->wait_count++] = wait_ms;
}

/* Times of a call that the server reports, in microseconds; below 0: not reported. */
struct said {
    double service_us;
    double begun_us;
};

static void remember(const struct conn *c, struct said said)
{
    if (past_count == past_cap) {
        past_cap = past_cap ? past_cap * 2 : 4096;
        pasts = realloc(pasts, past_cap * sizeof(*pasts));
    }
    pasts[past_count++] =
        (struct past){fabs(c->due), c->sent, said.begun_us / 1e6, said.service_us / 1e3, c->path, c->due > 0};
}

static double draw_number(int path)
{
    const char *mean = strchr(setup.paths[path], '~');
    return mean ? -log(draw()) * strtod(mean + 1, NULL) : 0;
}

static void write_target(char *text, size_t cap, const struct waiting *request)
{
    const char *path = setup.paths[request->path];
    const char *tilde = strchr(path, '~');
    if (tilde)
        snprintf(text, cap, "%.*s%.3f", (int)(tilde - path), path, request->number);
    else
        snprintf(text, cap, "%s", path);
}

/* Any of them: each connection is a client like the others. Of its own sequence, so that how many are free changes
 * nothing in what is asked. */
static int take_free(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    int at = (int)(state % (uint64_t)free_count);
    int i = free_conns[at];
    free_conns[at] = free_conns[--free_count];
    return i;
}

static void send_request(const struct waiting *request)
{
    int i = take_free();
    struct conn *c = &conns[i];
    char target[300];
    char text[512];
    write_target(target, sizeof(target), request);
    int n = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: load\r\n\r\n", target);
    c->busy = true;
    c->due = request->due;
    c->sent = http_now_s();
    c->path = request->path;
    if (send(c->fd, text, (size_t)n, MSG_NOSIGNAL) != n) { /* closed while idle: seen by the read, counted there */
    }
}

static void finish(int i, bool good, struct said said)
{
    struct conn *c = &conns[i];
    double ms = (http_now_s() - c->due) * 1e3;
    double wait_ms = said.service_us >= 0 ? ms - said.service_us / 1e3 : -1;
    if (!good)
        series[c->path].errors++, series[setup.path_count].errors++;
    else if (c->due > 0)
        add(&series[c->path], ms, wait_ms), add(&series[setup.path_count], ms, wait_ms);
    if (said.service_us >= 0)
        remember(c, said);
    c->busy = false;
}

/* True when the answer in the buffer is complete. Only answers with a Content-Length are understood. */
static bool complete(struct conn *c, bool *good, struct said *said)
{
    struct http_answer_head head;
    int there = http_answer_head(c->buf, c->len, &head);
    if (there == 0 || (there > 0 && head.content_length > 0 && c->len < head.len + (size_t)head.content_length))
        return false;
    *good = there > 0 && head.status == 200;
    *said = (struct said){-1, -1};
    if (there > 0)
        *said = (struct said){http_head_number(c->buf, head.len, "x-service-us", -1),
                              http_head_number(c->buf, head.len, "x-begun-us", -1)};
    return true;
}

static void on_readable(int i)
{
    struct conn *c = &conns[i];
    ssize_t n = recv(c->fd, c->buf + c->len, BUF_BYTES - c->len, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        bool was_busy = c->busy;
        if (was_busy)
            finish(i, false, (struct said){-1, -1});
        else
            for (int k = 0; k < free_count; k++)
                if (free_conns[k] == i) {
                    free_conns[k] = free_conns[--free_count];
                    break;
                }
        close(c->fd);
        open_conn(i);
        return;
    }
    c->len += (size_t)n;
    bool good = false;
    struct said said;
    if (!complete(c, &good, &said))
        return;
    c->len = 0;
    finish(i, good, said);
    free_conns[free_count++] = i;
}

static int by_due(const void *a, const void *b)
{
    double x = ((const struct past *)a)->due, y = ((const struct past *)b)->due;
    return x < y ? -1 : x > y;
}

/* One queue, first come first served: each goes to the server that is free first. */
static void play_ideal(struct series *ideal)
{
    double *free_at = calloc((size_t)setup.servers, sizeof(*free_at));
    qsort(pasts, past_count, sizeof(*pasts), by_due);
    for (size_t i = 0; i < past_count; i++) {
        const struct past *p = &pasts[i];
        int first = 0;
        for (int k = 1; k < setup.servers; k++)
            if (free_at[k] < free_at[first])
                first = k;
        double start = free_at[first] > p->due ? free_at[first] : p->due;
        double wait_ms = (start - p->due) * 1e3;
        free_at[first] = start + p->service_ms / 1e3;
        if (p->counted) {
            add(&ideal[p->path], wait_ms + p->service_ms, wait_ms);
            add(&ideal[setup.path_count], wait_ms + p->service_ms, wait_ms);
        }
    }
    free(free_at);
}

static void write_trace(void)
{
    FILE *file = fopen(setup.trace, "w");
    qsort(pasts, past_count, sizeof(*pasts), by_due);
    for (size_t i = 0; file && i < past_count; i++)
        fprintf(file, "%.6f %.6f\n", pasts[i].due - pasts[0].due, pasts[i].service_ms / 1e3);
    if (!file || fclose(file) != 0) {
        perror(setup.trace);
        exit(1);
    }
}

static int by_sent(const void *a, const void *b)
{
    double x = ((const struct past *)a)->sent, y = ((const struct past *)b)->sent;
    return x < y ? -1 : x > y;
}

static void count_overtaken(struct series *overtaken)
{
    qsort(pasts, past_count, sizeof(*pasts), by_sent);
    for (size_t i = 0; i < past_count; i++) {
        const struct past *p = &pasts[i];
        size_t count = 0;
        for (size_t k = i + 1; k < past_count && pasts[k].sent < p->begun; k++)
            count += pasts[k].begun >= 0 && pasts[k].begun < p->begun;
        if (p->counted && p->begun >= 0) {
            add(&overtaken[p->path], (double)count, -1);
            add(&overtaken[setup.path_count], (double)count, -1);
        }
    }
}

static void read_paths(char *text)
{
    setup.path_count = 0;
    for (char *item = strtok_r(text, ",", &text); item && setup.path_count < PATHS_MAX;
         item = strtok_r(NULL, ",", &text)) {
        char *colon = strrchr(item, ':');
        setup.shares[setup.path_count] = colon ? strtod(colon + 1, NULL) : 1;
        if (colon)
            *colon = '\0';
        snprintf(setup.paths[setup.path_count++], sizeof(setup.paths[0]), "%s", item);
    }
}

static void read_arguments(int argc, char **argv)
{
    int option;
    while ((option = getopt(argc, argv, "r:c:d:w:p:s:k:t:o:j")) != -1) {
        switch (option) {
        case 'r':
            setup.rate = strtod(optarg, NULL);
            break;
        case 'c':
            setup.conns = (int)strtol(optarg, NULL, 10);
            break;
        case 'd':
            setup.seconds = strtod(optarg, NULL);
            break;
        case 'w':
            setup.warm_s = strtod(optarg, NULL);
            break;
        case 'p':
            read_paths(optarg);
            break;
        case 'k':
            setup.servers = (int)strtol(optarg, NULL, 10);
            break;
        case 's':
            setup.seed = strtoull(optarg, NULL, 10) * 2654435761u + 1;
            break;
        case 't':
            setup.tail_s = strtod(optarg, NULL);
            break;
        case 'o':
            setup.trace = optarg;
            break;
        case 'j':
            setup.json = true;
            break;
        default:
            exit(2);
        }
    }
    if (optind != argc - 1 || setup.rate <= 0 || setup.conns < 1 || setup.conns > CONNS_MAX || setup.path_count < 1) {
        fprintf(stderr, "usage: load ADDRESS -r RATE [-c CONNECTIONS] [-d SECONDS] [-w WARM-UP SECONDS] [-p "
                        "PATH,PATH:SHARE] [-s SEED] [-k SERVERS] [-t SECONDS] [-o FILE] [-j]\n");
        exit(2);
    }
    setup.name = argv[optind];
    if (!http_address_parse(&setup.address, setup.name)) {
        fprintf(stderr, "load: %s is neither IPv4:PORT nor a path\n", setup.name);
        exit(2);
    }
}

static void send_due(double *next, double end, double counted_from)
{
    double now = http_now_s();
    while (*next <= now && *next < end) {
        int path = draw_path();
        queue[queue_tail++ % queue_cap] =
            (struct waiting){*next >= counted_from ? *next : -*next, draw_number(path), path};
        *next += -log(draw()) / setup.rate;
        if (queue_tail - queue_head == queue_cap) {
            fprintf(stderr, "the server is too far behind\n");
            exit(1);
        }
    }
    while (queue_head < queue_tail && free_count > 0) {
        send_request(&queue[queue_head++ % queue_cap]);
    }
}

static bool any_busy(void)
{
    for (int i = 0; i < setup.conns; i++)
        if (conns[i].busy)
            return true;
    return false;
}

static void unanswered(double due, int path)
{
    series[path].errors++, series[setup.path_count].errors++;
    if (due <= 0)
        return;
    double ms = (http_now_s() - due) * 1e3;
    add(&series[path], ms, -1), add(&series[setup.path_count], ms, -1);
}

/* Time is up: what is under way and what waits for a connection. */
static void give_up(void)
{
    for (int i = 0; i < setup.conns; i++)
        if (conns[i].busy)
            unanswered(conns[i].due, conns[i].path);
    for (; queue_head < queue_tail; queue_head++)
        unanswered(queue[queue_head % queue_cap].due, queue[queue_head % queue_cap].path);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv);
    /* Due requests are sent when they are due, not the usual 50 microseconds later (prctl(2)). */
    prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    conns = calloc((size_t)setup.conns, sizeof(*conns));
    free_conns = calloc((size_t)setup.conns, sizeof(*free_conns));
    queue = calloc(queue_cap, sizeof(*queue));
    for (int i = 0; i < setup.conns; i++)
        open_conn(i);
    double start = http_now_s();
    double next = start;
    double end = start + setup.warm_s + setup.seconds;
    while (http_now_s() < end + setup.tail_s && (next < end || queue_head < queue_tail || any_busy())) {
        struct epoll_event events[256];
        double left = next < end ? next - http_now_s() : 0.1;
        struct timespec wait = {0, left <= 0 ? 0 : left < 0.1 ? (long)(left * 1e9) : 100000000};
        int n = epoll_pwait2(epoll_fd, events, 256, &wait, NULL);
        for (int i = 0; i < n; i++)
            on_readable((int)events[i].data.u32);
        send_due(&next, end, start + setup.warm_s);
    }
    give_up();
    void (*print)(const char *, const char *, double *, size_t, size_t) = print_row;
    if (setup.json)
        print = print_json;
    if (!setup.json)
        printf("%-16s %-8s %8s %6s %9s %9s %9s %9s %9s %9s\n", "path", "ms", "count", "errors", "mean", "p50", "p90",
               "p99", "p99.9", "max");
    if (setup.trace)
        write_trace();
    struct series ideal[PATHS_MAX + 1] = {0};
    if (setup.servers > 0)
        play_ideal(ideal);
    struct series overtaken[PATHS_MAX + 1] = {0};
    count_overtaken(overtaken);
    for (int i = 0; i <= setup.path_count; i++) {
        if (setup.path_count == 1 && i == 0)
            continue;
        const char *name = i < setup.path_count ? setup.paths[i] : "all";
        print(name, "time", series[i].ms, series[i].count, series[i].errors);
        if (series[i].wait_count)
            print(name, "wait", series[i].wait_ms, series[i].wait_count, series[i].errors);
        if (ideal[i].count) {
            print(name, "ideal", ideal[i].ms, ideal[i].count, 0);
            print(name, "least", ideal[i].wait_ms, ideal[i].wait_count, 0);
        }
        if (overtaken[i].count)
            print(name, "overtaken", overtaken[i].ms, overtaken[i].count, 0);
    }
    return series[setup.path_count].errors ? 1 : 0;
}
