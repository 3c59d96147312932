/* Records between supervisor, molds and workers, as the receiver sees them. First byte: how many descriptors come
 * along, whether the head is made to fit, whether the receiver asks for the descriptor. The rest is the record.
 *
 * Holds for every input: a record is taken whole or refused, its text ends where it says, at most one descriptor
 * arrives and the others are closed; a mold forks for a slot of the scoreboard or not at all; records of our
 * own arrive as they were sent. */
#include "supervisor/message.c"

#include "ours.h"

#include "supervisor/mold.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FDS = 3, FITS = 4, WANTED = 8 };

static void check_received(const struct oribi_message *message, int result, int passed, size_t size, size_t fd_count)
{
    expect(result == 1 || result == ORIBI_EBAD || (result == ORIBI_ECLOSED && size == 0));
    expect(passed < 0 || (result == 1 && fd_count > 0 && (fcntl(passed, F_GETFD) & FD_CLOEXEC)));
    if (result != 1)
        return;
    expect(message->text_len <= ORIBI_MESSAGE_TEXT_MAX && message->text[message->text_len] == '\0');
    expect(message->text_len == size - offsetof(struct oribi_message, text));
}

static void receive(const int ends[2], const void *record, size_t size, const int *fds, size_t fd_count, bool wanted)
{
    int before = lowest_free_fd();
    int passed = -1;
    struct oribi_message *message = malloc(sizeof(*message)); /* so that one byte too many is seen */
    expect(send_raw(ends[1], record, size, fds, fd_count));
    int result = oribi_message_receive(ends[0], message, wanted ? &passed : NULL);
    check_received(message, result, passed, size, fd_count);
    if (passed >= 0)
        close(passed);
    expect(oribi_message_receive(ends[0], message, NULL) == 0);
    free(message);
    expect(lowest_free_fd() == before);
}

/* Sends a mold the record, as its supervisor would. */
static void command(const int ends[2], const void *record, size_t size)
{
    struct oribi_mold mold = {.socket_fd = ends[0], .wake = {-1, -1}, .context = {.board = {.count = 4}}};
    const struct oribi_message *sent = record;
    expect(send_raw(ends[1], record, size, NULL, 0));
    enum oribi_mold_action action = oribi_mold_take(&mold);
    expect(action == ORIBI_MOLD_EXIT || (action == ORIBI_MOLD_SPAWN && sent->kind == ORIBI_MESSAGE_SPAWN));
    expect(action != ORIBI_MOLD_SPAWN || (mold.slot == sent->slot && mold.slot < mold.context.board.count));
    expect(oribi_mold_take(&mold) == ORIBI_MOLD_NONE);
}

static void round_trip(const int ends[2], const char *text, size_t len)
{
    struct oribi_message sent = {.kind = ORIBI_MESSAGE_WORKER_FAILED, .slot = 1, .ticket = 2, .pid = 3};
    struct oribi_message got;
    oribi_message_set_text(&sent, text, len);
    expect(oribi_message_send(ends[1], &sent, 0) == 0 && oribi_message_receive(ends[0], &got, NULL) == 1);
    expect(memcmp(&sent, &got, offsetof(struct oribi_message, text) + got.text_len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int ends[2];
    static const int fds[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    struct {
        struct oribi_message message;
        char more[64];
    } record;
    if (!ends[1])
        expect(oribi_message_pair(ends) == 0);
    if (size < 1 || size - 1 > sizeof(record))
        return 0;
    uint8_t flags = data[0];
    size_t n = size - 1;
    memset(&record, 0, sizeof(record));
    memcpy(&record, data + 1, n);
    round_trip(ends, (const char *)data + 1, n);
    if (flags & FITS) {
        size_t head = offsetof(struct oribi_message, text);
        n = n < head ? head : n;
        record.message.magic = MAGIC;
        record.message.text_len = (uint32_t)(n - head);
    }
    receive(ends, &record, n, fds, flags & FDS, flags & WANTED);
    command(ends, &record, n);
    return 0;
}
