/* How the policy's actions are carried out. */
#ifndef ORIBI_SUPERVISOR_ACTIONS_H
#define ORIBI_SUPERVISOR_ACTIONS_H

struct oribi__context;
struct oribi_policy_action;

/* The language's part is in context->action then, whose type is else left as it was. */
void oribi__carry_out(struct oribi__context *context, const struct oribi_policy_action *action);

/* Frontends have what a reload has changed, or the time for that is over: the reply to the reload goes out, unless it
 * waits for something else. */
void oribi__reload_settled(struct oribi__context *context);

/* The lines of a server that is up. */
void oribi__log_up(struct oribi__context *context);

#endif
