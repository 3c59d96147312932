/* Shapes of heads that the test makes up. */
#include "worker/shape.c"

#include "tap.h"

static struct oribi_shapes shapes;

/* A head with these known fields, 0: one that is not in the table. */
static struct oribi_head head_of(const uint16_t *ids, uint32_t count)
{
    struct oribi_head head = {.field_count = count};
    for (uint32_t i = 0; i < count; i++)
        head.fields[i].id = ids[i];
    return head;
}

static void begin(void)
{
    memset(&shapes, 0, sizeof(shapes));
}

static void test_a_shape_is_met_the_second_time_in_a_row(void)
{
    bool met;
    struct oribi_head head = head_of((const uint16_t[]){3, 1, 2}, 3);
    begin();
    int slot = oribi_shapes_find(&shapes, &head, ORIBI_SHAPE_ADDRESSED, &met);
    ok(slot >= 0 && slot < ORIBI_SHAPES && !met);
    ok_eq(oribi_shapes_find(&shapes, &head, ORIBI_SHAPE_ADDRESSED, &met), slot);
    ok(met);
    ok_eq(shapes.slots[slot].field_count, 3);
    ok(shapes.slots[slot].ids[0] == 3 && shapes.slots[slot].ids[1] == 1 && shapes.slots[slot].ids[2] == 2);
}

static void test_order_number_and_address_make_a_shape(void)
{
    static const uint16_t ids[][3] = {{1, 2, 3}, {2, 1, 3}, {1, 3, 2}};
    bool met;
    begin();
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < 3; i++) {
            struct oribi_head head = head_of(ids[i], 3);
            int slot = oribi_shapes_find(&shapes, &head, ORIBI_SHAPE_ADDRESSED, &met);
            ok(!met || memcmp(shapes.slots[slot].ids, ids[i], sizeof(ids[i])) == 0);
        }
    }
    struct oribi_head head = head_of(ids[0], 3);
    (void)oribi_shapes_find(&shapes, &head, ORIBI_SHAPE_ADDRESSED, &met);
    for (uint32_t client = 0; client < ORIBI_SHAPE_CLIENTS; client++) {
        (void)oribi_shapes_find(&shapes, &head, client, &met);
        ok(!met || client == ORIBI_SHAPE_ADDRESSED);
    }
    head.field_count = 2;
    (void)oribi_shapes_find(&shapes, &head, ORIBI_SHAPE_ADDRESSED, &met);
    ok(!met);
}

static void test_fields_outside_the_table_are_passed_over(void)
{
    bool met;
    begin();
    struct oribi_head head = head_of((const uint16_t[]){1, 2}, 2);
    int slot = oribi_shapes_find(&shapes, &head, ORIBI_SHAPE_ADDRESSED, &met);
    head = head_of((const uint16_t[]){0, 1, 0, 0, 2, 0}, 6);
    ok_eq(oribi_shapes_find(&shapes, &head, ORIBI_SHAPE_ADDRESSED, &met), slot);
    ok(met);
}

static void test_as_many_fields_as_a_shape_may_have_and_one_more(void)
{
    uint16_t ids[ORIBI_SHAPE_FIELDS_MAX + 1];
    bool met;
    for (int i = 0; i <= ORIBI_SHAPE_FIELDS_MAX; i++)
        ids[i] = (uint16_t)(1 + i % (ORIBI_FIELD_COUNT - 1));
    begin();
    struct oribi_head head = head_of(ids, ORIBI_SHAPE_FIELDS_MAX);
    ok(oribi_shapes_find(&shapes, &head, ORIBI_SHAPE_ADDRESSED, &met) >= 0);
    head = head_of(ids, ORIBI_SHAPE_FIELDS_MAX + 1);
    ok_eq(oribi_shapes_find(&shapes, &head, ORIBI_SHAPE_ADDRESSED, &met), -1);
}

/* Two shapes of one slot drive each other out; neither is taken for the other. */
static void test_shapes_of_one_slot_take_turns(void)
{
    bool met;
    begin();
    struct oribi_head first = head_of((const uint16_t[]){1}, 1);
    int slot = oribi_shapes_find(&shapes, &first, ORIBI_SHAPE_ADDRESSED, &met);
    for (uint16_t a = 1; a < ORIBI_FIELD_COUNT; a++) {
        struct oribi_head head = head_of((const uint16_t[]){a, a}, 2);
        if (oribi_shapes_find(&shapes, &head, ORIBI_SHAPE_ADDRESSED, &met) != slot)
            continue;
        ok(!met);
        ok_eq(oribi_shapes_find(&shapes, &first, ORIBI_SHAPE_ADDRESSED, &met), slot);
        ok(!met);
        return;
    }
    ok_named(false, "no two shapes share a slot");
}

int main(void)
{
    test_a_shape_is_met_the_second_time_in_a_row();
    test_order_number_and_address_make_a_shape();
    test_fields_outside_the_table_are_passed_over();
    test_as_many_fields_as_a_shape_may_have_and_one_more();
    test_shapes_of_one_slot_take_turns();
    return done_testing();
}
