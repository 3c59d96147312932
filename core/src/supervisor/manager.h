/* The two kinds of servers: a server proper, and a manager (prefork.h), whose program owns the loop. What differs
 * stands in struct oribi__kind; what only a manager has, below. */
#ifndef ORIBI_SUPERVISOR_MANAGER_H
#define ORIBI_SUPERVISOR_MANAGER_H

#include <stdbool.h>
#include <stdint.h>

struct oribi__context;
struct oribi_options;
struct oribi_policy_action;
struct oribi_policy_event;
struct oribi_prefork;

struct oribi__kind {
    bool
        serves; /* addresses, with all that comes with them: frontends, watched files, a control socket of the folder */
    bool is_own_mold;
    uint32_t (*workers_max)(const struct oribi_options *options);
    /* The event that follows from a signal, or from a client's command; false: none does. */
    bool (*signal)(struct oribi__context *context, int number, struct oribi_policy_event *event);
    bool (*command)(struct oribi__context *context, struct oribi_policy_event *event);
    void (*leave_signals)(const struct oribi__context *context); /* at the end */
};

extern const struct oribi__kind oribi__server;
extern const struct oribi__kind oribi__manager;

/* Tells the policy of what a client of the control socket wants. */
void oribi__ask_policy(struct oribi__context *context, const struct oribi_policy_event *event);

/* NULL: a server proper. */
const struct oribi__kind *oribi__kind_of(const struct oribi_prefork *prefork);

/* Makes the server a manager, before its policy begins; nothing with NULL. Borrows `prefork` during the call. */
void oribi__prefork_begin(struct oribi__context *context, const struct oribi_prefork *prefork);

/* The signal that ends the loop, of which the language hears before anything else happens; 0: none has come. Take:
 * gives and forgets it. */
int oribi__prefork_trapped(const struct oribi__context *context);
int oribi__prefork_take_trapped(struct oribi__context *context);

/* The signal to raise again when all workers have ended, 0: none. */
int oribi__prefork_reraise(const struct oribi__context *context);

/* The language is to fork this worker. */
void oribi__prefork_spawn(struct oribi__context *context, const struct oribi_policy_action *action);

/* In the worker: gives that action. True: it is to end with its parent thread (os.h). */
bool oribi__prefork_spawned(const struct oribi__context *context, struct oribi_policy_action *action);

#endif
