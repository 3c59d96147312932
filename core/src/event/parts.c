/* Multipart bodies taken apart; see the header. Reading order: oribi_parts_append, place, end_file; then the readers.
 *
 * A piece of input may end with the beginning of a delimiter. Those bytes are `held`: of the file when the input goes
 * on with something else, of the frame when it goes on with the rest of the delimiter. The parser knows them, since
 * they are the delimiter's. */
#include "oribi/event/body.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"

#include <string.h>
#include <strings.h>
#include <unistd.h>

bool oribi_parts_wanted(struct oribi_slice type)
{
    static const char wanted[] = "multipart/form-data";
    size_t n = sizeof(wanted) - 1;
    if (type.n < n || strncasecmp(type.p, wanted, n) != 0)
        return false;
    return type.n == n || type.p[n] == ';' || type.p[n] == ' ' || type.p[n] == '\t';
}

int oribi_parts_create(struct oribi_slice content_type, struct oribi_parts **out, const char **reason)
{
    struct oribi_form_data_limits limits;
    struct oribi_parts *parts = oribi_mem_try_alloc(1, sizeof(*parts));
    if (!parts)
        return ORIBI_ENOMEM;
    memset(parts, 0, offsetof(struct oribi_parts, files));
    oribi_body_init(&parts->part);
    oribi_form_data_limits_init(&limits);
    int error = oribi_form_data_init(&parts->form, &limits, oribi_form_data_boundary(content_type));
    if (error < 0) {
        *reason = parts->form.reason;
        oribi_parts_destroy(parts);
        return error;
    }
    *out = parts;
    return 0;
}

void oribi_parts_destroy(struct oribi_parts *parts)
{
    if (!parts)
        return;
    for (uint32_t i = 0; i < parts->file_count; i++)
        oribi_body_deinit(&parts->files[i].body);
    oribi_body_deinit(&parts->part);
    oribi_form_data_deinit(&parts->form);
    oribi_mem_free(parts);
}

size_t oribi_parts_memory(const struct oribi_parts *parts)
{
    size_t files = 0;
    for (uint32_t i = 0; i < parts->file_count; i++)
        files += oribi_body_memory(&parts->files[i].body);
    return sizeof(*parts) + oribi_body_memory(&parts->part) + parts->form.head.cap + files;
}

/* --- writing --- */

static int refuse(struct oribi_parts *parts, int error, const char *reason)
{
    parts->reason = reason;
    if (error == ORIBI_ENOMEM)
        return error;
    return oribi_form_data_status(error) == 413 ? ORIBI_EBODY : ORIBI_EBAD;
}

static int append_to(struct oribi_body *body, const struct oribi_parts_room *room, uint32_t memory_max,
                     struct oribi_slice bytes)
{
    if (room->temp_file && !oribi_body_in_file(body) && body->memory.len + bytes.n > memory_max) {
        struct oribi_temp_file *temp_file = room->temp_file(room->self);
        if (!temp_file)
            return ORIBI_ENOMEM;
        oribi_body_divert(body, temp_file);
    }
    return oribi_body_append(body, bytes.p, bytes.n, memory_max, room->batch_max);
}

static int append_frame(struct oribi_body *frame, const struct oribi_parts_room *room, struct oribi_slice bytes)
{
    return bytes.n ? append_to(frame, room, room->frame_memory_max, bytes) : 0;
}

static int append_data(struct oribi_parts *parts, const struct oribi_parts_room *room, struct oribi_slice data)
{
    struct oribi_body *part = &parts->part;
    int64_t before = oribi_body_in_file(part) ? part->len : 0;
    int error = append_to(part, room, room->part_memory_max, data);
    parts->file_bytes += oribi_body_in_file(part) ? part->len - before : 0;
    return error;
}

static void rewind_file(const struct oribi_body *file)
{
    (void)lseek(file->fd, 0, SEEK_SET); /* a regular file of ours: cannot fail */
}

/* The data is whole: a small one goes to the frame, where it was. */
static int end_file(struct oribi_parts *parts, struct oribi_body *frame, const struct oribi_parts_room *room)
{
    struct oribi_body *part = &parts->part;
    int error = 0;
    parts->in_file = false;
    if (!oribi_body_in_file(part)) {
        error = append_frame(frame, room, oribi_slice(part->memory.p, part->memory.len));
        part->memory.len = 0;
        part->len = 0;
        return error;
    }
    error = oribi_body_finish(part);
    struct oribi_parts_file *file = &parts->files[parts->file_count++];
    *file = (struct oribi_parts_file){.body = *part, .at = frame->len};
    oribi_body_init(part);
    if (!file->body.temp_file)
        rewind_file(&file->body);
    return error;
}

/* Puts what the parser has taken where it belongs: `held` and then `taken`. */
static int place(struct oribi_parts *parts, struct oribi_body *frame, const struct oribi_parts_room *room, int event,
                 struct oribi_slice held, struct oribi_slice taken)
{
    if (parts->in_file && event == ORIBI_FORM_DATA_DATA)
        return append_data(parts, room, parts->form.data);
    if (parts->in_file && oribi_form_data_held(&parts->form).n > 0)
        return 0; /* both are its beginning still */
    int error = parts->in_file && oribi_form_data_delimited(&parts->form) ? end_file(parts, frame, room) : 0;
    if (error == 0)
        error = append_frame(frame, room, held);
    if (error == 0)
        error = append_frame(frame, room, taken);
    if (event != ORIBI_FORM_DATA_PART)
        return error;
    bool is_file = parts->form.part.filename.value.p || parts->form.part.filename_star.value.p;
    parts->in_file = is_file && parts->file_count < ORIBI_PARTS_FILES_MAX;
    if (!is_file)
        oribi_form_data_keep(&parts->form); /* a field: limits.h has a maximum for all of them */
    return error;
}

int oribi_parts_append(struct oribi_parts *parts, struct oribi_body *frame, const struct oribi_parts_room *room,
                       const char *p, size_t n)
{
    struct oribi_slice in = oribi_slice(p, n);
    int event;
    parts->len += (int64_t)n;
    do {
        struct oribi_slice held = parts->in_file ? oribi_form_data_held(&parts->form) : oribi_slice(NULL, 0);
        const char *from = in.p;
        event = oribi_form_data_next(&parts->form, &in);
        if (event < 0)
            return refuse(parts, event, parts->form.reason);
        int error = place(parts, frame, room, event, held, oribi_slice(from, (size_t)(in.p - from)));
        if (error < 0)
            return error;
    } while (event != ORIBI_FORM_DATA_MORE);
    return 0;
}

int oribi_parts_finish(struct oribi_parts *parts, struct oribi_body *frame)
{
    int error = oribi_form_data_finish(&parts->form);
    if (error < 0)
        return refuse(parts, error, parts->form.reason);
    oribi_body_deinit(&parts->part); /* the last file's memory */
    oribi_form_data_deinit(&parts->form);
    return oribi_body_finish(frame);
}

/* --- while the writer writes --- */

bool oribi_parts_busy(const struct oribi_parts *parts, const struct oribi_body *frame)
{
    bool busy = oribi_body_busy(frame) || oribi_body_busy(&parts->part);
    for (uint32_t i = 0; i < parts->file_count && !busy; i++)
        busy = oribi_body_busy(&parts->files[i].body);
    return busy;
}

int oribi_parts_stored(struct oribi_parts *parts, struct oribi_body *frame)
{
    int error = oribi_body_stored(frame);
    if (error == 0)
        error = oribi_body_stored(&parts->part);
    for (uint32_t i = 0; i < parts->file_count && error == 0; i++) {
        struct oribi_body *file = &parts->files[i].body;
        error = oribi_body_stored(file);
        if (error == 0 && file->fd < 0)
            error = oribi_body_finish(file); /* what was collected behind its last batch */
    }
    return error;
}

bool oribi_parts_settled(struct oribi_parts *parts, struct oribi_body *frame)
{
    bool settled = oribi_body_settled(frame) || (oribi_body_finish(frame) == 0 && oribi_body_settled(frame));
    for (uint32_t i = 0; i < parts->file_count; i++) {
        struct oribi_body *file = &parts->files[i].body;
        if (oribi_body_settled(file))
            rewind_file(file);
        else
            settled = false;
    }
    return settled;
}

/* --- reading --- */

static struct oribi_body_piece frame_piece(const struct oribi_body *frame, int64_t from, int64_t to)
{
    if (frame->fd >= 0)
        return (struct oribi_body_piece){.fd = frame->fd, .offset = from, .len = to - from};
    return (struct oribi_body_piece){
        .bytes = oribi_slice(frame->memory.p + from, (size_t)(to - from)), .fd = -1, .len = to - from};
}

/* Frame, file, frame, file, …, frame: a head stands before each file, and a delimiter behind it, so that none is
 * empty. */
bool oribi_parts_piece(const struct oribi_parts *parts, const struct oribi_body *frame, uint32_t index,
                       struct oribi_body_piece *piece)
{
    if (index > 2 * parts->file_count)
        return false;
    const struct oribi_parts_file *file = parts->files + index / 2;
    if (index % 2) {
        *piece = (struct oribi_body_piece){.fd = file->body.fd, .len = file->body.len, .is_part = true};
    } else {
        int64_t from = index ? file[-1].at : 0;
        int64_t to = index / 2 < parts->file_count ? file->at : frame->len;
        *piece = frame_piece(frame, from, to);
    }
    return true;
}

static int write_bytes(int fd, const char *p, size_t n)
{
    return oribi_os_write_all(fd, p, n) < 0 ? oribi_os_store_failed() : 0;
}

static int copy_piece(int to, const struct oribi_body_piece *piece)
{
    if (piece->fd < 0)
        return write_bytes(to, piece->bytes.p, piece->bytes.n);
    for (int64_t done = 0; done < piece->len;) {
        ssize_t n = oribi_os_copy_range(piece->fd, piece->offset + done, to, (size_t)(piece->len - done));
        if (n <= 0)
            return oribi_os_store_failed();
        done += n;
    }
    return 0;
}

/* A new file with all of the piece, which stands at 0. Takes fd, which is negative when there is none. */
static int copied(int fd, const struct oribi_body_piece *piece)
{
    int error = fd < 0 ? oribi_os_store_failed() : copy_piece(fd, piece);
    if (error < 0) {
        oribi_os_close(fd);
        return error;
    }
    (void)lseek(fd, 0, SEEK_SET); /* a regular file of ours: cannot fail */
    return fd;
}

int oribi_parts_give(struct oribi_parts *parts, uint32_t index)
{
    int copy;
    struct oribi_parts_file *file = parts->files + index / 2;
    const struct oribi_body_piece all = {.fd = file->body.fd, .len = file->body.len};
    int fd = oribi_os_reopen(all.fd);
    if (fd >= 0)
        return fd;
    if (file->given)
        return copied(oribi_os_temp_file(&copy) < 0 ? -1 : copy, &all);
    fd = oribi_os_dup(all.fd);
    file->given = fd >= 0;
    return fd;
}

static int join(const struct oribi_parts *parts, const struct oribi_body *frame, int fd, int *out)
{
    struct oribi_body_piece piece;
    int error = fd < 0 ? oribi_os_store_failed() : 0;
    for (uint32_t i = 0; error == 0 && oribi_parts_piece(parts, frame, i, &piece); i++)
        error = copy_piece(fd, &piece);
    if (error < 0) {
        oribi_os_close(fd);
        return error;
    }
    (void)lseek(fd, 0, SEEK_SET); /* a regular file of ours: cannot fail */
    *out = fd;
    return 0;
}

int oribi_parts_join(const struct oribi_parts *parts, const struct oribi_body *frame, int *out)
{
    int fd;
    return join(parts, frame, oribi_os_temp_file(&fd) < 0 ? -1 : fd, out);
}

int oribi_parts_spool(const struct oribi_parts *parts, const struct oribi_body *frame, int *out)
{
    int fd;
    bool made = oribi_process_shared_memory(0, &fd) == 0 || oribi_os_temp_file(&fd) == 0;
    return join(parts, frame, made ? fd : -1, out);
}
