/* Answers of the door's own: refusals, and what it says where no worker has answered. Their headers and pages are the
 * operator's, as in a worker, and each has its line in the access log; so have requests whose client went before a
 * worker had them (499). */
#include "door/door_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/mem.h"
#include "oribi/http/parser.h"
#include "oribi/http/status.h"

#include <stdio.h>
#include <string.h>

void oribi__own_open(struct oribi__door *door, const struct oribi_options *options,
                     const struct oribi_error_pages *pages)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    oribi__own_close(door);
    if (oribi_added_create(options->headers.items, options->headers.count, &door->added, error) < 0)
        oribi_log(ORIBI_LOG_ERROR, "door: %s", error);
    door->pages = pages;
    door->reactor.config.added = door->added;
    if (oribi_access_log_open(options->access_log, options->access_log_format, NULL, &door->access_log, error) < 0)
        oribi_log(ORIBI_LOG_ERROR, "door: %s: its own answers have no lines", error);
    oribi_access_log_choose(door->access_log, &options->access_log_skip, options->access_log_sample);
}

void oribi__own_close(struct oribi__door *door)
{
    oribi_access_log_close(door->access_log);
    oribi_mem_free(door->added);
    door->access_log = NULL;
    door->added = NULL;
    door->pages = NULL;
    door->reactor.config.added = NULL;
}

void oribi__own_reopen(struct oribi__door *door)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    oribi_access_log_flush(door->access_log); /* what happened before belongs to the old file */
    if (oribi_access_log_follow_stdout(door->access_log, error) < 0)
        oribi_log(ORIBI_LOG_ERROR, "door: %s, going on with the old file", error);
}

struct oribi_slice oribi__own_page_of(void *self, int status, struct oribi_slice *type)
{
    const struct oribi__door *door = self;
    return oribi_error_page_find(door->pages, status, type);
}

struct oribi_slice oribi__own_text(struct oribi__door *door, int status, char text[ORIBI__OWN_TEXT_CAP],
                                   struct oribi_slice *type)
{
    struct oribi_slice page = oribi__own_page_of(door, status, type);
    if (page.p)
        return page;
    struct oribi_slice reason = oribi_status_reason(status);
    *type = ORIBI_SLICE("text/plain");
    int n = snprintf(text, ORIBI__OWN_TEXT_CAP, "%d %.*s\n", status, (int)reason.n, reason.p); /* it fits */
    return oribi_slice(text, (size_t)n);
}

uint32_t oribi__own_fields(const struct oribi__door *door, struct oribi_field *fields, uint32_t room)
{
    uint32_t count = 0;
    for (uint32_t i = 0; door->added && i < door->added->count && count < room; i++) {
        const struct oribi_header *header = &door->added->headers[i];
        fields[count++] = (struct oribi_field){.name = header->name,
                                               .value = header->value,
                                               .name_len = (uint16_t)header->name_len,
                                               .value_len = header->value_len};
    }
    return count;
}

/* --- lines --- */

static void add_line(struct oribi__door *door, struct oribi_access_entry *entry, const struct oribi_listener *listener,
                     int64_t complete_us)
{
    const char *colon = listener->is_unix ? NULL : strrchr(listener->text, ':');
    const char *port = colon ? colon + 1 : "";
    entry->port = oribi_slice(port, strlen(port));
    entry->listener = oribi_slice(listener->text, strlen(listener->text));
    entry->upstream_us = -1;
    entry->wall_ms = oribi_clock_wall_ms();
    entry->queue_us = entry->total_us = complete_us ? oribi_clock_us() - complete_us : 0;
    oribi_access_log_add(door->access_log, entry);
}

void oribi__own_log(const struct oribi__call *call, int status, int64_t body_bytes)
{
    struct oribi__door *door = call->door;
    struct oribi_channel_head about;
    struct oribi_head head;
    struct oribi_parser parser = {0};
    if (!door->access_log)
        return;
    ssize_t n = oribi_channel_head_read(call->head.p, call->head.len, &about);
    if (n <= 0 || oribi_parser_head(&parser, &door->answer_limits, call->head.p + n, call->head.len - (size_t)n,
                                    &head) <= 0) /* it is not whole yet: there was no memory for it */
        return;
    struct oribi_access_entry entry = {.head = &head,
                                       .remote_addr = oribi_slice(about.addr, about.addr_len),
                                       .remote_port = oribi_slice(about.port, about.port_len),
                                       .scheme = about.tls ? ORIBI_SLICE("https") : ORIBI_SLICE("http"),
                                       .client = &about,
                                       .status = status,
                                       .body_bytes = body_bytes,
                                       .bytes_out = body_bytes,
                                       .bytes_in = (int64_t)(call->head.len - (size_t)n) + call->body_len,
                                       .connection_requests = 1};
    add_line(door, &entry, &door->config->listeners[call->listener].listener, call->complete_us);
}

void oribi__own_log_refused(struct oribi__door *door, const struct oribi_head *head, struct oribi_slice raw_line,
                            const struct oribi__refused *refused)
{
    static const struct oribi_head nothing;
    if (!door->access_log || refused->status == 0)
        return;
    struct oribi_access_entry entry = {.head = head ? head : &nothing,
                                       .raw_line = raw_line,
                                       .remote_addr = refused->addr,
                                       .remote_port = refused->port,
                                       .scheme = refused->tls ? ORIBI_SLICE("https") : ORIBI_SLICE("http"),
                                       .status = refused->status,
                                       .refused = refused->word,
                                       .closes = refused->closes,
                                       .body_bytes = refused->body_bytes,
                                       .bytes_in = refused->bytes_in,
                                       .bytes_out = refused->bytes_out,
                                       .connection_requests = refused->requests};
    add_line(door, &entry, refused->listener, 0);
}
