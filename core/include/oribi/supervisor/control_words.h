/* The commands of ctl: what the command line takes, its help tells and shells complete. */
#ifndef ORIBI_SUPERVISOR_CONTROL_WORDS_H
#define ORIBI_SUPERVISOR_CONTROL_WORDS_H

#include <stdbool.h>

struct oribi__control_word {
    const char *word;
    const char *flag; /* that it may have: "--json"; or NULL */
    bool has_number;  /* that it needs */
    const char *help; /* one line */
};

enum { ORIBI__CONTROL_WORDS = 10 };

extern const struct oribi__control_word oribi__control_words[ORIBI__CONTROL_WORDS];

#endif
