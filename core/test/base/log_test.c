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

/* What was logged to the pipe since last time. */
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
        {"a\x9b" "2J", "a\\x9b2J"},                                                  /* CSI in Latin-1 */
        {"a\xc2\x9b" "2J", "a\\xc2\\x9b2J"},                                        /* … and in UTF-8 */
        {"\xc2\xa0", "\xc2\xa0"},                                                   /* the first behind them */
        {"\xff\xc3", "\\xff\\xc3"},                                                 /* no UTF-8 */
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
    ok(strstr(seen, "a\\x0ab\\x0d\\x09c\\x1b[2J\\x7f\xc3\xa9\n") != NULL);
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
    is_str(strstr(seen, "error: "), "error: at\\x09once\n    \tmain::f() called\n");
    oribi_log_block(ORIBI_LOG_ERROR, "alone", "", 0);
    read_all(fd);
    ok(strstr(seen, "error: alone\n") != NULL);
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
    struct oribi_log_gate gate = {.burst = 3};
    int passed = 0;
    for (int i = 0; i < 10; i++)
        passed += oribi_log_gate_open(&gate, 1000 + i);
    ok_eq(passed, 3);
    ok_eq(read_all(fd), 0);
    ok_eq(oribi_log_gate_open(&gate, 1000 + GATE_WINDOW_MS - 1), 0);
    ok_eq(oribi_log_gate_open(&gate, 1000 + GATE_WINDOW_MS), 1);
    read_all(fd);
    ok(strstr(seen, "8 similar lines were left out") != NULL);
    ok_eq(oribi_log_gate_open(&gate, 1000 + GATE_WINDOW_MS + 1), 1);
    ok_eq(read_all(fd), 0);
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
    if (oribi_log_reopen() != 0) /* nothing opened: nothing to do */
        return 1;
    if (chdir(dir) < 0 || oribi_log_open("error.log") != 0 || chdir("/") < 0)
        return 2;
    oribi_log(ORIBI_LOG_INFO, "before");
    fprintf(stderr, "of a library\n");
    snprintf(old, sizeof(old), "%s/error.log", dir);
    char moved[80];
    snprintf(moved, sizeof(moved), "%s.1", old);
    if (rename(old, moved) < 0)
        return 3;
    oribi_log(ORIBI_LOG_INFO, "still the old file");
    if (oribi_log_reopen() != 0)
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
    if (oribi_log_open(path) != 0)
        return 1;
    if (oribi_log_open("/nonexistent/error.log") >= 0)
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
    if (oribi_log_open(path) != 0)
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
    if (oribi_log_open(path) != 0)
        return 1;
    int fd = atomic_load(&error_log.fd);
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
    if (oribi_log_open(path) != 0)
        return 1;
    int fd = open(other, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (dup2(fd, STDERR_FILENO) < 0 || unlink(path) < 0 || oribi_log_reopen() != 0)
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
    static const char *const names[] = {"error.log", "error.log.1", "good.log",   "closed.log",
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
    test_errno_stays();
    test_a_gate_lets_its_burst_through_and_counts_the_rest();
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
