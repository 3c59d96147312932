/* Lists whose elements hold no comma (RFC 9110 5.6.1.2); private to the readers of fields. */
#ifndef ORIBI_HTTP_LIST_H
#define ORIBI_HTTP_LIST_H

#include "oribi/http/ows.h"

/* Takes the next element that is not empty off the list, without the white space around it; false at the end. */
static inline bool list_next(struct oribi_slice *list, struct oribi_slice *element)
{
    while (list->n) {
        const char *comma = memchr(list->p, ',', list->n);
        size_t n = comma ? (size_t)(comma - list->p) : list->n;
        size_t used = comma ? n + 1 : n;
        *element = strip_ows(list->p, list->p + n);
        *list = oribi_slice(list->p + used, list->n - used);
        if (element->n)
            return true;
    }
    return false;
}

#endif
