/* Formats of access log lines as operators write them: in Apache's manner ("%h %t \"%r\" %>s %b") or in nginx's
 * ('$remote_addr "$request" $status'). Read once into pieces; worker/logs/access_line.c writes lines by them. Pure. */
#ifndef ORIBI_CONFIG_LOG_FORMAT_H
#define ORIBI_CONFIG_LOG_FORMAT_H

#include "oribi/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oribi_buf;

enum {
    ORIBI_LOG_FORMAT_BYTES_MAX = 4096, /* of the format's text */
    ORIBI_LOG_PIECES_MAX = 128,        /* directives and the texts between them */
    ORIBI_LOG_NAME_BYTES_MAX = 128,    /* of a header field in %{NAME}i, $http_name */
};

enum oribi_log_item {
    ORIBI_LOG_LITERAL,
    ORIBI_LOG_NOTHING, /* a dash, in the place of what only other servers know */
    ORIBI_LOG_REMOTE_ADDR,
    ORIBI_LOG_REMOTE_PORT,
    ORIBI_LOG_TIME_BRACKETS,
    ORIBI_LOG_TIME_LOCAL,
    ORIBI_LOG_TIME_ISO,
    ORIBI_LOG_TIME_S,
    ORIBI_LOG_TIME_MS,
    ORIBI_LOG_TIME_S_MS,
    ORIBI_LOG_REQUEST,
    ORIBI_LOG_METHOD,
    ORIBI_LOG_TARGET,
    ORIBI_LOG_PATH,
    ORIBI_LOG_QUERY,
    ORIBI_LOG_QUERY_MARKED,
    ORIBI_LOG_PROTOCOL,
    ORIBI_LOG_SCHEME,
    ORIBI_LOG_TLS_PROTOCOL,
    ORIBI_LOG_TLS_CIPHER,
    ORIBI_LOG_HOST,
    ORIBI_LOG_PORT,
    ORIBI_LOG_STATUS,
    ORIBI_LOG_BODY_BYTES,
    ORIBI_LOG_BODY_OR_DASH,
    ORIBI_LOG_BYTES_OUT,
    ORIBI_LOG_BYTES_IN,
    ORIBI_LOG_TOTAL_US,
    ORIBI_LOG_TOTAL_MS,
    ORIBI_LOG_TOTAL_S,
    ORIBI_LOG_TOTAL_S_MS,
    ORIBI_LOG_QUEUE_US,
    ORIBI_LOG_UPSTREAM_US,
    ORIBI_LOG_CALL_US,
    ORIBI_LOG_CALL_S_MS,
    ORIBI_LOG_REQUEST_ID,
    ORIBI_LOG_TRACE_ID,
    ORIBI_LOG_WORKER,
    ORIBI_LOG_LISTENER,
    ORIBI_LOG_PID,
    ORIBI_LOG_KEPT,
    ORIBI_LOG_CONNECTION_REQUESTS,
    ORIBI_LOG_CONNECTION,
    ORIBI_LOG_COMPLETION,
    ORIBI_LOG_REFUSED,
    ORIBI_LOG_CLOSE_CODE,
    ORIBI_LOG_MESSAGES_IN,
    ORIBI_LOG_MESSAGES_OUT,
    ORIBI_LOG_FIELD,      /* of the request; `text` is its name */
    ORIBI_LOG_SENT_FIELD, /* of the answer */
    ORIBI_LOG_ITEM_COUNT,
};

struct oribi_log_piece {
    uint8_t item;      /* enum oribi_log_item */
    uint16_t field_id; /* of ORIBI_LOG_FIELD: enum oribi_field_id, or ORIBI_FIELD_OTHER */
    uint16_t at;       /* of its text: offset in the format's own bytes */
    uint16_t n;        /* length of its text; names are in lower case, with dashes */
};

struct oribi_log_format {
    bool json; /* the text begins with a brace: values are escaped as JSON has it, and none is shown as a dash */
    uint16_t piece_count;
    uint16_t text_len;
    struct oribi_log_piece pieces[ORIBI_LOG_PIECES_MAX];
    char text[ORIBI_LOG_FORMAT_BYTES_MAX];
};

/* Reads a format. The first % or $ in it decides whose manner it is in; the other character then stands for itself.
 * 0, or ORIBI_EINVAL with one line in `error` (ORIBI_ERROR_TEXT_CAP) that names what is wrong: an unknown directive
 * with the nearest one that there is, a format that is too long, and in one that begins with a brace a text outside of
 * quotes, which a client could end the value with. */
int oribi_log_format_read(const char *text, struct oribi_log_format *format, char *error);

/* Is this item in the format? */
bool oribi_log_format_has(const struct oribi_log_format *format, enum oribi_log_item item);

static inline struct oribi_slice oribi_log_piece_text(const struct oribi_log_format *format,
                                                      const struct oribi_log_piece *piece)
{
    return oribi_slice(format->text + piece->at, piece->n);
}

/* Appends the table of directives, for the documentation. */
void oribi_log_format_doc(struct oribi_buf *out);

#endif
