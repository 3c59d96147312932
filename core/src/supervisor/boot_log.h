/* boot_log - what the log says of a start and of a reload: version, language, environment, options that differ from
 * their defaults, addresses. As JSON these are fields. */
#ifndef ORIBI_SUPERVISOR_BOOT_LOG_H
#define ORIBI_SUPERVISOR_BOOT_LOG_H

#include "oribi/base/buf.h"
#include "oribi/policy/policy.h"

struct oribi_options;
struct oribi__context;

enum { ORIBI__VERSION_CAP = 32, ORIBI__LANGUAGE_CAP = 64 };

/* A member of struct oribi_supervisor. */
struct oribi__boot_log {
    char version[ORIBI__VERSION_CAP];   /* "" when the program has not told it */
    char language[ORIBI__LANGUAGE_CAP]; /* "ruby 3.3.8" */
    bool said;
    struct oribi_buf options;      /* in force; lines of oribi_options_differing() */
    struct oribi_buf next_options; /* of the generation that loads, as far as it has told them */
    bool next_told;                /* the generation that loads has begun to tell its options */
};

/* The server begins, in the process that will be the supervisor. */
void oribi__boot_log_begin(struct oribi__context *context);

/* Says once what server this is. With the first line that is no error, so that a start that fails at once has one line:
 * why. */
void oribi__boot_log_say(struct oribi__context *context);

/* The server is up: its addresses (borrows `line`), workers and pid. */
void oribi__boot_log_up(struct oribi__context *context, const char *line);

/* A part of what the next generation's mold tells of its options; they come to nothing; they are in force. */
void oribi__boot_log_hear(struct oribi__context *context, const char *text, size_t n);
void oribi__boot_log_drop(struct oribi__context *context);
void oribi__boot_log_commit(struct oribi__context *context);

/* Members of JSON for a line that the policy has said; "" for none. NUL-terminated, cut at cap. */
void oribi__boot_log_members(const struct oribi_policy_action *action, char *dst, size_t cap);

#endif
