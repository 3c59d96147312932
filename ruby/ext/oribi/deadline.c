/* Calls that take too long: how Oribi::CallTimeout comes into a call, and how an application asks for more time.
 *
 * The core raises a signal on the worker's thread. Ruby notes it, as it does any signal, and runs our trap on the
 * main thread where it is safe to; the trap raises as Thread#raise does, so that a block of Thread.handle_interrupt
 * holds the exception back until it is left. */
#include "ext.h"

#include "oribi/base/os.h"

VALUE ext_call_timeout;

static VALUE debugger; /* of a file that is loaded after this one; a constant keeps it alive */
static ID id_prompts;
static ID id_raise;
static ID id_call;
static VALUE trap_module;

/* With several threads the signal says that some call is overdue, and each is to hear once of a deadline. The only
 * thread is the one that runs this; it raises last, since nothing here goes on after that. */
static void tell(struct ext_thread *thread)
{
    struct ext_call *call = thread->call;
    int64_t deadline_us = call ? oribi_thread_overdue(ext_thread_core(thread)) : 0;
    if (!deadline_us || (thread->core_thread && call->told_us == deadline_us))
        return;
    if (RTEST(rb_funcallv(debugger, id_prompts, 1, &thread->thread))) {
        oribi_thread_begin_anew(ext_thread_core(thread));
        return;
    }
    call->told_us = deadline_us;
    VALUE arguments[] = {ext_call_timeout, rb_str_new_cstr("the call has run for longer than call_timeout")};
    rb_funcallv(thread->thread, id_raise, 2, arguments);
}

/* The trap. The signal may have waited in Ruby until the call was over, or another had begun. */
static VALUE on_deadline(RB_BLOCK_CALL_FUNC_ARGLIST(number, self))
{
    const struct ext_worker *worker = ext_worker_get(self);
    if (!worker->core || oribi_worker_abandoned(worker->core))
        return Qnil;
    for (uint32_t i = 0; i < worker->thread_count; i++)
        tell(&worker->threads[i]);
    return Qnil;
}

int ext_deadline_watch(struct ext_worker *worker)
{
    int number = oribi_os_runtime_signal();
    if (rb_thread_current() != rb_thread_main())
        return 0;
    debugger = rb_const_get(ext_module, rb_intern("Debugger"));
    rb_funcall(trap_module, id_call, 2, INT2FIX(number), rb_proc_new(on_deadline, worker->self));
    return number;
}

void ext_call_extend(struct ext_call *call, VALUE seconds)
{
    int64_t ms = oribi_extension_ms(NUM2DBL(seconds));
    if (ms < 0)
        rb_raise(rb_eArgError, "a deadline is extended by more than 0 and at most %d seconds", ORIBI_EXTENSION_S_MAX);
    if (call)
        oribi_thread_extend_deadline(ext_thread_core(call->thread), ms);
}

void ext_deadline_setup(void)
{
    id_prompts = rb_intern("prompts?");
    id_raise = rb_intern("raise");
    id_call = rb_intern("call");
    trap_module = rb_const_get(ext_module, rb_intern("Trap"));
    rb_gc_register_mark_object(trap_module);
    ext_call_timeout = rb_const_get(ext_module, rb_intern("CallTimeout"));
    rb_gc_register_mark_object(ext_call_timeout);
}
