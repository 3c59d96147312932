/* Shared by the sources of the failure page: failure_page.c (facts, plain text, JSON, the lines
 * around a mistake), failure_html.c and failure_secrets.c (what is not shown). */
#ifndef ORIBI_DEVELOP_FAILURE_PRIVATE_H
#define ORIBI_DEVELOP_FAILURE_PRIVATE_H

#include "oribi/develop/failure_page.h"

#include <stdbool.h>
#include <stdint.h>

enum oribi__failure_section {
    ORIBI__SECTION_NONE,
    ORIBI__SECTION_REQUEST,
    ORIBI__SECTION_PARAMETERS,
    ORIBI__SECTION_HEADERS,
    ORIBI__SECTION_ENVIRONMENT,
    ORIBI__SECTIONS,
};

struct oribi__failure_frame {
    struct oribi_slice path;
    struct oribi_slice shown; /* the path, relative to the application's folder */
    struct oribi_slice name;  /* of the function; n 0: not known */
    uint32_t line;
    bool own; /* the application's */
};

/* The facts, sorted out. Slices borrow from the facts. */
struct oribi__failure {
    const struct oribi_failure_fact *facts;
    size_t count;
    struct oribi_slice program;
    struct oribi_slice title;
    struct oribi_slice class_name;
    struct oribi_slice message;
    struct oribi_slice note;
    struct oribi_slice accept;
    struct oribi_slice requested_with;
    struct oribi_slice query;
    struct oribi__failure_frame place; /* the innermost of the application's frames, else of all */
    bool has_place;
    uint32_t own_count;
    uint32_t other_count;
};

/* Called for each pair of a section; its value has lost its secrets. */
typedef void oribi__failure_pair_fn(void *arg, struct oribi_slice name, struct oribi_slice value);

/* failure_page.c */
bool oribi__failure_frame(const struct oribi__failure *failure, size_t index, struct oribi__failure_frame *frame);
void oribi__failure_pairs(const struct oribi__failure *failure, enum oribi__failure_section section,
                          oribi__failure_pair_fn *function, void *arg);
const char *oribi__failure_section_title(enum oribi__failure_section section);

/* failure_html.c */
void oribi__failure_html(const struct oribi__failure *failure, struct oribi_buf *out);

/* failure_secrets.c. The first: does the name speak of a secret? The second appends the value that is shown under this
 * name. */
bool oribi__failure_is_secret(struct oribi_slice name);
void oribi__failure_show(struct oribi_slice name, struct oribi_slice value, struct oribi_buf *out);

/* Lines around one of them. */
enum { ORIBI__SOURCE_AROUND = 5, ORIBI__SOURCE_LINES = 2 * ORIBI__SOURCE_AROUND + 1 };

struct oribi__failure_source {
    struct oribi_buf text; /* the lines borrow from it */
    uint32_t first;        /* number of lines[0] */
    uint32_t count;
    struct oribi_slice lines[ORIBI__SOURCE_LINES];
};

/* Gives the lines; count 0: the file cannot be read or has no such line. End with oribi_buf_deinit(&source->text). */
void oribi__failure_source(const struct oribi__failure_frame *frame, struct oribi__failure_source *source);

#endif
