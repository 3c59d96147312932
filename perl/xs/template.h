/* Data of environments that env.c keeps from one request to the next. */
#ifndef ORIBI_PERL_TEMPLATE_H
#define ORIBI_PERL_TEMPLATE_H

/* An entry of an environment: its key, and env.c's number of it. */
struct psgi_place {
    const HEK *key;
    uint32_t number;
};

/* The environment of requests of one shape: all keys and no value yet. */
struct psgi_template {
    HV *env;                   /* NULL: none was made */
    struct psgi_place *places; /* of its entries, as they lie in the table */
    HE **entries;              /* of the copy that was used last, by number */
    bool ordered;              /* copies keep the order */
    HV *kept;                  /* a copy that a request has used and left as it was made; NULL: none */
    U32 flags;                 /* of a copy as it is made */
};

/* Flags of scalars that were just made: values.h. */
struct psgi_made {
    U32 text;
    U32 shared; /* a text of the table of keys */
    U32 number;
    U32 reference;
    U32 vacant; /* a reference that refers to nothing any more */
};

#endif
