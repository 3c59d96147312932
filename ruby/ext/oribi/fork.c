/* Forks that fail. Ruby's own fork tries again every second for as long as the system has no process to give
 * (EAGAIN), and hears of no stop meanwhile. It can only be broken off by a signal that Ruby traps, so the C
 * library's fork handlers (pthread_atfork(3)), which run after a fork that failed as well, send one to the thread
 * that forks: lib/oribi/processes.rb raises there what fork(2) has said. */
#include "ext.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

static _Thread_local int refusal_signal; /* 0: this thread is not told of a refused fork */

/* The last one before the fork that touches errno, because no handler of ours is registered earlier. */
static void before_fork(void)
{
    if (refusal_signal)
        errno = 0;
}

/* fork(2) sets errno only when it fails, and the C library has not put it back yet. */
static void after_fork(void)
{
    if (refusal_signal && errno == EAGAIN)
        (void)pthread_kill(pthread_self(), refusal_signal); /* a number that Ruby has trapped */
}

static void in_child(void)
{
    refusal_signal = 0;
}

static VALUE yield(VALUE nothing)
{
    return rb_yield(Qnil);
}

static VALUE watch_no_more(VALUE nothing)
{
    refusal_signal = 0;
    return Qnil;
}

/* Runs the block. A fork in it that the system refuses sends `signal` to its thread. */
static VALUE with_refusal_signal(VALUE module, VALUE signal)
{
    refusal_signal = NUM2INT(signal);
    return rb_ensure(yield, Qnil, watch_no_more, Qnil);
}

void ext_fork_setup(void)
{
    VALUE core = rb_define_module_under(ext_module, "Core");
    rb_define_singleton_method(core, "with_refusal_signal", with_refusal_signal, 1);
    (void)pthread_atfork(before_fork, after_fork, in_child); /* fails only without memory at start */
}
