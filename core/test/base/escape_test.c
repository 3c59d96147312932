/* Escapes: text of a peer cannot end the string or the line it stands in. What UTF-8 is: access_log_test.c
 * has its cases. */
#include "base/escape.c"

#include "guard.h"
#include "tap.h"

static char out[64];

static const char *text_of(const char *in, size_t n)
{
    *oribi_escape_text(out, oribi_slice(in, n)) = '\0';
    return out;
}

static const char *json_of(const char *in, size_t n)
{
    *oribi_escape_json(out, oribi_slice(in, n)) = '\0';
    return out;
}

static void test_text_is_printable_ascii(void)
{
    is_str(text_of("a\"\\\0\n\x1f\x7f\x80\xc3\xa9~", 11), "a\\\"\\\\\\x00\\x0a\\x1f\\x7f\\x80\\xc3\\xa9~");
    is_str(text_of("", 0), "");
}

static void test_json_keeps_utf8(void)
{
    is_str(json_of("a\"\\\0\n\x7f\xc3\xa9\xa9", 9), "a\\\"\\\\\\u0000\\u000a\\u007f\xc3\xa9\\u00a9");
    is_str(json_of("", 0), "");
}

/* Controls of terminals, ends of lines, and marks that turn the direction of what follows. */
static void test_json_shows_what_is_hidden(void)
{
    static const struct {
        const char *in;
        const char *out;
    } cases[] = {
        {"a\xc2\x80z", "a\\u0080z"},          {"a\xc2\x9bz", "a\\u009bz"},      {"a\xc2\x9fz", "a\\u009fz"},
        {"a\xc2\xa0z", "a\xc2\xa0z"},         {"a\xd8\x9cz", "a\\u061cz"},      {"a\xd8\x9dz", "a\xd8\x9dz"},
        {"a\xe2\x80\x8dz", "a\xe2\x80\x8dz"}, {"a\xe2\x80\x8ez", "a\\u200ez"},  {"a\xe2\x80\x8fz", "a\\u200fz"},
        {"a\xe2\x80\xa7z", "a\xe2\x80\xa7z"}, {"a\xe2\x80\xa8z", "a\\u2028z"},  {"a\xe2\x80\xa9z", "a\\u2029z"},
        {"a\xe2\x80\xaaz", "a\\u202az"},      {"a\xe2\x80\xaez", "a\\u202ez"},  {"a\xe2\x80\xafz", "a\xe2\x80\xafz"},
        {"a\xe2\x81\xa5z", "a\xe2\x81\xa5z"}, {"a\xe2\x81\xa6z", "a\\u2066z"},  {"a\xe2\x81\xa9z", "a\\u2069z"},
        {"a\xe2\x81\xaaz", "a\xe2\x81\xaaz"}, {"\xe3\x80\xa8", "\xe3\x80\xa8"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        is_str(json_of(cases[i].in, strlen(cases[i].in)), cases[i].out);
}

static void test_no_byte_grows_beyond_its_maximum(void)
{
    bool good = true;
    for (int c = 0; c < 256; c++) {
        char byte = (char)c;
        good &= strlen(text_of(&byte, 1)) <= ORIBI_ESCAPE_TEXT_GROWTH;
        good &= strlen(json_of(&byte, 1)) <= ORIBI_ESCAPE_JSON_GROWTH;
    }
    ok(good);
}

/* escape() byte by byte, as it was before it looked at eight bytes at a time. */
static char *slowly(char *dst, struct oribi_slice text, bool json)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        size_t sequence = json && c >= 0x80 ? oribi_utf8_len(text.p + i, text.n - i) : 0;
        if (sequence && oribi_hidden_character(text.p + i, sequence)) {
            dst = put_code(dst, oribi_hidden_character(text.p + i, sequence));
            i += sequence - 1;
        } else if (sequence) {
            memcpy(dst, text.p + i, sequence);
            dst += sequence;
            i += sequence - 1;
        } else if (c == '"' || c == '\\') {
            *dst++ = '\\';
            *dst++ = (char)c;
        } else if (c >= 0x20 && c < 0x7f) {
            *dst++ = (char)c;
        } else {
            dst = json ? put_number(dst, "\\u00", 4, c) : put_number(dst, "\\x", 2, c);
        }
    }
    return dst;
}

static bool agrees(const char *in, size_t n, bool json)
{
    static char fast[64 * ORIBI_ESCAPE_JSON_GROWTH];
    static char slow[64 * ORIBI_ESCAPE_JSON_GROWTH];
    struct oribi_slice text = oribi_slice(in, n);
    size_t fast_n = (size_t)(escape(fast, text, json) - fast);
    return fast_n == (size_t)(slowly(slow, text, json) - slow) && memcmp(fast, slow, fast_n) == 0;
}

/* Each byte at each place of texts of each length, read up to a guard page. */
static void test_eight_bytes_at_a_time_are_as_good_as_one(void)
{
    for (int json = 0; json < 2; json++) {
        int wrong = 0;
        for (size_t n = 0; n <= 26; n++) {
            struct guard guard = guard_alloc(n);
            char *text = guard.p;
            for (size_t at = 0; at < n; at++) {
                for (int c = 0; c < 256; c++) {
                    memset(text, '~', n);
                    text[at] = (char)c;
                    if (c >= 0x80 && at + 2 < n) {
                        text[at + 1] = (char)(0x80 | (c & 0x3f));
                        text[at + 2] = (char)0xa9;
                    }
                    wrong += !agrees(text, n, json != 0);
                }
            }
            guard_free(&guard);
        }
        ok_eq(wrong, 0);
    }
}

static void test_a_json_string_is_appended(void)
{
    struct oribi_buf buf = {0};
    oribi_escape_append_json(&buf, oribi_slice(NULL, 0));
    oribi_escape_append_json(&buf, ORIBI_SLICE("\n\n\n")); /* grows as much as it can */
    is_bytes(buf.p, buf.len, "\"\"\"\\u000a\\u000a\\u000a\"", 22);
    oribi_buf_deinit(&buf);
}

int main(void)
{
    test_text_is_printable_ascii();
    test_json_keeps_utf8();
    test_json_shows_what_is_hidden();
    test_no_byte_grows_beyond_its_maximum();
    test_eight_bytes_at_a_time_are_as_good_as_one();
    test_a_json_string_is_appended();
    return done_testing();
}
