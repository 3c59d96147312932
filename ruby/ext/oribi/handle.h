/* What host.c and mold.c share: Ruby objects around the core's process control, which are handed on across forks. */
#ifndef ORIBI_EXT_HANDLE_H
#define ORIBI_EXT_HANDLE_H

#include "ext.h"

#include "oribi/server/host.h"

#include <errno.h>

static inline void *get(VALUE self, const rb_data_type_t *type)
{
    void *p = rb_check_typeddata(self, type);
    if (!p)
        rb_raise(ext_error, "%s was handed on", type->wrap_struct_name);
    return p;
}

/* The object is empty from here on. */
static inline void *take_over(VALUE self, const rb_data_type_t *type)
{
    void *p = get(self, type);
    DATA_PTR(self) = NULL;
    return p;
}

/* The setup that the core borrows lives as long as the object. */
static inline VALUE keep(VALUE object, VALUE options, VALUE listeners)
{
    rb_ivar_set(object, rb_intern("options"), options);
    rb_ivar_set(object, rb_intern("listeners"), listeners);
    return object;
}

static inline VALUE title_text(const char *text, size_t len)
{
    return len ? rb_utf8_str_new(text, (long)len) : Qnil;
}

/* fork's result for the core: a pid, or the negative errno of a fork that failed. */
static inline pid_t forked_pid(VALUE result)
{
    int pid = NUM2INT(result);
    if (pid >= 0)
        return pid;
    errno = -pid;
    return -1;
}

/* host.c and mold.c */
extern const rb_data_type_t ext_host_type;
extern const rb_data_type_t ext_seat_type;

/* Takes what it wraps; gives the object. */
VALUE ext_host_new(struct oribi_host *host, VALUE options, VALUE listeners);
VALUE ext_seat_new(struct oribi_seat *seat, VALUE options, VALUE listeners);

/* prefork.c */
void ext_prefork_setup(VALUE core);

static inline struct oribi_host_setup setup_of(VALUE options, VALUE listeners)
{
    return (struct oribi_host_setup){
        .options = ext_options_get(options), .listeners = ext_listeners_get(listeners), .program = "oribi"};
}

static inline VALUE plain_class(VALUE under, const char *name)
{
    VALUE class = rb_define_class_under(under, name, rb_cObject);
    rb_undef_alloc_func(class);
    return class;
}

/* mold.c: gives Oribi::Core::Mold around a mold, which it takes. */
VALUE ext_mold_new(struct oribi_mold *mold, VALUE options, VALUE listeners);
void ext_mold_setup(VALUE core);

#endif
