/* The supervisor as a library: what lib/oribi/prefork.rb needs beyond a server's objects, over prefork.h. */
#include "ext.h"

#include "oribi/base/signals.h"
#include "oribi/supervisor/prefork.h"

static VALUE options_prefork_defaults(VALUE self)
{
    oribi_prefork_defaults(ext_options_get(self));
    return self;
}

/* Sets one option from text; those of the server that have no meaning for a library are refused. False for a name that
 * no option has. */
static VALUE options_prefork_set(VALUE self, VALUE name, VALUE value)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    int code = oribi_prefork_set(ext_options_get(self), StringValueCStr(name), StringValueCStr(value), error);
    if (code < 0)
        rb_raise(ext_error, "%s", error);
    return code == 0 ? Qtrue : Qfalse;
}

void ext_prefork_fill(struct oribi_prefork *prefork, VALUE manager)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    VALUE traps = rb_ary_entry(manager, 0);
    VALUE left = rb_ary_entry(manager, 1);
    for (long i = 0; i < RARRAY_LEN(traps); i++) {
        VALUE trap = rb_ary_entry(traps, i);
        VALUE signal = rb_ary_entry(trap, 0);
        VALUE send = rb_ary_entry(trap, 1);
        int64_t interval_ms = (int64_t)(NUM2DBL(rb_ary_entry(trap, 2)) * 1000);
        if (oribi_prefork_trap_named(prefork, StringValueCStr(signal), NIL_P(send) ? NULL : StringValueCStr(send),
                                     interval_ms, error) < 0)
            rb_raise(ext_error, "%s", error);
    }
    for (long i = 0; i < RARRAY_LEN(left); i++) {
        VALUE signal = rb_ary_entry(left, i);
        oribi_prefork_leave(prefork, oribi_signal_number(StringValueCStr(signal)));
    }
}

void ext_prefork_setup(void)
{
    VALUE options = rb_const_get(ext_module, rb_intern("Options"));
    rb_define_method(options, "prefork_defaults", options_prefork_defaults, 0);
    rb_define_method(options, "prefork_set", options_prefork_set, 2);
}
