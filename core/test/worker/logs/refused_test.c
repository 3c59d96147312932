/* The error log's line of a refused request. */
#include "worker/logs/refused.c"

#include "tap.h"

#include <string.h>

static char detail[DETAIL_CAP];

static const char *of(const char *line, size_t n, ssize_t at, const char *what)
{
    describe(detail, sizeof(detail), oribi_slice(line, n), at < 0 ? NULL : line + at, what);
    return detail;
}

static void test_the_byte_and_the_line_are_shown(void)
{
    is_str(of("GET /a|b HTTP/1.1", 17, 6, ""), ": 0x7c '|' at column 7 of \"GET /a|b HTTP/1.1\"");
    is_str(of("GET /\xff\"", 7, 5, ""), ": 0xff at column 6 of \"GET /\\xff\\\"\"");
    is_str(of("GET / x", 7, -1, ""), ": \"GET / x\"");
    is_str(of("Cookie: a\x01", 6, 9, "field "), ": 0x01 at column 10 of field \"Cookie\""); /* behind what is shown */
    is_str(of(" x", 0, 0, "field "), ": 0x20 at column 1");
    is_str(of("", 0, -1, ""), "");
}

/* The beginning is shown as long as the byte is in it, else the byte's surroundings. */
static void test_a_long_line_is_cut_around_its_byte(void)
{
    char line[3 * ORIBI_REFUSED_SHOWN_MAX];
    char wanted[DETAIL_CAP];
    memset(line, 'a', sizeof(line));
    snprintf(wanted, sizeof(wanted), ": \"%.*s\"", ORIBI_REFUSED_SHOWN_MAX, line);
    is_str(of(line, ORIBI_REFUSED_SHOWN_MAX, -1, ""), wanted);
    snprintf(wanted, sizeof(wanted), ": \"%.*s...\"", ORIBI_REFUSED_SHOWN_MAX, line);
    is_str(of(line, ORIBI_REFUSED_SHOWN_MAX + 1, -1, ""), wanted);
    line[ORIBI_REFUSED_SHOWN_MAX - 1] = '<';
    snprintf(wanted, sizeof(wanted), ": 0x3c '<' at column 256 of \"%.*s...\"", ORIBI_REFUSED_SHOWN_MAX, line);
    is_str(of(line, sizeof(line), ORIBI_REFUSED_SHOWN_MAX - 1, ""), wanted);
    line[ORIBI_REFUSED_SHOWN_MAX] = '>';
    snprintf(wanted, sizeof(wanted), ": 0x3e '>' at column 257 of \"...%.*s...\"", ORIBI_REFUSED_SHOWN_MAX, line + 128);
    is_str(of(line, sizeof(line), ORIBI_REFUSED_SHOWN_MAX, ""), wanted);
    line[sizeof(line) - 1] = '"';
    ok(strstr(of(line, sizeof(line), sizeof(line) - 1, ""), "a\\\"\"") != NULL); /* nothing was cut behind it */
}

static void test_the_largest_line_fits(void)
{
    char line[2 * ORIBI_REFUSED_SHOWN_MAX];
    memset(line, '\x01', sizeof(line));
    size_t n = strlen(of(line, sizeof(line), sizeof(line) - 1, "field "));
    ok_named(n > (ORIBI_REFUSED_SHOWN_MAX / 2) * ORIBI_ESCAPE_TEXT_GROWTH && detail[n - 1] == '"', "%zu bytes", n);
    n = strlen(of(line, ORIBI_REFUSED_SHOWN_MAX, 0, "field "));
    ok_named(n > ORIBI_REFUSED_SHOWN_MAX * ORIBI_ESCAPE_TEXT_GROWTH && detail[n - 1] == '"', "%zu bytes", n);
}

int main(void)
{
    test_the_byte_and_the_line_are_shown();
    test_a_long_line_is_cut_around_its_byte();
    test_the_largest_line_fits();
    return done_testing();
}
