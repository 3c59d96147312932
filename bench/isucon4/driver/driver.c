/* The load driver of the real applications: driver bank|posts|hello ADDRESS [options]; --help names them.
 *
 * One process, one thread. Closed loop: `workers` browsers, each begins its next scenario when the last is over.
 * Open loop (--rate): scenarios are due at times drawn in advance and begin on the first browser that is free; every
 * time is counted from when it was due, so that a server that stalls does not slow down its own measurement. Prints
 * one JSON object. Exit code 1: the run is not valid. */
#define _GNU_SOURCE
#include "driver.h"
#include "stats.h"
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <time.h>

enum { TAGS_MAX = 8, TAG_FETCH = -1, ERROR_KINDS = 6, ERRORS_SHOWN = 5, DUE_MAX = 1 << 18 };
static const double REQUEST_S = 30;       /* an answer that takes longer is none */
static const double LATE_REQUEST_S = .05; /* closed loop: for requests begun after the end */
static const double TAIL_S = 10;          /* for what is under way at the end */
static const double FETCH_S = 60;
static const double REST_S = 0.05;

static const char *const ERRORS[ERROR_KINDS] = {"connect", "cut", "status", "page", "asset", "driver"};

struct worker {
    bool running;
    bool broken; /* a request could not be sent; told to the scenario in the next turn */
    int broken_tag;
    bool first; /* the next request is the scenario's first */
    double due_s;
    double rests_until_s;
    double began_s[TAGS_MAX];
    enum kind kinds[TAGS_MAX];
};

struct driver {
    struct settings settings;
    struct http *http;
    struct scenario scenario;
    struct worker workers[OWNERS_MAX];
    uint64_t random;
    bool stopping;
    double measured_from_s;
    double end_s;
    size_t requests;
    size_t counts[2];
    size_t scenarios;
    size_t failed;
    size_t cut_at_end;
    size_t errors[ERROR_KINDS];
    size_t shown;
    struct series page_times;
    struct series scenario_times;

    double due[DUE_MAX]; /* open loop: what is due and has not begun, a ring */
    size_t due_head;
    size_t due_tail;
    double next_due_s;

    char *fetched;
    size_t fetched_len;
    bool fetch_over;
};

double wall_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double driver_draw(struct driver *driver)
{
    driver->random ^= driver->random << 13;
    driver->random ^= driver->random >> 7;
    driver->random ^= driver->random << 17;
    return (double)(driver->random >> 11) / 9007199254740992.0;
}

void jar_clear(struct jar *jar)
{
    for (int i = 0; i < COOKIES_MAX; i++)
        jar->cookies[i][0] = '\0';
}

/* A cookie of the same name is replaced; without room the last is. */
static void jar_put(struct jar *jar, const char *cookie, size_t len)
{
    const char *equals = memchr(cookie, '=', len);
    size_t name = equals ? (size_t)(equals - cookie) + 1 : len;
    int at = 0;
    while (at < COOKIES_MAX - 1 && jar->cookies[at][0] && strncmp(jar->cookies[at], cookie, name) != 0)
        at++;
    snprintf(jar->cookies[at], COOKIE_BYTES, "%.*s", (int)len, cookie);
}

void jar_take(struct jar *jar, const struct http_response *response)
{
    static const char NAME[] = "set-cookie:";
    const char *end = response->head + response->head_len;
    const char *line = memmem(response->head, response->head_len, "\r\n", 2);
    for (; line && line + sizeof(NAME) < end; line = memmem(line, (size_t)(end - line), "\r\n", 2)) {
        line += 2;
        if (strncasecmp(line, NAME, sizeof(NAME) - 1) != 0)
            continue;
        const char *value = line + sizeof(NAME) - 1;
        value += strspn(value, " ");
        jar_put(jar, value, strcspn(value, ";\r"));
    }
}

size_t jar_field(const struct jar *jar, char *text, size_t text_bytes)
{
    size_t n = 0;
    text[0] = '\0';
    for (int i = 0; i < COOKIES_MAX; i++)
        if (jar->cookies[i][0])
            n += (size_t)snprintf(text + n, text_bytes - n, "%s%s", n ? "; " : "Cookie: ", jar->cookies[i]);
    if (n)
        n += (size_t)snprintf(text + n, text_bytes - n, "\r\n");
    return n;
}

bool location_path(const struct http_response *response, char *path, size_t path_bytes)
{
    const char *value;
    int n = http_field(response, "location", &value);
    if (n <= 0)
        return false;
    const char *end = value + n;
    const char *host = memmem(value, (size_t)n, "://", 3);
    const char *from = host ? memchr(host + 3, '/', (size_t)(end - host - 3)) : value;
    if (!from)
        from = end;
    const char *query = memchr(from, '?', (size_t)(end - from));
    snprintf(path, path_bytes, "%.*s", (int)((query ? query : end) - from), from);
    return path[0] == '/';
}

void driver_error(struct driver *driver, const char *kind, const char *what)
{
    if (driver->stopping && strcmp(kind, "cut") == 0) {
        driver->cut_at_end++;
        return;
    }
    for (int i = 0; i < ERROR_KINDS; i++)
        driver->errors[i] += strcmp(ERRORS[i], kind) == 0;
    if (driver->shown++ < ERRORS_SHOWN)
        fprintf(stderr, "driver: %s: %s\n", kind, what);
}

void driver_send(struct driver *driver, int worker, int tag, enum kind kind, const char *bytes, size_t len)
{
    struct worker *w = &driver->workers[worker];
    double now = now_s();
    bool late = driver->stopping && driver->settings.rate <= 0;
    if (w->broken || !w->running)
        return;
    w->began_s[tag] = w->first ? w->due_s : now;
    w->kinds[tag] = kind;
    w->first = false;
    if (http_send(driver->http, worker, tag, bytes, len, now + (late ? LATE_REQUEST_S : REQUEST_S)) == 0)
        return;
    driver->errors[0]++;
    w->broken = true;
    w->broken_tag = tag;
}

void driver_end(struct driver *driver, int worker, bool good)
{
    struct worker *w = &driver->workers[worker];
    double now = now_s();
    w->running = false;
    w->broken = false;
    if (!good) {
        http_abort(driver->http, worker);
        w->rests_until_s = now + REST_S;
        driver->failed += !driver->stopping;
        return;
    }
    if (now >= driver->measured_from_s && now < driver->end_s)
        driver->scenarios++;
    if (w->due_s >= driver->measured_from_s)
        series_add(&driver->scenario_times, now - w->due_s);
}

static void keep_fetched(struct driver *driver, const struct http_response *response)
{
    driver->fetch_over = true;
    if (!response || response->status != 200 || !(driver->fetched = malloc(response->body_len + 1)))
        return;
    memcpy(driver->fetched, response->body, response->body_len);
    driver->fetched[response->body_len] = '\0';
    driver->fetched_len = response->body_len;
}

static void on_done(void *self, int owner, int tag, const struct http_response *response)
{
    struct driver *driver = self;
    struct worker *w = &driver->workers[owner];
    double now = now_s();
    if (tag == TAG_FETCH) {
        keep_fetched(driver, response);
        return;
    }
    if (!w->running)
        return;
    if (response && now >= driver->measured_from_s && now < driver->end_s) {
        driver->requests++;
        driver->counts[w->kinds[tag]]++;
    }
    if (response && w->began_s[tag] >= driver->measured_from_s && w->kinds[tag] == KIND_PAGE)
        series_add(&driver->page_times, now - w->began_s[tag]);
    driver->scenario.done(driver->scenario.self, owner, tag, response);
}

char *driver_fetch(struct driver *driver, const char *path, size_t *len, double *seconds)
{
    char text[256];
    double from = now_s();
    driver->fetched = NULL;
    driver->fetch_over = false;
    int n = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    if (http_send(driver->http, 0, TAG_FETCH, text, (size_t)n, from + FETCH_S) == 0)
        while (!driver->fetch_over)
            http_turn(driver->http, 1);
    *seconds = now_s() - from;
    *len = driver->fetched_len;
    return driver->fetched;
}

static void begin(struct driver *driver, int worker, double due_s)
{
    struct worker *w = &driver->workers[worker];
    w->running = true;
    w->first = true;
    w->due_s = due_s;
    driver->scenario.begin(driver->scenario.self, worker);
}

static void tell_broken(struct driver *driver)
{
    for (int i = 0; i < driver->settings.workers; i++) {
        struct worker *w = &driver->workers[i];
        if (w->running && w->broken) {
            w->broken = false;
            driver->scenario.done(driver->scenario.self, i, w->broken_tag, NULL);
        }
    }
}

static void begin_closed(struct driver *driver, double now)
{
    for (int i = 0; i < driver->settings.workers; i++)
        if (!driver->workers[i].running && driver->workers[i].rests_until_s <= now)
            begin(driver, i, now);
}

static void begin_open(struct driver *driver, double now)
{
    while (driver->next_due_s <= now && driver->next_due_s < driver->end_s) {
        driver->due[driver->due_tail++ % DUE_MAX] = driver->next_due_s;
        driver->next_due_s += -log(1 - driver_draw(driver)) / driver->settings.rate;
        if (driver->due_tail - driver->due_head == DUE_MAX) {
            fprintf(stderr, "driver: the server is too far behind\n");
            exit(1);
        }
    }
    for (int i = 0; i < driver->settings.workers && driver->due_head < driver->due_tail; i++)
        if (!driver->workers[i].running && driver->workers[i].rests_until_s <= now)
            begin(driver, i, driver->due[driver->due_head++ % DUE_MAX]);
}

static bool any_running(const struct driver *driver)
{
    for (int i = 0; i < driver->settings.workers; i++)
        if (driver->workers[i].running)
            return true;
    return false;
}

static void run(struct driver *driver)
{
    bool open = driver->settings.rate > 0;
    double start = now_s();
    driver->measured_from_s = start + driver->settings.warm_s;
    driver->end_s = driver->measured_from_s + driver->settings.seconds;
    driver->next_due_s = start;
    for (double now = start; now < driver->end_s; now = now_s()) {
        double wait = driver->end_s - now;
        if (open)
            begin_open(driver, now);
        else
            begin_closed(driver, now);
        if (open && driver->next_due_s - now < wait)
            wait = driver->next_due_s - now;
        http_turn(driver->http, wait);
        tell_broken(driver);
    }
    driver->stopping = true;
    http_hurry(driver->http, driver->end_s + TAIL_S);
    while (any_running(driver) || (open && driver->due_head < driver->due_tail && now_s() < driver->end_s + TAIL_S)) {
        if (open && now_s() < driver->end_s + TAIL_S)
            begin_open(driver, now_s());
        http_turn(driver->http, 0.01);
        tell_broken(driver);
    }
}

static double cpu_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static int print_result(struct driver *driver, double cpu, double took)
{
    const struct settings *s = &driver->settings;
    size_t total = 0;
    printf("{\"scenario\":\"%s\",\"loop\":\"%s\",\"workers\":%d,\"seconds\":%.3f,\"rate\":%.3f,\"assets\":%s",
           s->scenario, s->rate > 0 ? "open" : "closed", s->workers, s->seconds, s->rate,
           s->public_dir ? "true" : "false");
    printf(",\"requests\":%zu,\"requests_per_second\":%.1f,\"pages\":%zu,\"asset_requests\":%zu,\"connections\":%zu",
           driver->requests, (double)driver->requests / s->seconds, driver->counts[KIND_PAGE],
           driver->counts[KIND_ASSET], http_opened(driver->http));
    printf(",\"scenarios\":%zu,\"scenarios_per_second\":%.1f,\"failed\":%zu,\"cut_at_end\":%zu,\"never_begun\":%zu",
           driver->scenarios, (double)driver->scenarios / s->seconds, driver->failed, driver->cut_at_end,
           driver->due_tail - driver->due_head);
    printf(",\"errors\":{");
    for (int i = 0, n = 0; i < ERROR_KINDS; i++) {
        total += driver->errors[i];
        if (driver->errors[i])
            printf("%s\"%s\":%zu", n++ ? "," : "", ERRORS[i], driver->errors[i]);
    }
    printf("},\"error_count\":%zu,\"page_ms\":", total);
    series_print(&driver->page_times);
    printf(",\"scenario_ms\":");
    series_print(&driver->scenario_times);
    printf(",\"curve_ms\":");
    series_print_curve(&driver->page_times);
    printf(",\"driver_cpu_seconds\":%.3f,\"driver_cpu_share\":%.3f", cpu, cpu / took);
    const char *reason = driver->scenario.finish(driver->scenario.self);
    printf(",\"valid\":%s,\"reason\":\"%s\"}\n", reason ? "false" : "true", reason ? reason : "");
    return reason ? 1 : 0;
}

static void usage(int code)
{
    fprintf(code ? stderr : stdout,
            "usage: driver bank|posts|hello ADDRESS [options]\n"
            "  ADDRESS         127.0.0.1:8080, or the path of a unix socket\n"
            "  --workers N     browsers at the same time (1; with --rate 64)\n"
            "  --seconds S     how long is measured (60)\n"
            "  --warm S        how long is not measured before (0)\n"
            "  --rate R        open loop: scenarios a second\n"
            "  --seed N        of the random numbers (1)\n"
            "  --data FILE     bank: users.tsv\n"
            "  --public DIR    bank: ask for the assets too, and compare them with these files\n");
    exit(code);
}

static void read_options(struct settings *s, int argc, char **argv)
{
    static const struct option OPTIONS[] = {
        {"workers", 1, NULL, 'w'}, {"seconds", 1, NULL, 't'}, {"warm", 1, NULL, 'm'},
        {"rate", 1, NULL, 'r'},    {"seed", 1, NULL, 's'},    {"data", 1, NULL, 'd'},
        {"public", 1, NULL, 'p'},  {"help", 0, NULL, 'h'},    {0}};
    int option;
    while ((option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1) {
        switch (option) {
        case 'w':
            s->workers = (int)strtol(optarg, NULL, 10);
            break;
        case 't':
            s->seconds = strtod(optarg, NULL);
            break;
        case 'm':
            s->warm_s = strtod(optarg, NULL);
            break;
        case 'r':
            s->rate = strtod(optarg, NULL);
            break;
        case 's':
            s->seed = strtoull(optarg, NULL, 10);
            break;
        case 'd':
            s->data = optarg;
            break;
        case 'p':
            s->public_dir = optarg;
            break;
        default:
            usage(option == 'h' ? 0 : 2);
        }
    }
    if (optind != argc - 2)
        usage(2);
    s->scenario = argv[optind];
    s->address = argv[optind + 1];
    if (s->workers == 0)
        s->workers = s->rate > 0 ? 64 : 1;
    if (s->workers < 1 || s->workers > OWNERS_MAX || s->seconds <= 0 || s->warm_s < 0 || s->rate < 0)
        usage(2);
}

static const struct {
    const char *name;
    struct scenario (*create)(struct driver *driver, const struct settings *settings);
} SCENARIOS[] = {{"bank", bank_create}, {"posts", posts_create}, {"hello", hello_create}};

static struct scenario create(struct driver *driver, const struct settings *s)
{
    for (size_t i = 0; i < sizeof(SCENARIOS) / sizeof(SCENARIOS[0]); i++)
        if (strcmp(SCENARIOS[i].name, s->scenario) == 0)
            return SCENARIOS[i].create(driver, s);
    usage(2);
    return (struct scenario){0};
}

int main(int argc, char **argv)
{
    static struct driver driver;
    struct settings *s = &driver.settings;
    *s = (struct settings){.seconds = 60, .seed = 1};
    read_options(s, argc, argv);
    driver.random = (s->seed + 1) * 0x9E3779B97F4A7C15u;
    driver.http = http_create(s->address, s->workers, on_done, &driver);
    driver.scenario = create(&driver, s);
    double cpu = cpu_s();
    double start = now_s();
    run(&driver);
    return print_result(&driver, cpu_s() - cpu, now_s() - start);
}
