/* Limits and memory; what is kept and what is not are cases of spec/chunked. */
#include "http/trailers.c"

#include "tap.h"

#include <stdio.h>
#include <time.h>

static struct oribi_trailers trailers;

static void read_text(const char *text, size_t n)
{
    oribi_trailers_release(&trailers);
    char *copy = oribi_mem_alloc(1, n ? n : 1); /* its end is where a sanitizer sees a read behind it */
    memcpy(copy, text, n);
    ok_eq(oribi_trailers_read(oribi_slice(copy, n), &trailers), 0);
    oribi_mem_free(copy);
}

static void test_nothing_gives_nothing(void)
{
    read_text("", 0);
    ok_eq(trailers.count, 0);
    ok(!trailers.fields);
    read_text("Host: a\r\n", 9);
    ok_eq(trailers.count, 0);
    ok_eq(trailers.dropped_count, 1);
    ok(!trailers.fields);
}

static void test_names_are_lower_case_and_values_stripped(void)
{
    read_text("X-Sum: \t a b \t\r\n", 16);
    ok_eq(trailers.count, 1);
    is_bytes(trailers.fields[0].name, trailers.fields[0].name_len, "x-sum", 5);
    is_bytes(trailers.fields[0].value, trailers.fields[0].value_len, "a b", 3);
}

static void test_as_many_of_one_name_as_there_can_be(void)
{
    char text[ORIBI_FIELDS_CAP * 4];
    for (int i = 0; i < ORIBI_FIELDS_CAP; i++)
        memcpy(text + i * 4, i % 2 ? "A:\r\n" : "a:\r\n", 4);
    read_text(text, sizeof(text));
    ok_eq(trailers.count, 1);
    ok_eq(trailers.fields[0].value_len, (ORIBI_FIELDS_CAP - 1) * 2);
}

static void test_as_many_names_as_there_can_be(void)
{
    char text[ORIBI_FIELDS_CAP * 16];
    size_t n = 0;
    for (int i = 0; i < ORIBI_FIELDS_CAP; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "X-%d:%d\r\n", i, i);
    read_text(text, n);
    ok_eq(trailers.count, ORIBI_FIELDS_CAP);
    is_bytes(trailers.fields[255].value, trailers.fields[255].value_len, "255", 3);
}

static void test_name_at_its_limit(void)
{
    char text[ORIBI_FIELD_NAME_BYTES_MAX + 8];
    memset(text, 'n', sizeof(text));
    memcpy(text + ORIBI_FIELD_NAME_BYTES_MAX, ":v\r\n", 4);
    read_text(text, ORIBI_FIELD_NAME_BYTES_MAX + 4);
    ok_eq(trailers.count, 1);
    memcpy(text + ORIBI_FIELD_NAME_BYTES_MAX, "n:v\r\n", 5);
    read_text(text, ORIBI_FIELD_NAME_BYTES_MAX + 5);
    ok_eq(trailers.count, 0);
    ok_eq(trailers.dropped_count, 1);
}

/* As many names as a section of 16 KiB holds, of one length; they differ at their front, or only at their end. */
static size_t put_names(char *text, bool alike)
{
    enum { COUNT = 100, NAME_BYTES = 155 };
    size_t n = 0;
    for (int i = 0; i < COUNT; i++) {
        memset(text + n, 'a', NAME_BYTES);
        char digits[4];
        (void)snprintf(digits, sizeof(digits), "%03d", i);
        memcpy(text + n + (alike ? NAME_BYTES - 3 : 0), digits, 3);
        memcpy(text + n + NAME_BYTES, ":\r\n", 3);
        n += NAME_BYTES + 3;
    }
    return n;
}

/* The shortest of many runs, in nanoseconds of this thread's processor time. */
static int64_t cost_ns(struct oribi_slice text)
{
    int64_t least = INT64_MAX;
    for (int run = 0; run < 50; run++) {
        struct timespec from;
        struct timespec to;
        oribi_trailers_release(&trailers);
        (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
        if (oribi_trailers_read(text, &trailers) != 0)
            fail("out of memory");
        (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
        int64_t ns = (to.tv_sec - from.tv_sec) * 1000000000LL + to.tv_nsec - from.tv_nsec;
        least = ns < least ? ns : least;
    }
    return least;
}

/* A client that knows how names are compared must not buy much of our time with few of its bytes. */
static void test_names_made_to_be_alike_cost_little_more(void)
{
    char text[ORIBI_TRAILER_BYTES_MAX];
    int64_t usual = INT64_MAX;
    int64_t alike = INT64_MAX;
    /* Other work of the machine only adds time; slow code is slow each time. */
    for (int attempt = 0; attempt < 20 && (attempt == 0 || alike >= 6 * usual); attempt++) {
        int64_t usual_now = cost_ns(oribi_slice(text, put_names(text, false)));
        int64_t alike_now = cost_ns(oribi_slice(text, put_names(text, true)));
        usual = usual_now < usual ? usual_now : usual;
        alike = alike_now < alike ? alike_now : alike;
    }
    ok_eq(trailers.count, 100);
    ok_named(alike < 6 * usual, "%lld ns, and %lld ns for names that are alike", (long long)usual, (long long)alike);
}

int main(void)
{
    test_nothing_gives_nothing();
    test_names_are_lower_case_and_values_stripped();
    test_as_many_of_one_name_as_there_can_be();
    test_as_many_names_as_there_can_be();
    test_name_at_its_limit();
    test_names_made_to_be_alike_cost_little_more();
    oribi_trailers_release(&trailers);
    return done_testing();
}
