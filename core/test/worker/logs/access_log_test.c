/* Access log lines: their shapes, what cannot be forged, rotation, full disks. */
#include "worker/logs/access_log.c"

#include "oribi/base/escape.h"
#include "oribi/http/fields.h"

#include "child.h"
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

static char error[ORIBI_ERROR_TEXT_CAP];
static char dir[] = "/tmp/oribi-access-XXXXXX";
static char content[1 << 20];
static struct oribi_head head;

static const char *in_dir(const char *name)
{
    static char path[2][128];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", dir, name);
    return path[turn];
}

static uint64_t count_lines(const char *p, size_t n)
{
    uint64_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += p[i] == '\n' || i + 1 == n;
    return count;
}

static const char *read_file(const char *path)
{
    size_t len = 0;
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (n = read(fd, content + len, sizeof(content) - 1 - len)) > 0)
        len += (size_t)n;
    content[len] = '\0';
    if (fd >= 0)
        close(fd);
    return content;
}

static struct oribi_slice slice(const char *text)
{
    return oribi_slice(text, strlen(text));
}

/* A request for `target` with these two fields. */
static struct oribi_access_entry entry_for(const char *target, const char *referer, const char *agent)
{
    memset(&head, 0, sizeof(head));
    head.method = slice("GET");
    head.target = slice(target);
    head.host = slice("example.com");
    head.minor = 1;
    if (referer)
        head.fields[head.field_count++] =
            (struct oribi_field){"Referer", referer, (uint32_t)strlen(referer), 7, ORIBI_FIELD_REFERER};
    if (agent)
        head.fields[head.field_count++] =
            (struct oribi_field){"User-Agent", agent, (uint32_t)strlen(agent), 10, ORIBI_FIELD_USER_AGENT};
    return (struct oribi_access_entry){.head = &head,
                                       .remote_addr = slice("192.0.2.7"),
                                       .status = 200,
                                       .body_bytes = 13,
                                       .call_us = 250,
                                       .total_us = 300,
                                       .queue_us = 40,
                                       .upstream_us = -1,
                                       .bytes_in = 70,
                                       .bytes_out = 113,
                                       .worker = 3,
                                       .connection_requests = 2,
                                       .remote_port = slice("51234"),
                                       .scheme = slice("http"),
                                       .port = slice("9292"),
                                       .listener = slice("tcp://127.0.0.1:9292"),
                                       .request_id = slice("019c"),
                                       .wall_ms = 1769860800123}; /* 2026-01-31T12:00:00.123Z */
}

/* The line that `entry` makes. */
static const char *line_of(const char *format, const struct oribi_access_entry *entry)
{
    struct oribi_access_log *log;
    unlink(in_dir("line"));
    if (oribi_access_log_open(in_dir("line"), format, NULL, &log, error) != 0)
        return error;
    oribi_access_log_add(log, entry);
    oribi_access_log_close(log);
    read_file(in_dir("line"));
    unlink(in_dir("line"));
    return content;
}

static void test_common_lines(void)
{
    struct oribi_access_entry entry = entry_for("/a?b=1", "http://r/", "curl/8");
    is_str(line_of("common", &entry), "192.0.2.7 - - [31/Jan/2026:12:00:00 +0000] \"GET /a?b=1 HTTP/1.1\" 200 13\n");
    head.minor = 0;
    entry.body_bytes = 0;
    entry.status = 304;
    is_str(line_of("common", &entry), "192.0.2.7 - - [31/Jan/2026:12:00:00 +0000] \"GET /a?b=1 HTTP/1.0\" 304 0\n");
}

static void test_combined_lines(void)
{
    struct oribi_access_entry entry = entry_for("/", "http://r/", "curl/8");
    is_str(line_of("combined", &entry),
           "192.0.2.7 - - [31/Jan/2026:12:00:00 +0000] \"GET / HTTP/1.1\" 200 13 \"http://r/\" \"curl/8\"\n");
    entry = entry_for("/", NULL, NULL);
    entry.remote_addr = slice("");
    is_str(line_of("combined", &entry), "- - - [31/Jan/2026:12:00:00 +0000] \"GET / HTTP/1.1\" 200 13 \"-\" \"-\"\n");
}

static void test_json_lines(void)
{
    struct oribi_access_entry entry = entry_for("/", "http://r/", "curl/8");
    is_str(line_of("json", &entry),
           "{\"time\":\"2026-01-31T12:00:00.123Z\",\"remote_addr\":\"192.0.2.7\",\"method\":\"GET\",\"target\":\"/\","
           "\"protocol\":\"HTTP/"
           "1.1\",\"host\":\"example.com\",\"status\":200,\"bytes\":13,\"call_us\":250,\"total_us\":300,"
           "\"referer\":\"http://r/\",\"user_agent\":\"curl/8\",\"request_id\":\"019c\",\"queue_us\":40,"
           "\"bytes_in\":70,\"bytes_out\":113,\"worker\":3,\"listener\":\"tcp://127.0.0.1:9292\"}\n");
}

static void test_a_request_that_was_not_understood_has_a_line(void)
{
    struct oribi_access_entry entry = entry_for("", NULL, NULL);
    memset(&head, 0, sizeof(head));
    entry.status = 400;
    entry.call_us = -5; /* a clock that stepped back */
    is_str(line_of("common", &entry), "192.0.2.7 - - [31/Jan/2026:12:00:00 +0000] \"-\" 400 13\n");
    ok(strstr(line_of("json", &entry),
              "\"method\":\"\",\"target\":\"\",\"protocol\":\"\",\"line\":\"\",\"host\":\"\",\"status\":400") != NULL);
    ok(strstr(content, "\"call_us\":0,") != NULL);
}

static void test_times_are_local_with_their_offset_but_for_json(void)
{
    struct oribi_access_entry entry = entry_for("/", NULL, NULL);
    setenv("TZ", "JST-9", 1);
    tzset();
    ok(strstr(line_of("common", &entry), "[31/Jan/2026:21:00:00 +0900]") != NULL);
    ok(strstr(line_of("json", &entry), "\"2026-01-31T12:00:00.123Z\"") != NULL);
    setenv("TZ", "UTC", 1);
    tzset();
}

static void test_a_peer_can_end_neither_its_field_nor_its_line(void)
{
    struct oribi_access_entry entry = entry_for("/\"\\\n\x7f\xff", "a\" 200 1\n1.2.3.4 - -", "\xc3\xa9\t");
    is_str(line_of("combined", &entry),
           "192.0.2.7 - - [31/Jan/2026:12:00:00 +0000] \"GET /\\\"\\\\\\x0a\\x7f\\xff HTTP/1.1\" 200 13 "
           "\"a\\\" 200 1\\x0a1.2.3.4 - -\" \"\\xc3\\xa9\\x09\"\n");
    ok(strstr(line_of("json", &entry), "\"target\":\"/\\\"\\\\\\u000a\\u007f\\u00ff\"") != NULL);
    ok(strstr(content, "\"user_agent\":\"\xc3\xa9\\u0009\"") != NULL);
    ok(strchr(content, '\n') == content + strlen(content) - 1);
}

static void test_a_request_line_that_was_refused_is_shown_as_it_came(void)
{
    struct oribi_access_entry entry = entry_for("/", NULL, NULL);
    head.method = head.target = oribi_slice(NULL, 0);
    head.minor = 0;
    entry.status = 400;
    entry.raw_line = slice("GET /a\"<\x01\xff");
    ok(strstr(line_of("common", &entry), "] \"GET /a\\\"<\\x01\\xff\" 400 ") != NULL);
    ok(strstr(line_of("json", &entry), "\"method\":\"\",\"target\":\"\",\"protocol\":\"\","
                                       "\"line\":\"GET /a\\\"<\\u0001\\u00ff\",\"host\"") != NULL);
    entry.raw_line = oribi_slice(NULL, 0);
    ok(strstr(line_of("common", &entry), "] \"-\" 400 ") != NULL);
    ok(strstr(line_of("json", &entry), "\"line\":\"\"") != NULL);
}

static void test_an_answer_that_broke_off_is_marked(void)
{
    struct oribi_access_entry entry = entry_for("/", "r", "a");
    entry.cut = true;
    ok(strstr(line_of("common", &entry), "\"GET / HTTP/1.1\" 200 13 cut\n") != NULL);
    ok(strstr(line_of("combined", &entry), " 200 13 \"r\" \"a\" cut\n") != NULL);
    ok(strstr(line_of("json", &entry), "\"bytes\":13,\"cut\":true,\"call_us\"") != NULL);
}

static void test_a_refused_line_is_cut_at_its_maximum(void)
{
    static char text[ORIBI_LOGGED_TARGET_MAX + 2];
    memset(text, 'x', sizeof(text) - 1);
    struct oribi_access_entry entry = entry_for("/", NULL, NULL);
    head.method = oribi_slice(NULL, 0);
    entry.raw_line = slice(text);
    ok_eq(strspn(strchr(line_of("common", &entry), '"') + 1, "x"), ORIBI_LOGGED_TARGET_MAX);
    text[ORIBI_LOGGED_TARGET_MAX] = '\0';
    entry.raw_line = slice(text);
    ok_eq(strspn(strchr(line_of("common", &entry), '"') + 1, "x"), ORIBI_LOGGED_TARGET_MAX);
}

static void test_json_passes_whole_utf8_and_nothing_that_looks_like_it(void)
{
    static const char *const cases[][2] = {
        {"\xe2\x82\xac", "\xe2\x82\xac"},                     /* euro */
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},             /* four bytes */
        {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},             /* the last code point */
        {"\xc0\xaf", "\\u00c0\\u00af"},                       /* over-long */
        {"\xe0\x80\xaf", "\\u00e0\\u0080\\u00af"},            /* over-long */
        {"\xed\xa0\x80", "\\u00ed\\u00a0\\u0080"},            /* surrogate */
        {"\xf4\x90\x80\x80", "\\u00f4\\u0090\\u0080\\u0080"}, /* beyond the last */
        {"\xe2\x82", "\\u00e2\\u0082"},                       /* cut */
        {"\xe2\x82x", "\\u00e2\\u0082x"},                     /* broken */
        {"\x80", "\\u0080"},                                  /* no start */
        {"\xf8\x88\x80\x80\x80", "\\u00f8\\u0088\\u0080\\u0080\\u0080"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char expected[128];
        struct oribi_access_entry entry = entry_for(cases[i][0], NULL, NULL);
        snprintf(expected, sizeof(expected), "\"target\":\"%s\"", cases[i][1]);
        ok_named(strstr(line_of("json", &entry), expected) != NULL, "case %zu: %s", i, expected);
    }
}

static void test_long_fields_are_cut_at_their_maximum(void)
{
    static char text[ORIBI_LOGGED_TARGET_MAX + 2];
    memset(text, '\x01', sizeof(text) - 1); /* six bytes each in JSON: the largest line there can be */
    struct oribi_access_entry entry = entry_for(text, text, text);
    entry.remote_addr = slice(text);
    head.host = slice(text);
    head.method = slice(text);
    struct oribi__line_style style;
    ok_eq(oribi__line_style_init(&style, "json", error), 0);
    size_t n = strlen(line_of("json", &entry));
    ok_named(n > 6 * (ORIBI_LOGGED_TARGET_MAX + 4 * ORIBI_LOGGED_FIELD_MAX) && n < style.bytes_max,
             "%zu bytes, room for %zu", n, style.bytes_max);
    memset(text, 'x', sizeof(text) - 1);
    entry = entry_for(text, NULL, NULL);
    const char *got = strstr(line_of("common", &entry), "GET ");
    ok_eq(strspn(got + 4, "x"), ORIBI_LOGGED_TARGET_MAX);
    text[ORIBI_LOGGED_TARGET_MAX] = '\0';
    entry = entry_for(text, NULL, NULL);
    got = strstr(line_of("common", &entry), "GET ");
    ok_eq(strspn(got + 4, "x"), ORIBI_LOGGED_TARGET_MAX);
}

static void test_mistakes_of_the_operator_are_named(void)
{
    struct oribi_access_log *log = NULL;
    ok_eq(oribi_access_log_open("-", "xml", NULL, &log, error), ORIBI_EINVAL);
    is_str(
        error,
        "access_log_format must be common, combined, json, dev or a format with directives such as %h or $remote_addr, "
        "not \"xml\"");
    ok_eq(oribi_access_log_open("/nonexistent/log", "common", NULL, &log, error), ORIBI_ESYS);
    is_str(error, "cannot open the access log /nonexistent/log: no such file or directory");
    ok(log == NULL);
}

/* Lines of these requests, GET each, with a status. */
static const char *lines_of(const char *const *skip, uint32_t sample, int status, const char *const *paths)
{
    struct oribi_text_list list = {0};
    struct oribi_access_log *log;
    while (skip[list.count])
        list.count++;
    list.items = (char **)skip;
    unlink(in_dir("chosen"));
    ok_eq(oribi_access_log_open(in_dir("chosen"), "%U", NULL, &log, error), 0);
    oribi_access_log_choose(log, &list, sample);
    for (; *paths; paths++) {
        struct oribi_access_entry entry = entry_for(*paths, NULL, NULL);
        head.path = slice(*paths);
        entry.status = status;
        oribi_access_log_add(log, &entry);
    }
    oribi_access_log_close(log);
    read_file(in_dir("chosen"));
    unlink(in_dir("chosen"));
    return content;
}

static void test_paths_that_are_skipped_have_no_line(void)
{
    static const char *const skip[] = {"/up", "/health/*", NULL};
    static const char *const paths[] = {"/up", "/up/", "/u", "/upper", "/health/", "/health/x", "/health", NULL};
    is_str(lines_of(skip, 1, 200, paths), "/up/\n/u\n/upper\n/health\n");
    is_str(lines_of(skip + 2, 1, 200, paths + 5), "/health/x\n/health\n");
}

static void test_of_so_many_answers_one_has_a_line_but_each_mistake(void)
{
    static const char *const none[] = {NULL};
    static const char *const paths[] = {"/1", "/2", "/3", "/4", NULL};
    is_str(lines_of(none, 3, 200, paths), "/1\n/4\n");
    is_str(lines_of(none, 3, 399, paths), "/1\n/4\n");
    is_str(lines_of(none, 3, 400, paths), "/1\n/2\n/3\n/4\n");
}

static void test_off_is_a_log_that_drops_its_lines(void)
{
    struct oribi_access_log *log = (void *)&head;
    struct oribi_access_entry entry = entry_for("/", NULL, NULL);
    ok_eq(oribi_access_log_open("off", "common", NULL, &log, error), 0);
    ok(log == NULL);
    oribi_access_log_add(log, &entry);
    oribi_access_log_flush(log);
    ok_eq(oribi_access_log_reopen(log, NULL, error), 0);
    oribi_access_log_close(log);
}

static void test_lines_wait_for_the_flush_unless_many_gather(void)
{
    struct oribi_access_log *log;
    struct oribi_access_entry entry = entry_for("/", NULL, NULL);
    ok_eq(oribi_access_log_open(in_dir("wait"), "common", NULL, &log, error), 0);
    oribi_access_log_add(log, &entry);
    is_str(read_file(in_dir("wait")), "");
    oribi_access_log_flush(log);
    ok(strlen(read_file(in_dir("wait"))) > 0);
    size_t line = strlen(content);
    for (size_t n = 0; n < ORIBI_ACCESS_BUFFER_MAX; n += line)
        oribi_access_log_add(log, &entry);
    ok(strlen(read_file(in_dir("wait"))) > ORIBI_ACCESS_BUFFER_MAX);
    oribi_access_log_close(log);
    unlink(in_dir("wait"));
}

static void test_a_rotated_log_continues_in_the_new_file(void)
{
    struct oribi_access_log *log;
    struct oribi_access_entry entry = entry_for("/before", NULL, NULL);
    if (chdir(dir) < 0)
        exit(2);
    /* stays there whatever the directory becomes */
    ok_eq(oribi_access_log_open("rel.log", "common", NULL, &log, error), 0);
    if (chdir("/") < 0)
        exit(2);
    oribi_access_log_add(log, &entry);
    rename(in_dir("rel.log"), in_dir("rel.log.1"));
    ok_eq(oribi_access_log_reopen(log, NULL, error), 0);
    entry = entry_for("/after", NULL, NULL);
    oribi_access_log_add(log, &entry);
    oribi_access_log_flush(log);
    ok(strstr(read_file(in_dir("rel.log.1")), "/before") != NULL);
    ok(strstr(read_file(in_dir("rel.log")), "/after") != NULL && strstr(content, "/before") == NULL);
    unlink(in_dir("rel.log"));
    if (mkdir(in_dir("rel.log"), 0700) < 0) /* now it cannot be opened: the old file goes on */
        exit(2);
    ok_eq(oribi_access_log_reopen(log, NULL, error), ORIBI_ESYS);
    ok(strstr(error, "is a directory") != NULL);
    oribi_access_log_add(log, &entry);
    oribi_access_log_close(log);
    pass("the old descriptor is still good");
    rmdir(in_dir("rel.log"));
    unlink(in_dir("rel.log.1"));
}

/* A pipe whose readers must see whole lines: pieces of at most PIPE_BUF that end at a line's end. */
static int write_to_stdout(void *data)
{
    struct oribi_access_log *log;
    struct oribi_access_entry entry = entry_for("/piece", NULL, "an agent");
    int fd = *(int *)data;
    if (dup2(fd, STDOUT_FILENO) < 0 || oribi_access_log_open("-", "combined", NULL, &log, error) != 0)
        return 1;
    for (int i = 0; i < 100; i++)
        oribi_access_log_add(log, &entry);
    oribi_access_log_close(log);
    return fcntl(STDOUT_FILENO, F_GETFD) < 0; /* standard output is not ours to close */
}

static void test_a_pipe_gets_whole_lines(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        exit(2);
    ok_eq(child_code(write_to_stdout, &ends[1]), 0);
    close(ends[1]);
    size_t len = 0;
    ssize_t n;
    while ((n = read(ends[0], content + len, sizeof(content) - len)) > 0)
        len += (size_t)n;
    ok_eq(count_lines(content, len), 100);
    close(ends[0]);
}

/* Standard output is closed and its number is another's: lines still go where it led, and follow only when told to. */
static int lose_stdout(void *data)
{
    struct oribi_access_log *log;
    struct oribi_access_entry entry = entry_for("/kept", NULL, NULL);
    int other[2];
    if (dup2(*(int *)data, STDOUT_FILENO) < 0 || oribi_access_log_open("-", "common", NULL, &log, error) != 0)
        return 1;
    if (log->sink.fd <= 2 || !(fcntl(log->sink.fd, F_GETFD) & FD_CLOEXEC))
        return 2;
    if (pipe2(other, O_CLOEXEC | O_NONBLOCK) < 0 || dup2(other[1], STDOUT_FILENO) < 0)
        return 3;
    oribi_access_log_add(log, &entry);
    if (oribi_access_log_reopen(log, NULL, error) < 0 || read(other[0], content, sizeof(content)) >= 0)
        return 4;
    if (oribi_access_log_follow_stdout(log, error) < 0)
        return 5;
    oribi_access_log_add(log, &entry);
    oribi_access_log_close(log);
    return read(other[0], content, sizeof(content)) > 0 && fcntl(STDOUT_FILENO, F_GETFD) == 0 ? 0 : 6;
}

static void test_lines_do_not_follow_a_standard_output_that_is_closed(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        exit(2);
    ok_eq(child_code(lose_stdout, &ends[1]), 0);
    ssize_t n = read(ends[0], content, sizeof(content) - 1);
    ok(n > 0 && count_lines(content, (size_t)n) == 1);
    close(ends[0]);
    close(ends[1]);
}

/* Standard output is a pipe that nobody reads, until somebody does. */
static int write_without_reader(void *data)
{
    enum { REQUESTS = 8000 };
    struct oribi_access_log *log;
    struct oribi_access_entry entry = entry_for("/kept", NULL, "an agent");
    const int *ends = data;
    uint64_t lines = 0;
    ssize_t n;
    if (dup2(ends[1], STDOUT_FILENO) < 0 || oribi_log_open(in_dir("stalled.err"), NULL) != 0 ||
        oribi_access_log_open("-", "combined", NULL, &log, error) != 0)
        return 1;
    for (int i = 0; i < REQUESTS; i++) {
        oribi_access_log_add(log, &entry);
        oribi_access_log_flush(log);
    }
    uint64_t dropped = log->lines.dropped;
    if (dropped == 0 || !log->full || log->lines.len > log->lines.cap || !oribi_access_log_waits(log))
        return 2;
    for (int i = 0; i < 1000 && oribi_access_log_waits(log); i++) {
        while ((n = read(ends[0], content, sizeof(content))) > 0)
            lines += count_lines(content, (size_t)n);
        oribi_access_log_flush(log);
    }
    while ((n = read(ends[0], content, sizeof(content))) > 0)
        lines += count_lines(content, (size_t)n);
    if (lines + dropped != REQUESTS)
        return 3;
    oribi_access_log_add(log, &entry);
    oribi_access_log_close(log);
    return read(ends[0], content, sizeof(content)) > 0 ? 0 : 4;
}

static void test_a_reader_that_does_not_read_costs_lines_and_no_time(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
        exit(2);
    ok_eq(child_code(write_without_reader, ends), 0);
    read_file(in_dir("stalled.err"));
    ok_named(count_lines(content, strlen(content)) == 2, "two lines: %s", content);
    ok(strstr(content, "error: access log: its reader has not taken the last 256 KiB: dropping lines") != NULL);
    ok(strstr(content, " lines lost while its reader did not read; writing goes on\n") != NULL);
    unlink(in_dir("stalled.err"));
    close(ends[0]);
    close(ends[1]);
}

/* Both logs lead to pipes that nobody reads. The count of lost lines waits until the error log has room for it. */
static int resume_before_the_error_log(void *data)
{
    struct oribi_access_log *log;
    struct oribi_access_entry entry = entry_for("/kept", NULL, "an agent");
    const int(*ends)[2] = data;
    if (dup2(ends[0][1], STDOUT_FILENO) < 0 || oribi_access_log_open("-", "combined", NULL, &log, error) != 0)
        return 1;
    oribi_log_init(ends[1][1], ORIBI_LOG_ERROR);
    while (oribi_log_dropped() == 0)
        oribi_log(ORIBI_LOG_ERROR, "%0500d", 0);
    while (!log->full) {
        oribi_access_log_add(log, &entry);
        oribi_access_log_flush(log);
    }
    for (int i = 0; i < 1000 && oribi_backlog_waits(&log->lines); i++) {
        while (read(ends[0][0], content, sizeof(content)) > 0)
            ;
        oribi_access_log_flush(log);
    }
    if (oribi_backlog_waits(&log->lines) || !oribi_access_log_waits(log) || log->lines.dropped == 0)
        return 2;
    int told = 0;
    for (int i = 0; i < 1000 && (oribi_log_waits() || oribi_access_log_waits(log)); i++) {
        ssize_t n = read(ends[1][0], content, sizeof(content) - 1);
        content[n > 0 ? n : 0] = '\0';
        told += strstr(content, " lines lost while its reader did not read; writing goes on\n") != NULL;
        oribi_access_log_flush(log);
        oribi_log_flush();
    }
    ssize_t n = read(ends[1][0], content, sizeof(content) - 1);
    content[n > 0 ? n : 0] = '\0';
    told += strstr(content, " lines lost while its reader did not read; writing goes on\n") != NULL;
    return told == 1 && log->lines.dropped == 0 ? 0 : 3;
}

static void test_lost_lines_are_told_when_the_error_log_has_room(void)
{
    int ends[2][2];
    for (int i = 0; i < 2; i++)
        if (pipe2(ends[i], O_CLOEXEC) < 0 || fcntl(ends[i][0], F_SETFL, O_NONBLOCK) < 0)
            exit(2);
    ok_eq(child_code(resume_before_the_error_log, ends), 0);
    for (int i = 0; i < 2; i++) {
        close(ends[i][0]);
        close(ends[i][1]);
    }
}

/* The process ends, and nobody reads: it does not wait long. */
static int close_without_reader(void *data)
{
    struct oribi_access_log *log;
    struct oribi_access_entry entry = entry_for("/kept", NULL, "an agent");
    const int *ends = data;
    if (dup2(ends[1], STDOUT_FILENO) < 0 || oribi_log_open(in_dir("closed.err"), NULL) != 0 ||
        oribi_access_log_open("-", "combined", NULL, &log, error) != 0)
        return 1;
    for (int i = 0; i < 2000; i++)
        oribi_access_log_add(log, &entry);
    oribi_access_log_close(log);
    return 0;
}

static void test_the_end_waits_a_moment_for_a_reader(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        exit(2);
    ok_eq(child_code(close_without_reader, ends), 0);
    ok(strstr(read_file(in_dir("closed.err")), "access log: its reader does not read: the last lines are lost\n") !=
       NULL);
    unlink(in_dir("closed.err"));
    close(ends[0]);
    close(ends[1]);
}

/* A disk that is full in the middle of a line, played by the file size limit. */
static int fill_disk(void *data)
{
    struct oribi_access_log *log;
    struct oribi_access_entry entry = entry_for("/full", NULL, NULL);
    struct rlimit limit = {100, RLIM_INFINITY};
    (void)data;
    signal(SIGXFSZ, SIG_IGN);
    if (oribi_log_open(in_dir("full.err"), NULL) != 0 ||
        oribi_access_log_open(in_dir("full"), "common", NULL, &log, error) != 0)
        return 1;
    setrlimit(RLIMIT_FSIZE, &limit);
    oribi_access_log_add(log, &entry);
    oribi_access_log_add(log, &entry);
    oribi_access_log_flush(log); /* one line and a part of the second fit */
    if (!log->lines.torn || log->lines.len != 0 || log->reported_ms == 0)
        return 2;
    oribi_access_log_add(log, &entry);
    oribi_access_log_flush(log);
    if (log->lines.dropped != 1) /* within the same minute: counted for later */
        return 3;
    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_FSIZE, &limit);
    oribi_access_log_add(log, &entry);
    oribi_access_log_flush(log);
    oribi_access_log_close(log);
    return 0;
}

static void test_a_full_disk_loses_lines_and_recovers(void)
{
    ok_eq(child_code(fill_disk, NULL), 0);
    read_file(in_dir("full"));
    ok_eq(count_lines(content, strlen(content)), 3); /* whole, torn, whole */
    const char *last = strrchr(content, '/');
    is_str(last, "/1.1\" 200 13\n");
    const char *second = strchr(content, '\n') + 1;
    ok(strncmp(second, "192.0.2.7", 9) == 0 && strncmp(strchr(second, '\n') + 1, "192.0.2.7", 9) == 0);
    ok(strstr(read_file(in_dir("full.err")), "error: access log: 1 lines lost: file too large") != NULL);
    unlink(in_dir("full"));
    unlink(in_dir("full.err"));
}

int main(void)
{
    setenv("TZ", "UTC", 1);
    tzset();
    if (!mkdtemp(dir))
        return 2;
    test_common_lines();
    test_combined_lines();
    test_json_lines();
    test_a_request_that_was_not_understood_has_a_line();
    test_times_are_local_with_their_offset_but_for_json();
    test_a_peer_can_end_neither_its_field_nor_its_line();
    test_a_request_line_that_was_refused_is_shown_as_it_came();
    test_an_answer_that_broke_off_is_marked();
    test_a_refused_line_is_cut_at_its_maximum();
    test_json_passes_whole_utf8_and_nothing_that_looks_like_it();
    test_long_fields_are_cut_at_their_maximum();
    test_mistakes_of_the_operator_are_named();
    test_paths_that_are_skipped_have_no_line();
    test_of_so_many_answers_one_has_a_line_but_each_mistake();
    test_off_is_a_log_that_drops_its_lines();
    test_lines_wait_for_the_flush_unless_many_gather();
    test_a_rotated_log_continues_in_the_new_file();
    test_a_pipe_gets_whole_lines();
    test_lines_do_not_follow_a_standard_output_that_is_closed();
    test_a_reader_that_does_not_read_costs_lines_and_no_time();
    test_lost_lines_are_told_when_the_error_log_has_room();
    test_the_end_waits_a_moment_for_a_reader();
    test_a_full_disk_loses_lines_and_recovers();
    ok_named(rmdir(dir) == 0, "nothing is left behind");
    return done_testing();
}
