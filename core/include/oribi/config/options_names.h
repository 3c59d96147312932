/* Names of options as people type them: spellings, aliases, negations, names of other servers, and hooks (options.c,
 * options_foreign.c). */
#ifndef ORIBI_CONFIG_OPTIONS_NAMES_H
#define ORIBI_CONFIG_OPTIONS_NAMES_H

#include "oribi/config/options.h"
#include "oribi/config/suggest.h"

#include <stdbool.h>
#include <stddef.h>

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

#endif
