/* Limits and every weight; what is chosen for which value is in spec/accept_encoding. */
#include "http/accept_encoding.c"

#include "guard.h"
#include "http/case_folder.h"

enum { VALUE_MAX = 64 * 1024, OFFERED_MAX = 8 };

static struct guard arena;

static const enum oribi_coding everything[] = {ORIBI_CODING_ZSTD, ORIBI_CODING_BR, ORIBI_CODING_GZIP,
                                               ORIBI_CODING_IDENTITY};
enum { EVERYTHING = 4 };

static enum oribi_coding choose(const char *text)
{
    return oribi_accept_encoding_choose(oribi_slice(text, strlen(text)), everything, EVERYTHING);
}

/* The codings named in `offered`; all of them where the case does not say. */
static size_t read_offered(enum oribi_coding offered[OFFERED_MAX])
{
    struct oribi_slice rest =
        case_has(&file, "offered") ? case_raw(&file, "offered") : ORIBI_SLICE("zstd br gzip identity");
    size_t count = 0;
    while (rest.n) {
        const char *space = memchr(rest.p, ' ', rest.n);
        size_t n = space ? (size_t)(space - rest.p) : rest.n;
        for (int i = ORIBI_CODING_IDENTITY; i < ORIBI_CODING_COUNT; i++)
            if (oribi_slice_equal(oribi_coding_name((enum oribi_coding)i), oribi_slice(rest.p, n)))
                offered[count++] = (enum oribi_coding)i;
        n += space != NULL;
        rest = oribi_slice(rest.p + n, rest.n - n);
    }
    return count;
}

static void run_case(void)
{
    static char text[VALUE_MAX];
    enum oribi_coding offered[OFFERED_MAX];
    size_t count = read_offered(offered);
    size_t n = case_bytes(&file, "value", text, sizeof(text));
    struct oribi_slice value = oribi_slice(case_has(&file, "value") ? guard_place(&arena, text, n) : NULL, n);
    enum oribi_coding got = oribi_accept_encoding_choose(value, offered, count);
    struct oribi_slice name = got == ORIBI_CODING_NONE ? ORIBI_SLICE("none") : oribi_coding_name(got);
    if (!case_has(&file, "coding"))
        complain("coding");
    check_bytes("coding", name);
    struct guard front = guard_copy_front(text, n);
    for (size_t cut = 0; cut <= n; cut += n > 2000 ? 97 : 1) { /* every part of a value is read within it */
        char *part = guard_place(&arena, text, cut);
        got = oribi_accept_encoding_choose(oribi_slice(part, cut), offered, count);
        if (got != oribi_accept_encoding_choose(oribi_slice(front.p, cut), offered, count))
            complain("a cut");
    }
    guard_free(&front);
}

/* Every pair of weights with up to three decimals, among them all that are equal. */
static void test_every_weight_against_another(void)
{
    bool right = true;
    for (int a = 0; a <= 1000 && right; a++)
        for (int b = a % 13; b <= 1000 && right; b += b % 2 ? 13 : 24) {
            char text[64];
            snprintf(text, sizeof(text), "br;q=%d.%03d, gzip;q=%d.%03d", a / 1000, a % 1000, b / 1000, b % 1000);
            enum oribi_coding want = !a && !b ? ORIBI_CODING_IDENTITY : a >= b ? ORIBI_CODING_BR : ORIBI_CODING_GZIP;
            right = choose(text) == want;
            if (!right)
                diag("%s", text);
        }
    ok(right);
}

static void test_the_longest_value_and_one_byte_more(void)
{
    static char text[ORIBI_ACCEPT_ENCODING_BYTES_MAX + 1];
    memset(text, ',', sizeof(text));
    memcpy(text + sizeof(text) - 5, "gzip", 4);
    struct oribi_slice value = oribi_slice(text, ORIBI_ACCEPT_ENCODING_BYTES_MAX);
    ok_eq(oribi_accept_encoding_choose(value, everything, EVERYTHING), ORIBI_CODING_GZIP);
    value.n++;
    ok_eq(oribi_accept_encoding_choose(value, everything, EVERYTHING), ORIBI_CODING_IDENTITY);
    ok_eq(oribi_accept_encoding_choose(value, everything, EVERYTHING - 1), ORIBI_CODING_NONE);
}

static void test_nothing_offered(void)
{
    ok_eq(oribi_accept_encoding_choose(ORIBI_SLICE("*"), NULL, 0), ORIBI_CODING_NONE);
    ok_eq(oribi_accept_encoding_choose(oribi_slice(NULL, 0), NULL, 0), ORIBI_CODING_NONE);
}

static void test_names(void)
{
    is_slice(oribi_coding_name(ORIBI_CODING_IDENTITY), "identity");
    is_slice(oribi_coding_name(ORIBI_CODING_GZIP), "gzip");
    is_slice(oribi_coding_name(ORIBI_CODING_BR), "br");
    is_slice(oribi_coding_name(ORIBI_CODING_ZSTD), "zstd");
}

int main(void)
{
    arena = guard_alloc(VALUE_MAX);
    run_case_folder("accept_encoding", run_case);
    test_every_weight_against_another();
    test_the_longest_value_and_one_byte_more();
    test_nothing_offered();
    test_names();
    return done_testing();
}
