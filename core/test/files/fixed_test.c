/* Fixed answers as operators write them, and which of them a path has. */
#include "files/fixed.c"

#include "tap.h"

static char error[ORIBI_ERROR_TEXT_CAP];

static struct oribi_fixed *read_line(enum oribi_fixed_kind kind, const char *line)
{
    struct oribi_fixed *fixed = NULL;
    error[0] = '\0';
    ok_named(oribi_fixed_read(kind, line, &fixed, error) == 0, "%.100s: %s", line, error);
    return fixed;
}

static void refused(enum oribi_fixed_kind kind, const char *line, const char *want)
{
    struct oribi_fixed *fixed = NULL;
    error[0] = '\0';
    ok_named(oribi_fixed_read(kind, line, &fixed, error) == ORIBI_EINVAL && !fixed, "%.100s is refused", line);
    ok_named(strstr(error, want), "%s: %s", error, want);
}

static void test_answers(void)
{
    struct oribi_fixed *fixed = read_line(ORIBI_FIXED_ANSWER, "/robots.txt=200:User-agent: *\nDisallow: /a=b");
    is_str(fixed->path.p, "/robots.txt");
    is_str(fixed->text.p, "User-agent: *\nDisallow: /a=b");
    ok_eq(fixed->status, 200);
    oribi_mem_free(fixed);
    fixed = read_line(ORIBI_FIXED_ANSWER, "/a%3Db%20c=410");
    is_str(fixed->path.p, "/a=b c");
    ok_eq(fixed->text.n, 0);
    ok_eq(fixed->status, 410);
    oribi_mem_free(fixed);
    oribi_mem_free(read_line(ORIBI_FIXED_ANSWER, "/.well-known/x=204"));
    oribi_mem_free(read_line(ORIBI_FIXED_ANSWER, "/*=200:a star is a character here"));
}

static void test_answers_that_are_refused(void)
{
    refused(ORIBI_FIXED_ANSWER, "robots.txt=200", "answer \"robots.txt=200\" needs a path that begins with a slash");
    refused(ORIBI_FIXED_ANSWER, "/a", "needs a status behind its path");
    refused(ORIBI_FIXED_ANSWER, "/a=", "needs a status");
    refused(ORIBI_FIXED_ANSWER, "/a=2000", "needs a status");
    refused(ORIBI_FIXED_ANSWER, "/a=20x", "needs a status");
    refused(ORIBI_FIXED_ANSWER, "/a=100", "from 200 to 299");
    refused(ORIBI_FIXED_ANSWER, "/a=206:x", "and not 206");
    refused(ORIBI_FIXED_ANSWER, "/a=600", "from 200 to 299");
    refused(ORIBI_FIXED_ANSWER, "/a=301:/b", "see redirect");
    refused(ORIBI_FIXED_ANSWER, "/a=204:text", "has no body");
    refused(ORIBI_FIXED_ANSWER, "/a?b=200", "without a query");
    refused(ORIBI_FIXED_ANSWER, "/a b=200", "write %20");
    refused(ORIBI_FIXED_ANSWER, "/../a=200", "no request gets here");
    refused(ORIBI_FIXED_ANSWER, "/.env=404", "no request gets here");
    refused(ORIBI_FIXED_ANSWER, "//a=404", "no request gets here");
    refused(ORIBI_FIXED_ANSWER, "/%=404", "no request gets here");
    refused(ORIBI_FIXED_HEALTH, "up", "health \"up\" needs a path");
}

static void test_redirects(void)
{
    struct oribi_fixed *fixed = read_line(ORIBI_FIXED_REDIRECT, "/old=/new?a=1#part");
    ok_eq(fixed->status, 301);
    is_str(fixed->path.p, "/old");
    is_str(fixed->text.p, "/new?a=1");
    is_str(fixed->fragment.p, "#part");
    ok(!fixed->has_star && !fixed->takes_rest);
    oribi_mem_free(fixed);
    fixed = read_line(ORIBI_FIXED_REDIRECT, "/was/*=308:https://example.com/is/*");
    ok_eq(fixed->status, 308);
    is_str(fixed->path.p, "/was/");
    is_str(fixed->text.p, "https://example.com/is/");
    ok(fixed->has_star && fixed->takes_rest);
    oribi_mem_free(fixed);
    fixed = read_line(ORIBI_FIXED_REDIRECT, "/*=302:/soon");
    ok(fixed->has_star && !fixed->takes_rest);
    oribi_mem_free(fixed);
}

static void test_redirects_that_are_refused(void)
{
    refused(ORIBI_FIXED_REDIRECT, "/a", "needs a path or an http(s) URL to lead to");
    refused(ORIBI_FIXED_REDIRECT, "/a=b", "needs a path or an http(s) URL");
    refused(ORIBI_FIXED_REDIRECT, "/a=//b", "needs a path or an http(s) URL");
    refused(ORIBI_FIXED_REDIRECT, "/a=http:///b", "needs a path or an http(s) URL");
    refused(ORIBI_FIXED_REDIRECT, "/a=javascript:x", "needs a path or an http(s) URL");
    refused(ORIBI_FIXED_REDIRECT, "/a=304:/b", "301, 302, 303, 307 or 308");
    refused(ORIBI_FIXED_REDIRECT, "/a=/\\b", "no URL");
    refused(ORIBI_FIXED_REDIRECT, "/a=/b c", "no URL");
    refused(ORIBI_FIXED_REDIRECT, "/a=/\xc3\xa9", "no URL");
    refused(ORIBI_FIXED_REDIRECT, "/a=/b/*", "none in its path");
    refused(ORIBI_FIXED_REDIRECT, "/a*=/b", "not its path's last segment");
    refused(ORIBI_FIXED_REDIRECT, "/*/a=/b", "not its path's last segment");
    refused(ORIBI_FIXED_REDIRECT, "/a/*=/b?c=/*", "behind its path");
    refused(ORIBI_FIXED_REDIRECT, "/a/*=/b#/*", "behind its path");
}

static int create(char *const *redirects, size_t count, char *const *answers, size_t answer_count, const char *health,
                  struct oribi_fixed_set **set)
{
    const struct oribi_fixed_lines lines = {answers, redirects, health, answer_count, count};
    error[0] = '\0';
    return oribi_fixed_set_create(&lines, set, error);
}

static const struct oribi_fixed *find(const struct oribi_fixed_set *set, const char *raw)
{
    struct oribi_path path;
    ok_named(oribi_path_read(oribi_slice(raw, strlen(raw)), &path) == ORIBI_PATH_OK, "%s is a path", raw);
    return oribi_fixed_find(set, &path);
}

static void location_is(const struct oribi_fixed_set *set, const char *raw, const char *query, const char *want)
{
    char location[256];
    const struct oribi_fixed *fixed = find(set, raw);
    ok_named(fixed != NULL, "%s is found", raw);
    if (!fixed)
        return;
    ssize_t n = oribi_fixed_location(fixed, oribi_slice(raw, strlen(raw)), oribi_slice(query, strlen(query)), location,
                                     sizeof(location));
    is_bytes(location, (size_t)n, want, strlen(want));
    ok_eq(oribi_fixed_location(fixed, oribi_slice(raw, strlen(raw)), oribi_slice(query, strlen(query)), location,
                               strlen(want)),
          strlen(want));
    ok_eq(oribi_fixed_location(fixed, oribi_slice(raw, strlen(raw)), oribi_slice(query, strlen(query)), location,
                               strlen(want) - 1),
          ORIBI_ELIMIT);
}

static void test_which_of_them_a_path_has(void)
{
    char *const redirects[] = {"/was/*=308:/is/*", "/was/inner/*=/other/*", "/old=/new?a=1#part", "/was/exact=/e"};
    char *const answers[] = {"/robots.txt=200:x", "/caf%C3%A9=200:y"};
    struct oribi_fixed_set *set;
    ok_eq(create(redirects, 4, answers, 2, "/up", &set), 0);
    is_str(error, "");
    is_str(find(set, "/robots.txt")->text.p, "x");
    is_str(find(set, "/%72obots.txt")->text.p, "x");
    is_str(find(set, "/caf\xc3\xa9")->text.p, "y");
    ok_eq(find(set, "/up")->kind, ORIBI_FIXED_HEALTH);
    ok(!find(set, "/robots.txt/"));
    ok(!find(set, "/Robots.txt"));
    ok(!find(set, "/up/"));
    ok(!find(set, "/was"));
    ok(!find(set, "/"));
    location_is(set, "/was/", "", "/is/");
    location_is(set, "/w%61s/a%20b/c/", "q=1", "/is/a%20b/c/?q=1");
    location_is(set, "/was/exact", "", "/e");
    location_is(set, "/was/inner/x", "", "/other/x");
    location_is(set, "/was/innermost", "", "/is/innermost");
    location_is(set, "/old", "", "/new?a=1#part");
    location_is(set, "/old", "b=2", "/new?a=1&b=2#part");
    location_is(set, "/was/\\evil.example", "", "/is/%5Cevil.example");
    oribi_fixed_set_destroy(set);
    ok_eq(create(NULL, 0, NULL, 0, NULL, &set), 0);
    ok(!set);
}

static void refused_together(char *const *redirects, size_t count, const char *health, const char *want)
{
    struct oribi_fixed_set *set;
    char *const answers[] = {"/a=200:x"};
    ok_eq(create(redirects, count, answers, 1, health, &set), ORIBI_EINVAL);
    is_str(error, want);
}

static void test_paths_with_two_and_loops_are_refused(void)
{
    struct oribi_fixed_set *set;
    refused_together((char *const[]){"/b=/a", "/%62=/c"}, 2, NULL, "/b has two fixed answers: redirect and redirect");
    refused_together(NULL, 0, "/a", "/a has two fixed answers: answer and health");
    refused_together((char *const[]){"/b/*=/a", "/b/*=/c"}, 2, NULL,
                     "/b/* has two fixed answers: redirect and redirect");
    refused_together((char *const[]){"/b=/b?x"}, 1, NULL, "redirect /b leads back to itself, by /b?x");
    refused_together((char *const[]){"/b/*=/b/c/*"}, 1, NULL, "redirect /b/* leads back to itself, by /b/c/");
    refused_together((char *const[]){"/b=/c", "/c=/d/x", "/d/*=/b"}, 3, NULL,
                     "redirect /b leads back to itself, by /c");
    char *const fine[] = {"/*=302:/a", "/b/*=/b", "/c=https://example.com/c"};
    ok_eq(create(fine, 1, (char *const[]){"/a=503:later"}, 1, "/up", &set), 0);
    oribi_fixed_set_destroy(set);
    ok_eq(create(fine + 1, 2, NULL, 0, NULL, &set), 0);
    oribi_fixed_set_destroy(set);
}

/* `text` and so many bytes behind it. */
static char *long_line(const char *text, size_t more)
{
    static char line[2 * ORIBI_FIXED_TEXT_MAX];
    size_t n = strlen(text);
    memcpy(line, text, n);
    memset(line + n, 'a', more);
    line[n + more] = '\0';
    return line;
}

static void test_maxima(void)
{
    char *lines[ORIBI_FIXED_MAX + 1];
    struct oribi_fixed_set *set;
    oribi_mem_free(read_line(ORIBI_FIXED_ANSWER, long_line("/a=200:", ORIBI_FIXED_TEXT_MAX)));
    refused(ORIBI_FIXED_ANSWER, long_line("/a=200:", ORIBI_FIXED_TEXT_MAX + 1), "more than 32768 bytes");
    oribi_mem_free(read_line(ORIBI_FIXED_HEALTH, long_line("/", ORIBI_FIXED_PATH_MAX - 1)));
    refused(ORIBI_FIXED_HEALTH, long_line("/", ORIBI_FIXED_PATH_MAX), "more than 1024 bytes");
    oribi_mem_free(read_line(ORIBI_FIXED_REDIRECT, long_line("/a=/", ORIBI_FIXED_TO_MAX - 1)));
    refused(ORIBI_FIXED_REDIRECT, long_line("/a=/", ORIBI_FIXED_TO_MAX), "more than 2048 bytes");
    for (size_t i = 0; i <= ORIBI_FIXED_MAX; i++) {
        lines[i] = oribi_mem_alloc(1, 32);
        (void)snprintf(lines[i], 32, "/%zu=200:%zu", i, i);
    }
    ok_eq(create(NULL, 0, lines, ORIBI_FIXED_MAX, NULL, &set), 0);
    is_str(find(set, "/0")->text.p, "0");
    is_str(find(set, "/77")->text.p, "77");
    is_str(find(set, "/1023")->text.p, "1023");
    ok(!find(set, "/1024"));
    oribi_fixed_set_destroy(set);
    ok_eq(create(NULL, 0, lines, ORIBI_FIXED_MAX + 1, NULL, &set), ORIBI_EINVAL);
    is_str(error, "answer is given more than 1024 times");
    for (size_t i = 0; i <= ORIBI_FIXED_MAX; i++)
        oribi_mem_free(lines[i]);
}

int main(void)
{
    test_answers();
    test_answers_that_are_refused();
    test_redirects();
    test_redirects_that_are_refused();
    test_which_of_them_a_path_has();
    test_paths_with_two_and_loops_are_refused();
    test_maxima();
    return done_testing();
}
