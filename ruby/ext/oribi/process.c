/* A process of a server, or of a program that manages workers, as Ruby sees it: a thin object over process.h, which
 * describes the order of calls. lib/oribi/supervisor.rb and lib/oribi/prefork.rb drive it. Its methods are those of
 * the core's table (methods.h) and what Ruby does in its own way: create, take, wait, open, retake, destroy. */
#include "ext.h"

#include "oribi/http/compress.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/base/signals.h"
#include "oribi/command/check.h"
#include "oribi/supervisor/methods.h"
#include "oribi/supervisor/prefork.h"

#include <ruby/util.h>

enum { METHODS_MAX = 32 };

static VALUE process_class;
static ID id_setproctitle;
static ID method_ids[METHODS_MAX];

/* The core's object lives as long as its process, so the collector never frees it. */
static const rb_data_type_t process_type = {.wrap_struct_name = "Oribi::Core::Process",
                                            .flags = RUBY_TYPED_WB_PROTECTED};

static struct oribi_process *ext_process_get(VALUE self)
{
    struct oribi_process *process = rb_check_typeddata(self, &process_type);
    if (!process)
        rb_raise(ext_error, "the process has left its server");
    return process;
}

/* The core borrows options, listeners and the program's name for the life of the process.
 *
 * @param listeners [Listeners, nil] nil: workers that listen to nothing
 * @param command [Array<String>] command line of later generations and successors; empty: this process's own
 * @param environment [Array<String>, nil] of later generations and successors, "NAME=value"; nil: that of the start
 * @param needed [String, nil] file without which they cannot start
 * @param manager [Array, nil] the arguments of ext_prefork_fill() for a program that manages workers; nil: a server */
static VALUE process_create(VALUE class, VALUE options, VALUE program, VALUE listeners, VALUE command,
                            VALUE environment, VALUE needed, VALUE manager)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_prefork prefork = {0};
    struct oribi_process *process;
    struct ext_words words = {.copies = Qnil, .holder = Qnil};
    struct ext_words pairs = {.copies = Qnil, .holder = Qnil};
    struct oribi_process_setup setup = {.options = ext_options_get(options),
                                        .listeners = NIL_P(listeners) ? NULL : ext_listeners_get(listeners),
                                        .environ_is_known = NIL_P(environment)};
    ext_words_take(&words, command);
    setup.argv = words.count ? (char *const *)words.texts : NULL;
    if (!NIL_P(environment)) {
        ext_words_take(&pairs, environment);
        setup.environ = (char *const *)pairs.texts;
    }
    if (!NIL_P(needed))
        setup.needed = StringValueCStr(needed);
    if (!NIL_P(manager)) {
        ext_prefork_fill(&prefork, manager);
        setup.manager = &prefork;
    }
    setup.program = ruby_strdup(StringValueCStr(program));
    VALUE version = rb_const_get(ext_module, rb_intern("VERSION"));
    VALUE language = rb_sprintf("ruby %" PRIsVALUE, rb_const_get(rb_cObject, rb_intern("RUBY_VERSION")));
    setup.version = StringValueCStr(version);
    setup.language = StringValueCStr(language);
    if (oribi_process_create(&setup, &process, error) < 0)
        rb_raise(ext_error, "%s", error);
    RB_GC_GUARD(words.holder);
    RB_GC_GUARD(needed);
    RB_GC_GUARD(version);
    RB_GC_GUARD(language);
    RB_GC_GUARD(words.copies);
    RB_GC_GUARD(pairs.holder);
    RB_GC_GUARD(pairs.copies);
    VALUE object = TypedData_Wrap_Struct(process_class, &process_type, process);
    rb_ivar_set(object, rb_intern("options"), options);
    rb_ivar_set(object, rb_intern("listeners"), listeners);
    return object;
}

/* A server started this command to become its next mold. */
static VALUE process_is_next_mold(VALUE class)
{
    return oribi_process_is_next_mold() ? Qtrue : Qfalse;
}

/* --- what the core names --- */

static VALUE from_value(const struct oribi_value *value)
{
    switch (value->type) {
    case ORIBI_VALUE_BOOL:
        return value->number ? Qtrue : Qfalse;
    case ORIBI_VALUE_NUMBER:
        return LL2NUM(value->number);
    case ORIBI_VALUE_TEXT:
        return rb_utf8_str_new(value->text, (long)value->len);
    case ORIBI_VALUE_NONE:
        break;
    }
    return Qnil;
}

/* The text lives as long as *holder. */
static struct oribi_value to_value(enum oribi_value_type type, VALUE object, VALUE *holder)
{
    struct oribi_value value = {.type = type};
    if (type == ORIBI_VALUE_TEXT) {
        *holder = rb_obj_as_string(object);
        value.text = RSTRING_PTR(*holder);
        value.len = (size_t)RSTRING_LEN(*holder);
    } else {
        value.number = type == ORIBI_VALUE_BOOL ? RTEST(object) : NUM2LL(object);
    }
    return value;
}

/* Any method of the core's table: Ruby tells by which name it was called. */
static VALUE process_method(int argc, VALUE *argv, VALUE self)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_value argument = {0};
    struct oribi_value result;
    VALUE holder = Qnil;
    const struct oribi_method *method = oribi_process_methods(&(size_t){0});
    for (ID name = rb_frame_this_func(), *id = method_ids; *id != name; id++)
        method++;
    rb_check_arity(argc, method->argument ? 1 : 0, method->argument ? 1 : 0);
    if (method->argument)
        argument = to_value(method->argument, argv[0], &holder);
    if (oribi_method_call(method, ext_process_get(self), &argument, &result, error) < 0)
        rb_raise(ext_error, "%s", error);
    RB_GC_GUARD(holder);
    return from_value(&result);
}

static void define_methods(void)
{
    size_t count;
    const struct oribi_method *methods = oribi_process_methods(&count);
    if (count > METHODS_MAX)
        rb_bug("METHODS_MAX is below %d", (int)count);
    for (size_t i = 0; i < count; i++) {
        char name[64];
        (void)snprintf(name, sizeof(name), "%s%s", methods[i].name, methods[i].result == ORIBI_VALUE_BOOL ? "?" : "");
        method_ids[i] = rb_intern(name);
        rb_define_method(process_class, name, process_method, -1);
    }
}

/* The next step as oribi_step_values() has it, its type and the names of forks and hooks as Strings. */
static VALUE process_take(VALUE self)
{
    struct oribi_value values[ORIBI_STEP_VALUES_MAX];
    struct oribi_process *process = ext_process_get(self);
    size_t count = oribi_step_values(process, oribi_process_take(process), values);
    VALUE step = rb_ary_new_capa((long)count);
    for (size_t i = 0; i < count; i++)
        rb_ary_push(step, from_value(&values[i]));
    return step;
}

/* --- what Ruby does in its own way --- */

static void *block(void *process)
{
    oribi_process_wait(process, -1);
    return NULL;
}

static void unblock(void *process)
{
    oribi_process_wake(process);
}

static VALUE process_wait(VALUE self)
{
    struct oribi_process *process = ext_process_get(self);
    ext_without_lock(block, process, unblock, process);
    rb_thread_check_ints();
    return self;
}

/* Opens the worker of this process, ties it to signals and tells the supervisor that it serves. In a mold: a worker
 * with the requests of the option `warmup` waiting in it, whose #run ends when they have been answered.
 *
 * @param worker [Oribi::Worker] allocated, not initialized
 * @param environment [Hash] constant entries of every request's environment */
static VALUE process_open(VALUE self, VALUE worker, VALUE environment)
{
    struct oribi_process *process = ext_process_get(self);
    struct oribi_worker_setup setup;
    struct ext_worker *ext = ext_worker_get(worker);
    oribi_process_worker_setup(process, &setup);
    ext_worker_open(ext, &setup, environment);
    ext->process = oribi_process_role(process) == ORIBI_ROLE_WORKER ? process : NULL;
    int result = oribi_process_opened(process, ext->core, &ext->title, &ext->warmup);
    if (result < 0)
        rb_raise(ext_error, "cannot warm up: %s", oribi_error_text(result));
    return worker;
}

/* After a trap for this signal was set, which has removed the core's handler. */
static VALUE process_retake(VALUE self, VALUE number)
{
    oribi_signals_retake(NUM2INT(number));
    return Qnil;
}

/* The object of a worker stays: its handlers look at it until the process is gone. */
static VALUE process_destroy(VALUE self)
{
    struct oribi_process *process = ext_process_get(self);
    DATA_PTR(self) = NULL;
    oribi_process_destroy(process);
    return Qnil;
}

void ext_process_show_title(struct ext_worker *worker)
{
    char text[ORIBI_TITLE_CAP];
    size_t len = oribi_title_text(&worker->title, text, sizeof(text));
    if (len)
        rb_funcall(rb_mProcess, id_setproctitle, 1, rb_utf8_str_new(text, (long)len));
}

/* @return [String] the content codings that this build has a library for */
static VALUE codings(VALUE self)
{
    char text[ORIBI_ERROR_TEXT_CAP];
    oribi_compress_describe(text, sizeof(text));
    return rb_utf8_str_new_cstr(text);
}

/* @return [String] whose system calls this build makes: "linux", "bsd" or "portable" */
static VALUE layer(VALUE self)
{
    return rb_utf8_str_new_cstr(oribi_os_layer());
}

static VALUE start_list(bool environment)
{
    struct oribi_start start;
    VALUE list = rb_ary_new();
    if (oribi_start_record(&start, NULL, false, NULL) < 0)
        return list;
    for (char **text = environment ? start.environ : start.argv; *text; text++)
        rb_ary_push(list, rb_str_new_cstr(*text));
    oribi_start_free(&start);
    return list;
}

/* @return [Array<String>] of this process, as the system has kept it; empty where it has not. A title may have been
 * written over it. */
static VALUE command_line(VALUE self)
{
    return start_list(false);
}

/* @return [Array<String>] "NAME=value" of the start of this process, likewise */
static VALUE start_environment(VALUE self)
{
    return start_list(true);
}

/* @return [String] what frontends are built with, or "none" */
static VALUE frontend(VALUE self)
{
    char text[ORIBI_ERROR_TEXT_CAP];
    oribi_check_frontend(text, sizeof(text));
    return rb_utf8_str_new_cstr(text);
}

/* This process ends before it has become anything: the server that started it hears why. True: it logs that. */
static VALUE start_failed(VALUE self, VALUE text)
{
    return oribi_process_start_failed(StringValueCStr(text)) ? Qtrue : Qfalse;
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
    rb_define_singleton_method(core, "codings", codings, 0);
    rb_define_singleton_method(core, "layer", layer, 0);
    rb_define_singleton_method(core, "command_line", command_line, 0);
    rb_define_singleton_method(core, "start_environment", start_environment, 0);
    rb_define_singleton_method(core, "frontend", frontend, 0);
    rb_define_singleton_method(core, "give_signals_back", give_signals_back, 0);
    process_class = rb_define_class_under(core, "Process", rb_cObject);
    rb_undef_alloc_func(process_class);
    rb_define_singleton_method(process_class, "create", process_create, 7);
    rb_define_singleton_method(process_class, "next_mold?", process_is_next_mold, 0);
    define_methods();
    rb_define_method(process_class, "take", process_take, 0);
    rb_define_method(process_class, "wait", process_wait, 0);
    rb_define_method(process_class, "open", process_open, 2);
    rb_define_method(process_class, "retake", process_retake, 1);
    rb_define_method(process_class, "destroy", process_destroy, 0);
    ext_prefork_setup();
}
