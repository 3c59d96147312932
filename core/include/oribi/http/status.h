/* Status codes: reason phrases, and which ones may carry content (RFC 9110 15). */
#ifndef ORIBI_HTTP_STATUS_H
#define ORIBI_HTTP_STATUS_H

#include "oribi/base/slice.h"

#include <stdbool.h>

/* The largest status of an answer. Those from 600 on have no class: clients take them for errors of the server
 * (RFC 9110 15), and so do our counters. */
enum { ORIBI_STATUS_MAX = 999 };

/* 1 (1xx) to 5 (5xx) for a status from 100 to ORIBI_STATUS_MAX; 0 for 0. */
static inline int oribi_status_class(int status)
{
    return status < 600 ? status / 100 : 5;
}

/* "OK", "Not Found" …; an empty slice for codes without a registered phrase. Static storage. */
struct oribi_slice oribi_status_reason(int status);

/* "HTTP/1.1 200 OK\r\n" for registered codes, an empty slice otherwise (the writer then formats it). Static storage. */
struct oribi_slice oribi_status_line(int status);

/* A status as text, also with its reason ("200 OK") and white space or line ends around it: the number, or -1 for what
 * does not begin with three digits alone. */
int oribi_status_read(struct oribi_slice text);

/* False for 1xx, 204 and 304. */
bool oribi_status_has_body(int status);

#endif
