/* No readiness source but poll(2), loop_poll.c. */
#include "event/loop_source.h"

#include <stddef.h>

const struct oribi_loop_ops *const oribi__loop_native = NULL;
