/* Files that end answers; see the header. Reading order: begin, turn, read_pieces. */
#include "frontend/answer_file.h"
#include "frontend/channel.h"
#include "frontend/frontend.h"
#include "frontend/upstream_request.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

#include <assert.h>

enum { PIECES_MAX = 4, LOOK_MS = 1, FETCH_BYTES = 1024 * 1024 };

/* --- lists --- */

static void unlink_call(struct oribi__upstream_request *call)
{
    struct oribi__answer_file *file = &call->file;
    if (!file->list)
        return;
    *(file->prev ? &file->prev->file.next : file->list) = file->next;
    if (file->next)
        file->next->file.prev = file->prev;
    file->prev = file->next = NULL;
    file->list = NULL;
}

static void link_call(struct oribi__upstream_request *call, struct oribi__upstream_request **list)
{
    struct oribi__answer_file *file = &call->file;
    unlink_call(call);
    file->list = list;
    file->next = *list;
    if (*list)
        (*list)->file.prev = call;
    *list = call;
}

/* --- reading --- */

const char *oribi__answer_file_fault(const struct oribi_channel_file *file, int64_t left)
{
    if (file->length != left)
        return "a file that is not the rest of its answer";
    return oribi_os_is_regular(file->fd) ? NULL : "a descriptor that is no file";
}

ssize_t oribi__answer_file_read(struct oribi_channel_file *file, char *dst, size_t n)
{
    size_t wanted = (int64_t)n < file->length ? n : (size_t)file->length;
    ssize_t got = oribi_os_read_at_now(file->fd, dst, wanted, file->offset);
    if (got == 0)
        return ORIBI_EBAD;
    if (got < 0)
        return got;
    file->offset += got;
    file->length -= got;
    return got;
}

/* The timer is armed while a file is fetched. */
static void on_look(void *self)
{
    struct oribi__frontend *frontend = self;
    struct oribi__answer_files *files = frontend->answer_files;
    while (files->fetched)
        link_call(files->fetched, &files->ready);
}

static void fail(struct oribi__upstream_request *call, ssize_t code)
{
    oribi__upstream_failed(call, 502, ORIBI_REFUSAL_OTHER,
                           code == ORIBI_EBAD     ? "the file of an answer has become shorter"
                           : code == ORIBI_EINVAL ? "the file of an answer cannot be read without waiting"
                           : code == ORIBI_AGAIN  ? "the file of an answer cannot be read in time"
                                                  : "the file of an answer cannot be read");
}

/* Bytes that are not in memory. */
static void fetch(struct oribi__upstream_request *call)
{
    struct oribi__frontend *frontend = call->frontend;
    struct oribi__answer_files *files = frontend->answer_files;
    struct oribi__answer_file *file = &call->file;
    int64_t now_ms = frontend->reactor.now_ms;
    if (!file->fetched_since_ms)
        file->fetched_since_ms = now_ms;
    if (now_ms - file->fetched_since_ms >= ORIBI__ANSWER_FILE_FETCH_MS) {
        fail(call, ORIBI_AGAIN);
        return;
    }
    oribi_os_will_need(file->part.fd, file->part.offset,
                       file->part.length < FETCH_BYTES ? file->part.length : FETCH_BYTES);
    if (!files->fetched) {
        files->look.expired = on_look;
        files->look.owner = frontend;
        oribi_timers_arm(&frontend->timers, &files->look, now_ms + LOOK_MS);
    }
    link_call(call, &files->fetched);
}

/* Gives pieces to the client, until that or the disk is behind, or others have their turn. */
static void read_pieces(struct oribi__upstream_request *call)
{
    struct oribi__frontend *frontend = call->frontend;
    struct oribi__answer_files *files = frontend->answer_files;
    char *scratch = frontend->channels->scratch;
    files->at = call;
    for (int i = 0; i < PIECES_MAX && files->at == call && !call->blocked; i++) {
        ssize_t got = oribi__answer_file_read(&call->file.part, scratch, ORIBI__ANSWER_FILE_PIECE_BYTES);
        if (got == ORIBI_AGAIN) {
            fetch(call);
            return;
        }
        if (got < 0) {
            fail(call, got);
            return;
        }
        call->file.fetched_since_ms = 0;
        bool last = call->file.part.length == 0;
        if (last)
            oribi__answer_file_end(call);
        call->ops->more(call, oribi_slice(scratch, (size_t)got), last);
        if (last)
            return;
    }
    if (files->at == call && !call->blocked)
        link_call(call, &files->ready);
}

void oribi__answer_files_turn(struct oribi__frontend *frontend)
{
    struct oribi__answer_files *files = frontend->answer_files;
    struct oribi__upstream_request *turn = NULL;
    while (files->ready) /* those that become ready meanwhile have the next turn */
        link_call(files->ready, &turn);
    while (turn) {
        struct oribi__upstream_request *call = turn;
        unlink_call(call);
        read_pieces(call);
    }
}

/* --- a call's --- */

void oribi__answer_file_begin(struct oribi__upstream_request *call, const struct oribi_channel_file *file)
{
    assert(!call->channel && file->length > 0);
    call->file = (struct oribi__answer_file){.part = *file, .open = true};
    call->state = ORIBI__CALL_FILE;
    call->frontend->answer_files->count++;
    if (call->ops->reads_file)
        call->ops->reads_file(call);
    link_call(call, &call->frontend->answer_files->ready);
}

void oribi__answer_file_end(struct oribi__upstream_request *call)
{
    struct oribi__answer_files *files = call->frontend->answer_files;
    if (!call->file.open)
        return;
    unlink_call(call);
    oribi_os_close(call->file.part.fd);
    call->file = (struct oribi__answer_file){0};
    call->state = ORIBI__CALL_ENDED;
    files->count--;
    if (files->at == call)
        files->at = NULL;
}

void oribi__answer_file_go_on(struct oribi__upstream_request *call)
{
    link_call(call, &call->frontend->answer_files->ready);
}
