/* Lines of the option `history`: "PREFIX,MESSAGES,AGE". */
#ifndef ORIBI_CONFIG_HISTORY_H
#define ORIBI_CONFIG_HISTORY_H

#include "oribi/base/buf.h"

#include <stdint.h>

enum { ORIBI_HISTORY_MESSAGES_MAX = 100000 };

struct oribi_history {
    struct oribi_slice prefix; /* of channels; part of the line; may be empty: all channels */
    uint32_t messages_max;     /* at least 1 */
    int64_t age_max_ms;        /* at least 1 */
};

/* 0, or ORIBI_EINVAL with one line in `error`. */
int oribi_history_read(const char *line, struct oribi_history *history, char *error);

#endif
