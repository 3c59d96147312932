/* TAP for unit tests: one process is one test file, ok() and its relatives print one line each, done_testing()
 * prints the plan and gives main's result. Every check evaluates its arguments once and returns whether it passed.
 *
 *     int main(void)
 *     {
 *         test_bare_lf_ends_no_header();
 *         return done_testing();
 *     }
 */
#ifndef ORIBI_TEST_TAP_H
#define ORIBI_TEST_TAP_H

#include "oribi/base/buf.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* One for each test program, also where several sources are linked into it: weak, so that they share these. */
__attribute__((weak)) int tap_count_;
__attribute__((weak)) int tap_failed_;

/* A comment line; shown by prove -v and on failure. */
__attribute__((format(printf, 1, 2), unused)) static void diag(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("# ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

__attribute__((unused)) static void tap_print_bytes_(const char *label, const char *p, size_t n)
{
    fprintf(stderr, "#   %s \"", label);
    for (size_t i = 0; i < n && i < 400; i++) {
        unsigned char c = (unsigned char)p[i];
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\')
            fputc(c, stderr);
        else
            fprintf(stderr, "\\x%02x", c);
    }
    fprintf(stderr, "\"%s (%zu bytes)\n", n > 400 ? "..." : "", n);
}

__attribute__((format(printf, 4, 5), unused)) static bool tap_ok_(bool passed, const char *file, int line,
                                                                  const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    for (char *p = text; *p; p++)
        if (*p < ' ' || *p == '#') /* a line break would end the line, a # could read as a directive */
            *p = '.';
    printf("%sok %d - %s\n", passed ? "" : "not ", ++tap_count_, text);
#ifdef __SANITIZE_THREAD__ /* its _exit() writes what is buffered, in children too */
    (void)fflush(stdout);
#endif
    if (!passed) {
        tap_failed_++;
        fflush(stdout);
        fprintf(stderr, "# failed at %s:%d\n", file, line);
    }
    return passed;
}

__attribute__((unused)) static bool tap_ok_eq_(long long got, long long want, const char *file, int line,
                                               const char *text)
{
    if (tap_ok_(got == want, file, line, "%s", text))
        return true;
    fprintf(stderr, "#   got  %lld\n#   want %lld\n", got, want);
    return false;
}

__attribute__((unused)) static bool tap_is_bytes_(const char *got, size_t got_len, const char *want, size_t want_len,
                                                  const char *file, int line, const char *text)
{
    bool equal = got_len == want_len && (got_len == 0 || (got && want && memcmp(got, want, got_len) == 0));
    if (tap_ok_(equal, file, line, "%s", text))
        return true;
    if (got)
        tap_print_bytes_("got ", got, got_len);
    else
        fputs("#   got  NULL\n", stderr);
    if (want)
        tap_print_bytes_("want", want, want_len);
    return false;
}

__attribute__((unused)) static bool tap_is_str_(const char *got, const char *want, const char *file, int line,
                                                const char *text)
{
    if (!got || !want)
        return tap_ok_(got == want, file, line, "%s", text);
    return tap_is_bytes_(got, strlen(got), want, strlen(want), file, line, text);
}

__attribute__((unused)) static bool tap_is_slice_(struct oribi_slice got, const char *want, const char *file, int line,
                                                  const char *text)
{
    return tap_is_bytes_(got.p, got.n, want, strlen(want), file, line, text);
}

/* The condition holds. */
#define ok(condition) tap_ok_((condition) ? true : false, __FILE__, __LINE__, "%s: %s", __func__, #condition)

/* The condition holds; the check has a name of its own, printf style: for checks in loops. */
#define ok_named(condition, ...) tap_ok_((condition) ? true : false, __FILE__, __LINE__, __VA_ARGS__)

/* Integers of any type (compared as long long); both are printed when they differ. */
#define ok_eq(got, want) tap_ok_eq_((long long)(got), (long long)(want), __FILE__, __LINE__, #got " == " #want)

/* NUL-terminated strings; NULL equals only NULL. */
#define is_str(got, want) tap_is_str_((got), (want), __FILE__, __LINE__, #got " is " #want)

/* A struct oribi_slice against a NUL-terminated string. */
#define is_slice(got, want) tap_is_slice_((got), (want), __FILE__, __LINE__, #got " is " #want)

/* Two runs of bytes. */
#define is_bytes(got, got_len, want, want_len)                                                                         \
    tap_is_bytes_((got), (got_len), (want), (want_len), __FILE__, __LINE__, #got " holds " #want)

/* Unconditional results, for code paths. */
#define pass(...) tap_ok_(true, __FILE__, __LINE__, __VA_ARGS__)
#define fail(...) tap_ok_(false, __FILE__, __LINE__, __VA_ARGS__)

/* Says that `count` checks cannot run here, and why. */
__attribute__((unused)) static void tap_skip(int count, const char *why)
{
    for (int i = 0; i < count; i++)
        printf("ok %d # SKIP %s\n", ++tap_count_, why);
}

/* Ends the test file early when nothing of it can run on this machine. */
__attribute__((unused)) static int skip_all(const char *why)
{
    printf("1..0 # SKIP %s\n", why);
    return 0;
}

/* Prints the plan; main returns its result. A file without a single check fails. */
__attribute__((unused)) static int done_testing(void)
{
    printf("1..%d\n", tap_count_);
    if (tap_failed_)
        fprintf(stderr, "# %d of %d failed\n", tap_failed_, tap_count_);
    fflush(stdout);
    return tap_failed_ != 0 || tap_count_ == 0;
}

#endif
