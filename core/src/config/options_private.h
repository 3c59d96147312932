/* Shared by the options sources: options_table.c (the table), options.c (names, defaults, ranks), options_value.c (text
 * to value and back), options_command.c (command line, finish), options_environment.c (variables), options_foreign.c
 * (names of other servers), options_reload.c (what a reload takes over), options_differing.c (what the log
 * shows of options), options_files.c (what options name on the
 * disk), options_answers.c (lines of answers of the server's own), options_status.c (who may ask the status listener),
 * options_text.c (help and documentation). */
#ifndef ORIBI_SRC_CONFIG_OPTIONS_PRIVATE_H
#define ORIBI_SRC_CONFIG_OPTIONS_PRIVATE_H

#include "oribi/config/options.h"
#include "oribi/config/suggest.h"

/* Longest name in any spelling, squeezed (see oribi__options_resolve). */
enum { OPTION_NAME_CAP = ORIBI_SUGGEST_WORD_MAX + 1 };

/* The meaning of a name: one of option and alias, or none. */
struct oribi__option_name {
    const struct oribi_option *option;
    const struct oribi_option_alias *alias;
    bool takes_value; /* on the command line */
    bool negated;     /* no_, disable_ */
};

struct oribi__option_name oribi__options_resolve(const char *name);

/* Do both mean the same option, whatever their spelling? */
bool oribi__options_same_name(const char *name, const char *typed);

/* An option of another server, which has another name here or none. */
struct oribi__foreign_name {
    const char *name;   /* underscores; a single letter is a flag */
    const char *server; /* the server that has it */
    const char *here;   /* option or hook that does the same; NULL: advice says what to do */
    const char *advice;
};
const struct oribi__foreign_name *oribi__options_foreign(size_t *count);

/* ORIBI_EINVAL with the advice in `error` for such a name, 0 for any other. */
int oribi__options_refuse_foreign(const char *typed, char *error);

/* Names of all hooks, separated by blanks; the bindings run them. */
const char *oribi__options_hook_names(void);

/* Writes "unknown option ..." with what another server's name is here, or the nearest known name of this language.
 * Returns ORIBI_EINVAL. */
int oribi__options_unknown(enum oribi_option_lang lang, const char *name, char *error);

/* Is an unknown name one of another server, or nearly that of an option? Then somebody means an option. */
bool oribi__options_resembles(enum oribi_option_lang lang, const char *name);

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

/* on off true false yes no 1 0, in any case; empty is off. False for any other text. */
bool oribi__option_read_switch(const char *text, bool *on);

/* A time with its unit ("1500ms", "2 s", "1.5m"; without one: seconds) in milliseconds. False for any other text. */
bool oribi__option_read_time(const char *text, int64_t *ms);

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

/* Is the host of an address this machine's own, in numbers or as localhost? */
bool oribi__options_is_loopback(const char *host);

/* Tells of each thing on the disk that is missing, or cannot be used, one line each; `tell` gives false for no more of
 * them. 0, or the code of the last one. */
typedef bool (*oribi__files_tell)(void *self, const char *error);
int oribi__options_each_file(const struct oribi_options *options, oribi__files_tell tell, void *self);

/* Is cancel_gone off, on, or a list of methods (options_gone.c)? */
int oribi__options_check_gone(const struct oribi_options *options, char *error);

/* Fills `error` (ORIBI_ERROR_TEXT_CAP, cut where a user's text is long) and returns ORIBI_EINVAL. For everything
 * that configures. */
__attribute__((format(printf, 2, 3))) int oribi__refuse(char *error, const char *format, ...);

/* A subcommand: the first word of the command line, where it is not the application. For --help and for shells. */
struct oribi__subcommand {
    const char *word;
    const char *arguments; /* for --help */
    const char *help;      /* one line */
};

enum { ORIBI__SUBCOMMANDS = 4 };

extern const struct oribi__subcommand oribi__subcommands[ORIBI__SUBCOMMANDS];

#endif
