/* `oribi init` and `oribi-psgi init`: the files that an application in a folder needs to be served by Oribi.
 *
 *   init [--psgi|--rack] [--pretend] [--force] [FOLDER]
 *
 * Makes config/oribi.rb or .pl, Procfile.dev, and with a Gemfile bin/oribi; adds a line to Gemfile or cpanfile, and to
 * a Procfile.dev without one for the web. Run again it changes nothing. A file that is there and differs is left as it
 * is, but for --force, which writes it anew and keeps the former one beside it, NAME.old. What somebody has to change
 * by hand (Dockerfile, Procfile, another server's configuration) is told. */
#ifndef ORIBI_COMMAND_INIT_H
#define ORIBI_COMMAND_INIT_H

#include "oribi/base/buf.h"
#include "oribi/config/options.h"

#include <stddef.h>

enum {
    ORIBI_INIT_FILE_MAX = 1024 * 1024, /* bytes of a file that is read; a longer one is refused */
};

/* Does it. `argv` is what follows the word init; `program` is the command that was given it ("oribi"). Appends to
 * `out` a line for each file, and what is to be done next, or the help; also when it fails half-way. 0, or a code
 * with one line in `error` (ORIBI_ERROR_TEXT_CAP). Borrows everything. */
int oribi_init_run(enum oribi_option_lang lang, const char *program, size_t argc, const char *const *argv,
                   struct oribi_buf *out, char *error);

#endif
