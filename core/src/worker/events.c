/* Event streams for bindings; see the header. The record stands in a field of the answer, which the frontend takes out;
 * an application may not send that field by itself. */
#include "worker/events.h"
#include "worker/exchange.h"
#include "worker/placement/ownership.h"
#include "worker/reply.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/event_stream.h"
#include "oribi/http/socket_call.h"

#include <stdio.h>
#include <string.h>

#define FIELD "oribi-events"

struct oribi__event_wish {
    struct oribi_buf record;
    bool told; /* the answer is written */
};

void oribi__events_free(struct oribi__exchange *exchange)
{
    struct oribi__event_wish *wish = exchange->events;
    if (!wish)
        return;
    oribi_buf_deinit(&wish->record);
    oribi_mem_free(wish);
    exchange->events = NULL;
}

struct oribi_slice oribi_events_last_id(const struct oribi_req *req)
{
    const struct oribi_head *head = req->head;
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct oribi_field *field = &head->fields[i];
        if (oribi_slice_equal_fold(oribi_slice(field->name, field->name_len), ORIBI_SLICE("last-event-id")))
            return oribi_slice(field->value, field->value_len);
    }
    return oribi_slice(NULL, 0);
}

static int refuse(char *error, const char *text)
{
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%s", text);
    return ORIBI_EINVAL;
}

static const char *fault_of(struct oribi_slice name)
{
    if (name.n == 0)
        return "the name of a channel is empty";
    if (name.n > ORIBI_CHANNEL_NAME_BYTES_MAX)
        return "the name of a channel is longer than 256 bytes";
    for (size_t i = 0; i < name.n; i++)
        if ((uint8_t)name.p[i] < 0x20 || name.p[i] == 0x7f)
            return "the name of a channel has control characters";
    return oribi_channel_name_is_valid(name) ? NULL : "the name of a channel is not UTF-8";
}

/* In the place of what the application has wished before. Takes the record. */
static int keep(struct oribi__exchange *exchange, struct oribi_buf *record)
{
    if (!exchange->events && !(exchange->events = oribi_mem_try_alloc(1, sizeof(*exchange->events)))) {
        oribi_buf_deinit(record);
        return ORIBI_ENOMEM;
    }
    oribi_buf_deinit(&exchange->events->record);
    exchange->events->record = *record;
    return 0;
}

int oribi_events_stream(struct oribi_req *req, const struct oribi_events_wish *wish, char *error)
{
    struct oribi__exchange *exchange = oribi__exchange_of(req);
    struct oribi_slice since = wish->since;
    if (!req->client)
        return refuse(error, "no frontend holds this client: event streams need tls:// or ?frontend=on in the line of "
                             "`bind` for this address");
    if (!oribi_events_asked(req))
        return refuse(error, "the request asks for no event stream");
    if (wish->channel_count == 0 || wish->channel_count > ORIBI_EVENT_CHANNELS_MAX)
        return refuse(error, "an event stream has at least 1 channel and at most 256");
    if (wish->retry_ms < -1 || wish->retry_ms > ORIBI_EVENT_RETRY_MS_MAX)
        return refuse(error, "retry is not between 0 and 86400000 milliseconds");
    if (since.n > ORIBI_EVENT_SINCE_BYTES_MAX)
        since = ORIBI_SLICE("?"); /* no id of ours: the client is told that it has to begin anew */
    struct oribi_buf record = {0};
    const char *fault = NULL;
    int code = oribi_event_record_begin(&record, wish->retry_ms, since);
    for (uint32_t i = 0; i < wish->channel_count && code == 0 && !fault; i++) {
        fault = fault_of(wish->channels[i]);
        code = fault ? 0 : oribi_event_record_add(&record, wish->channels[i]);
    }
    if (!fault && code == 0)
        return keep(exchange, &record);
    oribi_buf_deinit(&record);
    if (fault)
        return refuse(error, fault);
    return code == ORIBI_ELIMIT ? refuse(error, "the names of the channels are longer than 32 KiB") : code;
}

bool oribi_events_streams(const struct oribi_req *req)
{
    return __builtin_expect(oribi__exchange_of((struct oribi_req *)req)->events != NULL, 0);
}

/* --- the answer --- */

static bool is_named(const struct oribi_header *header, struct oribi_slice lower)
{
    return oribi_slice_equal_fold(oribi_slice(header->name, header->name_len), lower);
}

/* Fields that are written anew, and those that middleware has made for a body that is not sent. */
static bool is_dropped(const struct oribi_header *header)
{
    static const struct oribi_slice names[] = {
        {"content-type", 12}, {"content-length", 14}, {"content-encoding", 16}, {"transfer-encoding", 17},
        {"etag", 4},          {"last-modified", 13},  {"accept-ranges", 13}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (is_named(header, names[i]))
            return true;
    return false;
}

static bool has(const struct oribi_header *headers, uint32_t count, struct oribi_slice lower)
{
    for (uint32_t i = 0; i < count; i++)
        if (is_named(&headers[i], lower))
            return true;
    return false;
}

int oribi__events_reply(struct oribi__exchange *exchange, const struct oribi_header *headers, uint32_t header_count)
{
    struct oribi__event_wish *wish = exchange->events;
    struct oribi_header *all = oribi_mem_try_alloc(header_count + 4, sizeof(*all));
    uint32_t count = 0;
    if (!all) {
        oribi__events_free(exchange);
        oribi_reply_error(&exchange->req, 503);
        return 0;
    }
    all[count++] = (struct oribi_header){"content-type", "text/event-stream", 12, 17};
    if (!has(headers, header_count, ORIBI_SLICE("cache-control")))
        all[count++] = (struct oribi_header){"cache-control", "no-cache", 13, 8};
    if (!has(headers, header_count, ORIBI_SLICE("x-accel-buffering"))) /* else nginx in front keeps events back */
        all[count++] = (struct oribi_header){"x-accel-buffering", "no", 17, 2};
    for (uint32_t i = 0; i < header_count; i++)
        if (!is_dropped(&headers[i]))
            all[count++] = headers[i];
    wish->told = true;
    all[count++] = (struct oribi_header){FIELD, wish->record.p, sizeof(FIELD) - 1, (uint32_t)wish->record.len};
    int result = oribi__reply_whole(exchange, 200, all, count, NULL, 0, 0);
    if (result == ORIBI_EAPP)
        wish->told = false;
    oribi_mem_free(all);
    return result;
}

bool oribi__events_told(const struct oribi__exchange *exchange)
{
    return exchange->events && exchange->events->told;
}

bool oribi__events_refuse_head(struct oribi__exchange *exchange, int status, const struct oribi_header *headers,
                               uint32_t header_count)
{
    if (oribi__events_told(exchange))
        return false;
    if (has(headers, header_count, ORIBI_SLICE(FIELD))) {
        oribi__log_app(exchange, "the header " FIELD " is the server's own");
        return true;
    }
    if (!exchange->events || status != 200)
        return false;
    oribi__log_app(exchange, "the answer of oribi.events has got a body that is streamed");
    return true;
}
