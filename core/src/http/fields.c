/* The table of well-known request fields. Lookup is one perfect hash over four cheap features of the name and one comparison of the whole name;
 * a name is never taken by a prefix or by its hash alone. */
#include "oribi/http/fields.h"

#include "fields_internal.h"

#include <assert.h>

const struct field_name oribi__field_names[ORIBI_FIELD_COUNT] = {
#define FIELD_NAME(id, wire, env) [ORIBI_FIELD_##id] = {wire, sizeof(wire) - 1},
    ORIBI_FIELDS(FIELD_NAME)
#undef FIELD_NAME
};

#define FIELD_FITS(id, wire, env) static_assert(sizeof(wire) <= FIELD_NAME_CAP, "a well-known name fits its slot");
ORIBI_FIELDS(FIELD_FITS)
#undef FIELD_FITS

/* Bytes [32-n, 64-n) are n times 0xff, then zero: which bytes of a name of length n count. */
const uint8_t oribi__field_care[2 * FIELD_NAME_CAP] = {
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
};

/* Printed by `fields_test --slots`. */
const uint8_t oribi__field_slots[FIELD_SLOTS] = {
    [0] = ORIBI_FIELD_ACCEPT,
    [3] = ORIBI_FIELD_EXPECT,
    [4] = ORIBI_FIELD_IF_MODIFIED_SINCE,
    [6] = ORIBI_FIELD_SEC_CH_UA_PLATFORM,
    [14] = ORIBI_FIELD_PRIORITY,
    [15] = ORIBI_FIELD_X_REQUESTED_WITH,
    [16] = ORIBI_FIELD_X_FORWARDED_HOST,
    [19] = ORIBI_FIELD_UPGRADE,
    [22] = ORIBI_FIELD_RANGE,
    [26] = ORIBI_FIELD_ACCEPT_CHARSET,
    [27] = ORIBI_FIELD_X_CSRF_TOKEN,
    [32] = ORIBI_FIELD_HOST,
    [34] = ORIBI_FIELD_UPGRADE_INSECURE_REQUESTS,
    [35] = ORIBI_FIELD_DNT,
    [39] = ORIBI_FIELD_COOKIE,
    [40] = ORIBI_FIELD_REFERER,
    [41] = ORIBI_FIELD_SEC_FETCH_SITE,
    [43] = ORIBI_FIELD_AUTHORIZATION,
    [46] = ORIBI_FIELD_IF_UNMODIFIED_SINCE,
    [48] = ORIBI_FIELD_SEC_WEBSOCKET_VERSION,
    [50] = ORIBI_FIELD_TRANSFER_ENCODING,
    [53] = ORIBI_FIELD_CONTENT_TYPE,
    [54] = ORIBI_FIELD_VIA,
    [57] = ORIBI_FIELD_X_REQUEST_ID,
    [58] = ORIBI_FIELD_SEC_WEBSOCKET_EXTENSIONS,
    [59] = ORIBI_FIELD_SEC_WEBSOCKET_PROTOCOL,
    [61] = ORIBI_FIELD_IF_MATCH,
    [69] = ORIBI_FIELD_FORWARDED,
    [73] = ORIBI_FIELD_SEC_WEBSOCKET_KEY,
    [74] = ORIBI_FIELD_SEC_CH_UA_MOBILE,
    [75] = ORIBI_FIELD_KEEP_ALIVE,
    [77] = ORIBI_FIELD_CONNECTION,
    [82] = ORIBI_FIELD_X_REAL_IP,
    [83] = ORIBI_FIELD_SEC_FETCH_MODE,
    [84] = ORIBI_FIELD_X_FORWARDED_FOR,
    [88] = ORIBI_FIELD_X_FORWARDED_PORT,
    [91] = ORIBI_FIELD_IF_RANGE,
    [98] = ORIBI_FIELD_SEC_CH_UA,
    [99] = ORIBI_FIELD_X_FORWARDED_PROTO,
    [101] = ORIBI_FIELD_PRAGMA,
    [103] = ORIBI_FIELD_X_REQUEST_START,
    [105] = ORIBI_FIELD_USER_AGENT,
    [112] = ORIBI_FIELD_SEC_FETCH_DEST,
    [113] = ORIBI_FIELD_ORIGIN,
    [114] = ORIBI_FIELD_CONTENT_LENGTH,
    [116] = ORIBI_FIELD_IF_NONE_MATCH,
    [117] = ORIBI_FIELD_SEC_FETCH_USER,
    [119] = ORIBI_FIELD_ACCEPT_ENCODING,
    [121] = ORIBI_FIELD_TE,
    [123] = ORIBI_FIELD_CACHE_CONTROL,
    [124] = ORIBI_FIELD_ACCEPT_LANGUAGE,
};

static const char *const env_keys[ORIBI_FIELD_COUNT] = {
#define FIELD_ENV(id, wire, env) [ORIBI_FIELD_##id] = env,
    ORIBI_FIELDS(FIELD_ENV)
#undef FIELD_ENV
};

enum oribi_field_id oribi_field_find(const char *name, size_t n)
{
    char copy[FIELD_NAME_CAP] = {0};
    if (n == 0 || n >= FIELD_NAME_CAP)
        return ORIBI_FIELD_OTHER;
    memcpy(copy, name, n);
    return field_find_readable(copy, n);
}

const char *oribi_field_wire_name(enum oribi_field_id id)
{
    assert(id > ORIBI_FIELD_OTHER && id < ORIBI_FIELD_COUNT);
    return oribi__field_names[id].text;
}

const char *oribi_field_env_key(enum oribi_field_id id)
{
    assert(id > ORIBI_FIELD_OTHER && id < ORIBI_FIELD_COUNT);
    return env_keys[id];
}

size_t oribi_field_write_env_key(const struct oribi_field *field, char *dst)
{
    memcpy(dst, "HTTP_", 5);
    char *out = dst + 5;
    for (size_t i = 0; i < field->name_len; i++) {
        uint8_t c = (uint8_t)field->name[i];
        uint8_t upper = (uint8_t)(c - ((uint8_t)(c - 'a') < 26 ? 'a' - 'A' : 0));
        out[i] = c == '-' ? '_' : (char)upper;
    }
    return 5 + (size_t)field->name_len;
}

const struct oribi_field *oribi_head_field(const struct oribi_head *head, enum oribi_field_id id)
{
    for (uint32_t i = 0; i < head->field_count; i++)
        if (head->fields[i].id == id)
            return &head->fields[i];
    return NULL;
}
