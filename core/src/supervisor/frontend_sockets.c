/* `ctl sockets`: each frontend writes rows of its WebSockets into memory that it is lent
 * (worker/frontend_socket_rows.h), while it serves on; a reply is made of them when all have answered, or time is over.
 * A frontend is not trusted with more than its own rows: lengths are checked, texts are escaped. */
#include "supervisor/control_socket.h"
#include "supervisor/frontends_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/escape.h"
#include "oribi/base/log.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/worker/frontend_socket_rows.h"

#include <string.h>

enum { ANSWER_MS = 1000 };

static const char *const states[] = {"open", "called", "closing", "ended"};

/* --- asking --- */

static void forget(struct oribi__frontend *frontend)
{
    oribi__close(&frontend->sockets_fd);
    frontend->sockets_owed = false;
}

/* A frontend that takes no message owes nothing, and is told of as silent. */
static void ask(struct oribi__frontend *frontend)
{
    if (frontend->control_fd < 0 || !frontend->process.ready ||
        oribi_process_shared_memory(sizeof(struct oribi_frontend_socket_rows), &frontend->sockets_fd) < 0)
        return;
    frontend->sockets_owed =
        oribi__frontend_text_send(frontend->control_fd, ORIBI_FRONTEND_TOLD_SOCKETS, frontend->sockets_fd) == 0;
    if (!frontend->sockets_owed)
        forget(frontend);
}

void oribi__frontend_sockets_ask(struct oribi__context *context)
{
    struct oribi__frontends *frontends = context->frontends;
    if (oribi_timer_at(&frontends->sockets_late) != INT64_MAX)
        return; /* the answers that are awaited are for all who ask meanwhile */
    for (uint32_t i = 0; i < frontends->set.count; i++)
        ask(&frontends->items[i]);
    oribi_dispatcher_arm(&context->dispatcher, &frontends->sockets_late, oribi_clock_ms() + ANSWER_MS);
    oribi__frontend_sockets_look(context);
}

/* --- the reply --- */

struct told {
    uint64_t count; /* of sockets that there are */
    uint32_t shown;
    struct oribi_buf text;
    struct oribi_buf json;
};

static uint8_t at_most(uint8_t len, size_t max)
{
    return len < max ? len : (uint8_t)max;
}

static void put_text(struct told *told, const struct oribi_frontend_socket_row *row)
{
    struct oribi_slice texts[] = {oribi_slice(row->path, at_most(row->path_len, sizeof(row->path))),
                                  oribi_slice(row->handler, at_most(row->handler_len, sizeof(row->handler))),
                                  oribi_slice(row->protocol, at_most(row->protocol_len, sizeof(row->protocol)))};
    char shown[4 * sizeof(row->path) + 1];
    char address[sizeof(row->address) + 1] = "";
    char id[sizeof(row->id) + 1] = "";
    (void)oribi_escape_text(shown, oribi_slice(row->id, sizeof(row->id)));
    memcpy(address, row->address, at_most(row->address_len, sizeof(row->address)));
    memcpy(id, row->id, sizeof(row->id));
    for (char *p = address; *p; p++)
        *p = *p > ' ' && *p < 0x7f ? *p : '?';
    for (char *p = id; *p; p++)
        *p = *p > ' ' && *p < 0x7f ? *p : '?';
    oribi_buf_print(&told->text, "%-36s  %-21s  %-7s  %8lld  %8llu  %8llu  %10llu  %10llu", id,
                    *address ? address : "-", states[row->state % 4], (long long)row->age_ms / 1000,
                    (unsigned long long)row->messages[0], (unsigned long long)row->messages[1],
                    (unsigned long long)row->bytes[0], (unsigned long long)row->bytes[1]);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        *oribi_escape_text(shown, texts[i]) = '\0';
        if (texts[i].n)
            oribi_buf_print(&told->text, "  %s", shown);
    }
    oribi_buf_print(&told->text, "\n");
}

static void put_json(struct told *told, uint32_t frontend, const struct oribi_frontend_socket_row *row)
{
    struct oribi_buf *out = &told->json;
    const struct {
        const char *name;
        struct oribi_slice text;
    } texts[] = {{"id", oribi_slice(row->id, sizeof(row->id))},
                 {"address", oribi_slice(row->address, at_most(row->address_len, sizeof(row->address)))},
                 {"path", oribi_slice(row->path, at_most(row->path_len, sizeof(row->path)))},
                 {"handler", oribi_slice(row->handler, at_most(row->handler_len, sizeof(row->handler)))},
                 {"protocol", oribi_slice(row->protocol, at_most(row->protocol_len, sizeof(row->protocol)))}};
    oribi_buf_print(out, "%s{\"frontend\":%u", told->shown ? "," : "", frontend);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        oribi_buf_print(out, ",\"%s\":", texts[i].name);
        if (texts[i].text.n)
            oribi_escape_append_json(out, texts[i].text);
        else
            oribi_buf_print(out, "null");
    }
    oribi_buf_print(out,
                    ",\"state\":\"%s\",\"http2\":%s,\"age_ms\":%lld,\"messages_in\":%llu,\"messages_out\":%llu,"
                    "\"bytes_in\":%llu,\"bytes_out\":%llu,\"waiting_bytes\":%llu}",
                    states[row->state % 4], row->http2 ? "true" : "false", (long long)row->age_ms,
                    (unsigned long long)row->messages[0], (unsigned long long)row->messages[1],
                    (unsigned long long)row->bytes[0], (unsigned long long)row->bytes[1],
                    (unsigned long long)row->waiting_bytes);
}

/* Rows of a frontend that has answered. */
static void put_rows(struct told *told, const struct oribi__frontend *frontend)
{
    struct oribi_frontend_socket_rows head;
    struct oribi_frontend_socket_row row;
    size_t at = offsetof(struct oribi_frontend_socket_rows, rows);
    if (oribi_os_read_at(frontend->sockets_fd, &head, at, 0) != (ssize_t)at)
        return;
    told->count += head.count;
    for (uint32_t i = 0; i < head.shown && told->shown < ORIBI_FRONTEND_SOCKET_ROWS_MAX; i++, at += sizeof(row)) {
        if (oribi_os_read_at(frontend->sockets_fd, &row, sizeof(row), (int64_t)at) != (ssize_t)sizeof(row))
            return;
        put_text(told, &row);
        put_json(told, frontend->number, &row);
        told->shown++;
    }
}

static void put_silent(struct told *told, const struct oribi__frontends *frontends)
{
    const char *comma = "";
    oribi_buf_print(&told->json, "],\"frontends_silent\":[");
    for (uint32_t i = 0; i < frontends->set.count; i++) {
        const struct oribi__frontend *frontend = &frontends->items[i];
        if (frontend->sockets_fd >= 0 && !frontend->sockets_owed)
            continue;
        oribi_buf_print(&told->json, "%s%u", comma, i);
        oribi_buf_print(&told->text, "frontend %u does not answer; its WebSockets are missing here\n", i);
        comma = ",";
    }
}

static void answer(struct oribi__context *context)
{
    struct oribi__frontends *frontends = context->frontends;
    struct told told = {0};
    oribi_buf_print(&told.json, "{\"sockets\":[");
    oribi_buf_print(&told.text, "%-36s  %-21s  %-7s  %8s  %8s  %8s  %10s  %10s  path, handler, protocol\n", "id",
                    "client", "state", "age s", "in", "out", "bytes in", "bytes out");
    for (uint32_t i = 0; i < frontends->set.count; i++)
        if (frontends->items[i].sockets_fd >= 0 && !frontends->items[i].sockets_owed)
            put_rows(&told, &frontends->items[i]);
    if (told.shown == 0)
        told.text.len = 0;
    put_silent(&told, frontends);
    oribi_buf_print(&told.json, "],\"count\":%llu,\"shown\":%u}\n", (unsigned long long)told.count, told.shown);
    oribi_buf_print(&told.text, "%llu WebSocket%s", (unsigned long long)told.count, oribi_log_plural(told.count));
    oribi_buf_print(&told.text, told.shown < told.count ? ", the newest %u shown\n" : "\n", told.shown);
    for (uint32_t i = 0; i < frontends->set.count; i++)
        forget(&frontends->items[i]);
    oribi__control_sockets(context, &told.text, &told.json);
    oribi_buf_deinit(&told.text);
    oribi_buf_deinit(&told.json);
}

void oribi__frontend_sockets_look(struct oribi__context *context)
{
    struct oribi__frontends *frontends = context->frontends;
    bool late = oribi_clock_ms() >= oribi_timer_at(&frontends->sockets_late);
    if (oribi_timer_at(&frontends->sockets_late) == INT64_MAX)
        return;
    for (uint32_t i = 0; i < frontends->set.count && !late; i++)
        if (frontends->items[i].sockets_owed && frontends->items[i].control_fd >= 0)
            return;
    oribi_dispatcher_arm(&context->dispatcher, &frontends->sockets_late, INT64_MAX);
    answer(context);
}

void oribi__frontend_sockets_late(void *owner)
{
    struct oribi__context *context = owner;
    oribi_dispatcher_arm(&context->dispatcher, &context->frontends->sockets_late, INT64_MAX);
    answer(context);
}
