/* Shared by the sources of init:
 *   init.c         the command line, the application that is there, and the order of the files
 *   init_files.c   a file is made, or gets a line
 *   init_texts.c   what stands in the files */
#ifndef ORIBI_COMMAND_INIT_PRIVATE_H
#define ORIBI_COMMAND_INIT_PRIVATE_H

#include "oribi/command/init.h"

#include <limits.h>
#include <stdbool.h>

enum { ORIBI__INIT_NONE = 1 };

/* One run. */
struct oribi__init {
    enum oribi_option_lang lang;
    bool pretend;
    bool force;
    bool is_rails;
    bool has_bundle;         /* there is a Gemfile, or what Carton has installed */
    const char *folder;      /* of the application; borrowed */
    const char *program;     /* "oribi" or "oribi-psgi": the command that serves it */
    char app[NAME_MAX + 32]; /* from the folder: "config.ru", "bin/app.psgi" */
    struct oribi_buf *out;   /* borrowed */
    char *error;             /* borrowed */
};

/* --- files; paths are from the folder. 0, or a code with a line in error --- */

/* Reads the file into `text`, which the caller has initialized. ORIBI__INIT_NONE when there is none. */
int oribi__init_read(struct oribi__init *run, const char *path, struct oribi_buf *text);

bool oribi__init_has(const struct oribi__init *run, const char *path);

/* Makes a file of ours, and its folder. */
int oribi__init_make(struct oribi__init *run, const char *path, const struct oribi_buf *text, bool executable);

/* Adds the line, without its end, to a file that is there; in the manner in which its lines end. `text` is what
 * stands in it. */
int oribi__init_append(struct oribi__init *run, const char *path, const struct oribi_buf *text, const char *line);

/* A line of the report: what happened, and to what. */
void oribi__init_say(struct oribi__init *run, const char *what, const char *path);

/* --- texts; appended --- */

void oribi__init_config(const struct oribi__init *run, struct oribi_buf *text);
void oribi__init_command(struct oribi_buf *text);                            /* bin/oribi */
void oribi__init_web(const struct oribi__init *run, struct oribi_buf *text); /* the line of Procfile.dev */
void oribi__init_next(const struct oribi__init *run, bool needs_install, struct oribi_buf *out);
void oribi__init_help(struct oribi_buf *out, const char *program);

#endif
