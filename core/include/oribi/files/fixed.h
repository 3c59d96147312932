/* Fixed answers that the configuration names (fixed.c), and error pages from files (error_pages.c). */
#ifndef ORIBI_FILES_FIXED_H
#define ORIBI_FILES_FIXED_H

#include "oribi/base/buf.h"
#include "oribi/files/root.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* ---- fixed ---- */

/* Answers that an operator has written down: texts, redirects, and where the server says how it is. One line each:
 *
 *     answer     /robots.txt=200:User-agent: *      PATH=STATUS[:TEXT]
 *     redirect   /old=308:/new                      FROM=[STATUS:]TO      301 without STATUS
 *     health     /up                                PATH
 *
 * PATH and FROM are compared with the decoded path of a request; they may be written decoded or not, and an equals sign
 * in them is written %3D. A FROM that ends in a slash and a star has every path that begins so; a TO that ends so gets
 * what stands behind. The query of a request is kept. TO is a path or an absolute http(s) URL. Pure: nothing looks at
 * the disk. */

enum {
    ORIBI_FIXED_MAX = 1024,               /* answers; and as many redirects */
    ORIBI_FIXED_PATH_MAX = 1024,          /* bytes of PATH and FROM as written */
    ORIBI_FIXED_TEXT_MAX = 32 * 1024,     /* bytes of TEXT */
    ORIBI_FIXED_TO_MAX = 2048,            /* bytes of TO */
    ORIBI_FIXED_LOCATION_MAX = 24 * 1024, /* of a redirect's Location, the rest and the query in it */
};

enum oribi_fixed_kind { ORIBI_FIXED_ANSWER, ORIBI_FIXED_REDIRECT, ORIBI_FIXED_HEALTH };

struct oribi_fixed {
    enum oribi_fixed_kind kind;
    int status;                  /* of an answer, a redirect */
    struct oribi_slice path;     /* decoded; of a FROM with a star what stands before the star; NUL-terminated */
    struct oribi_slice text;     /* TEXT (empty: none given), or TO without its star and its fragment */
    struct oribi_slice fragment; /* of TO, with its #; or empty */
    bool has_star;               /* FROM */
    bool takes_rest;             /* TO */
};

struct oribi_fixed_set;

/* Reads one line. Gives an entry in one piece of memory: end it with oribi_mem_free(). 0, or ORIBI_EINVAL with one line
 * in `error` (ORIBI_ERROR_TEXT_CAP) that names what is wrong. Borrows `line`. */
int oribi_fixed_read(enum oribi_fixed_kind kind, const char *line, struct oribi_fixed **fixed, char *error);

struct oribi_fixed_lines {
    char *const *answers;
    char *const *redirects;
    const char *health; /* or NULL */
    size_t answer_count;
    size_t redirect_count;
};

/* Gives all of them, NULL when there are none. 0, or ORIBI_EINVAL with one line in `error`: one that does not read, a
 * path that has two, redirects that lead back to where they began, more than ORIBI_FIXED_MAX of a kind. Borrows the
 * lines. destroy takes NULL too. */
int oribi_fixed_set_create(const struct oribi_fixed_lines *lines, struct oribi_fixed_set **set, char *error);
void oribi_fixed_set_destroy(struct oribi_fixed_set *set);

/* The entry that has this path: the one of exactly this path, else the longest before a star; NULL: none. O(log n) for
 * each of the path's segments. */
const struct oribi_fixed *oribi_fixed_find(const struct oribi_fixed_set *set, const struct oribi_path *path);

/* Writes the Location of a redirect for a request whose path, as it came, read as one that the entry has. Returns its
 * length; ORIBI_ELIMIT when `cap` is too small. */
ssize_t oribi_fixed_location(const struct oribi_fixed *fixed, struct oribi_slice raw_path, struct oribi_slice query,
                             char *dst, size_t cap);

/* ---- error_pages ---- */

/* Pages that an operator has made for the server's answers, one line each:
 *
 *     404=public/404.html      502,503,504=public/down.html      STATUS[,STATUS...]=FILE
 *
 * They are read once and kept in memory. */

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

/* The body of the server's own answer: the page of the status, or "404 Not Found" as a line of text, in `text`. */
enum { ORIBI_ERROR_TEXT_LINE_CAP = 64 };
struct oribi_slice oribi_error_page_or_text(const struct oribi_error_pages *pages, int status,
                                            char text[ORIBI_ERROR_TEXT_LINE_CAP], struct oribi_slice *type);

#endif
