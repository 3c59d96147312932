/* Shared by the options sources: options_table.c (the table), options.c (names, defaults, ranks), options_value.c (text
 * to value and back), options_command.c (command line, finish), options_foreign.c (names of other
 * servers), options_reload.c (what a reload takes over), options_files.c (what options name on the disk),
 * options_status.c (who may ask the status listener), options_text.c (help and documentation). */
#ifndef ORIBI_SRC_CONFIG_OPTIONS_PRIVATE_H
#define ORIBI_SRC_CONFIG_OPTIONS_PRIVATE_H

#include "oribi/config/options.h"
#include "oribi/config/options_names.h"

/* Parses `value` into the option's field, whatever its source. `name` is what the user wrote, for the error. 0 or
 * ORIBI_EINVAL. */
int oribi__option_assign(struct oribi_options *options, const struct oribi_option *option, const char *name,
                         const char *value, char *error);

/* Checks a value as oribi__option_assign() does, and changes nothing. */
int oribi__option_check(const struct oribi_option *option, const char *name, const char *value, char *error);

/* Checks the line of an option for answers of the server's own: answer, redirect, health, header, error_page. 0 for
 * any other option, or ORIBI_EINVAL. And what such lines must not say together. */
int oribi__option_check_answer(const struct oribi_option *option, const char *line, char *error);
int oribi__options_check_answers(const struct oribi_options *options, char *error);

/* Sets one option of the table from a source, with the rules of oribi_options_set_from(). */
int oribi__option_set(struct oribi_options *options, enum oribi_option_source source, const struct oribi_option *option,
                      const char *name, const char *value, char *error);

/* Where the option's source is kept. */
uint8_t *oribi__option_source(struct oribi_options *options, const struct oribi_option *option);

/* Sets what the environment says, where nothing stronger has spoken. 0 or ORIBI_EINVAL. */
int oribi__options_read_environment(struct oribi_options *options, char *error);

/* Frees what the field owns and makes it empty. */
void oribi__option_clear(struct oribi_options *options, const struct oribi_option *option);

/* Writes a number as the type's shortest exact text ("64K", "1500ms"). NUL-terminated. */
enum { OPTION_NUMBER_CAP = 32 };
void oribi__option_format_number(enum oribi_option_type type, int64_t value, char dst[OPTION_NUMBER_CAP]);

/* A value as an error shows it: one line, cut. Returns dst. */
enum { OPTION_QUOTE_CAP = 64 };
const char *oribi__option_quote(const char *value, char dst[OPTION_QUOTE_CAP]);

/* Replaces a text the struct owns by a copy of `value` (NULL: none). */
void oribi__option_replace_text(char **field, const char *value);

/* Whether `status` is an address that may be listened on. 0 or ORIBI_EINVAL. */
int oribi__options_check_status(const struct oribi_options *options, char *error);

/* Is cancel_gone off, on, or a list of methods? */
int oribi__options_check_gone(const struct oribi_options *options, char *error);

#endif
