/* Events of the supervisor from processes and from signals. messages.c: records of molds and workers (message.h), as
 * events: the supervisor's end of the socket that all of them share, and of the pipe at whose end they know that the
 * supervisor is gone. */
#ifndef ORIBI_SUPERVISOR_EVENTS_H
#define ORIBI_SUPERVISOR_EVENTS_H

#include "oribi/supervisor/message.h"

#include <stdbool.h>

struct oribi__context;
struct oribi_policy_event;

/* Takes records until an event follows from one. False: there is none. */
bool oribi__messages_take(struct oribi__context *context);

/* Takes them by another handler from now on, which gets each record and the descriptor that came with it (-1: none; it
 * takes the descriptor). For a server of one process. */
void oribi__messages_hear(struct oribi__context *context,
                          void (*heard)(void *owner, const struct oribi_message *message, int passed), void *owner);

/* Hands the records that are there to that handler. */
void oribi__messages_hear_all(struct oribi__context *context);

/* At the end, when the supervisor itself reports nothing any more: waits until all processes that report have ended,
 * so long at most. */
void oribi__messages_await_end(struct oribi__context *context, int64_t ms);

/* --- ended children, as events ---
 *
 * The policy hears of a death after all messages that the process wrote before it died: the
 * report of a fork comes from the process whose end made the worker ours. So the messages are read once more after the
 * kernel has named the dead process, and it is reaped when there are none. Children are looked for when nothing else
 * has happened, as their ends follow from that: from a stop of the whole process group, say. */

/* Takes a death. False: there is none that is an event. */
bool oribi__deaths_take(struct oribi__context *context);

/* From now on children are looked for; a server of one process leaves them to its application. */
void oribi__deaths_begin(struct oribi__context *context);

/* --- where a worker's parent is a reaper (reaper.c) --- */

/* The report of one as an event. False: no process of this system sends one. */
bool oribi__reaper_reported(struct oribi__context *context, const struct oribi_message *message,
                            struct oribi_policy_event *event);

/* At the supervisor's end, when all workers have ended: waits until their reapers, which have told it of that, have
 * ended as well; not for long. */
void oribi__reapers_await(struct oribi__context *context);

/* --- signals.c ---
 *
 * Signals of the supervisor's process: the handler writes a byte into a pipe, whose other end is watched. What follows
 * from a signal stands in policy/signal_table.c. */

/* Installs the handlers, in the process that calls. */
void oribi__signals_install(struct oribi__context *context);

/* As if the process had got the signal; 0 only wakes. Async-signal-safe and thread-safe. */
void oribi__signals_send(struct oribi__context *context, int number);

/* Takes records, and signals behind them, until an event follows from one: whoever sends a signal may know of a report.
 * False: there is none. */
bool oribi__signals_take(struct oribi__context *context);

/* Asks for a graceful stop, once: nothing follows where the server is about to stop. As safe. */
void oribi__signals_stop_once(struct oribi__context *context);

#endif
