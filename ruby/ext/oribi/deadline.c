/* Calls that take too long: how Oribi::CallTimeout comes into a call, and how an application asks for more time.
 *
 * The core raises a signal on the worker's thread. Ruby notes it, as it does any signal, and runs our trap on the main thread where it is safe to;
 * the trap raises as Thread#raise does, so that a block of Thread.handle_interrupt holds the exception back until it is left. */
#include "ext.h"

#include "oribi/base/os.h"

VALUE ext_call_timeout;

static VALUE extend_class;
static ID id_raise;
static ID id_call;
static VALUE trap_module;
static ID id_worker; /* not valid as a name in Ruby, so that only we see it */

/* With several threads the signal says that some call is overdue, and each is to hear of it once. The only thread is the one that runs this; it raises last, since
 * nothing here goes on after that. */
static void tell(struct ext_thread *thread)
{
    struct ext_call *call = thread->call;
    if (!call || !call->req || (thread->hand && call->told) || !oribi_req_overdue(call->req))
        return;
    call->told = true;
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
    rb_funcall(trap_module, id_call, 2, INT2FIX(number), rb_proc_new(on_deadline, worker->self));
    return number;
}

VALUE ext_extend_new(struct ext_worker *worker)
{
    VALUE object = rb_obj_alloc(extend_class);
    rb_ivar_set(object, id_worker, worker->self);
    return rb_obj_freeze(object);
}

/* Gives the running call so many seconds from now instead of what is left of call_timeout. Without effect from other threads than the call's, and
 * when the call is over.
 *
 *   env["oribi.extend_deadline"].call(300)
 *
 * @param seconds [Numeric] more than 0, a day at most
 * @raise [ArgumentError] */
static VALUE extend_call(VALUE self, VALUE seconds)
{
    const struct ext_worker *worker = ext_worker_get(rb_ivar_get(self, id_worker));
    int64_t ms = oribi_extension_ms(NUM2DBL(seconds));
    if (ms < 0)
        rb_raise(rb_eArgError, "a deadline is extended by more than 0 and at most %d seconds", ORIBI_EXTENSION_S_MAX);
    for (uint32_t i = 0; i < worker->thread_count; i++) {
        struct ext_thread *thread = &worker->threads[i];
        if (!thread->call || !thread->call->req || thread->thread != rb_thread_current())
            continue;
        thread->call->told = false;
        oribi_req_extend_deadline(thread->call->req, ms);
    }
    return Qnil;
}

void ext_deadline_setup(void)
{
    id_raise = rb_intern("raise");
    id_call = rb_intern("call");
    trap_module = rb_const_get(ext_module, rb_intern("Trap"));
    rb_gc_register_mark_object(trap_module);
    id_worker = rb_intern("worker");
    ext_call_timeout = rb_const_get(ext_module, rb_intern("CallTimeout"));
    rb_gc_register_mark_object(ext_call_timeout);
    extend_class = rb_define_class_under(ext_module, "ExtendDeadline", rb_cObject);
    rb_undef_method(CLASS_OF(extend_class), "new");
    rb_define_method(extend_class, "call", extend_call, 1);
}
