/* `oribi-frontend --check`: what is to be said of certificates, for `oribi check` and --check, so that no process with
 * a language in it needs OpenSSL for that. */
#ifndef ORIBI_FRONTEND_CERTIFICATE_CHECK_H
#define ORIBI_FRONTEND_CERTIFICATE_CHECK_H

/* Reads records of certificates (frontend_protocol.h) from standard input and writes findings to standard output, a
 * line each: level, id, what, why, what to do (command/check.h), with tabs between them. Returns the exit code: 0
 * unless the input cannot be read. */
int oribi_frontend_check(void);

#endif
