/* Calls that take too long, and calls whose client has gone: how Oribi::CallTimeout and Oribi::ClientGone come into a
 * call, how an application asks for more time, and whether its client is still there.
 *
 * The core raises a signal on the worker's thread. Ruby notes it, as it does any signal, and runs our trap on the
 * main thread where it is safe to; the trap raises as Thread#raise does, so that a block of Thread.handle_interrupt
 * holds the exception back until it is left. */
#include "ext.h"

#include "oribi/base/os/os.h"

VALUE ext_call_timeout;
VALUE ext_client_gone;

static VALUE debugger; /* of a file that is loaded after this one; a constant keeps it alive */
static ID id_prompts;
static ID id_raise;
static ID id_call;
static ID id_worker; /* not valid as a name in Ruby, so that only we see this variable */
static VALUE trap_module;
static VALUE gone_class;

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

/* The core knows whether the call in question still runs. It may have returned from the application when it comes to
 * see the exception: call.c drops it then. */
static void tell_gone(struct ext_thread *thread)
{
    struct ext_call *call = thread->call;
    if (!call || !oribi_thread_take_gone(ext_thread_core(thread)))
        return;
    uint64_t serial = call->serial;
    if (RTEST(rb_funcallv(debugger, id_prompts, 1, &thread->thread)))
        return;
    call = ext_call_find(thread->worker, serial); /* it may have ended while Ruby code ran here */
    if (!call || !call->req)
        return;
    call->told_gone = true;
    VALUE arguments[] = {ext_client_gone, rb_str_new_cstr("the client has left")};
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
    for (uint32_t i = 0; i < worker->thread_count; i++)
        tell_gone(&worker->threads[i]);
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

/* --- oribi.gone? --- */

VALUE ext_gone_new(struct ext_worker *worker)
{
    VALUE object = rb_obj_alloc(gone_class);
    rb_ivar_set(object, id_worker, worker->self);
    return rb_obj_freeze(object);
}

/* The call of the thread that asks; in a worker of one thread that of any thread. */
static struct ext_call *asking_call(struct ext_worker *worker)
{
    VALUE current = rb_thread_current();
    if (worker->threads == &worker->first)
        return worker->first.call;
    for (uint32_t i = 0; i < worker->thread_count; i++)
        if (worker->threads[i].thread == current)
            return worker->threads[i].call;
    return NULL;
}

/* Has the client of the running call left? Asks the socket, so the answer is that of this moment. To be asked on the
 * thread of the call, until the answer is complete; false elsewhere and later.
 *
 *   rows.each { |row| break if env["oribi.gone?"].call; ... }
 *
 * @return [Boolean] */
static VALUE gone_call(VALUE self)
{
    struct ext_worker *worker = ext_worker_get(rb_ivar_get(self, id_worker));
    struct ext_call *call = worker->core && !oribi_worker_abandoned(worker->core) ? asking_call(worker) : NULL;
    if (!call)
        return Qfalse;
    if (call->gone)
        return Qtrue;
    return call->req && oribi_req_gone(call->req) ? Qtrue : Qfalse;
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
    ext_client_gone = rb_const_get(ext_module, rb_intern("ClientGone"));
    rb_gc_register_mark_object(ext_client_gone);
    id_worker = rb_intern("worker");
    gone_class = rb_define_class_under(ext_module, "Gone", rb_cObject);
    rb_undef_method(rb_singleton_class(gone_class), "new");
    rb_define_method(gone_class, "call", gone_call, 0);
}
