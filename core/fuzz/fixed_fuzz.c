/* Lines of fixed answers and a request for one: lines one by one, separated by NUL bytes, the last is a target. What is
 * read keeps the rules of its header, and a Location stays on the server that its line names. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/files/fixed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINES_MAX = 8 };

static void check_location(const struct oribi_fixed *fixed, struct oribi_slice path, struct oribi_slice query)
{
    static char location[ORIBI_FIXED_LOCATION_MAX];
    ssize_t n = oribi_fixed_location(fixed, path, query, location, sizeof(location));
    if (n == ORIBI_ELIMIT)
        return;
    assert(n > 0 && (size_t)n >= fixed->text.n && memcmp(location, fixed->text.p, fixed->text.n) == 0);
    assert(location[0] == 'h' || (location[0] == '/' && (n < 2 || (location[1] != '/' && location[1] != '\\'))));
}

static void ask(const struct oribi_fixed_set *set, const char *target)
{
    static struct oribi_path path;
    size_t n = strcspn(target, "?");
    if (oribi_path_read(oribi_slice(target, n), &path) != ORIBI_PATH_OK)
        return;
    const struct oribi_fixed *fixed = oribi_fixed_find(set, &path);
    if (!fixed)
        return;
    assert(path.n >= fixed->path.n && memcmp(path.text, fixed->path.p, fixed->path.n) == 0);
    assert(fixed->has_star ? fixed->path.p[fixed->path.n - 1] == '/' : path.n == fixed->path.n);
    if (fixed->kind == ORIBI_FIXED_REDIRECT) {
        const char *query = target + n + (target[n] == '?');
        check_location(fixed, oribi_slice(target, n), oribi_slice(query, strlen(query)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    char *answers[LINES_MAX];
    char *redirects[LINES_MAX];
    struct oribi_fixed_lines lines = {answers, redirects, NULL, 0, 0};
    struct oribi_fixed_set *set = NULL;
    char *text = malloc(size + 1);
    if (!text)
        abort();
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    char *p = text;
    for (char *end; (end = memchr(p, '\0', size - (size_t)(p - text))) != NULL; p = end + 1) {
        if (*p == 'a' && lines.answer_count < LINES_MAX)
            answers[lines.answer_count++] = p + 1;
        else if (*p == 'r' && lines.redirect_count < LINES_MAX)
            redirects[lines.redirect_count++] = p + 1;
        else if (*p == 'h')
            lines.health = p + 1;
    }
    int code = oribi_fixed_set_create(&lines, &set, error);
    assert(code == 0 ? true : code == ORIBI_EINVAL && error[0] && strlen(error) < sizeof(error) && !set);
    if (set)
        ask(set, p);
    oribi_fixed_set_destroy(set);
    free(text);
    return 0;
}
