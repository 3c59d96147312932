/* The command line of `oribi publish` and `oribi-psgi publish`, once for both:
 *
 *   oribi publish [--control PATH | -C FILE] [--chdir DIR] [--event NAME] [--binary] CHANNEL [DATA]
 *
 * The steps are those of control_command.h. */
#ifndef ORIBI_COMMAND_PUBLISH_COMMAND_H
#define ORIBI_COMMAND_PUBLISH_COMMAND_H

#include "oribi/base/buf.h"
#include "oribi/config/options.h"

#include <stdbool.h>

/* The message; texts are borrowed from the command line. */
struct oribi_publish_words {
    const char *channel;
    const char *data;  /* NULL: standard input has it */
    const char *event; /* NULL: none */
    bool binary;
};

/* Reads options into `options`, and the rest into `words`. 0, or ORIBI_EINVAL with one line in `error`
 * (ORIBI_ERROR_TEXT_CAP). With options->help set there may be no channel. */
int oribi_publish_command_parse(struct oribi_options *options, size_t argc, const char *const *argv,
                                struct oribi_publish_words *words, char *error);

/* Appends the text of `publish --help`. Borrows `program`: "oribi", "oribi-psgi". */
void oribi_publish_command_help(struct oribi_buf *out, const char *program);

/* Publishes by the server that `ctl` would tell something; says on stderr why it cannot. The exit code: 0 done, 1
 * refused or failed, 2 no server answers there, or it is not clear which. */
int oribi_publish_command_run(const struct oribi_options *options, const struct oribi_publish_words *words,
                              const char *program);

#endif
