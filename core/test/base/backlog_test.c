/* Lines that wait for a sink: their order, their limit, what is counted. */
#include "base/backlog.c"

#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { CAP = 64 };

static char room[CAP];
static char seen[65536 * 4];
static int ends[2];

static struct oribi_backlog begin(struct oribi_sink *sink)
{
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        exit(2);
    oribi_sink_open(sink, oribi_os_dup(ends[1]));
    return (struct oribi_backlog){.text = room, .cap = CAP};
}

static void end(struct oribi_sink *sink)
{
    oribi_sink_close(sink);
    close(ends[0]);
    close(ends[1]);
}

static bool add(struct oribi_backlog *b, const char *line)
{
    size_t n = strlen(line);
    char *p = oribi_backlog_reserve(b, n);
    if (!p)
        return false;
    memcpy(p, line, n);
    oribi_backlog_commit(b, n);
    return true;
}

static const char *read_all(void)
{
    size_t len = 0;
    ssize_t n;
    while ((n = read(ends[0], seen + len, sizeof(seen) - 1 - len)) > 0)
        len += (size_t)n;
    seen[len] = '\0';
    return seen;
}

static void fill_pipe(void)
{
    static char block[4096];
    while (write(ends[1], block, sizeof(block)) > 0)
        continue;
}

static void test_lines_are_written_in_order(void)
{
    struct oribi_sink sink;
    struct oribi_backlog b = begin(&sink);
    ok_eq(oribi_backlog_flush(&b, &sink), 0);
    ok(add(&b, "one\n") && add(&b, "two\n"));
    ok(oribi_backlog_waits(&b));
    ok_eq(oribi_backlog_flush(&b, &sink), 0);
    ok(!oribi_backlog_waits(&b));
    is_str(read_all(), "one\ntwo\n");
    end(&sink);
}

static void test_what_has_no_room_is_kept_up_to_the_limit(void)
{
    struct oribi_sink sink;
    struct oribi_backlog b = begin(&sink);
    fill_pipe();
    for (int i = 0; i < CAP / 16; i++)
        ok(add(&b, "fifteen letters\n"));
    ok_eq(b.len, CAP);
    ok(!add(&b, "\n")); /* one more than the most */
    ok(!add(&b, "\n"));
    ok_eq(b.dropped, 2);
    ok_eq(oribi_backlog_flush(&b, &sink), ORIBI_AGAIN);
    ok_eq(b.len, CAP);
    (void)read_all();
    ok_eq(oribi_backlog_flush(&b, &sink), 0);
    ok_eq(strlen(read_all()), CAP);
    ok_eq(b.dropped, 2);
    end(&sink);
}

/* Bytes that were written make room. */
static void test_room_comes_back_with_what_was_written(void)
{
    struct oribi_sink sink;
    struct oribi_backlog b = begin(&sink);
    ok(add(&b, "0123456789012345678901234567890\n") && add(&b, "abcdefghijabcdefghijabcdefghija\n"));
    b.pos = 32; /* the first is written */
    ok(add(&b, "short\n"));
    ok_eq(b.pos, 0);
    ok_eq(oribi_backlog_flush(&b, &sink), 0);
    is_str(read_all(), "abcdefghijabcdefghijabcdefghija\nshort\n");
    end(&sink);
}

static void test_a_sink_that_fails_loses_all_of_them(void)
{
    struct oribi_sink sink;
    struct oribi_backlog b = begin(&sink);
    ok(add(&b, "one\n") && add(&b, "two\n") && add(&b, "three"));
    b.pos = 2;
    close(ends[0]);
    ok_eq(oribi_backlog_flush(&b, &sink), ORIBI_ECLOSED);
    ok_eq(b.dropped, 3);
    ok(b.torn && !oribi_backlog_waits(&b));
    oribi_sink_close(&sink);
    close(ends[1]);
    struct oribi_backlog unused = begin(&sink);
    (void)unused;
    ok(add(&b, "four\n"));
    ok_eq(oribi_backlog_flush(&b, &sink), 0);
    is_str(read_all(), "\nfour\n"); /* it does not go on in a torn line */
    end(&sink);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    test_lines_are_written_in_order();
    test_what_has_no_room_is_kept_up_to_the_limit();
    test_room_comes_back_with_what_was_written();
    test_a_sink_that_fails_loses_all_of_them();
    return done_testing();
}
