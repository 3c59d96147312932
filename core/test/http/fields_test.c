/* `fields_test --slots` prints the table of slots for fields.c after a change of ORIBI_FIELDS. */
#include "http/fields.c"

#include "guard.h"
#include "tap.h"

#include <ctype.h>

static const char *const ids[] = {"OTHER",
#define FIELD_ID(id, wire, env) #id,
                                  ORIBI_FIELDS(FIELD_ID)
#undef FIELD_ID
};

static void print_slot(uint32_t slot, const char *wire)
{
    printf("    [%u] = {\"", slot);
    for (const char *p = wire; *p; p++)
        putchar(toupper((unsigned char)*p));
    printf(":\",\n            \"");
    for (const char *p = wire; *p; p++)
        fputs(isalpha((unsigned char)*p) ? "\\xdf" : "\\xff", stdout);
    puts("\\xff\"},");
}

static int print_slots(void)
{
    int taken[FIELD_SLOTS] = {0};
    for (int id = 1; id < ORIBI_FIELD_COUNT; id++) {
        uint32_t slot = field_slot_of(wire_names[id].p, wire_names[id].n);
        if (taken[slot]) {
            fprintf(stderr, "%s and %s share slot %u: field_slot_of needs other factors\n", ids[taken[slot]], ids[id],
                    slot);
            return 1;
        }
        taken[slot] = id;
    }
    for (uint32_t slot = 0; slot < FIELD_SLOTS; slot++)
        if (taken[slot])
            printf("    [%u] = ORIBI_FIELD_%s,\n", slot, ids[taken[slot]]);
    for (uint32_t slot = 0; slot < FIELD_SLOTS; slot++)
        if (taken[slot])
            print_slot(slot, wire_names[taken[slot]].p);
    return 0;
}

static void test_every_name_is_found_in_any_case(void)
{
    bool good = true;
    for (int id = 1; id < ORIBI_FIELD_COUNT; id++) {
        struct guard upper = guard_str(wire_names[id].p);
        good &= oribi_field_find(upper.p, upper.n) == (enum oribi_field_id)id;
        for (size_t i = 0; i < upper.n; i++)
            upper.p[i] = (char)toupper((unsigned char)upper.p[i]);
        good &= oribi_field_find(upper.p, upper.n) == (enum oribi_field_id)id;
        if (!good) {
            diag("%s", ids[id]);
            break;
        }
        guard_free(&upper);
    }
    ok(good);
}

static void test_a_changed_byte_is_another_name(void)
{
    bool good = true;
    for (int id = 1; id < ORIBI_FIELD_COUNT; id++) {
        char text[FIELD_READ_BYTES];
        const struct oribi_slice *name = &wire_names[id];
        for (size_t at = 0; at < name->n; at++)
            for (int c = 0; c < 256; c++) {
                memcpy(text, name->p, name->n);
                text[at] = (char)c;
                bool same = tolower(c) == name->p[at];
                good &= (oribi_field_find(text, name->n) == (enum oribi_field_id)id) == same;
            }
    }
    ok(good);
}

static void test_prefixes_and_longer_names_are_not_found(void)
{
    bool good = true;
    for (int id = 1; id < ORIBI_FIELD_COUNT; id++) {
        char text[FIELD_READ_BYTES + 1];
        const struct oribi_slice *name = &wire_names[id];
        memcpy(text, name->p, name->n);
        text[name->n] = 's';
        good &= oribi_field_find(text, name->n + 1) == ORIBI_FIELD_OTHER;
        for (size_t n = 1; n < name->n; n++)
            good &= oribi_field_find(text, n) != (enum oribi_field_id)id;
    }
    ok(good);
    ok_eq(oribi_field_find("", 0), ORIBI_FIELD_OTHER);
    ok_eq(oribi_field_find("a-name-of-exactly-thirty-two-byte", 32), ORIBI_FIELD_OTHER);
    ok_eq(oribi_field_find("a-name-of-more-than-thirty-two-bytes", 36), ORIBI_FIELD_OTHER);
}

static void test_a_colon_in_the_name_is_no_end(void)
{
    ok_eq(oribi_field_find("host:", 5), ORIBI_FIELD_OTHER);
    bool good = true;
    for (int id = 1; id < ORIBI_FIELD_COUNT; id++)
        for (size_t more = 1; wire_names[id].n + 1 + more < FIELD_READ_BYTES; more++)
            for (int c = 'a'; c <= 'z'; c++) { /* some of these fall into the slot of the name itself */
                char text[FIELD_READ_BYTES];
                memset(text, c, sizeof(text));
                memcpy(text, wire_names[id].p, wire_names[id].n);
                text[wire_names[id].n] = ':';
                good &= oribi_field_find(text, wire_names[id].n + 1 + more) == ORIBI_FIELD_OTHER;
            }
    ok(good);
}

static void test_environment_keys(void)
{
    is_str(oribi_field_env_key(ORIBI_FIELD_CONTENT_TYPE), "CONTENT_TYPE");
    is_str(oribi_field_env_key(ORIBI_FIELD_HOST), "HTTP_HOST");
    is_str(wire_names[ORIBI_FIELD_X_REQUEST_START].p, "x-request-start");
    for (int id = 1; id < ORIBI_FIELD_COUNT; id++) {
        const char *wire = wire_names[id].p;
        struct oribi_field field = {.name = wire, .name_len = (uint16_t)strlen(wire)};
        char key[64] = "";
        key[oribi_field_write_env_key(&field, key)] = 0;
        bool bare = id == ORIBI_FIELD_CONTENT_TYPE || id == ORIBI_FIELD_CONTENT_LENGTH;
        if (strcmp(oribi_field_env_key((enum oribi_field_id)id), bare ? key + 5 : key) != 0)
            fail("key of %s", wire);
    }
}

static void test_other_names_become_keys(void)
{
    struct oribi_field field = {.name = "X-foo_Bar.9~", .name_len = 12};
    struct guard dst = guard_alloc(17);
    ok_eq(oribi_field_write_env_key(&field, dst.p), 17);
    is_bytes(dst.p, 17, "HTTP_X_FOO_BAR.9~", 17);
    guard_free(&dst);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--slots") == 0)
        return print_slots();
    test_every_name_is_found_in_any_case();
    test_a_changed_byte_is_another_name();
    test_prefixes_and_longer_names_are_not_found();
    test_a_colon_in_the_name_is_no_end();
    test_environment_keys();
    test_other_names_become_keys();
    return done_testing();
}
