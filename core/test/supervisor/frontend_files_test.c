#include "supervisor/frontend_files.c"

#include "tap.h"

static void test_files_are_found_by_their_names_and_wiped(void)
{
    static char big[200 * 1024];
    struct oribi__frontend_files files = {NULL, 0, 0};
    struct oribi__frontend_files other = {NULL, 0, 0};
    struct oribi_slice text;
    memset(big, 'b', sizeof(big));
    ok(!oribi__frontend_files_find(&files, "/a", &text));
    ok(oribi__frontend_files_add(&files, "/a", ORIBI_SLICE("one")));
    ok(oribi__frontend_files_add(&files, "/a b", oribi_slice(big, sizeof(big))));
    ok(oribi__frontend_files_find(&files, "/a", &text) && oribi_slice_equal(text, ORIBI_SLICE("one")));
    ok(oribi__frontend_files_find(&files, "/a b", &text) && oribi_slice_equal(text, oribi_slice(big, sizeof(big))));
    ok(!oribi__frontend_files_find(&files, "/a ", &text));
    ok(oribi__frontend_files_add(&other, "/c", ORIBI_SLICE("two")));
    oribi__frontend_files_move(&other, &files);
    ok(files.p == NULL && oribi__frontend_files_find(&other, "/a", &text) &&
       !oribi__frontend_files_find(&other, "/c", &text));
    oribi__frontend_files_free(&other, false);
    ok(other.p == NULL && other.len == 0);
    oribi__frontend_files_free(&other, true);
}

int main(void)
{
    test_files_are_found_by_their_names_and_wiped();
    return done_testing();
}
