/* The end of a manager, for its workers (prefork.h): whatever their program does, it gets SIGTERM then. Linux sends
 * that by itself; elsewhere a thread of the worker waits for the end of life_fd. */
#ifndef ORIBI_SUPERVISOR_MANAGERS_END_H
#define ORIBI_SUPERVISOR_MANAGERS_END_H

struct oribi__process_context;

/* In a worker that has just begun. May wait until the process between it and the manager is gone. Where nothing can be
 * arranged, oribi_link_stopping() still tells. */
void oribi__managers_end_expect(const struct oribi__process_context *context);

#endif
