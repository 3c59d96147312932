/* The shapes of requests: which known fields a head has, in which order, and what is said of its client. Clients of one
 * kind send the same fields in the same order, so a language keeps the environments of the last shapes, all keys and no
 * value, and copies one instead of looking each key up. Here is which shape a head has, and where it is kept; what is
 * kept belongs to the language.
 *
 *   int slot = oribi_shapes_find(&shapes, head, client, &met);
 *   if (slot < 0)                    // more known fields than a shape may have
 *       build it key by key;
 *   else if (!met)
 *       templates[slot] = nothing;   // that of another shape goes; build it key by key
 *   else if (!templates[slot])
 *       templates[slot] = made(&shapes.slots[slot]);
 *
 * A shape gets an environment of its own when it is met twice in a row in its slot, so that clients that send ever new
 * shapes cost no more than those of the ordinary way. */
#ifndef ORIBI_WORKER_SHAPE_H
#define ORIBI_WORKER_SHAPE_H

#include "oribi/http/head.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ORIBI_SHAPES = 64,           /* kept by a worker; a power of two */
    ORIBI_SHAPE_FIELDS_MAX = 40, /* known fields of one; a browser sends 14 */
};

struct oribi_shape {
    uint32_t hash;
    uint32_t field_count;
    uint16_t ids[ORIBI_SHAPE_FIELDS_MAX]; /* enum oribi_field_id of the known fields, in the order in which they came */
};

/* All zero: none was met. */
struct oribi_shapes {
    struct oribi_shape slots[ORIBI_SHAPES];
};

/* Bits of a client: what the environment has keys for. */
enum {
    ORIBI_SHAPE_ADDRESSED = 1, /* REMOTE_ADDR, REMOTE_PORT */
    ORIBI_SHAPE_TLS = 2,       /* SSL_PROTOCOL, SSL_CIPHER */
    ORIBI_SHAPE_SNI = 4,       /* SSL_TLS_SNI */
    ORIBI_SHAPE_HTTPS = 8,     /* HTTPS */
    ORIBI_SHAPE_CLIENTS = 16,  /* values of such bits */
};

/* The slot of this head's shape, or -1. Heads that differ in `client`, bits as above, have different shapes. *met: the
 * head before in this slot had the same shape; otherwise the slot is this shape's from now on. Borrows the head;
 * allocates nothing. */
int oribi_shapes_find(struct oribi_shapes *shapes, const struct oribi_head *head, uint32_t client, bool *met);

#endif
