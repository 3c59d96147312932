/* A supervisor without processes, whose modules a test drives: they are created, and none has begun. */
#ifndef ORIBI_TEST_SUPERVISOR_MODULES_H
#define ORIBI_TEST_SUPERVISOR_MODULES_H

#include "supervisor/manager.h"
#include "supervisor/supervisor_state.h"

#include "oribi/base/mem.h"

#include <unistd.h>

static inline struct oribi_supervisor *modules_create(const struct oribi__kind *kind, struct oribi_options *options)
{
    struct oribi_supervisor *supervisor = oribi_mem_alloc(1, sizeof(*supervisor));
    struct oribi__context *context = &supervisor->context;
    oribi_options_init(options);
    context->process.options = options;
    context->process.listeners = &supervisor->no_listeners;
    context->kind = kind;
    context->pid = getpid();
    if (oribi_dispatcher_init(&context->dispatcher) < 0)
        _exit(1);
    oribi__modules_create(context);
    return supervisor;
}

/* Calls handlers until nothing happens. */
static inline void modules_run(struct oribi__context *context)
{
    oribi_dispatcher_wait(&context->dispatcher, 0);
    while (oribi_dispatcher_next(&context->dispatcher))
        continue;
}

static inline void modules_destroy(struct oribi_supervisor *supervisor, struct oribi_options *options)
{
    oribi__modules_end(&supervisor->context);
    oribi_dispatcher_deinit(&supervisor->context.dispatcher);
    oribi_options_deinit(options);
    oribi_mem_free(supervisor);
}

#endif
