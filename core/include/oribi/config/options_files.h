/* Files, folders and programs that options name, looked at before a server starts (options_files.c). */
#ifndef ORIBI_CONFIG_OPTIONS_FILES_H
#define ORIBI_CONFIG_OPTIONS_FILES_H

#include "oribi/config/options.h"

#include <stdbool.h>

/* Tells of each thing on the disk that is missing, or cannot be used, one line each; `tell` gives false for no more of
 * them. 0, or the code of the last one. */
typedef bool (*oribi__files_tell)(void *self, const char *error);
int oribi__options_each_file(const struct oribi_options *options, oribi__files_tell tell, void *self);

#endif
