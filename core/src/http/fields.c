/* The table of well-known request fields. Lookup is one perfect hash over four cheap features of the name and one
 * comparison of the whole name; a name is never taken by a prefix or by its hash alone. */
#include "oribi/http/fields.h"

#include "http/head_private.h"

#include <assert.h>

static const struct oribi_slice wire_names[ORIBI_FIELD_COUNT] = {
#define FIELD_NAME(id, wire, env) [ORIBI_FIELD_##id] = {wire, sizeof(wire) - 1},
    ORIBI_FIELDS(FIELD_NAME)
#undef FIELD_NAME
};

#define FIELD_FITS(id, wire, env) static_assert(sizeof(wire) <= FIELD_READ_BYTES, "a name and its colon fit a slot");
ORIBI_FIELDS(FIELD_FITS)
#undef FIELD_FITS

static const char *const env_keys[ORIBI_FIELD_COUNT] = {
#define FIELD_ENV(id, wire, env) [ORIBI_FIELD_##id] = env,
    ORIBI_FIELDS(FIELD_ENV)
#undef FIELD_ENV
};

enum oribi_field_id oribi_field_find(const char *name, size_t n)
{
    char copy[FIELD_READ_BYTES] = {0};
    if (n == 0 || n >= FIELD_READ_BYTES)
        return ORIBI_FIELD_OTHER;
    memcpy(copy, name, n);
    copy[n] = ':';
    enum oribi_field_id id = field_find_readable(copy, n);
    return wire_names[id].n == n ? id : ORIBI_FIELD_OTHER; /* the name may hold a colon of its own */
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

/* Both tables are printed by `fields_test --slots`. */
const uint8_t oribi__field_slot_ids[FIELD_SLOTS] = {
    [9] = ORIBI_FIELD_SEC_WEBSOCKET_KEY,
    [16] = ORIBI_FIELD_X_FORWARDED_PORT,
    [22] = ORIBI_FIELD_SEC_WEBSOCKET_PROTOCOL,
    [31] = ORIBI_FIELD_ACCEPT_LANGUAGE,
    [43] = ORIBI_FIELD_VIA,
    [47] = ORIBI_FIELD_X_REQUEST_START,
    [54] = ORIBI_FIELD_SEC_FETCH_DEST,
    [56] = ORIBI_FIELD_SEC_CH_UA_MOBILE,
    [61] = ORIBI_FIELD_RANGE,
    [67] = ORIBI_FIELD_DNT,
    [70] = ORIBI_FIELD_CONTENT_LENGTH,
    [73] = ORIBI_FIELD_SEC_CH_UA,
    [74] = ORIBI_FIELD_SEC_CH_UA_PLATFORM,
    [90] = ORIBI_FIELD_TE,
    [104] = ORIBI_FIELD_IF_RANGE,
    [105] = ORIBI_FIELD_UPGRADE_INSECURE_REQUESTS,
    [106] = ORIBI_FIELD_USER_AGENT,
    [108] = ORIBI_FIELD_CONTENT_TYPE,
    [109] = ORIBI_FIELD_IF_NONE_MATCH,
    [111] = ORIBI_FIELD_UPGRADE,
    [120] = ORIBI_FIELD_IF_MATCH,
    [122] = ORIBI_FIELD_CONNECTION,
    [128] = ORIBI_FIELD_SEC_WEBSOCKET_EXTENSIONS,
    [132] = ORIBI_FIELD_X_CSRF_TOKEN,
    [136] = ORIBI_FIELD_X_REQUESTED_WITH,
    [142] = ORIBI_FIELD_SEC_FETCH_MODE,
    [150] = ORIBI_FIELD_ORIGIN,
    [158] = ORIBI_FIELD_SEC_FETCH_USER,
    [164] = ORIBI_FIELD_HOST,
    [165] = ORIBI_FIELD_AUTHORIZATION,
    [170] = ORIBI_FIELD_KEEP_ALIVE,
    [177] = ORIBI_FIELD_X_REAL_IP,
    [181] = ORIBI_FIELD_CACHE_CONTROL,
    [183] = ORIBI_FIELD_ACCEPT_ENCODING,
    [184] = ORIBI_FIELD_PRIORITY,
    [190] = ORIBI_FIELD_SEC_FETCH_SITE,
    [193] = ORIBI_FIELD_X_FORWARDED_PROTO,
    [208] = ORIBI_FIELD_X_FORWARDED_HOST,
    [209] = ORIBI_FIELD_IF_MODIFIED_SINCE,
    [211] = ORIBI_FIELD_IF_UNMODIFIED_SINCE,
    [214] = ORIBI_FIELD_EXPECT,
    [215] = ORIBI_FIELD_X_FORWARDED_FOR,
    [217] = ORIBI_FIELD_TRANSFER_ENCODING,
    [222] = ORIBI_FIELD_ACCEPT,
    [229] = ORIBI_FIELD_SEC_WEBSOCKET_VERSION,
    [230] = ORIBI_FIELD_COOKIE,
    [244] = ORIBI_FIELD_X_REQUEST_ID,
    [246] = ORIBI_FIELD_ACCEPT_CHARSET,
    [249] = ORIBI_FIELD_FORWARDED,
    [254] = ORIBI_FIELD_PRAGMA,
    [255] = ORIBI_FIELD_REFERER,
};

const struct field_slot oribi__field_slots[FIELD_SLOTS] = {
    [9] = {"SEC-WEBSOCKET-KEY:", "\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xff"},
    [16] = {"X-FORWARDED-PORT:", "\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xff"},
    [22] = {"SEC-WEBSOCKET-PROTOCOL:",
            "\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff"},
    [31] = {"ACCEPT-LANGUAGE:", "\xdf\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff"},
    [43] = {"VIA:", "\xdf\xdf\xdf\xff"},
    [47] = {"X-REQUEST-START:", "\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xff"},
    [54] = {"SEC-FETCH-DEST:", "\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xff"},
    [56] = {"SEC-CH-UA-MOBILE:", "\xdf\xdf\xdf\xff\xdf\xdf\xff\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xff"},
    [61] = {"RANGE:", "\xdf\xdf\xdf\xdf\xdf\xff"},
    [67] = {"DNT:", "\xdf\xdf\xdf\xff"},
    [70] = {"CONTENT-LENGTH:", "\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xff"},
    [73] = {"SEC-CH-UA:", "\xdf\xdf\xdf\xff\xdf\xdf\xff\xdf\xdf\xff"},
    [74] = {"SEC-CH-UA-PLATFORM:", "\xdf\xdf\xdf\xff\xdf\xdf\xff\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff"},
    [90] = {"TE:", "\xdf\xdf\xff"},
    [104] = {"IF-RANGE:", "\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xff"},
    [105] =
        {"UPGRADE-INSECURE-REQUESTS:",
         "\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff"},
    [106] = {"USER-AGENT:", "\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xff"},
    [108] = {"CONTENT-TYPE:", "\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xff"},
    [109] = {"IF-NONE-MATCH:", "\xdf\xdf\xff\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xff"},
    [111] = {"UPGRADE:", "\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff"},
    [120] = {"IF-MATCH:", "\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xff"},
    [122] = {"CONNECTION:", "\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff"},
    [128] = {"SEC-WEBSOCKET-EXTENSIONS:",
             "\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff"},
    [132] = {"X-CSRF-TOKEN:", "\xdf\xff\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xff"},
    [136] = {"X-REQUESTED-WITH:", "\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xff"},
    [142] = {"SEC-FETCH-MODE:", "\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xff"},
    [150] = {"ORIGIN:", "\xdf\xdf\xdf\xdf\xdf\xdf\xff"},
    [158] = {"SEC-FETCH-USER:", "\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xff"},
    [164] = {"HOST:", "\xdf\xdf\xdf\xdf\xff"},
    [165] = {"AUTHORIZATION:", "\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff"},
    [170] = {"KEEP-ALIVE:", "\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xff"},
    [177] = {"X-REAL-IP:", "\xdf\xff\xdf\xdf\xdf\xdf\xff\xdf\xdf\xff"},
    [181] = {"CACHE-CONTROL:", "\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff"},
    [183] = {"ACCEPT-ENCODING:", "\xdf\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff"},
    [184] = {"PRIORITY:", "\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff"},
    [190] = {"SEC-FETCH-SITE:", "\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xff"},
    [193] = {"X-FORWARDED-PROTO:", "\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xff"},
    [208] = {"X-FORWARDED-HOST:", "\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xff"},
    [209] = {"IF-MODIFIED-SINCE:", "\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xff"},
    [211] = {"IF-UNMODIFIED-SINCE:",
             "\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xff"},
    [214] = {"EXPECT:", "\xdf\xdf\xdf\xdf\xdf\xdf\xff"},
    [215] = {"X-FORWARDED-FOR:", "\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xff"},
    [217] = {"TRANSFER-ENCODING:", "\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff"},
    [222] = {"ACCEPT:", "\xdf\xdf\xdf\xdf\xdf\xdf\xff"},
    [229] = {"SEC-WEBSOCKET-VERSION:",
             "\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff"},
    [230] = {"COOKIE:", "\xdf\xdf\xdf\xdf\xdf\xdf\xff"},
    [244] = {"X-REQUEST-ID:", "\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xff"},
    [246] = {"ACCEPT-CHARSET:", "\xdf\xdf\xdf\xdf\xdf\xdf\xff\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff"},
    [249] = {"FORWARDED:", "\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff"},
    [254] = {"PRAGMA:", "\xdf\xdf\xdf\xdf\xdf\xdf\xff"},
    [255] = {"REFERER:", "\xdf\xdf\xdf\xdf\xdf\xdf\xdf\xff"},
};
