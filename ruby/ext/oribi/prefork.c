/* The supervisor as a library: what lib/oribi/prefork.rb needs beyond a server's objects, over prefork.h and jobs.h. */
#include "handle.h"

#include "oribi/process/jobs.h"
#include "oribi/process/prefork.h"

#include <ruby/util.h>

/* --- Oribi::Options --- */

static VALUE options_prefork_defaults(VALUE self)
{
    oribi_prefork_defaults(ext_options_get(self));
    return self;
}

/* Sets one option from text; those of the server that have no meaning for a library are refused. */
static VALUE options_prefork_set(VALUE self, VALUE name, VALUE value)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    if (oribi_prefork_set(ext_options_get(self), StringValueCStr(name), StringValueCStr(value), error) < 0)
        rb_raise(ext_error, "%s", error);
    return self;
}

/* --- Oribi::Core::Process of a manager --- */

static int signal_of(VALUE name)
{
    VALUE text = rb_obj_as_string(name);
    int number = oribi_signal_number(StringValueCStr(text));
    if (number <= 0)
        rb_raise(ext_error, "there is no signal %" PRIsVALUE, name);
    return number;
}

static void fill_traps(struct oribi_prefork *prefork, VALUE traps, VALUE left)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    for (long i = 0; i < RARRAY_LEN(traps); i++) {
        VALUE trap = rb_ary_entry(traps, i);
        VALUE send = rb_ary_entry(trap, 1);
        double seconds = NUM2DBL(rb_ary_entry(trap, 2));
        if (oribi_prefork_trap(prefork, signal_of(rb_ary_entry(trap, 0)), NIL_P(send) ? 0 : signal_of(send),
                               (int64_t)(seconds * 1000), error) < 0)
            rb_raise(ext_error, "%s", error);
    }
    for (long i = 0; i < RARRAY_LEN(left); i++)
        oribi_prefork_leave(prefork, signal_of(rb_ary_entry(left, i)));
}

/* The program's name is borrowed by the core for the process's life.
 *
 * @param traps [Array<Array(String, String|nil, Numeric)>] signal, what the workers get, seconds between two of them
 * @param left [Array<String>] signals that the program handles itself */
static VALUE process_manage(VALUE class, VALUE options, VALUE program, VALUE traps, VALUE left)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_prefork prefork = {0};
    struct oribi_process *process;
    fill_traps(&prefork, traps, left);
    const struct oribi_process_setup setup = {
        .options = ext_options_get(options), .program = ruby_strdup(StringValueCStr(program)), .manager = &prefork};
    if (oribi_process_create(&setup, &process, error) < 0)
        rb_raise(ext_error, "%s", error);
    return ext_process_new(process, options, Qnil);
}

static VALUE process_resume(VALUE self)
{
    oribi_process_resume(ext_process_get(self));
    return self;
}

static VALUE process_configure(VALUE self)
{
    oribi_process_configure(ext_process_get(self));
    return self;
}

static VALUE process_signal_all(VALUE self, VALUE name)
{
    struct oribi_process *process = ext_process_get(self);
    return UINT2NUM(oribi_process_signal_all(process, signal_of(name)));
}

static VALUE process_workers(VALUE self)
{
    return UINT2NUM(oribi_process_workers(ext_process_get(self)));
}

/* --- Oribi::Core::Process of a manager's worker --- */

static VALUE process_index(VALUE self)
{
    return UINT2NUM(oribi_process_index(ext_process_get(self)));
}

static VALUE process_generation(VALUE self)
{
    return UINT2NUM(oribi_process_generation(ext_process_get(self)));
}

static VALUE jobs_heed(VALUE self)
{
    oribi_jobs_heed(ext_process_get(self));
    return self;
}

static VALUE jobs_is_stopping(VALUE self)
{
    return oribi_jobs_stopping(ext_process_get(self)) ? Qtrue : Qfalse;
}

static VALUE jobs_wake_fd(VALUE self)
{
    return INT2NUM(oribi_jobs_wake_fd(ext_process_get(self)));
}

static VALUE jobs_begin(VALUE self, VALUE text)
{
    struct oribi_process *process = ext_process_get(self);
    StringValue(text);
    oribi_jobs_begin(process, RSTRING_PTR(text), (size_t)RSTRING_LEN(text));
    return self;
}

static VALUE jobs_end(VALUE self)
{
    oribi_jobs_end(ext_process_get(self));
    return self;
}

/* The process title, when it is to be told anew; else nil. */
static VALUE jobs_title(VALUE self, VALUE rest)
{
    char text[ORIBI_TITLE_CAP];
    return ext_title_text(text, oribi_jobs_title(ext_process_get(self), RTEST(rest), text, sizeof(text)));
}

void ext_prefork_setup(VALUE process_class)
{
    VALUE options = rb_const_get(ext_module, rb_intern("Options"));
    rb_define_method(options, "prefork_defaults", options_prefork_defaults, 0);
    rb_define_method(options, "prefork_set", options_prefork_set, 2);
    rb_define_singleton_method(process_class, "manage", process_manage, 4);
    rb_define_method(process_class, "resume", process_resume, 0);
    rb_define_method(process_class, "configure", process_configure, 0);
    rb_define_method(process_class, "signal_all", process_signal_all, 1);
    rb_define_method(process_class, "workers", process_workers, 0);
    rb_define_method(process_class, "index", process_index, 0);
    rb_define_method(process_class, "generation", process_generation, 0);
    rb_define_method(process_class, "jobs_heed", jobs_heed, 0);
    rb_define_method(process_class, "jobs_stopping?", jobs_is_stopping, 0);
    rb_define_method(process_class, "jobs_wake_fd", jobs_wake_fd, 0);
    rb_define_method(process_class, "jobs_begin", jobs_begin, 1);
    rb_define_method(process_class, "jobs_end", jobs_end, 0);
    rb_define_method(process_class, "jobs_title", jobs_title, 1);
}
