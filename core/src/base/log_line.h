/* log_line - one line of the error log, as text or as JSON, put together on the stack. What is too long is cut; the end
 * of the line always has room. Async-signal-safe but for the libraries' own snprintf. */
#ifndef ORIBI_BASE_LOG_LINE_H
#define ORIBI_BASE_LOG_LINE_H

#include "oribi/base/log.h"
#include "oribi/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ORIBI__LOG_LINE_CAP = 8 * 1024 };

/* The parts of a line around its message. */
struct oribi__log_frame {
    bool json;
    enum oribi_log_level level;
    int64_t wall_ms;
    long pid;
    long worker;                   /* -1: the process is none */
    uint32_t generation;           /* 0: not known */
    struct oribi_slice request_id; /* n 0: the line concerns no request */
    struct oribi_slice trace_id;   /* of that request; n 0: none */
    struct oribi_slice members;    /* of JSON, without the comma before them; n 0: none */
};

struct oribi__log_line {
    size_t len;
    bool json;
    bool detailed;
    char text[ORIBI__LOG_LINE_CAP];
};

void oribi__log_line_begin(struct oribi__log_line *line, const struct oribi__log_frame *frame);

/* A part of the message: controls, and bytes that are no UTF-8, are escaped. */
void oribi__log_line_put(struct oribi__log_line *line, const char *p, size_t n);

/* One more line of the text behind the message, in which tabs are kept; in JSON it goes to a key of its own. */
void oribi__log_line_detail(struct oribi__log_line *line, const struct oribi__log_frame *frame, const char *p,
                            size_t n);

/* The rest, with the newline. */
void oribi__log_line_end(struct oribi__log_line *line, const struct oribi__log_frame *frame);

#endif
