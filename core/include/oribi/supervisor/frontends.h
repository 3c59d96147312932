/* frontends - processes that hold the clients of tls:// addresses and of those with frontend=on (frontend_protocol.h).
 * A frontend is a place of its own: started before any worker serves, started again when it dies, kept through reloads
 * and recycling; told to end, and waited for, before the workers are, since it needs them for what it has begun.
 *
 * frontends.c hears and ends them, frontend_start.c starts them, frontend_renewal.c brings new certificates,
 * frontend_passwords.c their passwords, frontend_files.c keeps both; frontend_text.c writes what
 * they are started with, frontend_tickets.c has the keys of session tickets, frontend_slots.c what frontends count,
 * frontend_unused.c what is set for none. */
#ifndef ORIBI_SUPERVISOR_FRONTENDS_H
#define ORIBI_SUPERVISOR_FRONTENDS_H

#include "oribi/base/buf.h"
#include "oribi/base/error.h"
#include "oribi/config/listener.h"
#include "oribi/config/options.h"
#include "oribi/observe/observe.h"
#include "oribi/worker/frontend_protocol.h"
#include "oribi/worker/frontend_slot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct oribi__context;
struct oribi__passwords; /* frontend_passwords.h */

enum { ORIBI__FRONTEND_READY_MS = 30 * 1000 }; /* from the start of a frontend until it serves */

/* Files by their names, keys among them, and passwords of these. */
struct oribi__frontend_files {
    char *p;
    size_t len;
    size_t cap;
};

struct oribi__frontend {
    struct oribi__frontend_process process;
    int control_fd;                     /* -1: none */
    uint32_t owed;                      /* answers to new certificates: the last one counts */
    uint32_t locals_owed;               /* answers to changes of local content: the last one counts */
    int64_t start_at;                   /* when it is started again; 0: it is there */
    int64_t ready_by;                   /* it is killed then */
    uint32_t failures;                  /* in a row */
    struct oribi__frontend_files files; /* that it was started with, until it serves */
    char refused[128];                  /* why it did not serve with what the files have now; "": it did */
};

/* New certificates on their way to frontends. */
enum oribi__renewal {
    ORIBI__RENEWAL_NONE,
    ORIBI__RENEWAL_READS, /* a command prints a password */
    ORIBI__RENEWAL_WAITS, /* for the answers of frontends, until renewal_until */
};

struct oribi__frontends {
    struct oribi__frontend items[ORIBI_FRONTENDS_MAX];
    struct oribi__frontend_set set;
    char program[512];
    int tickets_fd;
    struct oribi_tls_tickets *tickets; /* mapped */
    int64_t tickets_at;                /* when the keys are turned */
    int slots_fd;
    bool beginning; /* the server is not up before all of them are ready */
    uint32_t begun; /* so many of them were started */
    bool ending;
    char error[256];   /* of the last that has failed at its start; "": none */
    char refusal[256]; /* of the last that has refused new certificates; "": none */
    uint32_t taken;    /* frontends that have taken new certificates */
    char warning[256]; /* of the last that has taken certificates; "": none */
    enum oribi__renewal renewing;
    bool renew_again;      /* it was asked for while one was under way */
    int64_t renewal_until; /* of ANSWERS */
    /* a reload's reply waits no longer for its local content; 0: none is on its way */
    int64_t locals_until;
    struct oribi__frontend_files renewed; /* what was read, until a frontend has taken it */
    struct oribi__passwords *passwords;   /* of a renewal; NULL: none is read */
    struct oribi__passwords *of_start;    /* of a frontend that is to start; NULL: none is read */
    uint32_t starting;                    /* number of that frontend */
    char renewal[256];                    /* why a reload has not renewed certificates; "": it has */
    struct oribi__frontend_files kept;    /* of the certificates that frontends have taken last */
    struct oribi_buf local;               /* oribi__frontend_text_local() of the generation in force */
};

void oribi__frontends_init(struct oribi__frontends *frontends);

/* Is frontend_user one that frontends can become? 0, or a code with one line in `error`. */
int oribi__frontends_check_user(const struct oribi_options *options, char *error);

/* Begins to start them. 0 also where none are wanted; or a code with one line in `error`. Turn: 0, all are ready;
 * ORIBI_AGAIN: not yet; or a code with one line in `error`. Nothing of a frontend is left with a code. */
int oribi__frontends_begin(struct oribi__context *context, char *error);
int oribi__frontends_begin_turn(struct oribi__context *context, char *error);

/* Reads the files of the certificates and gives them to all frontends. Its end is logged, and told to the clients of
 * the control socket that wait for it (frontend_renewal.c). One that is under way is followed by another. */
void oribi__frontends_certificates(struct oribi__context *context);

/* For each turn of the supervisor. */
void oribi__frontends_renewal_turn(struct oribi__context *context, int64_t now_ms);

/* Is a renewal under way, or have frontends still to take a reload's local content? */
bool oribi__frontends_settle(const struct oribi__context *context);

/* Hears the messages of frontends, starts again those that have died, and turns ticket keys. */
void oribi__frontends_turn(struct oribi__context *context);
int64_t oribi__frontends_deadline(const struct oribi__context *context);
size_t oribi__frontends_fds(const struct oribi__context *context, int *fds); /* at most ORIBI_FRONTENDS_MAX + 2 */

/* A child has ended: was it a frontend, or a command that prints a password? */
bool oribi__frontends_ended(struct oribi__context *context, pid_t pid, int status);

/* A new generation is in force, and this is its text of oribi__frontend_text_local(): frontends get it, and read anew
 * what it names. Borrows the text. */
void oribi__frontends_local(struct oribi__context *context, const struct oribi_buf *local);

/* Tells them to end: they answer what has begun and those who have connected; `handed_over`: others serve their
 * addresses. */
void oribi__frontends_end(struct oribi__context *context, bool handed_over);

/* Tells them that no worker takes anything any more. */
void oribi__frontends_give_up(struct oribi__context *context);

/* Notes for a supervisor's death whether this server alone has the addresses (frontend_slot.h). */
void oribi__frontends_note_sole(struct oribi__frontends *frontends, bool sole);

/* Is there a process of a frontend? */
bool oribi__frontends_left(const struct oribi__context *context);

void oribi__frontends_reopen(struct oribi__context *context); /* logs */

/* Closes what is open and ends what still runs. `in_child`: only closes. */
void oribi__frontends_close(struct oribi__context *context, bool in_child);

/* --- frontend_start.c --- */

/* Starts frontend i. One that is started again gets the certificates that served last, where the files have none that
 * are good. 0; ORIBI_AGAIN: a password is asked for; or a code with one line in `error`. */
int oribi__frontend_start(struct oribi__context *context, uint32_t i, char *error);

/* Frees the passwords of a reading, NULL then. */
void oribi__frontends_end_reading(struct oribi__passwords **passwords, bool in_child);

/* The descriptor of the access log, -1: there is none. */
int oribi__frontends_access_log_fd(const struct oribi__context *context);

/* --- frontend_files.c --- */

/* False: out of memory. */
bool oribi__frontend_files_add(struct oribi__frontend_files *files, const char *path, struct oribi_slice text);

/* False: it is not there. The text is valid until the next change. */
bool oribi__frontend_files_find(const struct oribi__frontend_files *files, const char *path, struct oribi_slice *text);

void oribi__frontend_files_move(struct oribi__frontend_files *to, struct oribi__frontend_files *from);

/* Wipes them, but not in a child, which does not have them. */
void oribi__frontend_files_free(struct oribi__frontend_files *files, bool in_child);

/* --- frontend_slots.c --- */

/* Without memory for them nothing of frontends is counted, and a line in the log says so. */
void oribi__frontends_make_slots(struct oribi__frontends *frontends);

/* --- frontend_tickets.c --- */

/* Without memory for them every handshake is a full one, and a line in the log says so. */
void oribi__frontends_make_tickets(struct oribi__frontends *frontends);

/* A new key encrypts from now on; the last ones still decrypt. */
void oribi__frontends_turn_tickets(struct oribi__frontends *frontends, int64_t now_ms);

/* --- frontend_text.c --- */

#define ORIBI__FRONTEND_NEEDS                                                                                          \
    "the program oribi-frontend, which is built where OpenSSL 3.0 and nghttp2 1.52 are (Debian: libssl-dev, "          \
    "libnghttp2-dev and pkg-config)"

/* Writes the path of the program. False: it is not there. */
bool oribi__frontend_program(char *dst, size_t cap);

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

/* --- frontend_unused.c --- */

/* The next option that is set for frontends, or for TLS, where no address has a frontend or speaks TLS: a line of it,
 * with *at as the place, 0 at first. False: no more. */
bool oribi__frontend_unused(const struct oribi_options *options, bool tls, bool frontend, size_t *at, char *line);

/* Logs them. */
void oribi__frontends_warn_of_unused(const struct oribi_options *options, const struct oribi_listeners *listeners);

/* --- frontend_certificates.c --- */

/* Appends certificates, read from their files now, or from what `from` has of these; keys that are encrypted have their
 * passwords by the command that the options name. `keep` gets what is read, passwords too. Both may be NULL; passwords
 * too, with `from`. 0; ORIBI_AGAIN: a password is asked for (oribi__passwords_turn()), and what was appended is to be
 * wiped; or a code with one line in `error` that names the file. */
int oribi__frontend_text_certificates(const struct oribi_options *options, const struct oribi_listeners *listeners,
                                      const struct oribi__frontend_files *from, struct oribi__frontend_files *keep,
                                      struct oribi__passwords *passwords, struct oribi_buf *out, char *error);

/* Appends the certificates for the tls:// addresses of the options, none of which is open: for a look
 * (command/check_tls.c). */
int oribi__frontend_text_certificates_named(const struct oribi_options *options, struct oribi_buf *out, char *error);

#endif
