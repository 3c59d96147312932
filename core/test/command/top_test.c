/* The screen of `ctl top`: what stands on it for two fixed snapshots, in several sizes; and snapshots on their way. */
#include "command/top.c"

#include "tap.h"

#include "oribi/base/error.h"

#include "guard.h"

static struct oribi__top_snapshot before;
static struct oribi__top_snapshot now;
static struct oribi_buf text;

static const struct oribi__top_worker workers_then[] = {
    {.worker = 0, .pid = 100, .generation = 1, .requests = 10, .threads = 1, .cpu_ms = 1000, .state = "idle"},
    {.worker = 1, .pid = 101, .generation = 1, .requests = 900, .threads = 1, .cpu_ms = 7000, .state = "busy"},
    {.worker = 2, .pid = 102, .generation = 1, .requests = 5, .threads = 1, .state = "busy"},
};

static const struct oribi__top_worker workers_now[] = {
    {.worker = 0,
     .pid = 100,
     .generation = 1,
     .requests = 110,
     .connections_open = 3,
     .threads = 1,
     .memory_bytes = 90 << 20,
     .cpu_ms = 2500,
     .up_ms = 3700 * 1000,
     .state = "idle"},
    {.worker = 1,
     .pid = 101,
     .generation = 1,
     .requests = 1000,
     .connections_open = 20,
     .queued = 4,
     .threads = 1,
     .threads_busy = 1,
     .memory_bytes = 120 << 20,
     .cpu_ms = 7100,
     .up_ms = 3700 * 1000,
     .call_us = 2500,
     .state = "busy",
     .call = "GET /quick"},
    {.worker = 2,
     .pid = 200,
     .generation = 2,
     .requests = 1,
     .threads = 1,
     .threads_busy = 1,
     .memory_bytes = 60 << 20,
     .cpu_ms = 50,
     .up_ms = 30 * 1000,
     .call_us = 12345678,
     .state = "busy",
     .call = "GET /report?\x1b[31m\x9b\n\t\x07 of=the year"},
};

static void take(struct oribi__top_snapshot *to, const struct oribi__top_worker *workers)
{
    to->count = 3;
    to->workers = oribi_mem_alloc(3, sizeof(*workers));
    memcpy(to->workers, workers, 3 * sizeof(*workers));
}

static void begin(void)
{
    before = (struct oribi__top_snapshot){
        .program = "oribi",
        .state = "serving",
        .pid = 99,
        .taken_us = 1000000,
        .requests = 5000,
        .connections = 50,
        .status_5xx = 10,
        .bytes_in = 1024,
        .bytes_out = 0,
    };
    now = (struct oribi__top_snapshot){
        .program = "oribi",
        .version = "1.2.3",
        .state = "reloading",
        .pid = 99,
        .taken_us = 3000000,
        .up_ms = 93784 * 1000LL,
        .generation = 2,
        .serving = 3,
        .wanted = 4,
        .deaths = 1,
        .waiting = 7,
        .oldest_us = 250000,
        .requests = 5400,
        .status_4xx = 6,
        .status_5xx = 14,
        .cut = 2,
        .refused = 6,
        .shed = 5,
        .overdue = 3,
        .connections = 60,
        .connections_open = 23,
        .bytes_in = 5 * 1024,
        .bytes_out = 6 << 20,
    };
    take(&before, workers_then);
    take(&now, workers_now);
    before.times[ORIBI__TOP_CALL_TIME].counts[oribi_histogram_bucket(1000000)] = 500;
    now.times[ORIBI__TOP_CALL_TIME].counts[oribi_histogram_bucket(1000000)] = 501;
    now.times[ORIBI__TOP_CALL_TIME].counts[oribi_histogram_bucket(1000)] = 399;
    now.times[ORIBI__TOP_CALL_TIME].count = 900;
    before.times[ORIBI__TOP_CALL_TIME].count = 500;
}

static void end(void)
{
    oribi__top_deinit(&before);
    oribi__top_deinit(&now);
}

static const char *screen_of(const struct oribi__top_view *view, bool has_before)
{
    text.len = 0;
    oribi__top_render(&text, &now, has_before ? &before : NULL, view);
    *oribi_buf_reserve(&text, 1) = '\0';
    return text.p;
}

#define SCREEN(...) screen_of(&(struct oribi__top_view){__VA_ARGS__}, true)

static void longest(const char *screen, size_t *columns, size_t *rows)
{
    *columns = *rows = 0;
    for (; *screen; screen += strcspn(screen, "\n") + 1) {
        size_t n = strcspn(screen, "\n");
        *columns = n > *columns ? n : *columns;
        ++*rows;
    }
}

/* Passes the state through lines, as that of a server comes. */
static void travel(void)
{
    struct oribi_buf lines = {0};
    oribi__top_write(&now, &lines);
    ok_eq(oribi__top_read(&now, lines.p, lines.len), 0);
    oribi_buf_deinit(&lines);
}

#define HEADER                                                                                                         \
    "oribi 1.2.3  pid 99  reloading  up 1 d 02 h  generation 2\n"                                                      \
    "requests     200/s  5400 in all  7 waiting  oldest 250 ms\n"                                                      \
    "errors       5xx 2.0/s (1.0 %)  4xx 3.0/s  cut 1.0/s\n"                                                           \
    "call         p50 1.0 ms  p90 1.0 ms  p99 1.0 ms  max 999 ms  400 calls in 2.00 s\n"                               \
    "queue wait   0 calls in 2.00 s\n"                                                                                 \
    "workers      3 of 4 serve  memory 270 MB  CPU 80.0 %  2 busy  1 idle\n"                                           \
    "connections  23 open  5.0/s new  in 2.0 KB/s  out 3.0 MB/s\n"                                                     \
    "since start  1 worker death  3 overdue  5 shed  6 refused\n"                                                      \
    "\n"

static void test_80_columns(void)
{
    begin();
    travel();
    is_str(SCREEN(.columns = 80, .rows = 24),
           HEADER "WORKER     PID STATE        CALL   REQ/S WAIT     MB  CPU% REQUEST\n"
                  "     2     200 busy      12.34 s            0     60       GET /report??[31m????\n"
                  "     1     101 busy       2.5 ms    50.0    4    120   5.0 GET /quick\n"
                  "     0     100 idle                 50.0    0     90  75.0\n");
    end();
}

static void test_60_columns(void)
{
    begin();
    travel();
    const char *screen = SCREEN(.columns = 60, .rows = 24);
    ok(strstr(screen, "\ncall         p50 1.0 ms  p90 1.0 ms  p99 1.0 ms  max 999 ms\n")); /* a whole part is missing */
    is_str(strstr(screen, "WORKER"), "WORKER STATE        CALL     MB  CPU% REQUEST\n"
                                     "     2 busy      12.34 s     60       GET /report??[31m???? \n"
                                     "     1 busy       2.5 ms    120   5.0 GET /quick\n"
                                     "     0 idle                  90  75.0\n");
    end();
}

static void test_200_columns_and_no_limit_at_all(void)
{
    static const char all[] =
        HEADER "WORKER     PID GEN STATE        CALL   REQ/S  REQUESTS  OPEN WAIT     MB  CPU%       UP REQUEST\n"
               "     2     200   2 busy      12.34 s                 1     0    0     60        30.00 s "
               "GET /report??[31m???? of=the year\n"
               "     1     101   1 busy       2.5 ms    50.0      1000    20    4    120   5.0 1 h 01 m GET /quick\n"
               "     0     100   1 idle                 50.0       110     3    0     90  75.0 1 h 01 m\n";
    begin();
    travel();
    is_str(SCREEN(.columns = 200, .rows = 24), all);
    is_str(SCREEN(0), all);
    end();
}

static void test_threads_have_a_column(void)
{
    begin();
    now.workers[1].threads = 5;
    now.workers[1].threads_busy = 3;
    ok(strstr(SCREEN(.columns = 200), " WAIT  BUSY "));
    ok(strstr(text.p, " 3/5 "));
    ok(strstr(text.p, "4/7 threads\n"));
    end();
}

static void test_frontends_have_a_line(void)
{
    begin();
    ok(!strstr(SCREEN(.columns = 130), "frontends"));
    now.frontends = 2;
    now.frontends_serving = 1;
    now.frontend_clients = 23;
    now.frontend_clients_h2 = 15;
    now.frontend_streams = 1;
    now.frontend_calls_out = 8;
    before.handshakes = 1000;
    now.handshakes = 1100;
    now.handshakes_resumed = 80;
    travel();
    ok(strstr(SCREEN(.columns = 130), "\nconnections  23 open  5.0/s new  in 2.0 KB/s  out 3.0 MB/s\n"
                                      "frontends    1 of 2 serve  23 open  15 HTTP/2  1 stream  8 with workers  "
                                      "handshakes 50.0/s  80 % resumed\nsince start"));
    now.handshakes_failed = 3;
    ok(strstr(SCREEN(.columns = 130), "  80 % resumed  1.5/s failed\n"));
    now.handshakes_resumed = UINT64_MAX; /* that no server has */
    ok(strstr(SCREEN(.columns = 130), "  100 % resumed  "));
    now.handshakes = 1000;
    ok(strstr(SCREEN(.columns = 130), "  handshakes 0/s  1.5/s failed\n"));
    ok(strstr(screen_of(&(struct oribi__top_view){.columns = 130}, false), "  handshakes -/s\n"));
    end();
}

static void test_websockets_have_a_line(void)
{
    begin();
    ok(!strstr(SCREEN(.columns = 130), "WebSockets"));
    now.websockets = 7;
    before.websocket_messages_in = 100;
    now.websocket_messages_in = 110;
    now.websocket_messages_out = 4000;
    travel();
    ok(strstr(SCREEN(.columns = 130), "\nWebSockets   7 open  messages in 5.0/s  out 2000/s\n"));
    end();
}

static void test_no_size_is_exceeded(void)
{
    begin();
    now.frontends = 3;
    travel();
    for (uint32_t columns = 1; columns <= 130; columns++)
        for (uint32_t rows = 1; rows <= 16; rows++) {
            size_t wide;
            size_t high;
            longest(SCREEN(.columns = columns, .rows = rows), &wide, &high);
            if (wide > columns || high > (rows < 2 ? 2 : rows)) /* a line of each is always there */
                ok_named(false, "%u x %u: %zu x %zu", columns, rows, wide, high);
        }
    ok(true);
    ok(strlen(SCREEN(.columns = UINT32_MAX)) > 0);
    end();
}

static void test_workers_beyond_the_screen_are_counted(void)
{
    begin();
    travel();
    ok(strstr(SCREEN(.columns = 80, .rows = 11), "GET /report??[31m????\n     1 "));
    ok(!strstr(text.p, "more"));
    is_str(strstr(SCREEN(.columns = 80, .rows = 6), "\n     "),
           "\n     2     200 busy      12.34 s            0     60       GET /report??[31m????\n"
           "and 2 more workers\n");
    end();
}

/* Numbers of workers as they stand below each other. */
static const char *order(enum oribi__top_sort sort, bool reverse)
{
    static char found[4];
    const char *row = SCREEN(.columns = 80, .sort = sort, .reverse = reverse);
    size_t n = 0;
    for (row = strstr(row, "\nWORKER") + 1; n < 3 && (row = strchr(row, '\n')); row++)
        found[n++] = row[6];
    found[n] = '\0';
    return found;
}

static void test_orders(void)
{
    begin();
    travel();
    is_str(order(ORIBI__TOP_BY_AGE, false), "210");
    is_str(order(ORIBI__TOP_BY_AGE, true), "012");
    is_str(order(ORIBI__TOP_BY_REQUESTS, false), "102");
    is_str(order(ORIBI__TOP_BY_RATE, false), "012"); /* equal ones by their number; one that is not known is last */
    is_str(order(ORIBI__TOP_BY_MEMORY, false), "102");
    is_str(order(ORIBI__TOP_BY_CPU, false), "012");
    is_str(order(ORIBI__TOP_BY_WORKER, false), "012");
    is_str(order(ORIBI__TOP_BY_WORKER, true), "210");
    is_str(order(ORIBI__TOP_BY_STATE, false), "120");
    (void)snprintf(now.workers[0].state, sizeof(now.workers[0].state), "killed");
    is_str(order(ORIBI__TOP_BY_STATE, false), "012");
    end();
}

static void test_a_terminal_is_drawn_over(void)
{
    begin();
    travel();
    const char *screen = SCREEN(.live = true, .color = true, .columns = 60, .rows = 24, .note = "trying again");
    ok(strncmp(screen, "\x1b[Horibi 1.2.3  pid 99  \x1b[33mreloading\x1b[0m  up ", 46) == 0);
    ok(strstr(screen, "\r\n\x1b[31mtrying again\x1b[0m\x1b[K\r\n"));
    ok(strstr(screen, "max 999 ms\x1b[K\r\n"));                       /* shorter than the screen */
    ok(strstr(screen, "GET /report??[31m???? \x1b[0m\r\n"));          /* as long as the screen: nothing to erase */
    ok(strcmp(screen + strlen(screen) - 6, "\x1b[K\x1b[J") == 0);     /* no line end that scrolls */
    ok(strstr(SCREEN(.live = true, .columns = 60), "\x1b[7mWORKER")); /* NO_COLOR */
    ok(!strstr(text.p, "\x1b[3"));
    ok(strstr(SCREEN(.live = true, .columns = 60, .help = true), "  c   sort by cpu\x1b[K\r\n"));
    end();
}

static void test_without_a_snapshot_before_or_with_anothers(void)
{
    begin();
    ok(strstr(screen_of(&(struct oribi__top_view){.columns = 80}, false), "\nrequests     -/s  5400 in all"));
    ok(strstr(text.p, "p99 999 ms  max 999 ms  900 calls in all\n"));
    before.pid = 98; /* a predecessor's */
    ok(strstr(SCREEN(.columns = 80), "\nrequests     -/s  5400 in all"));
    before.pid = 99;
    before.requests = 6000; /* more than now: nothing that ends badly */
    ok(strstr(SCREEN(.columns = 80), "\nrequests     0/s  5400 in all"));
    end();
}

static void test_numbers_that_no_server_has(void)
{
    begin();
    now.taken_us = now.requests = UINT64_MAX;
    ok(strstr(SCREEN(.columns = 80), "400 calls in ages\n"));
    now.taken_us = before.taken_us + 1;
    now.workers[1].requests = now.workers[1].cpu_ms = UINT64_MAX;
    is_str(order(ORIBI__TOP_BY_RATE, false), "102");
    is_str(order(ORIBI__TOP_BY_CPU, false), "102");
    end();
}

static int read_text(const char *line)
{
    struct oribi__top_snapshot snapshot = {0};
    struct guard copy = guard_copy(line, strlen(line));
    int code = oribi__top_read(&snapshot, copy.p, strlen(line));
    guard_free(&copy);
    oribi__top_deinit(&snapshot);
    return code;
}

static void test_a_reader_takes_what_it_knows(void)
{
    struct oribi__top_snapshot snapshot = {0};
    static const char lines[] =
        "server\tcolour=blue\tpid=7\tprogram=a\x1b]0;b\x07\xff\tstate=a-state-that-is-much-longer\n"
        "weather\tpid=8\n"
        "times\tof=call_time\t3=5\t99999=1\t3=6\tx=1\n"
        "times\tof=nothing\t3=5\n"
        "worker\tworker=1\tpid=x\trequests=12\tcall=GET /a=b\n"
        "worker\tworker=2";
    ok_eq(oribi__top_read(&snapshot, lines, sizeof(lines) - 1), 0);
    ok_eq((long long)snapshot.pid, 7);
    is_str(snapshot.program, "a?]0;b??");
    is_str(snapshot.state, "a-state-that-is-much-lo");
    ok_eq((long long)snapshot.times[ORIBI__TOP_CALL_TIME].count, 6);
    ok_eq((long long)snapshot.count, 2);
    ok_eq((long long)snapshot.workers[0].pid, 0);
    ok_eq((long long)snapshot.workers[0].requests, 12);
    is_str(snapshot.workers[0].call, "GET /a=b");
    ok_eq((long long)snapshot.workers[1].worker, 2);
    oribi__top_deinit(&snapshot);
}

static void test_a_reader_survives_anything(void)
{
    static const char *const others[] = {
        "",
        "\n",
        "\t",
        "server",
        "server\t",
        "server\t\t=\t=\t",
        "server\tpid",
        "server\tpid=0\n",
        "servers\tpid=1",
        "times",
        "times\t",
        "worker\tworker=1",
        "{\"pid\":1}\n",
        "server\tstate=x\n\n\n",
        "error not allowed",
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        ok_eq(read_text(others[i]), ORIBI_EBAD);
    begin();
    struct oribi_buf lines = {0};
    oribi__top_write(&now, &lines);
    for (size_t n = 0; n < lines.len; n++) { /* cut anywhere */
        struct oribi__top_snapshot snapshot = {0};
        struct guard copy = guard_copy(lines.p, n);
        (void)oribi__top_read(&snapshot, copy.p, n);
        (void)oribi__top_read(&snapshot, copy.p, n); /* over one that was read before */
        guard_free(&copy);
        oribi__top_deinit(&snapshot);
    }
    oribi_buf_deinit(&lines);
    end();
}

static void test_no_more_workers_are_read_than_there_can_be(void)
{
    struct oribi__top_snapshot snapshot = {0};
    struct oribi_buf lines = {0};
    oribi_buf_append(&lines, "server\tpid=1\n", 13);
    for (uint32_t i = 0; i < ORIBI_SLOTS_MAX + 1; i++)
        oribi_buf_append(&lines, "worker\tworker=1\n", 16);
    ok_eq(oribi__top_read(&snapshot, lines.p, lines.len), 0);
    ok_eq((long long)snapshot.count, ORIBI_SLOTS_MAX);
    oribi__top_deinit(&snapshot);
    oribi_buf_deinit(&lines);
}

static void test_numbers(void)
{
    static const struct {
        uint64_t us;
        const char *text;
    } times[] = {
        {0, "0 us"},           {999, "999 us"},      {1000, "1.0 ms"},       {99999, "100 ms"},
        {999999, "999 ms"},    {1000000, "1.00 s"},  {59999999, "59.99 s"},  {60000000, "1 m 00 s"},
        {3599e6, "59 m 59 s"}, {3600e6, "1 h 00 m"}, {86399e6, "23 h 59 m"}, {86400e6, "1 d 00 h"},
        {8640000e6, "100 d"},  {UINT64_MAX, "ages"},
    };
    static const struct {
        double rate;
        const char *text;
    } rates[] = {{-1, "-"},      {0, "0"},          {0.04, "0.0"},    {99.94, "99.9"}, {99.96, "100"},
                 {9999, "9999"}, {9999.6, "10.0k"}, {123456, "123k"}, {1e6, "1.0M"},   {1e300, "9999P"}};
    char dst[ORIBI__TEXT_CAP];
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        is_str(oribi__text_duration(dst, times[i].us), times[i].text);
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
        is_str(oribi__text_rate(dst, rates[i].rate), rates[i].text);
    is_str(oribi__text_count(dst, 9999999), "9999999");
    is_str(oribi__text_count(dst, 12345678), "12.3M");
    is_str(oribi__text_count(dst, UINT64_MAX), "18.4E");
    is_str(oribi__text_bytes(dst, 1023), "1023 B");
    is_str(oribi__text_bytes(dst, 1024), "1.0 KB");
    is_str(oribi__text_bytes(dst, 1.5 * (1 << 30)), "1.5 GB");
    is_str(oribi__text_bytes(dst, -1), "0 B");
}

int main(void)
{
    test_80_columns();
    test_60_columns();
    test_200_columns_and_no_limit_at_all();
    test_threads_have_a_column();
    test_frontends_have_a_line();
    test_websockets_have_a_line();
    test_no_size_is_exceeded();
    test_workers_beyond_the_screen_are_counted();
    test_orders();
    test_a_terminal_is_drawn_over();
    test_without_a_snapshot_before_or_with_anothers();
    test_numbers_that_no_server_has();
    test_a_reader_takes_what_it_knows();
    test_a_reader_survives_anything();
    test_no_more_workers_are_read_than_there_can_be();
    test_numbers();
    oribi_buf_deinit(&text);
    return done_testing();
}
