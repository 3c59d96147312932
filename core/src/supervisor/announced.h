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

#include <stdint.h>

struct oribi__context;
struct oribi__process_context;
struct oribi_message;
struct oribi_policy_event;

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
