/* Parts of a command line that `ctl` and `publish` have in common: which server is meant. */
#ifndef ORIBI_COMMAND_CONTROL_OPTIONS_H
#define ORIBI_COMMAND_CONTROL_OPTIONS_H

#include "oribi/config/options.h"
#include "oribi/supervisor/control_client.h"
#include "oribi/supervisor/packaged.h"

/* Their lines of the help, and the empty one behind them. */
#define ORIBI__CONTROL_OPTIONS_HELP                                                                                    \
    "  @NAME               a server of the Debian packages: the unit oribi@NAME, oribi-psgi@NAME\n"                    \
    "  --control PATH      the server's control socket; else the configuration file tells it, or\n"                    \
    "                      the folder in which the server runs\n"                                                      \
    "  -C, --config FILE   configuration file [as for the server]\n"                                                   \
    "  --chdir DIR         directory to change to first\n"                                                             \
    "\n"

/* Takes one of the server's options that name a server (control, config, chdir), or help, at argv[*at], which moves to
 * its last word. 0, or ORIBI_EINVAL with one line in `error`, which begins with the command's name. */
int oribi__control_option(struct oribi_options *options, const char *command, size_t argc, const char *const *argv,
                          size_t *at, char *error);

/* The control socket of the server that is meant: that of the options, or that of this folder; borrowed from one of
 * both. NULL, and lines on standard error, where there is none, or more than one. */
const char *oribi__control_choose(const struct oribi_options *options, struct oribi__control_found *found,
                                  const char *program, const char *command);

#endif
