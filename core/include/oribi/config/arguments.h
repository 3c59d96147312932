/* Words of a configuration file that take several arguments, and keywords for settings:
 *
 *     static "/assets", "public/assets", cache: "no-cache", symlinks: ["/srv/shared", "/srv/other"]
 *
 * Their option takes one line, as the command line has it (`/assets=public/assets?cache=no-cache&symlinks=...`). The
 * table says how the line is composed (struct oribi_option_composed), so that both languages do it here and alike, and
 * --print-config takes it apart again. */
#ifndef ORIBI_CONFIG_ARGUMENTS_H
#define ORIBI_CONFIG_ARGUMENTS_H

#include "oribi/config/options.h"

#include <stddef.h>
#include <stdint.h>

struct oribi_buf;

enum { ORIBI_ARGUMENTS_MAX = 256 }; /* of one word, the items of lists counted */

/* One argument as a language has it. A list gives one of these for each item, with the same place or keyword. */
struct oribi_argument {
    const char *keyword; /* the name of a setting; NULL: the argument counts by its place */
    const char *key;     /* of a hash that is the keyword's value, which has several values by key; or NULL */
    const char *text;    /* numbers as text, switches as "on" and "off"; NULL: a value that is none of these */
    uint32_t place;      /* without keyword: 0 is the first */
};

/* Sets one option from the arguments of its word: composes the line, and sets it as oribi_options_set_from() does. A
 * word with one argument and nothing else is the line itself, a list of lines sets each. Borrows all. 0, or
 * ORIBI_EINVAL with one line in `error` that names the word and the argument: one too many, one missing, one that is no
 * text, an unknown setting with the nearest known one; or what the option says of the line. */
int oribi_options_set_arguments(struct oribi_options *options, enum oribi_option_source source, const char *name,
                                const struct oribi_argument *arguments, size_t count, char *error);

/* How many of `count` values count by their place, where keywords and their values follow in the same list, as in Perl:
 * the rest are pairs. `texts`: the values' texts, NULL for a value that is none. */
size_t oribi_option_places(const struct oribi_option *option, const char *const *texts, size_t count);

/* Is each of several arguments a line by itself: bind "127.0.0.1:9292", "/run/app.sock"? Of a composed option. */
bool oribi_option_takes_lines(const struct oribi_option *option);

/* Appends the word with the arguments that make `line`, in the syntax of the language (ORIBI_LANG_RUBY or
 * ORIBI_LANG_PERL), without a newline. A line that the option would not take is appended as the one argument. */
void oribi_option_print_word(struct oribi_buf *out, const struct oribi_option *option, const char *line,
                             enum oribi_option_lang lang);

/* Appends "static [PREFIX, ]FOLDER": the word and its arguments, for documents. */
void oribi_option_print_signature(struct oribi_buf *out, const struct oribi_option *option);

#endif
