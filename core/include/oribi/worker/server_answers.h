/* server_answers - what an operator has said of the answers of a worker: headers for all of them, and pages for the
 * server's own. Read when the worker is created, and so by a reload. */
#ifndef ORIBI_WORKER_SERVER_ANSWERS_H
#define ORIBI_WORKER_SERVER_ANSWERS_H

#include "oribi/config/options.h"
#include "oribi/files/fixed.h"
#include "oribi/http/response.h"

enum {
    ORIBI__OWN_TEXT_CAP = ORIBI_ERROR_TEXT_LINE_CAP,
    ORIBI__OWN_HEAD_CAP = 1024 + ORIBI_ADDED_BYTES_MAX, /* of oribi_response_own() */
};

struct oribi__server_answers {
    struct oribi_added *added;       /* or NULL */
    struct oribi_error_pages *pages; /* or NULL */
};

/* A page that cannot be read any more is a line in the log, and then there are none. Borrows the options. */
void oribi__server_answers_open(struct oribi__server_answers *own, const struct oribi_options *options);
void oribi__server_answers_close(struct oribi__server_answers *own);

/* A hook of the reactor. */
struct oribi_slice oribi__server_page(void *worker, int status, struct oribi_slice *type);

struct oribi_worker;

/* The body of an answer of the server's own: its page, or a short text in `text` (ORIBI__OWN_TEXT_CAP). */
struct oribi_slice oribi__server_body(struct oribi_worker *worker, int status, char *text, struct oribi_slice *type);

#endif
