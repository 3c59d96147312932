/* Paths of requests and the mounts they belong to. */
#include "files/path.c"

#include "guard.h"
#include "tap.h"

/* The raw path lies against a guard page, before and behind. */
static enum oribi_path_verdict read_bytes(const char *p, size_t n, struct oribi_path *path)
{
    struct guard back = guard_copy(p, n);
    struct guard front = guard_copy_front(p, n);
    enum oribi_path_verdict verdict = oribi_path_read(oribi_slice(back.p, n), path);
    ok_named(oribi_path_read(oribi_slice(front.p, n), path) == verdict, "the same verdict wherever the bytes lie");
    guard_free(&back);
    guard_free(&front);
    return verdict;
}

static void gives(const char *raw, const char *want)
{
    struct oribi_path path;
    ok_named(read_bytes(raw, strlen(raw), &path) == ORIBI_PATH_OK, "%s is a path", raw);
    is_str(path.text, want);
    ok_eq(path.n, strlen(want));
}

static void refused(const char *raw, enum oribi_path_verdict want)
{
    struct oribi_path path;
    enum oribi_path_verdict got = read_bytes(raw, strlen(raw), &path);
    ok_named(got == want, "%s: %s, wanted: %s", raw, oribi_path_verdict_text(got), oribi_path_verdict_text(want));
}

static void test_plain_and_decoded_paths(void)
{
    gives("/", "/");
    gives("/a", "/a");
    gives("/a/b.css", "/a/b.css");
    gives("/folder/", "/folder/");
    gives("/a%20b", "/a b");
    gives("/%e3%81%82", "/\xe3\x81\x82");
    gives("/\xe3\x81\x82", "/\xe3\x81\x82");
    gives("/a+b", "/a+b");
    gives("/a..b", "/a..b");
    gives("/a.", "/a.");
    gives("/a..", "/a..");
    gives("/a\\b", "/a\\b");
    gives("/%0a", "/\n");
}

static void test_a_path_is_decoded_once(void)
{
    gives("/%252e%252e", "/%2e%2e");
    gives("/%252f", "/%2f");
    gives("/%2500", "/%00");
}

static void test_escapes_that_end_early_or_are_none(void)
{
    refused("/%", ORIBI_PATH_ESCAPE);
    refused("/a%2", ORIBI_PATH_ESCAPE);
    refused("/a%", ORIBI_PATH_ESCAPE);
    refused("/%zz", ORIBI_PATH_ESCAPE);
    refused("/%2g/x", ORIBI_PATH_ESCAPE);
    refused("/%%41", ORIBI_PATH_ESCAPE);
    refused("/../%", ORIBI_PATH_ESCAPE); /* bytes before segments */
}

static void test_nul_and_encoded_slash(void)
{
    struct oribi_path path;
    refused("/a%00", ORIBI_PATH_NUL);
    refused("/%00.html", ORIBI_PATH_NUL);
    ok_eq(read_bytes("/a\0b", 4, &path), ORIBI_PATH_NUL);
    refused("/a%2Fb", ORIBI_PATH_ENCODED_SLASH);
    refused("/a%2fb", ORIBI_PATH_ENCODED_SLASH);
    refused("/..%2f..%2fetc/passwd", ORIBI_PATH_ENCODED_SLASH);
}

static void test_segments(void)
{
    refused("//", ORIBI_PATH_EMPTY_SEGMENT);
    refused("//etc/passwd", ORIBI_PATH_EMPTY_SEGMENT);
    refused("/a//b", ORIBI_PATH_EMPTY_SEGMENT);
    refused("/a//", ORIBI_PATH_EMPTY_SEGMENT);
    refused("/.", ORIBI_PATH_DOT_SEGMENT);
    refused("/..", ORIBI_PATH_DOT_SEGMENT);
    refused("/a/../b", ORIBI_PATH_DOT_SEGMENT);
    refused("/a/./b", ORIBI_PATH_DOT_SEGMENT);
    refused("/a/..", ORIBI_PATH_DOT_SEGMENT);
    refused("/a/../", ORIBI_PATH_DOT_SEGMENT);
    refused("/%2e%2e/b", ORIBI_PATH_DOT_SEGMENT);
    refused("/.%2E/b", ORIBI_PATH_DOT_SEGMENT);
    refused("/.well-known/../.git", ORIBI_PATH_DOT_SEGMENT);
}

static void test_dot_files_are_hidden_except_well_known(void)
{
    refused("/.git/config", ORIBI_PATH_HIDDEN);
    refused("/a/.env", ORIBI_PATH_HIDDEN);
    refused("/%2ehtaccess", ORIBI_PATH_HIDDEN);
    refused("/...", ORIBI_PATH_HIDDEN);
    gives("/.well-known/security.txt", "/.well-known/security.txt");
    gives("/.well-known", "/.well-known");
    gives("/%2Ewell-known/x", "/.well-known/x");
    refused("/.well-known/.secret", ORIBI_PATH_HIDDEN);
    refused("/a/.well-known/x", ORIBI_PATH_HIDDEN);
    refused("/.well-knownx/a", ORIBI_PATH_HIDDEN);
}

static void test_what_does_not_begin_with_a_slash(void)
{
    struct oribi_path path;
    refused("", ORIBI_PATH_NOT_ROOTED);
    refused("*", ORIBI_PATH_NOT_ROOTED);
    refused("a/b", ORIBI_PATH_NOT_ROOTED);
    refused("%2fa", ORIBI_PATH_NOT_ROOTED);
    ok_eq(oribi_path_read(oribi_slice(NULL, 0), &path), ORIBI_PATH_NOT_ROOTED);
}

/* `n` bytes decoded; the last of them escaped when asked. */
static enum oribi_path_verdict read_long(size_t n, bool escaped, struct oribi_path *path)
{
    static char raw[ORIBI_PATH_BYTES_MAX + 8];
    memset(raw, 'a', sizeof(raw));
    raw[0] = '/';
    if (escaped)
        memcpy(raw + n - 1, "%61", 3);
    return read_bytes(raw, escaped ? n + 2 : n, path);
}

static void test_the_longest_path_and_one_byte_more(void)
{
    struct oribi_path path;
    for (int escaped = 0; escaped < 2; escaped++) {
        ok_eq(read_long(ORIBI_PATH_BYTES_MAX, escaped != 0, &path), ORIBI_PATH_OK);
        ok_eq(path.n, ORIBI_PATH_BYTES_MAX);
        ok_eq(path.text[ORIBI_PATH_BYTES_MAX], '\0');
        ok_eq(read_long(ORIBI_PATH_BYTES_MAX + 1, escaped != 0, &path), ORIBI_PATH_TOO_LONG);
    }
}

static void test_verdicts_have_words(void)
{
    for (int verdict = ORIBI_PATH_OK; verdict <= ORIBI_PATH_HIDDEN; verdict++)
        ok(oribi_path_verdict_text((enum oribi_path_verdict)verdict)[0] != '\0');
}

/* --- mounts --- */

static int prefix_of(const char *text, struct oribi_slice *prefix)
{
    struct guard copy = guard_str(text);
    int code = oribi_mount_prefix_read(oribi_slice(copy.p, copy.n), prefix);
    if (code == 0)
        *prefix = oribi_slice(text, prefix->n);
    guard_free(&copy);
    return code;
}

static void test_prefixes(void)
{
    struct oribi_slice prefix;
    ok_eq(prefix_of("/assets", &prefix), 0);
    is_slice(prefix, "/assets");
    ok_eq(prefix_of("/assets/", &prefix), 0);
    is_slice(prefix, "/assets");
    ok_eq(prefix_of("/", &prefix), 0);
    is_slice(prefix, "");
    ok_eq(prefix_of("/a b/c", &prefix), 0);
    const char *bad[] = {"", "assets", "//", "/a//b", "/a/../b", "/./a", "/.git", "/a%20b", "/a?b", "/a#b"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok_named(prefix_of(bad[i], &prefix) == ORIBI_EINVAL, "%s is no prefix", bad[i]);
    ok_eq(oribi_mount_prefix_read(oribi_slice("/a\0b", 4), &prefix), ORIBI_EINVAL);
}

static ssize_t find(const char *const *texts, uint32_t count, const char *raw, ssize_t after, const char **rest)
{
    static struct oribi_path path;
    struct oribi_slice prefixes[8];
    for (uint32_t i = 0; i < count; i++)
        if (prefix_of(texts[i], &prefixes[i]) != 0)
            return -2;
    if (oribi_path_read(oribi_slice(raw, strlen(raw)), &path) != ORIBI_PATH_OK)
        return -3;
    ssize_t found = oribi_mount_find(prefixes, count, &path, after);
    if (found >= 0)
        *rest = oribi_mount_rest(prefixes[found], &path);
    return found;
}

static void test_a_prefix_ends_at_a_slash(void)
{
    const char *const mounts[] = {"/assets"};
    const char *rest = NULL;
    ok_eq(find(mounts, 1, "/assets", -1, &rest), 0);
    is_str(rest, "");
    ok_eq(find(mounts, 1, "/assets/", -1, &rest), 0);
    is_str(rest, "");
    ok_eq(find(mounts, 1, "/assets/x/y.css", -1, &rest), 0);
    is_str(rest, "x/y.css");
    ok_eq(find(mounts, 1, "/assets/x/", -1, &rest), 0);
    is_str(rest, "x/");
    ok_eq(find(mounts, 1, "/%61ssets/x", -1, &rest), 0);
    ok_eq(find(mounts, 1, "/assetsx", -1, &rest), -1);
    ok_eq(find(mounts, 1, "/asset", -1, &rest), -1);
    ok_eq(find(mounts, 1, "/", -1, &rest), -1);
    ok_eq(find(mounts, 1, "/Assets/x", -1, &rest), -1);
}

static void test_the_longest_prefix_wins_then_the_first(void)
{
    const char *const mounts[] = {"/", "/a", "/a/b", "/a", "/b"};
    const char *rest = NULL;
    ok_eq(find(mounts, 5, "/x", -1, &rest), 0);
    is_str(rest, "x");
    ok_eq(find(mounts, 5, "/a/x", -1, &rest), 1);
    is_str(rest, "x");
    ok_eq(find(mounts, 5, "/a/b/x", -1, &rest), 2);
    is_str(rest, "x");
    ok_eq(find(mounts, 5, "/a/bc", -1, &rest), 1);
    is_str(rest, "bc");
    ok_eq(find(mounts, 0, "/x", -1, &rest), -1);
}

static void test_a_mount_that_falls_through_is_followed_by_the_next(void)
{
    const char *const mounts[] = {"/", "/a", "/a/b", "/a", "/b"};
    const char *rest = NULL;
    ok_eq(find(mounts, 5, "/a/b/x", 2, &rest), 1);
    ok_eq(find(mounts, 5, "/a/b/x", 1, &rest), 3);
    is_str(rest, "b/x");
    ok_eq(find(mounts, 5, "/a/b/x", 3, &rest), 0);
    is_str(rest, "a/b/x");
    ok_eq(find(mounts, 5, "/a/b/x", 0, &rest), -1);
}

int main(void)
{
    test_plain_and_decoded_paths();
    test_a_path_is_decoded_once();
    test_escapes_that_end_early_or_are_none();
    test_nul_and_encoded_slash();
    test_segments();
    test_dot_files_are_hidden_except_well_known();
    test_what_does_not_begin_with_a_slash();
    test_the_longest_path_and_one_byte_more();
    test_verdicts_have_words();
    test_prefixes();
    test_a_prefix_ends_at_a_slash();
    test_the_longest_prefix_wins_then_the_first();
    test_a_mount_that_falls_through_is_followed_by_the_next();
    return done_testing();
}
