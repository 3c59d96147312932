/* Passwords of keys, which a command of the operator's prints (certificate_password_command), for one reading of
 * certificates. Nobody waits for the command: a reading that needs a password breaks off, and is begun anew when that
 * is known.
 *
 *   reading ─ a password is needed ─► the command runs ─ it has ended, or its time is over ─► the reading, once more */
#ifndef ORIBI_SUPERVISOR_FRONTEND_PASSWORDS_H
#define ORIBI_SUPERVISOR_FRONTEND_PASSWORDS_H

#include "oribi/base/error.h"
#include "oribi/base/os/os_process.h"
#include "oribi/supervisor/frontend_text.h"

enum {
    ORIBI__PASSWORD_WORDS_MAX = 16, /* of the command */
    ORIBI__PASSWORD_COMMAND_CAP = 1024,
    ORIBI__PASSWORDS_MS = 10 * 1000, /* of all passwords of one reading together */
};

struct oribi__passwords {
    struct oribi__frontend_files known; /* by the path of the key */
    struct oribi_command command;
    bool runs;
    int64_t until_ms;                   /* of all together; 0: none was asked for */
    char error[ORIBI_ERROR_TEXT_CAP];   /* why there is none; "": nothing has failed */
    char path[ORIBI_FRONTEND_WORD_MAX]; /* of the key whose password is asked for */
    char text[ORIBI__PASSWORD_COMMAND_CAP];
    char *words[ORIBI__PASSWORD_WORDS_MAX + 2];
    char printed[ORIBI_FRONTEND_PASSWORD_MAX + 2]; /* and a line's end */
};

/* Gives the password of a key. 0; ORIBI_AGAIN: it is asked for; or a code with one line in `error`. */
int oribi__password_of(struct oribi__passwords *passwords, const struct oribi_options *options, const char *path,
                       struct oribi_slice *password, char *error);

/* False while the command runs: the reading is not begun again yet. */
bool oribi__passwords_turn(struct oribi__passwords *passwords);

/* Waits for that: for a server that does not serve yet, and for a look. */
void oribi__passwords_await(struct oribi__passwords *passwords);

/* The reading is over: ends the command, and wipes what it has printed. */
void oribi__passwords_end(struct oribi__passwords *passwords, bool in_child);

#endif
