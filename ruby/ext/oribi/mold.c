/* Molds and workers' seats as Ruby sees them: thin objects over mold.h. lib/oribi/mold.rb and lib/oribi/worker_process.rb follow the order of
 * calls there. */
#include "handle.h"

#include "oribi/server/signals.h"

static VALUE mold_class;
static VALUE seat_class;
static ID id_setproctitle;

/* The core's objects live as long as their process, so the collector frees none of them. */
static const rb_data_type_t mold_type = {.wrap_struct_name = "Oribi::Core::Mold", .flags = RUBY_TYPED_WB_PROTECTED};
const rb_data_type_t ext_seat_type = {.wrap_struct_name = "Oribi::Core::Seat", .flags = RUBY_TYPED_WB_PROTECTED};

VALUE ext_mold_new(struct oribi_mold *mold, VALUE options, VALUE listeners)
{
    return keep(TypedData_Wrap_Struct(mold_class, &mold_type, mold), options, listeners);
}

/* --- Oribi::Core::Mold --- */

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
    return ext_mold_new(mold, options, listeners);
}

/* Opens a worker in the mold itself, with the requests of the option `warmup` waiting in it; its #run ends when they have been answered. */
static VALUE mold_warm_up(VALUE self, VALUE worker, VALUE environment)
{
    struct oribi_mold *mold = get(self, &mold_type);
    struct ext_worker *ext = ext_worker_get(worker);
    const struct oribi_worker_setup setup = {.options = oribi_mold_options(mold), .life_fd = -1};
    ext_worker_open(ext, &setup, environment);
    int result = oribi_warmup_begin(ext->core, oribi_mold_listeners(mold), &ext->warmup);
    if (result < 0)
        rb_raise(ext_error, "cannot warm up: %s", oribi_error_text(result));
    return worker;
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
    char text[ORIBI_TITLE_CAP];
    return title_text(text, oribi_mold_title(get(self, &mold_type), text, sizeof(text)));
}

static VALUE mold_destroy(VALUE self)
{
    oribi_mold_destroy(take_over(self, &mold_type));
    return Qnil;
}

/* --- Oribi::Core::Seat --- */

VALUE ext_seat_new(struct oribi_seat *seat, VALUE options, VALUE listeners)
{
    return keep(TypedData_Wrap_Struct(seat_class, &ext_seat_type, seat), options, listeners);
}

/* In the grandchild: the mold becomes a worker's seat. */
static VALUE mold_enter_seat(VALUE self)
{
    VALUE options = rb_ivar_get(self, rb_intern("options"));
    VALUE listeners = rb_ivar_get(self, rb_intern("listeners"));
    struct oribi_seat *seat = oribi_seat_enter(take_over(self, &mold_type));
    return ext_seat_new(seat, options, listeners);
}

/* Opens the worker of this seat.
 *
 * @param worker [Oribi::Worker] allocated, not initialized
 * @param environment [Hash] constant entries of every request's environment */
static VALUE seat_open(VALUE self, VALUE worker, VALUE environment)
{
    struct oribi_worker_setup setup = {.life_fd = -1};
    struct ext_worker *ext = ext_worker_get(worker);
    oribi_seat_setup(get(self, &ext_seat_type), &setup);
    ext_worker_open(ext, &setup, environment);
    return worker;
}

/* Ties the worker to signals and tells the supervisor that it serves. */
static VALUE seat_ready(VALUE self, VALUE worker)
{
    struct oribi_seat *seat = get(self, &ext_seat_type);
    struct ext_worker *ext = NIL_P(worker) ? NULL : ext_worker_get(worker);
    if (ext) {
        ext->seat = seat;
        oribi_title_init(&ext->title, seat);
    }
    oribi_seat_ready(seat, ext ? ext->core : NULL);
    return self;
}

static VALUE seat_failed(VALUE self, VALUE text)
{
    StringValue(text);
    oribi_seat_failed(get(self, &ext_seat_type), RSTRING_PTR(text), (size_t)RSTRING_LEN(text));
    return self;
}

static VALUE seat_index(VALUE self)
{
    return UINT2NUM(oribi_seat_index(get(self, &ext_seat_type)));
}

static VALUE seat_generation(VALUE self)
{
    return UINT2NUM(oribi_seat_generation(get(self, &ext_seat_type)));
}

/* What the core's handler does. */
static VALUE seat_signal(VALUE self, VALUE number)
{
    oribi_seat_signal(get(self, &ext_seat_type), NUM2INT(number));
    return Qnil;
}

/* After a trap for this signal was set, which has removed the core's handler. */
static VALUE seat_retake(VALUE self, VALUE number)
{
    oribi_signals_retake(NUM2INT(number));
    return Qnil;
}

/* A stop is announced or has begun. */
static VALUE seat_is_stopping(VALUE self)
{
    struct oribi_seat *seat = get(self, &ext_seat_type);
    return oribi_seat_stop_soon(seat) || oribi_seat_stopping(seat) ? Qtrue : Qfalse;
}

static VALUE seat_before_fork(VALUE self)
{
    oribi_seat_before_fork(get(self, &ext_seat_type));
    return self;
}

static VALUE seat_after_fork(VALUE self, VALUE pid)
{
    struct oribi_seat *seat = get(self, &ext_seat_type);
    oribi_seat_after_fork(seat, forked_pid(pid));
    return self;
}

/* In the grandchild: the worker becomes a mold; nil when it cannot. */
static VALUE seat_promote(VALUE self)
{
    VALUE options = rb_ivar_get(self, rb_intern("options"));
    VALUE listeners = rb_ivar_get(self, rb_intern("listeners"));
    struct oribi_mold *mold = oribi_seat_promote(take_over(self, &ext_seat_type));
    return mold ? ext_mold_new(mold, options, listeners) : Qnil;
}

/* Unties the worker from the signals. */
static VALUE seat_leave(VALUE self, VALUE worker)
{
    if (!NIL_P(worker)) {
        struct ext_worker *ext = ext_worker_get(worker);
        ext->seat = NULL;
        ext->title.seat = NULL;
    }
    oribi_seat_leave(take_over(self, &ext_seat_type));
    return Qnil;
}

void ext_seat_title(struct ext_worker *worker)
{
    char text[ORIBI_TITLE_CAP];
    size_t len = oribi_title_text(&worker->title, text, sizeof(text));
    if (len)
        rb_funcall(rb_mProcess, id_setproctitle, 1, title_text(text, len));
}

void ext_mold_setup(VALUE core)
{
    id_setproctitle = rb_intern("setproctitle");
    mold_class = plain_class(core, "Mold");
    rb_define_singleton_method(mold_class, "inherited?", mold_is_inherited, 0);
    rb_define_singleton_method(mold_class, "inherit", mold_inherit, 2);
    rb_define_method(mold_class, "warm_up", mold_warm_up, 2);
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
    rb_define_method(seat_class, "stopping?", seat_is_stopping, 0);
    rb_define_method(seat_class, "signal", seat_signal, 1);
    rb_define_method(seat_class, "retake", seat_retake, 1);
    rb_define_method(seat_class, "before_fork", seat_before_fork, 0);
    rb_define_method(seat_class, "after_fork", seat_after_fork, 1);
    rb_define_method(seat_class, "promote", seat_promote, 0);
    rb_define_method(seat_class, "leave", seat_leave, 1);
}
