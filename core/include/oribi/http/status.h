/* Status codes (RFC 9110 15), and the reasons for which the server itself refuses a request (refusal.c). */
#ifndef ORIBI_HTTP_STATUS_H
#define ORIBI_HTTP_STATUS_H

#include "oribi/base/buf.h"

#include <stdbool.h>

/* ---- status ---- */

/* Status codes: reason phrases, and which ones may carry content (RFC 9110 15). */

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

/* ---- refusal ---- */

/* refusal - why the server itself refuses a request. Each reason has one status, and one word for metrics and logs: the
 * name of the option that is the limit, where it is one.
 *
 * Counters stand in this order and outlive an upgrade: new reasons go to the end, and none changes its meaning. */

enum oribi_refusal {
    ORIBI_REFUSAL_OTHER, /* closed without an answer: no memory for the head */
    ORIBI_REFUSAL_REQUEST_LINE,
    ORIBI_REFUSAL_FIELD,
    ORIBI_REFUSAL_HOST,
    ORIBI_REFUSAL_FRAMING, /* Content-Length and Transfer-Encoding */
    ORIBI_REFUSAL_CHUNKED,
    ORIBI_REFUSAL_PROXY_HEADER,
    ORIBI_REFUSAL_HEAD_TIMEOUT,
    ORIBI_REFUSAL_BODY_TIMEOUT,
    ORIBI_REFUSAL_BODY_RATE,
    ORIBI_REFUSAL_BODY_BYTES,
    ORIBI_REFUSAL_TARGET_BYTES,
    ORIBI_REFUSAL_EXPECT,
    ORIBI_REFUSAL_HEAD_BYTES, /* also a field name or a trailer section that is too long */
    ORIBI_REFUSAL_FIELDS,
    ORIBI_REFUSAL_CONNECT,
    ORIBI_REFUSAL_CODING,
    ORIBI_REFUSAL_VERSION,
    ORIBI_REFUSAL_QUEUE,
    ORIBI_REFUSAL_QUEUE_TIME,
    ORIBI_REFUSAL_BUFFERS_MEMORY,
    ORIBI_REFUSAL_BUFFERS_FILE,
    ORIBI_REFUSAL_CONNECTIONS,
    ORIBI_REFUSAL_MEMORY,            /* none for a body or its trailers */
    ORIBI_REFUSAL_STORAGE,           /* no file can be made or written for a body */
    ORIBI_REFUSAL_DISK_FULL,         /* no file for a body, because the disk has no room */
    ORIBI_REFUSAL_WORKER_END,        /* the worker ends, and no sibling takes the request */
    ORIBI_REFUSAL_MULTIPART,         /* a form that is malformed or cut; with multipart_stream */
    ORIBI_REFUSAL_MULTIPART_MAX,     /* a form with more than limits.h allows; with multipart_stream */
    ORIBI_REFUSAL_WEBSOCKET,         /* a handshake that RFC 6455 does not allow */
    ORIBI_REFUSAL_WEBSOCKET_VERSION, /* of another version than 13 */
    ORIBI_REFUSAL_WEBSOCKET_ORIGIN,  /* from a page of another host */
    ORIBI_REFUSAL_WEBSOCKETS,        /* websockets_max */
    ORIBI_REFUSAL_EVENTS,            /* events_max */
    ORIBI_REFUSAL_SUBSCRIPTIONS,     /* subscriptions_max */
    ORIBI_REFUSALS,
};

/* The refusal for a code of error.h; `bad` for ORIBI_EBAD, which says nothing of where the mistake is. */
enum oribi_refusal oribi_refusal_of(int error, enum oribi_refusal bad);

/* The status that answers such a request; 0: its connection closes without an answer. */
int oribi_refusal_status(enum oribi_refusal refusal);

/* "queue_time_max". Static storage. */
const char *oribi_refusal_name(enum oribi_refusal refusal);

#endif
