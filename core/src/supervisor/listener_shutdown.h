/* The end of the listeners, at once or, while connections wait there, after a while. */
#ifndef ORIBI_SUPERVISOR_LISTENER_SHUTDOWN_H
#define ORIBI_SUPERVISOR_LISTENER_SHUTDOWN_H

#include <stdbool.h>

struct oribi__context;

/* Those of frontends end, and no other lets anybody in whom the kernel has not yet; workers serve on. */
void oribi__end_newcomers(struct oribi__context *context, bool handed_over);

/* All end. `handed_over`: a successor serves the addresses, and our copies are closed. */
void oribi__end_listening(struct oribi__context *context, bool handed_over);

/* Closes what is left, and removes the files of what this server alone serves. */
void oribi__close_listeners(struct oribi__context *context, bool unlink_paths);

#endif
