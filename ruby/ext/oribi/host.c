/* The supervisor as Ruby sees it: a thin object over host.h. lib/oribi/supervisor.rb follows the order of calls there. */
#include "handle.h"

#include "oribi/server/signals.h"

static VALUE host_class;

/* The core's object lives as long as its process, so the collector never frees it. */
const rb_data_type_t ext_host_type = {.wrap_struct_name = "Oribi::Core::Host", .flags = RUBY_TYPED_WB_PROTECTED};

VALUE ext_host_new(struct oribi_host *host, VALUE options, VALUE listeners)
{
    return keep(TypedData_Wrap_Struct(host_class, &ext_host_type, host), options, listeners);
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
static VALUE host_create(VALUE class, VALUE options, VALUE listeners, VALUE command)
{
    char error[ORIBI_OPTIONS_ERROR_CAP];
    struct oribi_host_setup setup = setup_of(options, listeners);
    struct oribi_host *host;
    VALUE kept = Qnil;
    if (!NIL_P(command)) {
        setup.argv = word_list(command, &kept);
        setup.environ_is_known = true;
    }
    if (oribi_host_create(&setup, &host, error) < 0)
        rb_raise(ext_error, "%s", error);
    return ext_host_new(host, options, listeners);
}

static VALUE optional_text(const char *text)
{
    return text ? rb_utf8_str_new_cstr(text) : Qnil;
}

static VALUE signal_text(int number)
{
    return number ? rb_utf8_str_new_cstr(oribi_signal_name(number)) : Qnil;
}

/* The next action: [:none], [:fork_daemon], [:fork_mold], [:hook, name, pid, status, reason] or [:exit, code, signal]; for a manager also
 * [:fork_worker] and [:trapped, signal]. */
static VALUE host_take(VALUE self)
{
    const struct oribi_host_action *action = oribi_host_take(get(self, &ext_host_type));
    switch (action->type) {
    case ORIBI_HOST_FORK_DAEMON:
        return rb_ary_new_from_args(1, ID2SYM(rb_intern("fork_daemon")));
    case ORIBI_HOST_FORK_MOLD:
        return rb_ary_new_from_args(1, ID2SYM(rb_intern("fork_mold")));
    case ORIBI_HOST_HOOK:
        return rb_ary_new_from_args(5, ID2SYM(rb_intern("hook")), optional_text(action->hook), INT2NUM(action->pid),
                                    INT2NUM(action->status), optional_text(action->reason));
    case ORIBI_HOST_EXIT:
        return rb_ary_new_from_args(3, ID2SYM(rb_intern("exit")), INT2NUM(action->exit_code),
                                    signal_text(action->signal));
    case ORIBI_HOST_FORK_WORKER:
        return rb_ary_new_from_args(1, ID2SYM(rb_intern("fork_worker")));
    case ORIBI_HOST_TRAPPED:
        return rb_ary_new_from_args(2, ID2SYM(rb_intern("trapped")), signal_text(action->signal));
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
    struct oribi_host *host = get(self, &ext_host_type);
    rb_nogvl(host_block, host, host_unblock, host, RB_NOGVL_UBF_ASYNC_SAFE | RB_NOGVL_INTR_FAIL);
    rb_thread_check_ints();
    return self;
}

static VALUE host_forked(VALUE self, VALUE pid)
{
    struct oribi_host *host = get(self, &ext_host_type);
    oribi_host_forked(host, forked_pid(pid));
    return self;
}

static VALUE host_daemon_enter(VALUE self)
{
    oribi_host_daemon_enter(get(self, &ext_host_type));
    return self;
}

static VALUE host_daemon_wait(VALUE self, VALUE pid)
{
    struct oribi_host *host = get(self, &ext_host_type);
    return INT2NUM(oribi_host_daemon_wait(host, forked_pid(pid)));
}

static VALUE host_title(VALUE self)
{
    char text[ORIBI_TITLE_CAP];
    return title_text(text, oribi_host_title(get(self, &ext_host_type), text, sizeof(text)));
}

static VALUE host_destroy(VALUE self)
{
    oribi_host_destroy(take_over(self, &ext_host_type));
    return Qnil;
}

/* In the forked child: the host becomes a mold. */
static VALUE host_enter_mold(VALUE self)
{
    char error[ORIBI_OPTIONS_ERROR_CAP];
    struct oribi_mold *mold;
    if (oribi_mold_enter(take_over(self, &ext_host_type), &mold, error) < 0)
        rb_raise(ext_error, "%s", error);
    VALUE options = rb_ivar_get(self, rb_intern("options"));
    VALUE listeners = rb_ivar_get(self, rb_intern("listeners"));
    return ext_mold_new(mold, options, listeners);
}

/* This process ends before it has become anything: the server that started it hears why. */
static VALUE start_failed(VALUE self, VALUE text)
{
    oribi_start_failed(StringValueCStr(text));
    return Qnil;
}

/* For a program that goes on after its server. */
static VALUE give_signals_back(VALUE self)
{
    oribi_signals_uninstall();
    return Qnil;
}

void ext_host_setup(void)
{
    VALUE core = rb_define_module_under(ext_module, "Core");
    rb_define_singleton_method(core, "start_failed", start_failed, 1);
    rb_define_singleton_method(core, "give_signals_back", give_signals_back, 0);
    host_class = plain_class(core, "Host");
    rb_define_singleton_method(host_class, "create", host_create, 3);
    rb_define_method(host_class, "take", host_take, 0);
    rb_define_method(host_class, "wait", host_wait, 0);
    rb_define_method(host_class, "forked", host_forked, 1);
    rb_define_method(host_class, "daemon_enter", host_daemon_enter, 0);
    rb_define_method(host_class, "daemon_wait", host_daemon_wait, 1);
    rb_define_method(host_class, "enter_mold", host_enter_mold, 0);
    rb_define_method(host_class, "title", host_title, 0);
    rb_define_method(host_class, "destroy", host_destroy, 0);
    ext_mold_setup(core);
    ext_prefork_setup(core);
}
