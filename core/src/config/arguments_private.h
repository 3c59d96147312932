/* Shared by the sources of config/arguments.h: arguments_form.c (what the table says of a line), arguments.c (arguments
 * to a line), arguments_print.c (a line to arguments). */
#ifndef ORIBI_SRC_CONFIG_ARGUMENTS_PRIVATE_H
#define ORIBI_SRC_CONFIG_ARGUMENTS_PRIVATE_H

#include "config/options_private.h"

#include "oribi/config/arguments.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ORIBI__PARTS_MAX = 4, ORIBI__PART_NAME_CAP = 24, ORIBI__SIGNATURE_CAP = 80 };

/* One argument's part of the line: `[3:]` is argument 3 with a colon after it, left out where it is not given. */
struct oribi__part {
    uint32_t place; /* of the argument */
    bool optional;
    char before; /* 0: none */
    char after;
    char kind; /* '/', '#', '*' or 0: see struct oribi_option_composed */
    char name[ORIBI__PART_NAME_CAP];
};

struct oribi__form {
    struct oribi__part parts[ORIBI__PARTS_MAX]; /* in the order of the line */
    uint32_t part_of[ORIBI__PARTS_MAX];         /* by place: index of the part */
    uint32_t count;
    uint32_t required;
    bool settings;
};

void oribi__form_read(const struct oribi_option_composed *composed, struct oribi__form *form);

/* The character that ends the part's text in a line; 0: nothing does. */
char oribi__part_end(const struct oribi__form *form, const struct oribi__part *part);

/* Can `text` be an argument of this kind, as far as the kind tells? */
bool oribi__part_fits(const struct oribi__part *part, const char *text);

/* Writes "redirect FROM, TO[, STATUS]". */
void oribi__form_signature(const struct oribi_option *option, const struct oribi__form *form,
                           char dst[ORIBI__SIGNATURE_CAP]);

/* Is it one of the table's settings, and is that a switch? */
bool oribi__setting_find(const struct oribi_option *option, const char *name, bool *is_switch);

#endif
