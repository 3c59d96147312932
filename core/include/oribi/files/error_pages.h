/* Pages that an operator has made for the server's answers, one line each:
 *
 *     404=public/404.html      502,503,504=public/down.html      STATUS[,STATUS...]=FILE
 *
 * They are read once and kept in memory. */
#ifndef ORIBI_FILES_ERROR_PAGES_H
#define ORIBI_FILES_ERROR_PAGES_H

#include "oribi/base/slice.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    ORIBI_ERROR_PAGE_BYTES_MAX = 64 * 1024, /* of one file: it leaves with its head in one go */
    ORIBI_ERROR_PAGE_FIRST = 400,
    ORIBI_ERROR_PAGE_LAST = 599,
};

struct oribi_error_pages;

/* Reads a line without a look at the disk: *file is its part that names the file. `wanted` (or NULL) has a place for
 * each status from FIRST on, and gets true for those of the line. 0, or ORIBI_EINVAL with one line in `error`
 * (ORIBI_ERROR_TEXT_CAP). */
int oribi_error_page_read(const char *line, bool *wanted, const char **file, char *error);

/* Reads all lines and their files; of two lines for a status the later one counts. Gives NULL when there are none. 0,
 * ORIBI_EINVAL or a code of os.h with one line in `error`. destroy takes NULL too. */
int oribi_error_pages_create(char *const *lines, size_t count, struct oribi_error_pages **pages, char *error);
void oribi_error_pages_destroy(struct oribi_error_pages *pages);

/* The page of a status, and the value of its Content-Type; p is NULL when there is none. Lives as long as the pages. */
struct oribi_slice oribi_error_page_find(const struct oribi_error_pages *pages, int status, struct oribi_slice *type);

#endif
