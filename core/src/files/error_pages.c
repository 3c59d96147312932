/* Pages for the server's answers. Reading order: oribi_error_page_read, oribi_error_pages_create. */
#include "oribi/files/fixed.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/files/types.h"
#include "oribi/http/status.h"

#include <stdio.h>
#include <string.h>

enum { STATUSES = ORIBI_ERROR_PAGE_LAST - ORIBI_ERROR_PAGE_FIRST + 1 };

struct page {
    char type[ORIBI_TYPE_BYTES_MAX + 1];
    size_t n;
    char text[];
};

struct oribi_error_pages {
    size_t count;
    struct page **all;              /* one for each line */
    struct page *by_code[STATUSES]; /* or NULL */
};

static int refuse(const char *line, const char *what, char *error)
{
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "error_page \"%.100s\" %s", line, what); /* a long line is cut */
    return ORIBI_EINVAL;
}

int oribi_error_page_read(const char *line, bool *wanted, const char **file, char *error)
{
    const char *p = line;
    for (;; p++) {
        if (strspn(p, "0123456789") != 3 || (p[3] != ',' && p[3] != '='))
            return refuse(line, "needs to be STATUS=FILE, as 500,502=public/500.html", error);
        if (p[0] != '4' && p[0] != '5')
            return refuse(line, "needs statuses from 400 to 599", error);
        int status = (p[0] - '0') * 100 + (p[1] - '0') * 10 + (p[2] - '0');
        if (wanted)
            wanted[status - ORIBI_ERROR_PAGE_FIRST] = true;
        p += 3;
        if (*p == '=')
            break;
    }
    *file = p + 1;
    return **file ? 0 : refuse(line, "names no file", error);
}

/* One byte more than there may be is asked for, to see whether it is there. */
static int read_page(int fd, struct page *page)
{
    for (;;) {
        ssize_t got = oribi_os_read(fd, page->text + page->n, ORIBI_ERROR_PAGE_BYTES_MAX + 1 - page->n);
        if (got <= 0)
            return (int)got;
        page->n += (size_t)got;
        if (page->n > ORIBI_ERROR_PAGE_BYTES_MAX)
            return oribi_os_fail_saying("larger than 64 KiB");
    }
}

static int load(const char *path, struct page *page)
{
    int64_t size;
    int fd;
    int code = oribi_os_open_read(path, &fd);
    if (code < 0)
        return code;
    code = oribi_os_is_file(fd, &size) ? read_page(fd, page) : oribi_os_fail_saying("not a regular file");
    oribi_os_close(fd);
    return code;
}

static int add(struct oribi_error_pages *pages, const char *line, const struct oribi_types *types, char *error)
{
    bool wanted[STATUSES] = {false};
    const char *file;
    int code = oribi_error_page_read(line, wanted, &file, error);
    if (code < 0)
        return code;
    struct page *page = oribi_mem_alloc(1, sizeof(*page) + ORIBI_ERROR_PAGE_BYTES_MAX + 1);
    pages->all[pages->count++] = page;
    code = load(file, page);
    if (code < 0) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "error_page %.60s: %.120s: %s", line, file, oribi_os_error_text());
        return code;
    }
    struct oribi_slice type = oribi_types_find(types, file);
    (void)snprintf(page->type, sizeof(page->type), "%.*s", (int)type.n, type.p); /* it fits */
    for (int i = 0; i < STATUSES; i++)
        if (wanted[i])
            pages->by_code[i] = page;
    return 0;
}

int oribi_error_pages_create(char *const *lines, size_t count, struct oribi_error_pages **out, char *error)
{
    *out = NULL;
    if (count == 0)
        return 0;
    struct oribi_error_pages *pages = oribi_mem_alloc(1, sizeof(*pages));
    struct oribi_types *types = oribi_types_create("utf-8");
    (void)oribi_types_read_file(types, ORIBI_TYPES_SYSTEM_FILE); /* where there is one */
    pages->all = oribi_mem_alloc(count, sizeof(struct page *));
    int code = 0;
    for (size_t i = 0; code == 0 && i < count; i++)
        code = add(pages, lines[i], types, error);
    oribi_types_destroy(types);
    if (code < 0)
        oribi_error_pages_destroy(pages);
    else
        *out = pages;
    return code;
}

void oribi_error_pages_destroy(struct oribi_error_pages *pages)
{
    if (!pages)
        return;
    for (size_t i = 0; i < pages->count; i++)
        oribi_mem_free(pages->all[i]);
    oribi_mem_free(pages->all);
    oribi_mem_free(pages);
}

struct oribi_slice oribi_error_page_find(const struct oribi_error_pages *pages, int status, struct oribi_slice *type)
{
    const struct page *page = NULL;
    if (pages && status >= ORIBI_ERROR_PAGE_FIRST && status <= ORIBI_ERROR_PAGE_LAST)
        page = pages->by_code[status - ORIBI_ERROR_PAGE_FIRST];
    if (!page)
        return oribi_slice(NULL, 0);
    *type = oribi_slice(page->type, strlen(page->type));
    return oribi_slice(page->text, page->n);
}

struct oribi_slice oribi_error_page_or_text(const struct oribi_error_pages *pages, int status,
                                            char text[ORIBI_ERROR_TEXT_LINE_CAP], struct oribi_slice *type)
{
    struct oribi_slice page = oribi_error_page_find(pages, status, type);
    if (page.p)
        return page;
    struct oribi_slice reason = oribi_status_reason(status);
    *type = ORIBI_SLICE("text/plain");
    int n = snprintf(text, ORIBI_ERROR_TEXT_LINE_CAP, "%d %.*s\n", status, (int)reason.n, reason.p); /* it fits */
    return oribi_slice(text, (size_t)n);
}
