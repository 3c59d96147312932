/* Local content of a worker: fixed answers and files of mounts, without the application. The reactor asks for each
 * complete request (hooks claims and answer), whichever thread turns it, so that these requests are answered while the
 * worker is in a call. */
#ifndef ORIBI_WORKER_LOCAL_LOCAL_H
#define ORIBI_WORKER_LOCAL_LOCAL_H

#include "oribi/config/options.h"

#include <stdbool.h>

struct oribi_conn;
struct oribi_worker;
struct oribi__local;

/* Gives the local content of these options, NULL when they have none. Opens the roots. A start and a reload have looked
 * at the folders (oribi_options_check_files()); one that has gone since is a line in the log, and its mount is left
 * out: a worker that replaces another must not lose health and the other mounts with it. Borrows the options. destroy:
 * takes it, and NULL. */
struct oribi__local *oribi__local_create(const struct oribi_options *options);
void oribi__local_destroy(struct oribi__local *local);

/* Closes the descriptors alone, in a child that the application has forked. NULL: nothing. */
void oribi__local_abandon(struct oribi__local *local);

/* Hooks of the reactor; `self` is the worker. */
bool oribi__local_claims(void *self, struct oribi_conn *conn);
bool oribi__local_answer(void *self, struct oribi_conn *conn);

#endif
