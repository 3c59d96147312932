/* Defaults of the limits. */
#include "base/limits.c"

#include "tap.h"

#include <string.h>

static void test_init_fills_every_field(void)
{
    struct oribi_limits a;
    struct oribi_limits b;
    memset(&a, 0xff, sizeof(a));
    memset(&b, 0x00, sizeof(b));
    oribi_limits_init(&a);
    oribi_limits_init(&b);
    ok_eq(a.target_bytes_max, 16 * 1024);
    ok_eq(a.head_bytes_max, 64 * 1024);
    ok_eq(a.fields_max, 100);
    ok_eq(a.body_bytes_max, 1LL << 30);
    ok_eq(a.body_memory_max, 16 << 20);
    ok(!a.underscores_allow && !a.strict_target && !a.connect_allow);
    ok(a.fields_max == b.fields_max && a.body_bytes_max == b.body_bytes_max);
}

static void test_defaults_are_within_the_caps(void)
{
    ok(ORIBI_HEAD_BYTES_DEFAULT <= ORIBI_HEAD_BYTES_CAP);
    ok(ORIBI_FIELDS_DEFAULT <= ORIBI_FIELDS_CAP);
    ok(ORIBI_TARGET_BYTES_DEFAULT <= ORIBI_HEAD_BYTES_DEFAULT);
}

int main(void)
{
    test_init_fills_every_field();
    test_defaults_are_within_the_caps();
    return done_testing();
}
