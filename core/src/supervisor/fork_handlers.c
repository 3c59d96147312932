/* Children that the application forks: while it loads in the mold, in a hook, in a manager's own code. A program
 * that is executed loses our descriptors by CLOEXEC; a plain fork would keep them, and with them an address that
 * no process serves any more. So the C library's fork handler (pthread_atfork(3)) closes them there. A flag of
 * the thread that forks marks forks of ours. */
#include "supervisor/module.h"

#include "oribi/base/os/os.h"
#include "oribi/config/listener.h"
#include "oribi/observe/context.h"

#include <pthread.h>

static void (*let_go)(void *owner); /* what the process holds now, and how a child lets go of it; NULL: nothing */
static void *holder;
static _Thread_local bool forking_ours;

static void in_child(void)
{
    void (*all)(void *) = let_go;
    if (forking_ours || !all)
        return;
    let_go = NULL;
    all(holder);
}

static void register_handler(void)
{
    (void)pthread_atfork(NULL, NULL, in_child); /* fails only without memory at start */
}

void oribi__children_let_go(void (*all)(void *owner), void *owner)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, register_handler);
    let_go = all;
    holder = owner;
    forking_ours = false;
}

void oribi__children_ours(bool ours)
{
    forking_ours = ours;
}

void oribi__close(int *fd)
{
    oribi_os_close(*fd);
    *fd = -1;
}

void oribi__process_context_close(struct oribi__process_context *context, bool listeners)
{
    for (uint32_t i = 0; listeners && i < context->listeners->count; i++)
        oribi__close(&context->listeners->items[i].fd);
    if (listeners)
        oribi_handoff_close(&context->handoff);
    oribi__close(&context->message_fd);
    oribi__close(&context->life_fd);
    oribi__close(&context->board.fd);
    oribi__close(&context->app.fd);
}
