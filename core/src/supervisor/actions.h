/* How the policy's actions are carried out. */
#ifndef ORIBI_SUPERVISOR_ACTIONS_H
#define ORIBI_SUPERVISOR_ACTIONS_H

#include <stdbool.h>

struct oribi__context;
struct oribi_policy_action;

/* The language's part is in context->action then, whose type is else left as it was. */
void oribi__carry_out(struct oribi__context *context, const struct oribi_policy_action *action);

/* Frontends have what a reload has changed, or the time for that is over: the reply to the reload goes out, unless it
 * waits for something else. */
void oribi__reload_settled(struct oribi__context *context);

/* The lines of a server that is up. */
void oribi__log_up(struct oribi__context *context);

/* --- listener_shutdown.c ---
 *
 * The end of the listeners, at once or, while connections wait there, after a while. */

/* Those of frontends end, and no other lets anybody in whom the kernel has not yet; workers serve on. */
void oribi__end_newcomers(struct oribi__context *context, bool handed_over);

/* All end. `handed_over`: a successor serves the addresses, and our copies are closed. */
void oribi__end_listening(struct oribi__context *context, bool handed_over);

/* Closes what is left, and removes the files of what this server alone serves. */
void oribi__close_listeners(struct oribi__context *context, bool unlink_paths);

#endif
