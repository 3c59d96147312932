/* Signals of the supervisor's process: the handler writes a byte into a pipe, whose other end is watched. What follows
 * from a signal stands in policy/signal_table.c. */
#ifndef ORIBI_SUPERVISOR_SIGNALS_H
#define ORIBI_SUPERVISOR_SIGNALS_H

#include <stdbool.h>

struct oribi__context;

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
