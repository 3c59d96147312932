/* Shared by the two sources of `require "oribi/rack"`. */
#ifndef EXT_FOR_RACK_H
#define EXT_FOR_RACK_H

#include <ruby.h>
#include <stdbool.h>

/* The installed Rack. Set once, by Oribi::ForRack.use. */
struct for_rack {
    VALUE params_class; /* Rack::QueryParser::Params */
    bool has_hashes;    /* it is a Hash (Rack 3.1 and later) */
    bool is_rack2;      /* other names, separators and delimiters */
};

extern struct for_rack for_rack;

/* Is the string one whose bytes Rack's patterns see as they are: binary, or ASCII alone? */
bool for_rack_is_bytes(VALUE string);

void ext_for_rack_parts_setup(VALUE module);

#endif
