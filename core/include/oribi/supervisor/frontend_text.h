/* frontend_text.c, frontend_files.c, frontend_certificates.c: texts that a frontend is started with
 * (frontend_protocol.h): options, listeners, certificates with their keys; and the options that are set for frontends
 * where there are none. */
#ifndef ORIBI_SUPERVISOR_FRONTEND_TEXT_H
#define ORIBI_SUPERVISOR_FRONTEND_TEXT_H

#include "oribi/base/buf.h"
#include "oribi/worker/frontend_protocol.h"

#include <stdbool.h>
#include <stddef.h>

struct oribi_listeners;
struct oribi_options;
struct oribi__passwords; /* frontend_passwords.h */

/* Files by their names, keys among them, and passwords of these. */
struct oribi__frontend_files {
    char *p;
    size_t len;
    size_t cap;
};

/* False: out of memory. */
bool oribi__frontend_files_add(struct oribi__frontend_files *files, const char *path, struct oribi_slice text);

/* False: it is not there. The text is valid until the next change. */
bool oribi__frontend_files_find(const struct oribi__frontend_files *files, const char *path, struct oribi_slice *text);

void oribi__frontend_files_move(struct oribi__frontend_files *to, struct oribi__frontend_files *from);

/* Wipes them, but not in a child, which does not have them. */
void oribi__frontend_files_free(struct oribi__frontend_files *files, bool in_child);

/* --- frontend_text.c --- */

#define ORIBI__FRONTEND_NEEDS                                                                                          \
    "the program oribi-frontend, which is built where OpenSSL 3.0 and nghttp2 1.52 are (Debian: libssl-dev, "          \
    "libnghttp2-dev and pkg-config)"

/* Writes the path of the program. False: it is not there. */
bool oribi__frontend_program(char *dst, size_t cap);

/* Is frontend_user one that frontends can become? 0, or a code with one line in `error`. */
int oribi__frontends_check_user(const struct oribi_options *options, char *error);

/* Is there a listener that needs a frontend? */
bool oribi__frontends_wanted(const struct oribi_listeners *listeners);

/* Appends options, listeners and `local`, a text of the next function. 0 or ORIBI_ENOMEM. */
int oribi__frontend_text(const struct oribi_options *options, struct oribi_slice local,
                         const struct oribi_listeners *listeners, struct oribi_buf *out);

/* Appends the options of local content (oribi__frontend_local_options), and the working directory, from which relative
 * paths in them are seen. 0 or ORIBI_ENOMEM. */
int oribi__frontend_text_local(const struct oribi_options *options, struct oribi_buf *out);

/* Sends a message of one byte with it. 0, or a code of os.h. Borrows fd. */
int oribi__frontend_text_send(int control_fd, char kind, int fd);

/* Appends a record (frontend_protocol.h) to a text that may have keys in it. 0 or ORIBI_ENOMEM. */
int oribi__frontend_add(struct oribi_buf *out, const char *name, const char *p, size_t n);

/* Gives a descriptor, the caller's, of a copy of the text in memory that has no name; the copy ends with a NUL, and
 * whoever reads it wipes it. Or ORIBI_ESYS with one line in `error`. */
int oribi__frontend_text_fd(const struct oribi_buf *text, char *error);

/* Frees such a text, and leaves no key behind. */
void oribi__frontend_wipe(struct oribi_buf *text);

/* The next option that is set for frontends, or for TLS, where no address has a frontend or speaks TLS: a line of it,
 * with *at as the place, 0 at first. False: no more. */
bool oribi__frontend_unused(const struct oribi_options *options, bool tls, bool frontend, size_t *at, char *line);

/* Logs them. */
void oribi__frontends_warn_of_unused(const struct oribi_options *options, const struct oribi_listeners *listeners);

/* --- frontend_certificates.c --- */

/* Appends certificates, read from their files now, or from what `from` has of these; keys that are encrypted have their
 * passwords by the command that the options name. `keep` gets what is read, passwords too. A file of the option acme
 * that cannot be read is taken from `served`; where that has none, a placeholder is to serve. All three may be NULL;
 * passwords too, with `from`. 0; ORIBI_AGAIN: a password is asked for (oribi__passwords_turn()), and what was appended
 * is to be wiped; or a code with one line in `error` that names the file. */
int oribi__frontend_text_certificates(const struct oribi_options *options, const struct oribi_listeners *listeners,
                                      const struct oribi__frontend_files *from,
                                      const struct oribi__frontend_files *served, struct oribi__frontend_files *keep,
                                      struct oribi__passwords *passwords, struct oribi_buf *out, char *error);

/* Appends the certificates for the tls:// addresses of the options, none of which is open: for a look
 * (command/check_tls.c). */
int oribi__frontend_text_certificates_named(const struct oribi_options *options, struct oribi_buf *out, char *error);

#endif
