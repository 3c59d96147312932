/* Text fields of a multipart body where they lie, and where bodies end. Every input lies against the guard page. */
#include "form/plain_part.c"

#include "guard.h"
#include "tap.h"

#define HEAD "Content-Disposition: form-data; name=\"a[b]\"\r\n\r\n"

static struct guard arena;

static const struct oribi_plain_delimiter lines = {{"\r\n--xyz", 7}, false};
static const struct oribi_plain_delimiter anywhere = {{"\r\n--xyz", 7}, true};

static struct oribi_slice guarded(struct oribi_slice text)
{
    return oribi_slice(guard_place(&arena, text.p, text.n), text.n);
}

static bool reads(const char *text, const struct oribi_plain_delimiter *delimiter, struct oribi_plain_part *part)
{
    return oribi_plain_part(guarded(oribi_slice(text, strlen(text))), delimiter, part);
}

static void test_a_part_and_the_last_one(void)
{
    struct oribi_plain_part part;
    ok(reads(HEAD "one\r\ntwo\r\n--xyz\r\nnext", &lines, &part));
    is_slice(part.name, "a[b]");
    is_slice(part.body, "one\r\ntwo");
    ok_eq(part.head_len, strlen(HEAD) - 2);
    ok_eq(part.len, strlen(HEAD) + 8 + 9);
    ok(!part.is_last);
    ok(reads(HEAD "\r\n--xyz--", &lines, &part));
    is_slice(part.body, "");
    ok(part.is_last);
    ok(reads("CONTENT-DISPOSITION: FORM-DATA; name=\"a\"\r\n\r\n\r\n--xyz\r\n", &lines, &part));
}

static void test_delimiters_that_are_data(void)
{
    struct oribi_plain_part part;
    ok(reads(HEAD "\r\n--xy\r\n--xyz-\r\n--xyzz --xyz\r\n\r\n--xyz\r\n", &lines, &part));
    is_slice(part.body, "\r\n--xy\r\n--xyz-\r\n--xyzz --xyz\r\n");
    ok(!reads(HEAD "one --xyz\r\n\r\n--xyz\r\n", &anywhere, &part));
    ok(reads(HEAD "one --xyz \r\n--xyz\r\n", &anywhere, &part));
    is_slice(part.body, "one --xyz ");
    ok(!reads(HEAD "--xyz\r\n\r\n--xyz\r\n", &lines, &part));
}

static void test_what_follows_the_last_delimiter(void)
{
    struct oribi_plain_part part = {.len = 77};
    ok(reads(HEAD "\r\n--xyz--epilogue", &lines, &part));
    ok(reads(HEAD "\r\n--xyz--", &anywhere, &part));
    ok(reads(HEAD "\r\n--xyz--\r\n", &anywhere, &part));
    part.len = 77;
    ok(!reads(HEAD "\r\n--xyz-- \r\n", &anywhere, &part));
    ok_eq(part.len, 77);
}

static void test_other_heads(void)
{
    static const char *const heads[] = {
        "",
        "\r\n",
        "X: y\r\n\r\n",
        "Content-Disposition:form-data; name=\"a\"\r\n\r\n",
        "Content-Disposition: form-data; NAME=\"a\"\r\n\r\n",
        "Content-Disposition: form-data; name=a\r\n\r\n",
        "Content-Disposition: form-data; name=\"\"\r\n\r\n",
        "Content-Disposition: form-data; name=\"a\\\"b\"\r\n\r\n",
        "Content-Disposition: form-data; name=\"a:b\"\r\n\r\n",
        "Content-Disposition: form-data; name=\"a;b\"\r\n\r\n",
        "Content-Disposition: form-data; name=\"a\nb\"\r\n\r\n",
        "Content-Disposition: form-data; name=\"a\"; filename=\"b\"\r\n\r\n",
        "Content-Disposition: form-data; name=\"a\"\r\nX: y\r\n\r\n",
        "Content-Disposition: form-data; name=\"a\"\n\n",
    };
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        char text[256];
        struct oribi_plain_part part;
        snprintf(text, sizeof(text), "%sbody\r\n--xyz\r\n", heads[i]);
        ok_named(!reads(text, &lines, &part), "head %zu", i);
    }
}

static void test_the_longest_name_and_one_longer(void)
{
    char name[ORIBI_PLAIN_NAME_MAX + 2];
    char text[ORIBI_PLAIN_NAME_MAX + 128];
    struct oribi_plain_part part;
    for (size_t n = ORIBI_PLAIN_NAME_MAX; n <= ORIBI_PLAIN_NAME_MAX + 1; n++) {
        memset(name, 'n', n);
        name[n] = 0;
        snprintf(text, sizeof(text), "Content-Disposition: form-data; name=\"%s\"\r\n\r\n\r\n--xyz\r\n", name);
        ok_eq(reads(text, &lines, &part), n == ORIBI_PLAIN_NAME_MAX);
    }
}

/* A part that is cut anywhere is none. */
static void test_every_cut(void)
{
    static const char whole[] = HEAD "one\r\n--xyz\r\n";
    struct oribi_plain_part part;
    bool none = true;
    for (size_t n = 0; n < sizeof(whole) - 1; n++) {
        none &= !oribi_plain_part(guarded(oribi_slice(whole, n)), &lines, &part);
        none &= !oribi_plain_part(guarded(oribi_slice(whole, n)), &anywhere, &part);
    }
    ok(none);
}

static size_t find(const char *text, const struct oribi_plain_delimiter *delimiter, bool *bare)
{
    return oribi_plain_find(guarded(oribi_slice(text, strlen(text))), delimiter, bare);
}

static void test_where_a_body_ends(void)
{
    bool bare;
    ok_eq(find("one\r\n--xyz--", &lines, &bare), 3);
    ok(!bare);
    ok_eq(find("one\r\n--xyz", &lines, &bare), 10);
    ok_eq(find("--xyz\r\n", &lines, &bare), 0);
    ok(bare);
    ok_eq(find("a--xyz\r\n", &lines, &bare), 8);
    ok_eq(find("a--xyz\r\n", &anywhere, &bare), 1);
    ok(bare);
    ok_eq(find("a\r\n--xyz\r\n", &anywhere, &bare), 1);
    ok(!bare);
    ok_eq(find("", &lines, &bare), 0);
    ok(!bare);
}

int main(void)
{
    arena = guard_alloc(4096);
    test_a_part_and_the_last_one();
    test_delimiters_that_are_data();
    test_what_follows_the_last_delimiter();
    test_other_heads();
    test_the_longest_name_and_one_longer();
    test_every_cut();
    test_where_a_body_ends();
    return done_testing();
}
