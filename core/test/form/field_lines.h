/* Results that a case of spec/form or spec/cookie expects: `field` lines in their order, and which of them had no
 * `=`. */
#ifndef ORIBI_TEST_FIELD_LINES_H
#define ORIBI_TEST_FIELD_LINES_H

#include "http/case_folder.h"

static bool is_named_bare(size_t number)
{
    struct oribi_slice raw = case_raw(&file, "bare");
    const char *at = raw.p;
    while (at && at < raw.p + raw.n) {
        char *end;
        if (strtoul(at, &end, 10) == number)
            return true;
        at = end == at ? NULL : end; /* the line's end ends the last number */
    }
    return false;
}

/* The next `field` line from *line on. */
static bool next_field(size_t *line, struct oribi_slice *key, struct oribi_slice *value)
{
    static char bytes[64 * 1024];
    while (*line < file.count && strcmp(file.lines[*line].key, "field") != 0)
        ++*line;
    if (*line == file.count)
        return false;
    case_pair(file.lines[(*line)++].raw, bytes, sizeof(bytes), key, value);
    return true;
}

#endif
