/* Codes to statuses and words. */
#include "base/error.c"

#include "tap.h"

static void test_peer_errors_have_their_status(void)
{
    static const int expected[][2] = {
        {ORIBI_EBAD, 400},  {ORIBI_ETIMEOUT, 408}, {ORIBI_EBODY, 413},   {ORIBI_ETARGET, 414}, {ORIBI_EEXPECT, 417},
        {ORIBI_EHEAD, 431}, {ORIBI_EAPP, 500},     {ORIBI_ECODING, 501}, {ORIBI_EMETHOD, 501}, {ORIBI_EVERSION, 505},
        {ORIBI_ECLOSED, 0}, {ORIBI_ENOMEM, 0},     {ORIBI_ELIMIT, 0},    {ORIBI_ESYS, 0},      {ORIBI_EINVAL, 0},
        {ORIBI_AGAIN, 0},   {ORIBI_OK, 0},         {-1000, 0},           {ORIBI_EFULL, 507},   {ORIBI_ESTORE, 503},
    };
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        ok_named(oribi_error_status(expected[i][0]) == expected[i][1], "code %d is status %d", expected[i][0],
                 expected[i][1]);
}

static void test_every_code_has_words_of_its_own(void)
{
    for (int code = 0; code >= ORIBI_ESTORE; code--) {
        const char *text = oribi_error_text(code);
        bool unique = text && *text && strcmp(text, oribi_error_text(-1000)) != 0;
        for (int other = 0; other > code; other--)
            unique = unique && strcmp(text, oribi_error_text(other)) != 0;
        ok_named(unique, "code %d: %s", code, text);
    }
    is_str(oribi_error_text(-1000), "unknown error");
}

int main(void)
{
    test_peer_errors_have_their_status();
    test_every_code_has_words_of_its_own();
    return done_testing();
}
