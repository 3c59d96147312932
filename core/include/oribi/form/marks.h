/* Where a form or a cookie is cut: the places of `% & + ; =`, found some at a time. A part of the parsers of this
 * folder; not used by itself. */
#ifndef ORIBI_FORM_MARKS_H
#define ORIBI_FORM_MARKS_H

#include <stddef.h>
#include <stdint.h>

enum { ORIBI_MARKS_CAP = 192 };

struct oribi_marks {
    /* private */
    const char *p;
    size_t n;
    size_t looked; /* bytes whose marks have been found */
    size_t base;   /* where the bytes begin that `places` counts from */
    size_t at;
    size_t count;
    uint32_t places[ORIBI_MARKS_CAP];
};

#endif
