/* Completion of the command line for a shell, written from the table of options and the words of ctl:
 *
 *   oribi --completion bash >/etc/bash_completion.d/oribi
 *
 * completion.c has the tables, completion_bash.c, completion_zsh.c and completion_fish.c write the scripts. */
#ifndef ORIBI_COMMAND_COMPLETION_H
#define ORIBI_COMMAND_COMPLETION_H

#include "oribi/base/buf.h"
#include "oribi/config/options.h"

/* Appends a script for `shell`, "bash" (4 or newer), "zsh" or "fish": it completes the command `program` ("oribi",
 * "oribi-psgi"), whose options are those of `lang`. It starts no program when it completes. 0, or ORIBI_EINVAL with one
 * line in `error` (ORIBI_ERROR_TEXT_CAP) for another shell. */
int oribi_completion(struct oribi_buf *out, enum oribi_option_lang lang, const char *program, const char *shell,
                     char *error);

#endif
