/* Words of people who configure: names of options, values that others read too (options_value.c), files that options
 * name, subcommands (options_text.c), near misses (suggest.c), and the line about a refused setting. */
#ifndef ORIBI_CONFIG_OPTIONS_NAMES_H
#define ORIBI_CONFIG_OPTIONS_NAMES_H

#include "oribi/config/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- refuse ---- */

/* The line for a person whose setting is refused (options_value.c). */

/* Fills `error` (ORIBI_ERROR_TEXT_CAP, cut where a user's text is long) and returns ORIBI_EINVAL. For everything
 * that configures. */
__attribute__((format(printf, 2, 3))) int oribi__refuse(char *error, const char *format, ...);

/* ---- suggest ---- */

/* "Did you mean": how far two short words are apart. */

enum { ORIBI_SUGGEST_WORD_MAX = 48 };

/* Edits that turn `a` into `b`: insert, remove or replace a character, swap two neighbours. UINT32_MAX when a word
 * is longer than ORIBI_SUGGEST_WORD_MAX. */
uint32_t oribi_suggest_distance(const char *a, const char *b);

/* Is `distance` small enough for a word like `typed` to be a slip of the pen? */
bool oribi_suggest_likely(const char *typed, uint32_t distance);

/* ---- subcommands ---- */

/* Subcommands of both commands (options_text.c). */

/* A subcommand: the first word of the command line, where it is not the application. For --help and for shells. */
struct oribi__subcommand {
    const char *word;
    const char *arguments; /* for --help */
    const char *help;      /* one line */
};

enum { ORIBI__SUBCOMMANDS = 5 };

extern const struct oribi__subcommand oribi__subcommands[ORIBI__SUBCOMMANDS];

/* ---- options_names ---- */

/* Names of options as people type them: spellings, aliases, negations, names of other servers, and hooks (options.c,
 * options_foreign.c). */

/* Longest name in any spelling, squeezed (see oribi__options_resolve). */
enum { ORIBI__OPTION_NAME_CAP = ORIBI_SUGGEST_WORD_MAX + 1 };

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

/* Does the server do something else without this option? If not, a command line may have it. */
enum oribi__foreign_loss {
    ORIBI__LOSS_COUNTS = 0,
    ORIBI__LOSS_OF_SWITCH, /* it asks for what is always so here, or is about what is not here */
    ORIBI__LOSS_OF_VALUE,  /* the same of a flag with a value */
};

/* An option of another server, which has another name here or none. */
struct oribi__foreign_name {
    const char *name;   /* underscores; a single letter is a flag */
    const char *server; /* the server that has it */
    const char *here;   /* option or hook that does the same; NULL: advice says what to do */
    const char *advice;
    enum oribi__foreign_loss loss;
};
const struct oribi__foreign_name *oribi__options_foreign(size_t *count);

/* ORIBI_EINVAL with the advice in `error` for such a name, 0 for any other. */
int oribi__options_refuse_foreign(const char *typed, char *error);

/* Notes a name that stands for no loss, for the log; *takes_value: a value may stand behind it. False for any other
 * name: it is to be refused. */
bool oribi__options_ignore(struct oribi_options *options, const char *typed, bool *takes_value);

/* Names of all hooks, separated by blanks; the bindings run them. */
const char *oribi__options_hook_names(void);

/* Writes "unknown option ..." with what another server's name is here, or the nearest known name of this language.
 * Returns ORIBI_EINVAL. */
int oribi__options_unknown(enum oribi_option_lang lang, const char *name, char *error);

/* Is an unknown name one of another server, or nearly that of an option? Then somebody means an option. */
bool oribi__options_resembles(enum oribi_option_lang lang, const char *name);

/* ---- options_values ---- */

/* Values of options whose text others read, too (options_value.c). */

/* on off true false yes no 1 0, in any case; empty is off. False for any other text. */
bool oribi__option_read_switch(const char *text, bool *on);

/* A time with its unit ("1500ms", "2 s", "1.5m"; without one: seconds) in milliseconds. False for any other text. */
bool oribi__option_read_time(const char *text, int64_t *ms);

/* ---- options_files ---- */

/* Files, folders and programs that options name, looked at before a server starts (options_files.c). */

/* Tells of each thing on the disk that is missing, or cannot be used, one line each; `tell` gives false for no more of
 * them. 0, or the code of the last one. */
typedef bool (*oribi__files_tell)(void *self, const char *error);
int oribi__options_each_file(const struct oribi_options *options, oribi__files_tell tell, void *self);

#endif
