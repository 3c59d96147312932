/* Names of nested parameters, `user[tags][]`, cut into steps through hashes and arrays as Rack 3.2 cuts them. One walk
 * over the name, whatever its shape; what the steps lead through is the language's.
 *
 *     a=1             SET a                          a[b]=1       HASH a, SET b
 *     a[]=1           APPEND a                       a[][b]=1     ELEMENT a, SET b
 *     a[b]c=1         HASH a, HASH b, SET c          a[][]=1      LIST a
 *     a[=1, a[b=1     SET `a[`; HASH a, SET `[b`     ]=1, [a]=1   SET `]`; SET `[a]` */
#ifndef ORIBI_FORM_NESTED_H
#define ORIBI_FORM_NESTED_H

#include "oribi/base/error.h"
#include "oribi/base/buf.h"

#include <stdint.h>

enum oribi_nested_kind {
    ORIBI_NESTED_SET,     /* last step: the entry becomes the value, whatever it was */
    ORIBI_NESTED_APPEND,  /* last step: the entry is an array, the value its new last element */
    ORIBI_NESTED_HASH,    /* the entry is a hash, which the next step is in */
    ORIBI_NESTED_ELEMENT, /* the entry is an array, and the next step is in its last element or a new one; see below */
    ORIBI_NESTED_LIST,    /* last step: the entry is an array, its new last element an array of the value alone; where
                             the last element is a hash the value is dropped, as Rack drops it */
};

/* An entry that is not there is made; one of another kind than the step wants is the client's mistake. ELEMENT goes
 * into the last element when that is a hash and `shared` is set or it has no entry at `path` yet; else into a new
 * hash. */
struct oribi_nested_step {
    enum oribi_nested_kind kind;
    bool shared;
    struct oribi_slice key;
    struct oribi_slice path; /* for oribi_nested_part() */
};

struct oribi_nested {
    /* private */
    struct oribi_slice rest;
    uint32_t depth;
    uint32_t depth_max;
    bool ended;
};

/* Begins with a decoded name, whose bytes are borrowed until the last step has been used. depth_max: how many steps a
 * name may have (ORIBI_FORM_DEPTH_DEFAULT). */
void oribi_nested_begin(struct oribi_nested *nested, struct oribi_slice name, uint32_t depth_max);

/* Fills `step`. Returns 1; 0 behind the last step, and at once for an empty name, which Rack ignores; or ORIBI_ELIMIT
 * for a step too many. */
int oribi_nested_next(struct oribi_nested *nested, struct oribi_nested_step *step);

/* Takes the next key off a path: hash after hash has an entry for each of them, or the path leads to none. False when
 * there is no more. */
bool oribi_nested_part(struct oribi_slice *path, struct oribi_slice *key);

/* True for a name that Rack 2.2 cuts as Rack 3 does: a key and then groups in brackets, none of them `[][` before
 * another `]`, unless that ends the name; without a line end. */
bool oribi_nested_is_plain(struct oribi_slice name);

#endif
