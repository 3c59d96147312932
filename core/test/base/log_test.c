/* Error log lines: their shape, what cannot be forged, rotation. */
#include "base/log.c"

#include "child.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdlib.h>
#include <sys/stat.h>

static char seen[64 * 1024];

/* Reads the lines that were logged to the pipe since the last time. */
static size_t read_all(int fd)
{
    size_t len = 0;
    ssize_t n;
    while (len < sizeof(seen) - 1 && (n = read(fd, seen + len, sizeof(seen) - 1 - len)) > 0)
        len += (size_t)n;
    seen[len] = '\0';
    return len;
}

static int pipe_log(enum oribi_log_level level)
{
    int ends[2];
    if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) < 0)
        exit(2);
    oribi_log_init(ends[1], level);
    return ends[0];
}

static bool matches(const char *text, const char *pattern)
{
    regex_t regex;
    if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) != 0)
        exit(2);
    bool found = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return found;
}

static void test_a_line_has_time_pid_level_and_text(void)
{
    int fd = pipe_log(ORIBI_LOG_DEBUG);
    char pattern[128];
    snprintf(pattern, sizeof(pattern),
             "^20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z oribi\\[%d\\] warn: port 80\n$",
             (int)getpid());
    oribi_log(ORIBI_LOG_WARN, "port %d", 80);
    read_all(fd);
    ok_named(matches(seen, pattern), "%s", seen);
    static const char *const names[] = {"debug", "info", "warn", "error"};
    for (int level = ORIBI_LOG_DEBUG; level <= ORIBI_LOG_ERROR; level++) {
        oribi_log((enum oribi_log_level)level, "x");
        read_all(fd);
        ok_named(strstr(seen, names[level]) != NULL, "level %s is named", names[level]);
    }
}

static void test_lines_below_the_level_are_dropped(void)
{
    int fd = pipe_log(ORIBI_LOG_WARN);
    oribi_log(ORIBI_LOG_INFO, "no");
    oribi_log_block(ORIBI_LOG_DEBUG, "no", "no", 2);
    ok_eq(read_all(fd), 0);
    oribi_log(ORIBI_LOG_WARN, "yes");
    ok(read_all(fd) > 0);
}

static void test_a_peer_cannot_speak_to_a_terminal(void)
{
    static const char *const cases[][2] = {
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"}, /* words of any language */
        {"a\x9b"
         "2J",
         "a\\x9b2J"}, /* CSI in Latin-1 */
        {"a\xc2\x9b"
         "2J",
         "a\\xc2\\x9b2J"},                       /* CSI in UTF-8 */
        {"\xc2\xa0", "\xc2\xa0"},                /* the first behind them */
        {"a\xe2\x80\xaez", "a\\xe2\\x80\\xaez"}, /* U+202E: right to left from here on */
        {"a\xe2\x80\xa8z", "a\\xe2\\x80\\xa8z"}, /* U+2028: the end of a line */
        {"\xff\xc3", "\\xff\\xc3"},              /* no UTF-8 */
    };
    int fd = pipe_log(ORIBI_LOG_INFO);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char wanted[64];
        snprintf(wanted, sizeof(wanted), " info: %s\n", cases[i][1]);
        oribi_log(ORIBI_LOG_INFO, "%s", cases[i][0]);
        read_all(fd);
        ok_named(strstr(seen, wanted) != NULL, "case %zu: %s", i, seen);
        snprintf(wanted, sizeof(wanted), "block\n    %s\n", cases[i][1]);
        oribi_log_block(ORIBI_LOG_INFO, "block", cases[i][0], (uint32_t)strlen(cases[i][0]));
        read_all(fd);
        ok_named(strstr(seen, wanted) != NULL, "case %zu: %s", i, seen);
    }
}

static void test_a_peer_cannot_forge_a_line(void)
{
    int fd = pipe_log(ORIBI_LOG_INFO);
    oribi_log(ORIBI_LOG_INFO, "%s", "a\nb\r\tc\x1b[2J\x7f\xc3\xa9");
    read_all(fd);
    ok(strstr(seen, "a\\x0ab\\x0d\tc\\x1b[2J\\x7f\xc3\xa9\n") != NULL);
    ok(strchr(seen, '\n') == seen + strlen(seen) - 1);
}

static void test_a_line_is_cut_at_8_kib(void)
{
    int fd = pipe_log(ORIBI_LOG_INFO);
    char *text = malloc(20000);
    memset(text, 'x', 19999);
    text[19999] = '\0';
    oribi_log(ORIBI_LOG_INFO, "%s", text);
    ok_eq(read_all(fd), LINE_CAP);
    ok_eq(seen[LINE_CAP - 1], '\n');
    memset(text, '\n', 19999);
    oribi_log(ORIBI_LOG_INFO, "%s", text);
    size_t n = read_all(fd);
    ok(n <= LINE_CAP && n > LINE_CAP - 4);
    ok_eq(strcspn(seen, "\n"), n - 1);
    ok_named(memcmp(seen + n - 5, "\\x0a\n", 5) == 0, "no half of an escape stands at the cut");
    free(text);
}

static void test_a_block_keeps_its_lines_and_indents_them(void)
{
    int fd = pipe_log(ORIBI_LOG_INFO);
    oribi_log_block(ORIBI_LOG_ERROR, "it broke", "one\ntwo\x01\n\n", 10);
    read_all(fd);
    const char *text = strstr(seen, "error: ");
    is_str(text, "error: it broke\n    one\n    two\\x01\n");
    oribi_log_block(ORIBI_LOG_ERROR, "at\tonce", "\tmain::f() called", 17);
    read_all(fd);
    is_str(strstr(seen, "error: "), "error: at\tonce\n    \tmain::f() called\n");
    oribi_log_block(ORIBI_LOG_ERROR, "alone", "", 0);
    read_all(fd);
    ok(strstr(seen, "error: alone\n") != NULL);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text);
    return n >= strlen(end) && strcmp(text + n - strlen(end), end) == 0;
}

static void test_a_line_about_a_request_has_its_ids(void)
{
    int fd = pipe_log(ORIBI_LOG_INFO);
    oribi_log_about(ORIBI_SLICE("id-7"), oribi_slice(NULL, 0));
    oribi_log(ORIBI_LOG_WARN, "text");
    read_all(fd);
    ok_named(ends_with(seen, "text (request id-7)\n"), "%s", seen);
    oribi_log_about(ORIBI_SLICE("id-7"), ORIBI_SLICE("0af7"));
    oribi_log_block(ORIBI_LOG_WARN, "text", "a\nb", 3);
    read_all(fd);
    ok_named(ends_with(seen, "text (request id-7, trace 0af7)\n    a\n    b\n"), "%s", seen);
    oribi_log_set_json(true);
    oribi_log_block(ORIBI_LOG_WARN, "text", "a\nb", 3);
    read_all(fd);
    static const char end[] =
        "\"message\":\"text\",\"detail\":\"a\\u000ab\",\"request_id\":\"id-7\",\"trace_id\":\"0af7\"}\n";
    ok_named(ends_with(seen, end), "%s", seen);
    oribi_log_about(oribi_slice(NULL, 0), oribi_slice(NULL, 0));
    oribi_log(ORIBI_LOG_WARN, "text");
    read_all(fd);
    ok_named(ends_with(seen, "\"message\":\"text\"}\n"), "%s", seen);
    oribi_log_set_json(false);
}

static void test_errno_stays(void)
{
    int fd = pipe_log(ORIBI_LOG_INFO);
    oribi_log_init(-1, ORIBI_LOG_INFO);
    errno = ENOTTY;
    oribi_log(ORIBI_LOG_INFO, "to nowhere");
    ok_eq(errno, ENOTTY);
    close(fd);
}

static void test_a_gate_lets_its_burst_through_and_counts_the_rest(void)
{
    int fd = pipe_log(ORIBI_LOG_INFO);
    struct oribi_log_limit limit = {.burst = 3};
    int passed = 0;
    for (int i = 0; i < 10; i++)
        passed += oribi_log_limit_allows(&limit, 1000 + i);
    ok_eq(passed, 3);
    ok_eq(read_all(fd), 0);
    ok_eq(oribi_log_limit_allows(&limit, 1000 + LIMIT_WINDOW_MS - 1), 0);
    ok_eq(oribi_log_limit_allows(&limit, 1000 + LIMIT_WINDOW_MS), 1);
    read_all(fd);
    ok(strstr(seen, "8 similar lines were left out") != NULL);
    ok_eq(oribi_log_limit_allows(&limit, 1000 + LIMIT_WINDOW_MS + 1), 1);
    ok_eq(read_all(fd), 0);
}

/* --- a reader that does not read --- */

static int log_pipe[2];

/* Whether everything that was logged through the pipe is whole lines, and how many have this text. */
static int count_in(const char *text, const char *needle)
{
    int count = 0;
    for (const char *p = text; (p = strstr(p, needle)) != NULL; p++)
        count++;
    return count;
}

/* More than the pipe and the queue hold, without a reader; then a reader comes. */
static int log_without_reader(void *data)
{
    enum { LINES = 4000 };
    int way = *(int *)data;
    char filler[101];
    memset(filler, 'x', 100);
    filler[100] = '\0';
    oribi_log_init(log_pipe[1], ORIBI_LOG_INFO);
    if (way == ORIBI_SINK_OWN && error_log.sink.way != ORIBI_SINK_OWN)
        return 1;
    error_log.sink.way = (enum oribi_sink_way)way;
    if (way == ORIBI_SINK_SPLICE && fcntl(error_log.sink.fd, F_SETFL, 0) < 0) /* as where it cannot be opened again */
        return 2;
    for (int i = 0; i < LINES; i++)
        oribi_log(ORIBI_LOG_INFO, "line %d %s", i, filler);
    if (!oribi_log_waits() || error_log.backlog.dropped == 0 || error_log.backlog.len > ORIBI_LOG_KEPT_MAX)
        return 3;
    uint64_t dropped = error_log.backlog.dropped;
    int lines = 0;
    int told = 0;
    for (int i = 0; i < 100 && oribi_log_waits(); i++) {
        read_all(log_pipe[0]);
        lines += count_in(seen, filler);
        told += count_in(seen, "lines of this log were dropped: its reader did not read in time");
        oribi_log_flush();
    }
    read_all(log_pipe[0]);
    lines += count_in(seen, filler);
    told += count_in(seen, "lines of this log were dropped: its reader did not read in time");
    if ((uint64_t)lines + dropped != LINES || told != 1)
        return 4;
    oribi_log(ORIBI_LOG_INFO, "as before");
    read_all(log_pipe[0]);
    return count_in(seen, "as before") == 1 && !oribi_log_waits() ? 0 : 5;
}

static bool has_way(enum oribi_sink_way way)
{
    struct oribi_sink sink;
    oribi_sink_open(&sink, oribi_os_dup(log_pipe[1]));
    bool has = way == ORIBI_SINK_OWN ? sink.way == way : way != ORIBI_SINK_SPLICE || oribi_os_can_splice();
    oribi_sink_close(&sink);
    return has;
}

static void test_a_log_without_a_reader_drops_lines_and_counts_them(void)
{
    static const int ways[] = {ORIBI_SINK_OWN, ORIBI_SINK_SPLICE, ORIBI_SINK_POLL};
    for (int i = 0; i < 3; i++) {
        if (pipe2(log_pipe, O_CLOEXEC) < 0 || fcntl(log_pipe[0], F_SETFL, O_NONBLOCK) < 0)
            exit(2);
        int way = ways[i];
        if (!has_way((enum oribi_sink_way)way)) {
            tap_skip(1, "this system has no such way to a pipe");
            continue;
        }
        ok_named(child_code(log_without_reader, &way) == 0, "way %d", way);
        ok((fcntl(log_pipe[1], F_GETFL) & O_NONBLOCK) == 0); /* what others share is as it was */
        close(log_pipe[0]);
        close(log_pipe[1]);
    }
}

/* The queue is full, and the reader has read what the pipe held: the next line finds room. */
static int log_when_read_again(void *data)
{
    char filler[4000];
    (void)data;
    memset(filler, 'x', sizeof(filler) - 1);
    filler[sizeof(filler) - 1] = '\0';
    oribi_log_init(log_pipe[1], ORIBI_LOG_INFO);
    while (error_log.backlog.dropped == 0)
        oribi_log(ORIBI_LOG_INFO, "%s", filler);
    read_all(log_pipe[0]);
    oribi_log(ORIBI_LOG_INFO, "found room %s", filler);
    int found = 0;
    for (int i = 0; i < 100 && oribi_log_waits(); i++) {
        read_all(log_pipe[0]);
        found += count_in(seen, "found room");
        oribi_log_flush();
    }
    read_all(log_pipe[0]);
    return found + count_in(seen, "found room") == 1 ? 0 : 1;
}

static void test_a_line_finds_room_when_the_reader_reads_again(void)
{
    if (pipe2(log_pipe, O_CLOEXEC) < 0 || fcntl(log_pipe[0], F_SETFL, O_NONBLOCK) < 0)
        exit(2);
    ok_eq(child_code(log_when_read_again, NULL), 0);
    close(log_pipe[0]);
    close(log_pipe[1]);
}

/* Lines that wait are their process's to write: a child does not write them too. */
static int fork_with_lines_waiting(void *data)
{
    char filler[4000];
    (void)data;
    memset(filler, 'x', sizeof(filler) - 1);
    filler[sizeof(filler) - 1] = '\0';
    oribi_log_init(log_pipe[1], ORIBI_LOG_INFO);
    while (!oribi_log_waits())
        oribi_log(ORIBI_LOG_INFO, "%s", filler);
    oribi_log(ORIBI_LOG_INFO, "waits");
    pid_t pid = fork();
    if (pid == 0) {
        while (read(log_pipe[0], seen, sizeof(seen)) > 0)
            ;
        oribi_log(ORIBI_LOG_INFO, "of the child");
        _exit(oribi_log_waits());
    }
    int status;
    if (waitpid(pid, &status, 0) != pid || status != 0)
        return 1;
    read_all(log_pipe[0]);
    if (count_in(seen, "of the child") != 1 || count_in(seen, "waits") != 0)
        return 2;
    oribi_log_drain(ORIBI_LOG_DRAIN_MS);
    read_all(log_pipe[0]);
    return count_in(seen, "waits") == 1 ? 0 : 3;
}

static void test_lines_that_wait_stay_with_their_process(void)
{
    if (pipe2(log_pipe, O_CLOEXEC) < 0 || fcntl(log_pipe[0], F_SETFL, O_NONBLOCK) < 0)
        exit(2);
    ok_eq(child_code(fork_with_lines_waiting, NULL), 0);
    close(log_pipe[0]);
    close(log_pipe[1]);
}

/* A signal handler may interrupt the thread that holds the lock. */
static int log_while_locked(void *data)
{
    (void)data;
    oribi_log_init(log_pipe[1], ORIBI_LOG_INFO);
    if (!lock())
        return 1;
    oribi_log(ORIBI_LOG_INFO, "of a handler");
    unlock();
    read_all(log_pipe[0]);
    if (count_in(seen, "of a handler") != 1)
        return 2;
    memset(seen, 'x', sizeof(seen));
    while (write(error_log.sink.fd, seen, sizeof(seen)) > 0)
        ;
    (void)lock();
    oribi_log(ORIBI_LOG_INFO, "of a handler");
    unlock();
    read_all(log_pipe[0]);
    oribi_log(ORIBI_LOG_INFO, "later");
    read_all(log_pipe[0]);
    return count_in(seen, "1 line of this log was dropped") == 1 ? 0 : 3;
}

static void test_a_line_of_a_signal_handler_does_not_wait(void)
{
    if (pipe2(log_pipe, O_CLOEXEC) < 0 || fcntl(log_pipe[0], F_SETFL, O_NONBLOCK) < 0)
        exit(2);
    if (has_way(ORIBI_SINK_OWN))
        ok_eq(child_code(log_while_locked, NULL), 0);
    else
        tap_skip(1, "the pipe cannot be filled without waiting");
    close(log_pipe[0]);
    close(log_pipe[1]);
}

/* The rest changes standard error for good. */

static char dir[] = "/tmp/oribi-log-XXXXXX";

static bool file_holds(const char *name, const char *text)
{
    char path[256];
    char content[4096] = "";
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, content, sizeof(content) - 1);
    close(fd);
    return n >= 0 && strstr(content, text) != NULL;
}

static int rotate(void *data)
{
    char old[64];
    (void)data;
    oribi_log_init(STDERR_FILENO, ORIBI_LOG_INFO);
    if (oribi_log_reopen(NULL) != 0) /* nothing opened: nothing to do */
        return 1;
    if (chdir(dir) < 0 || oribi_log_open("error.log", NULL) != 0 || chdir("/") < 0)
        return 2;
    oribi_log(ORIBI_LOG_INFO, "before");
    fprintf(stderr, "of a library\n");
    snprintf(old, sizeof(old), "%s/error.log", dir);
    char moved[80];
    snprintf(moved, sizeof(moved), "%s.1", old);
    if (rename(old, moved) < 0)
        return 3;
    oribi_log(ORIBI_LOG_INFO, "still the old file");
    if (oribi_log_reopen(NULL) != 0)
        return 4;
    oribi_log(ORIBI_LOG_INFO, "after");
    if ((fcntl(STDERR_FILENO, F_GETFD) & FD_CLOEXEC) != 0 || (fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK) != 0)
        return 5;
    return 0;
}

static void test_a_rotated_log_continues_in_the_new_file(void)
{
    ok_eq(child_code(rotate, NULL), 0);
    ok(file_holds("error.log.1", "before"));
    ok(file_holds("error.log.1", "of a library"));
    ok(file_holds("error.log.1", "still the old file"));
    ok(!file_holds("error.log.1", "after"));
    ok(file_holds("error.log", "after"));
    ok(!file_holds("error.log", "before"));
}

static int open_nowhere(void *data)
{
    char path[64];
    (void)data;
    snprintf(path, sizeof(path), "%s/good.log", dir);
    if (oribi_log_open(path, NULL) != 0)
        return 1;
    if (oribi_log_open("/nonexistent/error.log", NULL) >= 0)
        return 2;
    oribi_log(ORIBI_LOG_INFO, "kept");
    return strcmp(oribi_os_error_text(), "no such file or directory") == 0 ? 0 : 3;
}

static void test_a_log_that_cannot_be_opened_changes_nothing(void)
{
    ok_eq(child_code(open_nowhere, NULL), 0);
    ok(file_holds("good.log", "kept"));
}

static int open_without_stderr(void *data)
{
    char path[64];
    (void)data;
    snprintf(path, sizeof(path), "%s/closed.log", dir);
    close(0);
    close(1);
    close(2);
    open("/dev/null", O_RDONLY); /* so that the log's open() gets 1, then 2 */
    if (oribi_log_open(path, NULL) != 0)
        return 1;
    oribi_log(ORIBI_LOG_INFO, "one");
    return fcntl(STDERR_FILENO, F_GETFD) == 0 ? 0 : 2;
}

static void test_a_process_without_stderr_gets_one(void)
{
    ok_eq(child_code(open_without_stderr, NULL), 0);
    ok(file_holds("closed.log", "one"));
}

static int lose_stderr(void *data)
{
    char path[64];
    (void)data;
    snprintf(path, sizeof(path), "%s/lost.log", dir);
    if (oribi_log_open(path, NULL) != 0)
        return 1;
    int fd = oribi_log_fd();
    if (fd <= 2 || !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
        return 2;
    close(2);
    if (open("/dev/zero", O_RDWR) != 2)
        return 3;
    oribi_log(ORIBI_LOG_INFO, "one");
    return 0;
}

static void test_lines_do_not_follow_a_standard_error_that_is_closed(void)
{
    ok_eq(child_code(lose_stderr, NULL), 0);
    ok(file_holds("lost.log", "one"));
}

/* An application's own choice for standard error outlives a rotation; what still leads to our file moves along. */
static int point_stderr_elsewhere(void *data)
{
    char path[64];
    char other[64];
    (void)data;
    snprintf(path, sizeof(path), "%s/ours.log", dir);
    snprintf(other, sizeof(other), "%s/theirs.log", dir);
    if (oribi_log_open(path, NULL) != 0)
        return 1;
    int fd = open(other, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (dup2(fd, STDERR_FILENO) < 0 || unlink(path) < 0 || oribi_log_reopen(NULL) != 0)
        return 2;
    oribi_log(ORIBI_LOG_INFO, "a line of the server");
    fprintf(stderr, "a line of the application\n");
    return 0;
}

static void test_an_application_keeps_the_standard_error_that_it_chose(void)
{
    ok_eq(child_code(point_stderr_elsewhere, NULL), 0);
    ok(file_holds("ours.log", "a line of the server"));
    ok(!file_holds("ours.log", "a line of the application"));
    ok(file_holds("theirs.log", "a line of the application"));
}

static void remove_files(void)
{
    static const char *const names[] = {"error.log", "error.log.1", "good.log",  "closed.log",
                                        "lost.log",  "ours.log",    "theirs.log"};
    char path[256];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
}

int main(void)
{
    test_a_line_has_time_pid_level_and_text();
    test_lines_below_the_level_are_dropped();
    test_a_peer_cannot_forge_a_line();
    test_a_peer_cannot_speak_to_a_terminal();
    test_a_line_is_cut_at_8_kib();
    test_a_block_keeps_its_lines_and_indents_them();
    test_a_line_about_a_request_has_its_ids();
    test_errno_stays();
    test_a_gate_lets_its_burst_through_and_counts_the_rest();
    test_a_log_without_a_reader_drops_lines_and_counts_them();
    test_a_line_finds_room_when_the_reader_reads_again();
    test_lines_that_wait_stay_with_their_process();
    test_a_line_of_a_signal_handler_does_not_wait();
    if (!mkdtemp(dir))
        return 2;
    test_a_rotated_log_continues_in_the_new_file();
    test_a_log_that_cannot_be_opened_changes_nothing();
    test_a_process_without_stderr_gets_one();
    test_lines_do_not_follow_a_standard_error_that_is_closed();
    test_an_application_keeps_the_standard_error_that_it_chose();
    remove_files();
    return done_testing();
}
