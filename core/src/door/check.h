/* `oribi-door --check`: what is to be said of certificates, for `oribi check` and --check, so that no process with a
 * language in it needs OpenSSL for that. */
#ifndef ORIBI_DOOR_CHECK_H
#define ORIBI_DOOR_CHECK_H

/* Reads records of certificates (door_ties.h) from standard input and writes findings to standard output, a line each:
 * level, id, what, why, what to do (process/check.h), with tabs between them. Returns the exit code: 0 unless the input
 * cannot be read. */
int oribi_door_check(void);

#endif
