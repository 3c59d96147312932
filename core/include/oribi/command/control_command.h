/* The command line of `oribi ctl` and `oribi-psgi ctl`, once for both:
 *
 *   oribi ctl [--control PATH | -C FILE] [--chdir DIR] COMMAND
 *
 *   oribi_options_init(&options);
 *   if (oribi_control_command_parse(&options, argc, argv, command, error) < 0)  // argv: what follows the word ctl
 *       return fail(error);                                               // "oribi: <error>" on stderr, exit code 1
 *   if (options.help)
 *       return print(oribi_control_command_help());
 *   change to options.chdir; if (!options.control) read the configuration file that the options name, or the usual one;
 *   return oribi_control_command_run(&options, command, "oribi");               // the exit code
 */
#ifndef ORIBI_COMMAND_CONTROL_COMMAND_H
#define ORIBI_COMMAND_CONTROL_COMMAND_H

#include "oribi/base/buf.h"
#include "oribi/config/options.h"

enum { ORIBI_CONTROL_COMMAND_CAP = 64 };

/* Reads options into `options` and the command into `command`, as the server takes it ("status json", "workers +1").
 * 0, or ORIBI_EINVAL with one line in `error` (ORIBI_ERROR_TEXT_CAP). With options->help set the command may be
 * empty. */
int oribi_control_command_parse(struct oribi_options *options, size_t argc, const char *const *argv,
                                char command[ORIBI_CONTROL_COMMAND_CAP], char *error);

/* Appends the text of `ctl --help`. Borrows `program`: "oribi", "oribi-psgi". */
void oribi_control_command_help(struct oribi_buf *out, const char *program);

/* Asks the server at options->control, or the only one of this user that runs in the working directory (or `chdir`);
 * prints the answer, a refusal on stderr. Blocks until the server answers.
 * Returns the exit code: 0 done, 1 refused or failed, 2 no server answers there, or it is
 * not clear which. */
int oribi_control_command_run(const struct oribi_options *options, const char *command, const char *program);

#endif
