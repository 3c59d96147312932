/* Tables and helpers of --completion: each of the three shells' scripts writes the same tables in its own way. */
#ifndef ORIBI_COMMAND_COMPLETION_SCRIPT_H
#define ORIBI_COMMAND_COMPLETION_SCRIPT_H

#include "oribi/base/buf.h"
#include "oribi/config/options.h"

#include <stdbool.h>
#include <string.h>

/* Values that may follow an option. */
enum oribi__value {
    ORIBI__VALUE_NONE,
    ORIBI__VALUE_ANY,
    ORIBI__VALUE_FILE,
    ORIBI__VALUE_FOLDER,
    ORIBI__VALUE_USER,
    ORIBI__VALUE_GROUP,
    ORIBI__VALUE_WORDS
};

struct oribi__values {
    enum oribi__value kind;
    const char *words; /* offered beside files, or alone; or NULL */
};

/* Flags of sub-commands that are no options of a start. Those of `check` stand beside the options of a start. */
struct oribi__flag {
    const char *command;
    const char *short_flag; /* or NULL */
    const char *name;
    const char *argument; /* for zsh; or NULL */
    struct oribi__values values;
    const char *help;
};

struct oribi__script {
    struct oribi_buf *out;
    enum oribi_option_lang lang;
    const char *program;
};

struct oribi__values oribi__values_of(const struct oribi_option *option);
bool oribi__is_switch(const struct oribi_option *option); /* that --no- turns off */

/* Does a sub-command take the options of a start, too? */
bool oribi__takes_options(const char *command);

typedef void (*oribi__option_fn)(struct oribi__script *s, const struct oribi_option *option);
void oribi__each_option(struct oribi__script *s, oribi__option_fn fn); /* of the script's language */

typedef void (*oribi__flag_fn)(struct oribi__script *s, const struct oribi__flag *flag);
void oribi__each_flag(struct oribi__script *s, const char *command, oribi__flag_fn fn);

/* The words of `values`; of ORIBI__VALUE_WORDS without any: the orders of top. */
void oribi__put_words(struct oribi__script *s, struct oribi__values values);
void oribi__put_subcommands(struct oribi__script *s);
void oribi__put_control_words(struct oribi__script *s, const char *between);

void oribi__put_bash(struct oribi__script *s);
void oribi__put_zsh(struct oribi__script *s);
void oribi__put_fish(struct oribi__script *s);

static inline void put(struct oribi__script *s, const char *text)
{
    oribi_buf_append(s->out, text, strlen(text));
}

static inline void put_option(struct oribi__script *s, const char *before, const char *name)
{
    put(s, before);
    for (; *name; name++)
        oribi_buf_append(s->out, *name == '_' ? "-" : name, 1);
}

/* The program's name as a part of a function's: oribi_psgi. */
static inline void put_identifier(struct oribi__script *s)
{
    for (const char *p = s->program; *p; p++)
        oribi_buf_append(s->out, *p == '-' ? "_" : p, 1);
}

/* Inside of single quotes, where `special` have a backslash in front. The quotes of the shells differ in how they are
 * left, so an apostrophe becomes a typographic one. */
static inline void put_quoted(struct oribi__script *s, const char *text, const char *special)
{
    for (; *text; text++) {
        if (strchr(special, *text))
            put(s, "\\");
        if (*text == '\'')
            put(s, "\xe2\x80\x99");
        else
            oribi_buf_append(s->out, text, 1);
    }
}

#endif
