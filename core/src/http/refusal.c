/* Reasons as words and statuses: one table. */
#include "oribi/http/status.h"

#include "oribi/base/error.h"

#include <assert.h>

static const struct {
    const char *name;
    int status;
} refusals[ORIBI_REFUSALS] = {
    [ORIBI_REFUSAL_OTHER] = {"other", 0},
    [ORIBI_REFUSAL_REQUEST_LINE] = {"request_line", 400},
    [ORIBI_REFUSAL_FIELD] = {"field", 400},
    [ORIBI_REFUSAL_HOST] = {"host", 400},
    [ORIBI_REFUSAL_FRAMING] = {"framing", 400},
    [ORIBI_REFUSAL_CHUNKED] = {"chunked", 400},
    [ORIBI_REFUSAL_PROXY_HEADER] = {"proxy_header", 400},
    [ORIBI_REFUSAL_HEAD_TIMEOUT] = {"head_timeout", 408},
    [ORIBI_REFUSAL_BODY_TIMEOUT] = {"body_timeout", 408},
    [ORIBI_REFUSAL_BODY_RATE] = {"body_rate_min", 408},
    [ORIBI_REFUSAL_BODY_BYTES] = {"body_bytes_max", 413},
    [ORIBI_REFUSAL_TARGET_BYTES] = {"target_bytes_max", 414},
    [ORIBI_REFUSAL_EXPECT] = {"expect", 417},
    [ORIBI_REFUSAL_HEAD_BYTES] = {"head_bytes_max", 431},
    [ORIBI_REFUSAL_FIELDS] = {"fields_max", 431},
    [ORIBI_REFUSAL_CONNECT] = {"connect", 501},
    [ORIBI_REFUSAL_CODING] = {"transfer_coding", 501},
    [ORIBI_REFUSAL_VERSION] = {"version", 505},
    [ORIBI_REFUSAL_QUEUE] = {"queue_max", 503},
    [ORIBI_REFUSAL_QUEUE_TIME] = {"queue_time_max", 503},
    [ORIBI_REFUSAL_BUFFERS_MEMORY] = {"buffers_memory_max", 503},
    [ORIBI_REFUSAL_BUFFERS_FILE] = {"buffers_file_max", 503},
    [ORIBI_REFUSAL_CONNECTIONS] = {"connections_max", 503},
    [ORIBI_REFUSAL_MEMORY] = {"memory", 503},
    [ORIBI_REFUSAL_STORAGE] = {"storage", 503},
    [ORIBI_REFUSAL_DISK_FULL] = {"disk_full", 507},
    [ORIBI_REFUSAL_WORKER_END] = {"worker_end", 503},
    [ORIBI_REFUSAL_MULTIPART] = {"multipart", 400},
    [ORIBI_REFUSAL_MULTIPART_MAX] = {"multipart_max", 413},
    [ORIBI_REFUSAL_WEBSOCKET] = {"websocket_handshake", 400},
    [ORIBI_REFUSAL_WEBSOCKET_VERSION] = {"websocket_version", 426},
    [ORIBI_REFUSAL_WEBSOCKET_ORIGIN] = {"websocket_origins", 403},
    [ORIBI_REFUSAL_WEBSOCKETS] = {"websockets_max", 503},
    [ORIBI_REFUSAL_EVENTS] = {"events_max", 503},
    [ORIBI_REFUSAL_SUBSCRIPTIONS] = {"subscriptions_max", 503},
};

enum oribi_refusal oribi_refusal_of(int error, enum oribi_refusal bad)
{
    switch (error) {
    case ORIBI_EBAD:
        return bad;
    case ORIBI_EBODY:
        return ORIBI_REFUSAL_BODY_BYTES;
    case ORIBI_ETARGET:
        return ORIBI_REFUSAL_TARGET_BYTES;
    case ORIBI_EEXPECT:
        return ORIBI_REFUSAL_EXPECT;
    case ORIBI_EHEAD:
        return ORIBI_REFUSAL_HEAD_BYTES;
    case ORIBI_EMETHOD:
        return ORIBI_REFUSAL_CONNECT;
    case ORIBI_ECODING:
        return ORIBI_REFUSAL_CODING;
    case ORIBI_EVERSION:
        return ORIBI_REFUSAL_VERSION;
    case ORIBI_ESTORE:
        return ORIBI_REFUSAL_STORAGE;
    case ORIBI_EFULL:
        return ORIBI_REFUSAL_DISK_FULL;
    default:
        return ORIBI_REFUSAL_OTHER;
    }
}

int oribi_refusal_status(enum oribi_refusal refusal)
{
    assert(refusal < ORIBI_REFUSALS);
    return refusals[refusal].status;
}

const char *oribi_refusal_name(enum oribi_refusal refusal)
{
    assert(refusal < ORIBI_REFUSALS);
    return refusals[refusal].name;
}
