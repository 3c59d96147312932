/* Process control as Ruby sees it: thin objects over host.h and mold.h. The order of calls is that of the two headers; lib/oribi/supervisor.rb
 * and lib/oribi/mold.rb follow it. */
#include "ext.h"

#include "oribi/base/clock.h"
#include "oribi/server/host.h"

#include <errno.h>

enum { TITLE_CAP = 256, TITLE_EVERY_MS = 1000 };

static VALUE host_class;
static VALUE mold_class;
static VALUE seat_class;
static ID id_setproctitle;

/* The core's objects live as long as their process and are handed on across forks, so the collector frees none of them. The setup they borrow
 * is kept alive by instance variables. */
static const rb_data_type_t host_type = {.wrap_struct_name = "Oribi::Core::Host", .flags = RUBY_TYPED_WB_PROTECTED};
static const rb_data_type_t mold_type = {.wrap_struct_name = "Oribi::Core::Mold", .flags = RUBY_TYPED_WB_PROTECTED};
static const rb_data_type_t seat_type = {.wrap_struct_name = "Oribi::Core::Seat", .flags = RUBY_TYPED_WB_PROTECTED};

static void *get(VALUE self, const rb_data_type_t *type)
{
    void *p = rb_check_typeddata(self, type);
    if (!p)
        rb_raise(ext_error, "%s was handed on", type->wrap_struct_name);
    return p;
}

static void *take_over(VALUE self, const rb_data_type_t *type)
{
    void *p = get(self, type);
    DATA_PTR(self) = NULL;
    return p;
}

static VALUE keep(VALUE object, VALUE options, VALUE listeners)
{
    rb_ivar_set(object, rb_intern("options"), options);
    rb_ivar_set(object, rb_intern("listeners"), listeners);
    return object;
}

static VALUE title_text(const char *text, size_t len)
{
    return len ? rb_utf8_str_new(text, (long)len) : Qnil;
}

static struct oribi_host_setup setup_of(VALUE options, VALUE listeners)
{
    return (struct oribi_host_setup){ext_options_get(options), ext_listeners_get(listeners), "oribi", NULL};
}

/* --- Oribi::Core::Host --- */

static VALUE host_create(VALUE class, VALUE options, VALUE listeners)
{
    char error[ORIBI_OPTIONS_ERROR_CAP];
    struct oribi_host_setup setup = setup_of(options, listeners);
    struct oribi_host *host;
    if (oribi_host_create(&setup, &host, error) < 0)
        rb_raise(ext_error, "%s", error);
    return keep(TypedData_Wrap_Struct(host_class, &host_type, host), options, listeners);
}

static VALUE optional_text(const char *text)
{
    return text ? rb_utf8_str_new_cstr(text) : Qnil;
}

/* The next action: [:none], [:fork_daemon], [:fork_mold], [:hook, name, pid, status, reason] or [:exit, code]. */
static VALUE host_take(VALUE self)
{
    const struct oribi_host_action *action = oribi_host_take(get(self, &host_type));
    switch (action->type) {
    case ORIBI_HOST_FORK_DAEMON:
        return rb_ary_new_from_args(1, ID2SYM(rb_intern("fork_daemon")));
    case ORIBI_HOST_FORK_MOLD:
        return rb_ary_new_from_args(1, ID2SYM(rb_intern("fork_mold")));
    case ORIBI_HOST_HOOK:
        return rb_ary_new_from_args(5, ID2SYM(rb_intern("hook")), optional_text(action->hook), INT2NUM(action->pid),
                                    INT2NUM(action->status), optional_text(action->reason));
    case ORIBI_HOST_EXIT:
        return rb_ary_new_from_args(2, ID2SYM(rb_intern("exit")), INT2NUM(action->exit_code));
    case ORIBI_HOST_NONE:
        break;
    }
    return rb_ary_new_from_args(1, ID2SYM(rb_intern("none")));
}

static void *host_block(void *p)
{
    oribi_host_wait(p);
    return NULL;
}

static void host_unblock(void *p)
{
    oribi_host_wake(p);
}

static VALUE host_wait(VALUE self)
{
    struct oribi_host *host = get(self, &host_type);
    rb_nogvl(host_block, host, host_unblock, host, RB_NOGVL_UBF_ASYNC_SAFE | RB_NOGVL_INTR_FAIL);
    rb_thread_check_ints();
    return self;
}

/* fork's result for the core: a pid, or the negative errno of a fork that failed. */
static pid_t forked_pid(VALUE result)
{
    int pid = NUM2INT(result);
    if (pid >= 0)
        return pid;
    errno = -pid;
    return -1;
}

static VALUE host_forked(VALUE self, VALUE pid)
{
    struct oribi_host *host = get(self, &host_type);
    oribi_host_forked(host, forked_pid(pid));
    return self;
}

static VALUE host_daemon_enter(VALUE self)
{
    oribi_host_daemon_enter(get(self, &host_type));
    return self;
}

static VALUE host_daemon_wait(VALUE self, VALUE pid)
{
    struct oribi_host *host = get(self, &host_type);
    return INT2NUM(oribi_host_daemon_wait(host, forked_pid(pid)));
}

static VALUE host_title(VALUE self)
{
    char text[TITLE_CAP];
    return title_text(text, oribi_host_title(get(self, &host_type), text, sizeof(text)));
}

static VALUE host_destroy(VALUE self)
{
    oribi_host_destroy(take_over(self, &host_type));
    return Qnil;
}

/* --- Oribi::Core::Mold --- */

/* In the forked child: the host becomes a mold. */
static VALUE host_enter_mold(VALUE self)
{
    char error[ORIBI_OPTIONS_ERROR_CAP];
    struct oribi_mold *mold;
    if (oribi_mold_enter(take_over(self, &host_type), &mold, error) < 0)
        rb_raise(ext_error, "%s", error);
    VALUE options = rb_ivar_get(self, rb_intern("options"));
    VALUE listeners = rb_ivar_get(self, rb_intern("listeners"));
    return keep(TypedData_Wrap_Struct(mold_class, &mold_type, mold), options, listeners);
}

/* A supervisor started this command to become its next mold. */
static VALUE mold_is_inherited(VALUE class)
{
    return oribi_mold_inherited() ? Qtrue : Qfalse;
}

static VALUE mold_inherit(VALUE class, VALUE options, VALUE listeners)
{
    char error[ORIBI_OPTIONS_ERROR_CAP];
    struct oribi_host_setup setup = setup_of(options, listeners);
    struct oribi_mold *mold;
    if (oribi_mold_inherit(&setup, &mold, error) < 0)
        rb_raise(ext_error, "%s", error);
    return keep(TypedData_Wrap_Struct(mold_class, &mold_type, mold), options, listeners);
}

static VALUE mold_ready(VALUE self)
{
    oribi_mold_ready(get(self, &mold_type));
    return self;
}

static VALUE mold_failed(VALUE self, VALUE text)
{
    StringValue(text);
    oribi_mold_failed(get(self, &mold_type), RSTRING_PTR(text), (size_t)RSTRING_LEN(text));
    return self;
}

static VALUE mold_take(VALUE self)
{
    switch (oribi_mold_take(get(self, &mold_type))) {
    case ORIBI_MOLD_SPAWN:
        return ID2SYM(rb_intern("spawn"));
    case ORIBI_MOLD_EXIT:
        return ID2SYM(rb_intern("exit"));
    case ORIBI_MOLD_NONE:
        break;
    }
    return ID2SYM(rb_intern("none"));
}

static void *mold_block(void *p)
{
    oribi_mold_wait(p);
    return NULL;
}

static void mold_unblock(void *p)
{
    oribi_mold_wake(p);
}

static VALUE mold_wait(VALUE self)
{
    struct oribi_mold *mold = get(self, &mold_type);
    rb_nogvl(mold_block, mold, mold_unblock, mold, RB_NOGVL_UBF_ASYNC_SAFE | RB_NOGVL_INTR_FAIL);
    rb_thread_check_ints();
    return self;
}

static VALUE mold_before_fork(VALUE self)
{
    oribi_mold_before_fork(get(self, &mold_type));
    return self;
}

static VALUE mold_intermediate(VALUE self, VALUE pid)
{
    struct oribi_mold *mold = get(self, &mold_type);
    oribi_mold_intermediate(mold, forked_pid(pid));
    return self;
}

static VALUE mold_after_fork(VALUE self, VALUE pid)
{
    struct oribi_mold *mold = get(self, &mold_type);
    oribi_mold_after_fork(mold, forked_pid(pid));
    return self;
}

static VALUE mold_title(VALUE self)
{
    char text[TITLE_CAP];
    return title_text(text, oribi_mold_title(get(self, &mold_type), text, sizeof(text)));
}

static VALUE mold_destroy(VALUE self)
{
    oribi_mold_destroy(take_over(self, &mold_type));
    return Qnil;
}

/* --- Oribi::Core::Seat --- */

/* In the grandchild: the mold becomes a worker's seat. */
static VALUE mold_enter_seat(VALUE self)
{
    VALUE options = rb_ivar_get(self, rb_intern("options"));
    VALUE listeners = rb_ivar_get(self, rb_intern("listeners"));
    struct oribi_seat *seat = oribi_seat_enter(take_over(self, &mold_type));
    return keep(TypedData_Wrap_Struct(seat_class, &seat_type, seat), options, listeners);
}

/* Opens the worker of this seat.
 *
 * @param worker [Oribi::Worker] allocated, not initialized
 * @param environment [Hash] constant entries of every request's environment */
static VALUE seat_open(VALUE self, VALUE worker, VALUE environment)
{
    struct oribi_worker_setup setup = {.life_fd = -1};
    struct ext_worker *ext = ext_worker_get(worker);
    oribi_seat_setup(get(self, &seat_type), &setup);
    ext_worker_open(ext, &setup, environment);
    return worker;
}

/* Ties the worker to signals and tells the supervisor that it serves. */
static VALUE seat_ready(VALUE self, VALUE worker)
{
    struct oribi_seat *seat = get(self, &seat_type);
    struct ext_worker *ext = NIL_P(worker) ? NULL : ext_worker_get(worker);
    if (ext)
        ext->seat = seat;
    oribi_seat_ready(seat, ext ? ext->core : NULL);
    return self;
}

static VALUE seat_failed(VALUE self, VALUE text)
{
    StringValue(text);
    oribi_seat_failed(get(self, &seat_type), RSTRING_PTR(text), (size_t)RSTRING_LEN(text));
    return self;
}

static VALUE seat_index(VALUE self)
{
    return UINT2NUM(oribi_seat_index(get(self, &seat_type)));
}

static VALUE seat_generation(VALUE self)
{
    return UINT2NUM(oribi_seat_generation(get(self, &seat_type)));
}

/* Unties the worker from the signals. */
static VALUE seat_leave(VALUE self, VALUE worker)
{
    if (!NIL_P(worker))
        ext_worker_get(worker)->seat = NULL;
    oribi_seat_leave(take_over(self, &seat_type));
    return Qnil;
}

void ext_seat_title(struct ext_worker *worker)
{
    char text[TITLE_CAP];
    if (!worker->seat)
        return;
    int64_t now_ms = oribi_clock_ms();
    if (now_ms - worker->title_ms < TITLE_EVERY_MS)
        return;
    worker->title_ms = now_ms;
    size_t len = oribi_seat_title(worker->seat, text, sizeof(text));
    if (len)
        rb_funcall(rb_mProcess, id_setproctitle, 1, title_text(text, len));
}

static VALUE plain_class(VALUE under, const char *name)
{
    VALUE class = rb_define_class_under(under, name, rb_cObject);
    rb_undef_alloc_func(class);
    return class;
}

void ext_host_setup(void)
{
    id_setproctitle = rb_intern("setproctitle");
    VALUE core = rb_define_module_under(ext_module, "Core");
    host_class = plain_class(core, "Host");
    rb_define_singleton_method(host_class, "create", host_create, 2);
    rb_define_method(host_class, "take", host_take, 0);
    rb_define_method(host_class, "wait", host_wait, 0);
    rb_define_method(host_class, "forked", host_forked, 1);
    rb_define_method(host_class, "daemon_enter", host_daemon_enter, 0);
    rb_define_method(host_class, "daemon_wait", host_daemon_wait, 1);
    rb_define_method(host_class, "enter_mold", host_enter_mold, 0);
    rb_define_method(host_class, "title", host_title, 0);
    rb_define_method(host_class, "destroy", host_destroy, 0);

    mold_class = plain_class(core, "Mold");
    rb_define_singleton_method(mold_class, "inherited?", mold_is_inherited, 0);
    rb_define_singleton_method(mold_class, "inherit", mold_inherit, 2);
    rb_define_method(mold_class, "ready", mold_ready, 0);
    rb_define_method(mold_class, "failed", mold_failed, 1);
    rb_define_method(mold_class, "take", mold_take, 0);
    rb_define_method(mold_class, "wait", mold_wait, 0);
    rb_define_method(mold_class, "before_fork", mold_before_fork, 0);
    rb_define_method(mold_class, "intermediate", mold_intermediate, 1);
    rb_define_method(mold_class, "after_fork", mold_after_fork, 1);
    rb_define_method(mold_class, "enter_seat", mold_enter_seat, 0);
    rb_define_method(mold_class, "title", mold_title, 0);
    rb_define_method(mold_class, "destroy", mold_destroy, 0);

    seat_class = plain_class(core, "Seat");
    rb_define_method(seat_class, "open", seat_open, 2);
    rb_define_method(seat_class, "ready", seat_ready, 1);
    rb_define_method(seat_class, "failed", seat_failed, 1);
    rb_define_method(seat_class, "index", seat_index, 0);
    rb_define_method(seat_class, "generation", seat_generation, 0);
    rb_define_method(seat_class, "leave", seat_leave, 1);
}
