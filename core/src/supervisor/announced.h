/* Announced configuration: what a generation that was started by exec says of itself before it says that it is ready,
 * and what the supervisor keeps of that until the generation becomes the current one, or fails.
 *
 *   mold                                 supervisor
 *   oribi__announce() ─── options ─────► oribi__announced_message()    kept
 *                     ─── listeners ───► oribi__announced_message()    adopted, not in force yet
 *                     ─── ready ───────► oribi__announced_ready()      the policy gets the options
 *                                        oribi__announced_commit()     in force; or oribi__announced_drop() */
#ifndef ORIBI_SUPERVISOR_ANNOUNCED_H
#define ORIBI_SUPERVISOR_ANNOUNCED_H

#include "oribi/base/buf.h"
#include "oribi/base/log.h"
#include "oribi/config/listener.h"
#include "oribi/supervisor/message.h"
#include "oribi/policy/policy.h"
#include "oribi/develop/watch.h"

#include <stdbool.h>
#include <stdint.h>

struct oribi__context;
struct oribi__process_context;

struct oribi__announced {
    int32_t mold;                     /* pid of the mold that announces; 0: none does */
    char error[ORIBI_ERROR_TEXT_CAP]; /* why its generation cannot be the next one, though it is ready; "": it can */
    bool has_config;
    struct oribi_policy_config config;
    enum oribi_log_level log_level;
    bool has_restart_file;
    char restart_file[ORIBI__RESTART_PATH_CAP];
    bool has_local;
    struct oribi_buf local; /* frontends.h */
    uint32_t named_count;
    char named[ORIBI_LISTENERS_MAX][ORIBI_ADDRESS_TEXT_CAP]; /* specs of its listeners */
    uint32_t adopted_from; /* from this index on the supervisor's listeners are those that the generation has opened */
};

/* In a mold that was started by exec: tells the supervisor the generation's options and listeners. */
void oribi__announce(struct oribi__process_context *context, uint32_t generation);

/* In the supervisor. Takes `passed` (-1: none), the descriptor that came with the record. A record that is not of the
 * generation being loaded is dropped: the mold of the current one was replaced. */
void oribi__announced_message(struct oribi__context *context, const struct oribi_message *message, int passed);

/* The mold of `event` (MOLD_READY) is ready: adds the configuration that it has announced. Makes the event MOLD_FAILED
 * where the supervisor cannot take the announced listeners over. */
void oribi__announced_ready(struct oribi__context *context, struct oribi_policy_event *event);

/* The generation is the current one: its listeners are in force, addresses that it does not name are closed. */
void oribi__announced_commit(struct oribi__context *context);

/* The generation comes to nothing: closes the listeners that it brought along and forgets the rest. */
void oribi__announced_drop(struct oribi__context *context);

#endif
