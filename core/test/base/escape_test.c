/* Escapes: text of a peer cannot end the string or the line it stands in. What UTF-8 is: access_log_test.c
 * has its cases. */
#include "base/escape.c"

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

int main(void)
{
    test_text_is_printable_ascii();
    test_json_keeps_utf8();
    test_no_byte_grows_beyond_its_maximum();
    return done_testing();
}
