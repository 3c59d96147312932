/* Forks of the application and forks of ours: what a child must not keep. One owner a process: each role replaces the
 * one before it. */
#ifndef ORIBI_SUPERVISOR_FORK_HANDLERS_H
#define ORIBI_SUPERVISOR_FORK_HANDLERS_H

#include <stdbool.h>

struct oribi__process_context;

/* From now on a child that the application forks calls all(owner) first; NULL: nothing is to be let go of any more. In
 * the child, `all` closes descriptors and does nothing else. */
void oribi__children_let_go(void (*all)(void *owner), void *owner);

/* The next fork of the calling thread makes a process of ours, which keeps everything; false: no longer. */
void oribi__children_ours(bool ours);

/* In such a child; hand-off socket and listeners unless a worker has them. */
void oribi__process_context_close(struct oribi__process_context *process, bool listeners);

#endif
