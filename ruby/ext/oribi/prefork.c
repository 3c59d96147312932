/* The supervisor as a library: what lib/oribi/prefork.rb needs beyond a server's objects, over prefork.h. */
#include "handle.h"

#include "oribi/server/prefork.h"
#include "oribi/server/title.h"

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
    char error[ORIBI_OPTIONS_ERROR_CAP];
    if (oribi_prefork_set(ext_options_get(self), StringValueCStr(name), StringValueCStr(value), error) < 0)
        rb_raise(ext_error, "%s", error);
    return self;
}

/* --- Oribi::Core::Host as a manager --- */

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
    char error[ORIBI_OPTIONS_ERROR_CAP];
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

/* The name is borrowed by the core for the process's life. */
static struct oribi_host_setup manager_setup(VALUE options, VALUE program, const struct oribi_prefork *prefork)
{
    return (struct oribi_host_setup){
        .options = ext_options_get(options), .program = ruby_strdup(StringValueCStr(program)), .prefork = prefork};
}

/* @param traps [Array<Array(String, String|nil, Numeric)>] signal, what the workers get, seconds between two of them
 * @param left [Array<String>] signals that the program handles itself */
static VALUE host_manage(VALUE class, VALUE options, VALUE program, VALUE traps, VALUE left)
{
    char error[ORIBI_OPTIONS_ERROR_CAP];
    struct oribi_prefork prefork = {0};
    struct oribi_host *host;
    fill_traps(&prefork, traps, left);
    struct oribi_host_setup setup = manager_setup(options, program, &prefork);
    if (oribi_host_create(&setup, &host, error) < 0)
        rb_raise(ext_error, "%s", error);
    return ext_host_new(host, options, Qnil);
}

struct waiting {
    struct oribi_host *host;
    int64_t ms;
};

static void *host_block(void *p)
{
    struct waiting *waiting = p;
    oribi_host_wait_for(waiting->host, waiting->ms);
    return NULL;
}

static void host_unblock(void *p)
{
    oribi_host_wake(p);
}

/* @param seconds [Numeric] at most so long */
static VALUE host_wait_for(VALUE self, VALUE seconds)
{
    struct waiting waiting = {get(self, &ext_host_type), (int64_t)(NUM2DBL(seconds) * 1000)};
    rb_nogvl(host_block, &waiting, host_unblock, waiting.host, RB_NOGVL_UBF_ASYNC_SAFE | RB_NOGVL_INTR_FAIL);
    rb_thread_check_ints();
    return self;
}

static VALUE host_before_fork(VALUE self)
{
    oribi_host_before_fork(get(self, &ext_host_type));
    return self;
}

static VALUE host_worker_forked(VALUE self, VALUE pid)
{
    struct oribi_host *host = get(self, &ext_host_type);
    oribi_host_worker_forked(host, forked_pid(pid));
    return self;
}

static VALUE host_resume(VALUE self)
{
    oribi_host_resume(get(self, &ext_host_type));
    return self;
}

static VALUE host_configure(VALUE self)
{
    oribi_host_configure(get(self, &ext_host_type));
    return self;
}

static VALUE host_signal_all(VALUE self, VALUE name)
{
    struct oribi_host *host = get(self, &ext_host_type);
    return UINT2NUM(oribi_host_signal_all(host, signal_of(name)));
}

static VALUE host_workers(VALUE self)
{
    return UINT2NUM(oribi_host_workers(get(self, &ext_host_type)));
}

/* In the forked child: the host becomes a worker's seat. */
static VALUE host_enter_seat(VALUE self)
{
    char error[ORIBI_OPTIONS_ERROR_CAP];
    VALUE options = rb_ivar_get(self, rb_intern("options"));
    struct oribi_seat *seat = oribi_seat_enter_host(take_over(self, &ext_host_type), error);
    if (!seat)
        rb_raise(ext_error, "%s", error);
    return ext_seat_new(seat, options, Qnil);
}

/* A manager started this program to become its next mold. */
static VALUE mold_inherit_managed(VALUE class, VALUE options, VALUE program)
{
    static const struct oribi_prefork none;
    char error[ORIBI_OPTIONS_ERROR_CAP];
    struct oribi_host_setup setup = manager_setup(options, program, &none);
    struct oribi_mold *mold;
    if (oribi_mold_inherit(&setup, &mold, error) < 0)
        rb_raise(ext_error, "%s", error);
    return ext_mold_new(mold, options, Qnil);
}

/* --- Oribi::Core::Seat of a worker that is no server's --- */

static VALUE seat_begin(VALUE self)
{
    oribi_seat_begin(get(self, &ext_seat_type));
    return self;
}

static VALUE seat_heed(VALUE self)
{
    oribi_seat_heed(get(self, &ext_seat_type));
    return self;
}

static VALUE seat_is_asked(VALUE self)
{
    return oribi_seat_asked(get(self, &ext_seat_type)) ? Qtrue : Qfalse;
}

static VALUE seat_wake_fd(VALUE self)
{
    return INT2NUM(oribi_seat_wake_fd(get(self, &ext_seat_type)));
}

static VALUE seat_job_begin(VALUE self, VALUE text)
{
    struct oribi_seat *seat = get(self, &ext_seat_type);
    StringValue(text);
    oribi_seat_job_begin(seat, RSTRING_PTR(text), (size_t)RSTRING_LEN(text));
    return self;
}

static VALUE seat_job_end(VALUE self)
{
    oribi_seat_job_end(get(self, &ext_seat_type));
    return self;
}

/* The process title, when it is to be told anew; else nil. */
static VALUE seat_job_title(VALUE self, VALUE rest)
{
    char text[ORIBI_TITLE_CAP];
    return title_text(text, oribi_seat_job_title(get(self, &ext_seat_type), RTEST(rest), text, sizeof(text)));
}

void ext_prefork_setup(VALUE core)
{
    VALUE options = rb_const_get(ext_module, rb_intern("Options"));
    rb_define_method(options, "prefork_defaults", options_prefork_defaults, 0);
    rb_define_method(options, "prefork_set", options_prefork_set, 2);

    VALUE host = rb_const_get(core, rb_intern("Host"));
    rb_define_singleton_method(host, "manage", host_manage, 4);
    rb_define_method(host, "wait_for", host_wait_for, 1);
    rb_define_method(host, "before_fork", host_before_fork, 0);
    rb_define_method(host, "worker_forked", host_worker_forked, 1);
    rb_define_method(host, "resume", host_resume, 0);
    rb_define_method(host, "configure", host_configure, 0);
    rb_define_method(host, "signal_all", host_signal_all, 1);
    rb_define_method(host, "workers", host_workers, 0);
    rb_define_method(host, "enter_seat", host_enter_seat, 0);
    rb_define_singleton_method(rb_const_get(core, rb_intern("Mold")), "inherit_managed", mold_inherit_managed, 2);

    VALUE seat = rb_const_get(core, rb_intern("Seat"));
    rb_define_method(seat, "begin", seat_begin, 0);
    rb_define_method(seat, "heed", seat_heed, 0);
    rb_define_method(seat, "asked?", seat_is_asked, 0);
    rb_define_method(seat, "wake_fd", seat_wake_fd, 0);
    rb_define_method(seat, "job_begin", seat_job_begin, 1);
    rb_define_method(seat, "job_end", seat_job_end, 0);
    rb_define_method(seat, "job_title", seat_job_title, 1);
}
