/* What process.c and prefork.c share: the Ruby object around a process of processes.h. */
#ifndef ORIBI_EXT_HANDLE_H
#define ORIBI_EXT_HANDLE_H

#include "ext.h"

#include <errno.h>

/* process.c. Raises Oribi::Error where the process has been destroyed. */
struct oribi_process *ext_process_get(VALUE self);

/* Takes what it wraps; gives the object. */
VALUE ext_process_new(struct oribi_process *process, VALUE options, VALUE listeners);

/* prefork.c */
void ext_prefork_setup(VALUE process_class);

static inline VALUE ext_title_text(const char *text, size_t len)
{
    return len ? rb_utf8_str_new(text, (long)len) : Qnil;
}

#endif
