/* Subcommands of both commands (options_text.c). */
#ifndef ORIBI_CONFIG_SUBCOMMANDS_H
#define ORIBI_CONFIG_SUBCOMMANDS_H

/* A subcommand: the first word of the command line, where it is not the application. For --help and for shells. */
struct oribi__subcommand {
    const char *word;
    const char *arguments; /* for --help */
    const char *help;      /* one line */
};

enum { ORIBI__SUBCOMMANDS = 4 };

extern const struct oribi__subcommand oribi__subcommands[ORIBI__SUBCOMMANDS];

#endif
