/* A process of a server as Ruby sees it: a thin object over processes.h. lib/oribi/supervisor.rb follows the order of
 * calls there, and lib/oribi/prefork.rb that of a manager (prefork.c). */
#include "handle.h"

#include "oribi/base/signals.h"

static VALUE process_class;
static ID id_setproctitle;

/* The core's object lives as long as its process, so the collector never frees it. */
static const rb_data_type_t process_type = {.wrap_struct_name = "Oribi::Core::Process",
                                            .flags = RUBY_TYPED_WB_PROTECTED};

static const char *const roles[] = {"supervisor", "starter", "mold", "intermediate", "worker"};
static const char *const forks[] = {"daemon", "mold", "intermediate", "worker"};
static const char *const types[] = {"wait", "fork", "hook", "load", "open", "run", "exit", "trapped"};

struct oribi_process *ext_process_get(VALUE self)
{
    struct oribi_process *process = rb_check_typeddata(self, &process_type);
    if (!process)
        rb_raise(ext_error, "the process has left its server");
    return process;
}

/* The setup that the core borrows lives as long as the object. */
VALUE ext_process_new(struct oribi_process *process, VALUE options, VALUE listeners)
{
    VALUE object = TypedData_Wrap_Struct(process_class, &process_type, process);
    rb_ivar_set(object, rb_intern("options"), options);
    rb_ivar_set(object, rb_intern("listeners"), listeners);
    return object;
}

/* Words as a NULL-terminated list that lives as long as `kept`. */
static char **word_list(VALUE words, VALUE *kept)
{
    long count = RARRAY_LEN(words);
    char **list = rb_alloc_tmp_buffer2(kept, count + 1, sizeof(*list));
    for (long i = 0; i < count; i++) {
        VALUE word = rb_ary_entry(words, i);
        list[i] = StringValueCStr(word);
    }
    list[count] = NULL;
    return list;
}

/* @param command [Array<String>, nil] command line of later generations and successors */
static VALUE process_create(VALUE class, VALUE options, VALUE listeners, VALUE command)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_process_setup setup = {
        .options = ext_options_get(options), .listeners = ext_listeners_get(listeners), .program = "oribi"};
    struct oribi_process *process;
    VALUE kept = Qnil;
    if (!NIL_P(command)) {
        setup.argv = word_list(command, &kept);
        setup.environ_is_known = true;
    }
    if (oribi_process_create(&setup, &process, error) < 0)
        rb_raise(ext_error, "%s", error);
    return ext_process_new(process, options, listeners);
}

/* A server started this command to become its next mold. */
static VALUE process_is_next_mold(VALUE class)
{
    return oribi_process_is_next_mold() ? Qtrue : Qfalse;
}

static VALUE symbol(const char *name)
{
    return ID2SYM(rb_intern(name));
}

static VALUE signal_text(int number)
{
    return number ? rb_utf8_str_new_cstr(oribi_signal_name(number)) : Qnil;
}

static VALUE hook_arguments(const struct oribi_step *step, enum oribi_role role)
{
    if (step->reason)
        return rb_ary_new_from_args(3, INT2NUM(step->pid), INT2NUM(step->status), rb_utf8_str_new_cstr(step->reason));
    if (step->pid)
        return rb_ary_new_from_args(1, INT2NUM(step->pid));
    return role == ORIBI_ROLE_WORKER ? rb_ary_new_from_args(1, UINT2NUM(step->index)) : rb_ary_new();
}

/* The next step: [:wait], [:fork, kind], [:hook, name, arguments, fatal], [:load], [:open], [:run],
 * [:trapped, signal] or [:exit, code, at_once, signal]. */
static VALUE process_take(VALUE self)
{
    struct oribi_process *process = ext_process_get(self);
    const struct oribi_step *step = oribi_process_take(process);
    VALUE type = symbol(types[step->type]);
    switch (step->type) {
    case ORIBI_STEP_FORK:
        return rb_ary_new_from_args(2, type, symbol(forks[step->fork]));
    case ORIBI_STEP_HOOK:
        return rb_ary_new_from_args(4, type, symbol(step->hook), hook_arguments(step, oribi_process_role(process)),
                                    step->fatal ? Qtrue : Qfalse);
    case ORIBI_STEP_TRAPPED:
        return rb_ary_new_from_args(2, type, signal_text(step->signal));
    case ORIBI_STEP_EXIT:
        return rb_ary_new_from_args(4, type, INT2NUM(step->code), step->at_once ? Qtrue : Qfalse,
                                    signal_text(step->signal));
    default:
        return rb_ary_new_from_args(1, type);
    }
}

struct waiting {
    struct oribi_process *process;
    int64_t ms;
};

static void *block(void *p)
{
    struct waiting *waiting = p;
    oribi_process_wait(waiting->process, waiting->ms);
    return NULL;
}

static void unblock(void *p)
{
    oribi_process_wake(p);
}

/* @param seconds [Numeric] at most so long; < 0: no bound */
static VALUE process_wait(VALUE self, VALUE seconds)
{
    double bound = NUM2DBL(seconds);
    struct waiting waiting = {ext_process_get(self), bound < 0 ? -1 : (int64_t)(bound * 1000)};
    rb_nogvl(block, &waiting, unblock, waiting.process, RB_NOGVL_UBF_ASYNC_SAFE | RB_NOGVL_INTR_FAIL);
    rb_thread_check_ints();
    return self;
}

/* @param pid [Integer] of fork: a pid, 0, or the negative errno of a fork that failed
 * @return [Symbol] role of the calling process */
static VALUE process_forked(VALUE self, VALUE result)
{
    struct oribi_process *process = ext_process_get(self);
    int pid = NUM2INT(result);
    if (pid < 0)
        errno = -pid;
    return symbol(roles[oribi_process_forked(process, pid < 0 ? -1 : pid)]);
}

static VALUE process_failed(VALUE self, VALUE text)
{
    StringValue(text);
    oribi_process_failed(ext_process_get(self), RSTRING_PTR(text), (size_t)RSTRING_LEN(text));
    return self;
}

static VALUE process_role(VALUE self)
{
    return symbol(roles[oribi_process_role(ext_process_get(self))]);
}

static VALUE process_title(VALUE self)
{
    char text[ORIBI_TITLE_CAP];
    return ext_title_text(text, oribi_process_title(ext_process_get(self), text, sizeof(text)));
}

/* The object of a worker stays: its handlers look at it until the process is gone. */
static VALUE process_destroy(VALUE self)
{
    struct oribi_process *process = ext_process_get(self);
    DATA_PTR(self) = NULL;
    oribi_process_destroy(process);
    return Qnil;
}

/* Opens the worker of this process, ties it to signals and tells the supervisor that it serves.
 *
 * @param worker [Oribi::Worker] allocated, not initialized
 * @param environment [Hash] constant entries of every request's environment */
static VALUE process_open(VALUE self, VALUE worker, VALUE environment)
{
    struct oribi_process *process = ext_process_get(self);
    struct oribi_worker_setup setup = {.life_fd = -1};
    struct ext_worker *ext = ext_worker_get(worker);
    oribi_process_worker_setup(process, &setup);
    ext_worker_open(ext, &setup, environment);
    ext->process = process;
    oribi_title_init(&ext->title, process);
    oribi_process_ready(process, ext->core);
    return worker;
}

/* Opens a worker in the mold itself, with the requests of the option `warmup` waiting in it; its #run ends when they
 * have been answered. */
static VALUE process_warm_up(VALUE self, VALUE worker, VALUE environment)
{
    struct oribi_process *process = ext_process_get(self);
    struct ext_worker *ext = ext_worker_get(worker);
    const struct oribi_worker_setup setup = {.options = oribi_process_options(process), .life_fd = -1};
    ext_worker_open(ext, &setup, environment);
    int result = oribi_warmup_begin(ext->core, oribi_process_listeners(process), &ext->warmup);
    if (result < 0)
        rb_raise(ext_error, "cannot warm up: %s", oribi_error_text(result));
    return worker;
}

/* A stop is announced or has begun. */
static VALUE process_is_stopping(VALUE self)
{
    struct oribi_process *process = ext_process_get(self);
    return oribi_process_stop_soon(process) || oribi_process_stopping(process) ? Qtrue : Qfalse;
}

/* What the core's handler of a worker does. */
static VALUE process_signalled(VALUE self, VALUE number)
{
    oribi_process_signalled(ext_process_get(self), NUM2INT(number));
    return Qnil;
}

/* After a trap for this signal was set, which has removed the core's handler. */
static VALUE process_retake(VALUE self, VALUE number)
{
    oribi_signals_retake(NUM2INT(number));
    return Qnil;
}

void ext_process_show_title(struct ext_worker *worker)
{
    char text[ORIBI_TITLE_CAP];
    size_t len = oribi_title_text(&worker->title, text, sizeof(text));
    if (len)
        rb_funcall(rb_mProcess, id_setproctitle, 1, ext_title_text(text, len));
}

/* This process ends before it has become anything: the server that started it hears why. */
static VALUE start_failed(VALUE self, VALUE text)
{
    oribi_process_start_failed(StringValueCStr(text));
    return Qnil;
}

/* For a program that goes on after its server. */
static VALUE give_signals_back(VALUE self)
{
    oribi_signals_uninstall();
    return Qnil;
}

void ext_process_setup(void)
{
    VALUE core = rb_define_module_under(ext_module, "Core");
    id_setproctitle = rb_intern("setproctitle");
    rb_define_singleton_method(core, "start_failed", start_failed, 1);
    rb_define_singleton_method(core, "give_signals_back", give_signals_back, 0);
    process_class = rb_define_class_under(core, "Process", rb_cObject);
    rb_undef_alloc_func(process_class);
    rb_define_singleton_method(process_class, "create", process_create, 3);
    rb_define_singleton_method(process_class, "next_mold?", process_is_next_mold, 0);
    rb_define_method(process_class, "take", process_take, 0);
    rb_define_method(process_class, "wait", process_wait, 1);
    rb_define_method(process_class, "forked", process_forked, 1);
    rb_define_method(process_class, "failed", process_failed, 1);
    rb_define_method(process_class, "role", process_role, 0);
    rb_define_method(process_class, "title", process_title, 0);
    rb_define_method(process_class, "open", process_open, 2);
    rb_define_method(process_class, "warm_up", process_warm_up, 2);
    rb_define_method(process_class, "stopping?", process_is_stopping, 0);
    rb_define_method(process_class, "signalled", process_signalled, 1);
    rb_define_method(process_class, "retake", process_retake, 1);
    rb_define_method(process_class, "destroy", process_destroy, 0);
    ext_prefork_setup(process_class);
}
