/* Lines of the option `history`; see the header. */
#include "oribi/config/history.h"

#include "config/options_private.h"

#include "oribi/base/error.h"
#include "oribi/http/socket_call.h"

#include <stdio.h>
#include <string.h>

enum { DIGITS_MAX = 6 };

static bool read_count(struct oribi_slice text, uint32_t *count)
{
    uint32_t value = 0;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9' || i >= DIGITS_MAX)
            return false;
        value = value * 10 + (uint32_t)(text.p[i] - '0');
    }
    *count = value;
    return value > 0 && value <= ORIBI_HISTORY_MESSAGES_MAX;
}

int oribi_history_read(const char *line, struct oribi_history *history, char *error)
{
    const char *age = strrchr(line, ',');
    const char *count = age;
    while (count && count > line && count[-1] != ',')
        count--;
    if (!age || count == line) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "history: not PREFIX,MESSAGES,AGE: \"%.100s\"", line);
        return ORIBI_EINVAL;
    }
    history->prefix = oribi_slice(line, (size_t)(count - 1 - line));
    if (history->prefix.n && !oribi_channel_name_is_valid(history->prefix)) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "history: no channel has a name that begins with \"%.100s\"", line);
        return ORIBI_EINVAL;
    }
    if (!read_count(oribi_slice(count, (size_t)(age - count)), &history->messages_max)) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "history: not a number of messages from 1 to %d: \"%.100s\"",
                       ORIBI_HISTORY_MESSAGES_MAX, line);
        return ORIBI_EINVAL;
    }
    if (!oribi__option_read_time(age + 1, &history->age_max_ms) || history->age_max_ms < 1 ||
        history->age_max_ms > INT64_C(366) * 24 * 3600 * 1000) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "history: not an age from 1 ms to 366 days: \"%.100s\"", line);
        return ORIBI_EINVAL;
    }
    return 0;
}
