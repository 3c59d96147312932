/* Pages for the server's answers. */
#include "files/error_pages.c"

#include "tap.h"

#include <stdlib.h>
#include <unistd.h>

static char error[ORIBI_ERROR_TEXT_CAP];
static char folder[] = "/tmp/oribi-pages-XXXXXX";

/* A line with this file in the folder. */
static char *line_of(const char *statuses, const char *name)
{
    static char lines[4][128];
    static int next;
    char *line = lines[next++ % 4];
    (void)snprintf(line, sizeof(lines[0]), "%s=%s/%s", statuses, folder, name);
    return line;
}

static void put(const char *name, size_t n)
{
    FILE *out = fopen(strchr(line_of("", name), '=') + 1, "w");
    for (size_t i = 0; out && i < n; i++)
        (void)fputc('a', out);
    ok(out && fclose(out) == 0);
}

static void refused(const char *line, const char *want)
{
    const char *file;
    ok_named(oribi_error_page_read(line, NULL, &file, error) == ORIBI_EINVAL, "%s is refused", line);
    ok_named(strstr(error, want) != NULL, "%s: %s", error, want);
}

static void test_lines(void)
{
    const char *file;
    bool wanted[STATUSES] = {false};
    ok_eq(oribi_error_page_read("400,599=a=b,c", wanted, &file, error), 0);
    is_str(file, "a=b,c");
    ok(wanted[0] && wanted[199] && !wanted[100]);
    refused("500", "needs to be STATUS=FILE");
    refused("500=", "names no file");
    refused("500,=a", "needs to be STATUS=FILE");
    refused("5000=a", "needs to be STATUS=FILE");
    refused("200=a", "from 400 to 599");
    refused("600=a", "from 400 to 599");
    refused("", "needs to be STATUS=FILE");
}

static void test_pages_are_found_by_status(void)
{
    struct oribi_error_pages *pages;
    struct oribi_slice type = {0};
    put("e.html", 3);
    put("e.txt", 0);
    char *const lines[] = {line_of("500,502,504", "e.html"), line_of("404,504", "e.txt")};
    ok_eq(oribi_error_pages_create(lines, 2, &pages, error), 0);
    struct oribi_slice page = oribi_error_page_find(pages, 500, &type);
    is_bytes(page.p, page.n, "aaa", 3);
    is_bytes(type.p, type.n, "text/html; charset=utf-8", 24);
    page = oribi_error_page_find(pages, 504, &type);
    ok(page.p && page.n == 0); /* the later line */
    ok(!oribi_error_page_find(pages, 503, &type).p);
    ok(!oribi_error_page_find(pages, 200, &type).p);
    ok(!oribi_error_page_find(pages, 600, &type).p);
    ok(!oribi_error_page_find(NULL, 500, &type).p);
    oribi_error_pages_destroy(pages);
}

static void fails(char *line, const char *want)
{
    struct oribi_error_pages *pages;
    ok(oribi_error_pages_create(&line, 1, &pages, error) < 0 && !pages);
    ok_named(strstr(error, want) != NULL, "%s: %s", error, want);
}

static void test_files_that_cannot_be_pages(void)
{
    struct oribi_error_pages *pages;
    fails(line_of("500", "none.html"), "none.html: no such file or directory");
    fails(line_of("500", ""), "not a regular file");
    put("e.html", ORIBI_ERROR_PAGE_BYTES_MAX);
    ok_eq(oribi_error_pages_create((char *const[]){line_of("500", "e.html")}, 1, &pages, error), 0);
    oribi_error_pages_destroy(pages);
    put("e.html", ORIBI_ERROR_PAGE_BYTES_MAX + 1);
    fails(line_of("500", "e.html"), "larger than 64 KiB");
}

static void test_a_status_without_a_page_has_a_line_of_text(void)
{
    char text[ORIBI_ERROR_TEXT_LINE_CAP];
    struct oribi_slice type = {NULL, 0};
    struct oribi_slice body = oribi_error_page_or_text(NULL, 431, text, &type);
    is_slice(body, "431 Request Header Fields Too Large\n");
    is_slice(type, "text/plain");
}

int main(void)
{
    ok(mkdtemp(folder) != NULL);
    test_lines();
    test_pages_are_found_by_status();
    test_files_that_cannot_be_pages();
    ok_eq(unlink(strchr(line_of("", "e.html"), '=') + 1), 0);
    ok_eq(unlink(strchr(line_of("", "e.txt"), '=') + 1), 0);
    ok_eq(rmdir(folder), 0);
    test_a_status_without_a_page_has_a_line_of_text();
    return done_testing();
}
