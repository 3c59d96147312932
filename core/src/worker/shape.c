/* Which shape a request has: two passes over its fields, no memory but that of the slots. Nearly every request has a
 * shape that was met, so the second pass compares, and only another shape is written down. */
#include "oribi/worker/shape.h"

#include "oribi/http/fields.h"

/* The steps keep two that differ in `client` apart, so equal ids need no more. */
static uint32_t hash_of(const struct oribi_head *head, uint32_t client, uint32_t *count)
{
    uint32_t hash = client;
    uint32_t known = 0;
    for (uint32_t i = 0; i < head->field_count; i++) {
        uint16_t id = head->fields[i].id;
        if (id == ORIBI_FIELD_OTHER)
            continue;
        known++;
        hash = (hash ^ id) * 0x9E3779B1u; /* odd, so that a step loses nothing: Knuth's multiplicative hashing */
    }
    *count = known;
    return hash;
}

static bool has_ids(const struct oribi_shape *shape, const struct oribi_head *head)
{
    const uint16_t *next = shape->ids;
    for (uint32_t i = 0; i < head->field_count; i++)
        if (head->fields[i].id != ORIBI_FIELD_OTHER && head->fields[i].id != *next++)
            return false;
    return true;
}

static void write_down(struct oribi_shape *shape, const struct oribi_head *head, uint32_t hash, uint32_t count)
{
    uint16_t *next = shape->ids;
    shape->hash = hash;
    shape->field_count = count;
    for (uint32_t i = 0; i < head->field_count; i++)
        if (head->fields[i].id != ORIBI_FIELD_OTHER)
            *next++ = head->fields[i].id;
}

int oribi_shapes_find(struct oribi_shapes *shapes, const struct oribi_head *head, uint32_t client, bool *met)
{
    uint32_t count;
    uint32_t hash = hash_of(head, client, &count);
    if (count > ORIBI_SHAPE_FIELDS_MAX)
        return -1;
    uint32_t index = (hash ^ (hash >> 16)) & (ORIBI_SHAPES - 1);
    struct oribi_shape *slot = &shapes->slots[index];
    *met = slot->hash == hash && slot->field_count == count && has_ids(slot, head);
    if (!*met)
        write_down(slot, head, hash, count);
    return (int)index;
}
