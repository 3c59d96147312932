/* Values of options whose text others read, too (options_value.c). */
#ifndef ORIBI_CONFIG_OPTIONS_VALUES_H
#define ORIBI_CONFIG_OPTIONS_VALUES_H

#include <stdbool.h>
#include <stdint.h>

/* on off true false yes no 1 0, in any case; empty is off. False for any other text. */
bool oribi__option_read_switch(const char *text, bool *on);

/* A time with its unit ("1500ms", "2 s", "1.5m"; without one: seconds) in milliseconds. False for any other text. */
bool oribi__option_read_time(const char *text, int64_t *ms);

#endif
