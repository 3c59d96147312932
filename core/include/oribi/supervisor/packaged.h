/* Servers of the Debian packages by their short names: "@board" is the unit oribi@board.service, with
 * /etc/oribi/board.rb, /run/oribi/board/control and the unit's environment. */
#ifndef ORIBI_SUPERVISOR_PACKAGED_H
#define ORIBI_SUPERVISOR_PACKAGED_H

#include "oribi/config/options.h"

#include <stdbool.h>

bool oribi__packaged_is_name(const char *word);

/* Sets `control` to the socket of the server. 0, or ORIBI_EINVAL with one line in `error` (ORIBI_ERROR_TEXT_CAP). */
int oribi__packaged_control(struct oribi_options *options, const char *word, char *error);

/* Makes this process see what the unit starts with: sets `config` and `control`, changes to the unit's working
 * directory, and takes over its environment: as systemctl tells it, else the one in the package, with the variables of
 * the unit's folders (systemd.exec(5), RuntimeDirectory=). 0, or ORIBI_EINVAL with one line in `error`. */
int oribi__packaged_enter(struct oribi_options *options, const char *word, char *error);

/* Was that done with these options? The unit gives the server its user then, whoever asks. */
bool oribi__packaged_is_entered(const struct oribi_options *options);

/* Is this a folder that systemd makes at the start of such a unit? */
bool oribi__packaged_makes(const char *folder);

/* Takes variables as `systemctl show` prints them over into this process: A=1 "B=2 3". For packaged.c and its test. */
void oribi__packaged_take_environment(const char *text);

#endif
