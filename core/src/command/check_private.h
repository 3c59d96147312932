/* Shared by the sources of `check`: check.c (the list, the report, in which order one looks),
 * check_limits.c (numbers), check_settings.c (options), check_places.c (folders and files), check_ports.c (addresses),
 * check_tls.c (certificates), check_acme.c (certificates that an authority issues).
 * The first two judges get what they judge as data, so that tests reach each bound. */
#ifndef ORIBI_COMMAND_CHECK_PRIVATE_H
#define ORIBI_COMMAND_CHECK_PRIVATE_H

#include "oribi/command/check.h"

#include "oribi/base/os/os_machine.h"

/* Where larger bodies and answers wait. */
struct oribi__check_temp {
    const char *dir;
    const char *trouble; /* why no file can be made there; NULL: one can */
    struct oribi_disk disk;
};

/* Facts that the limits are judged by. */
struct oribi__check_facts {
    struct oribi_machine machine;
    struct oribi__check_temp temp;
    bool is_running; /* the server of this configuration runs already: its processes are counted */
    bool is_root;
};

/* A finding whose parts are formatted one after the other: say(what), then why and what to do. */
__attribute__((format(printf, 6, 7))) void oribi__check_say(struct oribi_check *check, enum oribi_check_level level,
                                                            const char *id, const char *why, const char *todo,
                                                            const char *format, ...);

void oribi__check_limits(struct oribi_check *check, const struct oribi_options *options,
                         const struct oribi__check_facts *facts);
void oribi__check_settings(struct oribi_check *check, const struct oribi_options *options, bool is_root);

/* Is there a server with this pid file or control socket, or one that `ctl` finds from this folder? */
bool oribi__check_is_running(const struct oribi_options *options);

/* `is_running`: addresses and files in use are that server's. */
void oribi__check_places(struct oribi_check *check, const struct oribi_options *options, bool is_running);
void oribi__check_tls(struct oribi_check *check, const struct oribi_options *options);
void oribi__check_acme(struct oribi_check *check, const struct oribi_options *options, bool is_root);
void oribi__check_ports(struct oribi_check *check, const struct oribi_options *options, bool is_running);

/* Can a file be made in the folder that `path` lies in? A finding about `option` where it cannot. */
bool oribi__check_folder_of(struct oribi_check *check, const char *option, const char *path);

/* Is the option's value the operator's, not a default? */
bool oribi__check_is_given(const struct oribi_options *options, const char *name);

#endif
