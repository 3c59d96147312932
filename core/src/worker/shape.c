/* Which shape a request has: two passes over its fields at most, no memory but that of the slots. */
#include "oribi/worker/shape.h"

#include "oribi/http/fields.h"

#include <string.h>

/* False when the head has more known fields than a shape may have. */
static bool look(struct oribi_shape *shape, const struct oribi_head *head, bool addressed)
{
    uint32_t count = 0;
    uint32_t hash = addressed ? 1 : 0; /* the steps below keep two that differ apart, so equal ids need no more */
    for (uint32_t i = 0; i < head->field_count; i++) {
        uint16_t id = head->fields[i].id;
        if (id == ORIBI_FIELD_OTHER)
            continue;
        if (count == ORIBI_SHAPE_FIELDS_MAX)
            return false;
        shape->ids[count++] = id;
        hash = (hash ^ id) * 0x9E3779B1u; /* odd, so that a step loses nothing: Knuth's multiplicative hashing */
    }
    shape->hash = hash;
    shape->field_count = count;
    return true;
}

int oribi_shapes_find(struct oribi_shapes *shapes, const struct oribi_head *head, bool addressed, bool *met)
{
    struct oribi_shape seen;
    if (!look(&seen, head, addressed))
        return -1;
    uint32_t index = (seen.hash ^ (seen.hash >> 16)) & (ORIBI_SHAPES - 1);
    struct oribi_shape *slot = &shapes->slots[index];
    size_t bytes = seen.field_count * sizeof(seen.ids[0]);
    *met = slot->hash == seen.hash && slot->field_count == seen.field_count && memcmp(slot->ids, seen.ids, bytes) == 0;
    if (!*met) {
        slot->hash = seen.hash;
        slot->field_count = seen.field_count;
        memcpy(slot->ids, seen.ids, bytes);
    }
    return (int)index;
}
