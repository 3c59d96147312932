/* A module: a feature of the supervisor. Its source has its state, its header its contract. It watches descriptors and
 * arms timers on the context's dispatcher, tells the policy of events (oribi__happened() of context.h), and its line in
 * ORIBI__MODULES is all that the supervisor knows of it:
 *
 *   module(NAME)   context->NAME points to its state, struct oribi__NAME; oribi__NAME_module has its functions */
#ifndef ORIBI_SUPERVISOR_MODULE_H
#define ORIBI_SUPERVISOR_MODULE_H

#include <stdbool.h>
#include <stddef.h>

struct oribi__context;
struct oribi__process_context;

/* In the order in which modules begin; they settle and end in the opposite order. */
/* clang-format off */
#define ORIBI__MODULES(module)      \
    module(upgrade)                 \
    module(server_pid)              \
    module(control)                 \
    module(logs)                    \
    module(observing)               \
    module(messages)                \
    module(signals)                 \
    module(daemon)                  \
    module(notify)                  \
    module(boot_log)                \
    module(announced)               \
    module(molds)                   \
    module(prefork)                 \
    module(frontends)               \
    module(acme)                    \
    module(steps)                   \
    module(watched)                 \
    module(shutdown)                \
    module(deaths)
/* clang-format on */

/* Any function may be NULL. */
struct oribi__module {
    size_t bytes;                                 /* of its state, which is all-zero at first */
    void (*init)(struct oribi__context *context); /* descriptors become -1 */
    /* Opens what it needs. 0, or a code with one line in `error`. */
    int (*begin)(struct oribi__context *context, char *error);
    /* Nothing has happened, and the policy has nothing to do for now: compares its own state with the policy's, and may
     * tell an event. */
    void (*settle)(struct oribi__context *context);
    /* In a child that the application has forked: closes descriptors, and does nothing else. */
    void (*let_go)(struct oribi__context *context);
    /* In a child that becomes a mold or a worker, after let_go: frees memory. */
    void (*forget)(struct oribi__context *context);
    /* The supervisor ends, or could not begin: ends what it has begun, in whichever state. */
    void (*end)(struct oribi__context *context);
};

/* Each of these calls one function of all modules. Create: states and init. Settle: until one has told an event; true
 * then. Forget and end free the states. */
void oribi__modules_create(struct oribi__context *context);
int oribi__modules_begin(struct oribi__context *context, char *error);
bool oribi__modules_settle(struct oribi__context *context);
void oribi__modules_let_go(struct oribi__context *context);
void oribi__modules_forget(struct oribi__context *context);
void oribi__modules_end(struct oribi__context *context);

/* Closes a descriptor and leaves -1 (fork_handlers.c). */
void oribi__close(int *fd);

/* --- fork_handlers.c ---
 *
 * Forks of the application and forks of ours: what a child must not keep. One owner a process: each role replaces the
 * one before it. */

/* From now on a child that the application forks calls all(owner) first; NULL: nothing is to be let go of any more. In
 * the child, `all` closes descriptors and does nothing else. */
void oribi__children_let_go(void (*all)(void *owner), void *owner);

/* The next fork of the calling thread makes a process of ours, which keeps everything; false: no longer. */
void oribi__children_ours(bool ours);

/* In such a child; hand-off socket and listeners unless a worker has them. */
void oribi__process_context_close(struct oribi__process_context *process, bool listeners);

#endif
