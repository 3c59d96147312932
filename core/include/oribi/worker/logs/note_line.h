/* note_line - "GET /path" of a request, for a worker's slot and for lines of the log. */
#ifndef ORIBI_WORKER_LOGS_NOTE_LINE_H
#define ORIBI_WORKER_LOGS_NOTE_LINE_H

#include "oribi/http/head.h"
#include "oribi/worker/placement/scoreboard.h"

#include <string.h>

/* Writes it as far as there is room. */
static inline void oribi__note_line(char line[ORIBI_SLOT_LINE_CAP], const struct oribi_head *head)
{
    size_t method_n = head->method.n < ORIBI_METHOD_BYTES_MAX ? head->method.n : ORIBI_METHOD_BYTES_MAX;
    size_t room = ORIBI_SLOT_LINE_CAP - 2 - method_n;
    size_t target_n = head->target.n < room ? head->target.n : room;
    memcpy(line, head->method.p, method_n);
    line[method_n] = ' ';
    memcpy(line + method_n + 1, head->target.p, target_n);
    line[method_n + 1 + target_n] = '\0';
}

#endif
