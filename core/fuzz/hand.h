/* The shared memory of channels in a hostile hand. The sources of the rings are compiled here once more (the first
 * definition wins), so that the other side writes in front of each of their accesses to the memory, each copy and each
 * system call, as the input's rules say. Each mapping lies between pages that nobody may touch.
 *
 * A target says whose memory the hand holds, lets it move (hand_moves_in) while the code under test runs, and adds
 * rules from its input. A loop that goes on for as long as the hand moves ends the target. */
#ifndef ORIBI_FUZZ_HAND_H
#define ORIBI_FUZZ_HAND_H

#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/worker/channel_ring.h"
#include "oribi/worker/inbox.h"
#include "ours.h"

#include <fcntl.h>
#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    HAND_MEMORIES = 16,
    HAND_RULES = 8,
    HAND_MOVES_MAX = 300 * 1000, /* in one turn of the code under test: no loop that ends has so many */
    HAND_PAGE = 4096,
};

/* Parts of a direction that a rule may change; the words are the scoreboard's. */
enum hand_part {
    HAND_WRITTEN,
    HAND_WRITTEN_START,
    HAND_TAKEN,
    HAND_TAKEN_LEFT,
    HAND_WOKEN,
    HAND_WAKING,
    HAND_CLEARED,
    HAND_BY_SOCKET,
    HAND_CLOSED,
    HAND_LENGTH, /* of the record that is read next */
    HAND_KIND,
    HAND_MARK,
    HAND_BYTE, /* anywhere in the memory */
    HAND_PLACE,
    HAND_WORD,
    HAND_SOCKET, /* bytes of zero, sent; or the note of a file, with a descriptor */
    HAND_PARTS,
};

struct hand_rule {
    uint8_t part;
    uint8_t memory;  /* which, and which direction */
    uint8_t how;     /* set, add, copy the writer's or the reader's position and add; repeat */
    uint8_t value;   /* of hand_values */
    uint16_t offset; /* of HAND_BYTE */
    uint16_t delay;  /* moves until then */
};

static struct oribi_channel_memory *hand_memories[HAND_MEMORIES];
static uint32_t hand_count;
static uint32_t hand_mapped; /* mappings that are left */
static struct hand_rule hand_rules[HAND_RULES];
static uint32_t hand_rule_count;
static bool hand_holds_new = true; /* memory that is mapped from now on */
static bool hand_is_in;
static bool hand_has_moved;
static uint32_t hand_moves_count;
static _Atomic uint16_t *hand_places; /* of the scoreboard, so many */
static uint32_t hand_place_count;
static _Atomic uint32_t *hand_word;
static int hand_socket = -1;

static const uint64_t hand_values[] = {
    0,          1,          2,           3,           4,           8,          15,
    16,         17,         31,          32,          33,          48,         64,
    128,        255,        256,         1000,        0x3fff,      32767,      32768,
    32769,      32768 - 16, 32768 - 64,  32768 + 16,  65535,       65536,      65537,
    1u << 20,   0x7fffffff, 0x80000000u, 0xffffffffu, 0xfffffff0u, UINT64_MAX, UINT64_MAX - 1,
    1ull << 32, 1ull << 63, 0x8001,
};

/* --- memory --- */

static size_t hand_pages(size_t bytes)
{
    return (bytes + HAND_PAGE - 1) / HAND_PAGE * HAND_PAGE;
}

static void *hand_map(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    size_t room = hand_pages(bytes);
    char *all = mmap(NULL, room + 2 * (size_t)HAND_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expect(all != MAP_FAILED && !at);
    char *p = mmap(all + HAND_PAGE, room, protection, flags | MAP_FIXED, fd, offset);
    expect(p == all + HAND_PAGE);
    __asan_poison_memory_region(p + bytes, room - bytes);
    hand_mapped++;
    if (hand_holds_new && hand_count < HAND_MEMORIES)
        hand_memories[hand_count++] = (struct oribi_channel_memory *)(void *)p;
    return p;
}

static int hand_unmap(void *p, size_t bytes)
{
    size_t room = hand_pages(bytes);
    for (uint32_t i = 0; i < hand_count; i++)
        if (hand_memories[i] == p)
            hand_memories[i--] = hand_memories[--hand_count];
    __asan_unpoison_memory_region((char *)p + bytes, room - bytes);
    hand_mapped--;
    return munmap((char *)p - HAND_PAGE, room + 2 * (size_t)HAND_PAGE);
}

/* --- moves --- */

static void hand_store(_Atomic uint64_t *word, bool high, uint32_t value)
{
    uint64_t old = atomic_load(word);
    atomic_store(word, high ? (old & UINT32_MAX) | (uint64_t)value << 32 : (old & ~(uint64_t)UINT32_MAX) | value);
}

static uint64_t hand_value(const struct hand_rule *rule, const struct oribi_channel_way *way, uint64_t old)
{
    uint64_t value = hand_values[rule->value % (sizeof(hand_values) / sizeof(hand_values[0]))];
    switch (rule->how & 3) {
    case 0:
        return value;
    case 1:
        return old + value;
    case 2:
        return (uint32_t)atomic_load(&way->ring.written) + value;
    default:
        return (uint32_t)atomic_load(&way->ring.taken) + value;
    }
}

static void hand_record(const struct hand_rule *rule, struct oribi_channel_way *way)
{
    struct oribi_ring_record record;
    uint32_t at = (uint32_t)atomic_load(&way->ring.taken) & (ORIBI_RING_BYTES - 1);
    if (at > ORIBI_RING_BYTES - sizeof(record))
        return;
    memcpy(&record, way->ring.bytes + at, sizeof(record));
    if (rule->part == HAND_LENGTH)
        record.length = hand_value(rule, way, record.length);
    else if (rule->part == HAND_KIND)
        record.kind = (uint32_t)hand_value(rule, way, record.kind);
    else
        record.mark = (uint32_t)hand_value(rule, way, record.mark);
    memcpy(way->ring.bytes + at, &record, sizeof(record));
}

static void hand_move_way(const struct hand_rule *rule, struct oribi_channel_memory *memory)
{
    struct oribi_channel_way *way = rule->memory & 1 ? &memory->answers : &memory->requests;
    uint64_t written = atomic_load(&way->ring.written);
    uint64_t taken = atomic_load(&way->ring.taken);
    _Atomic uint32_t *words[] = {&way->woken, &way->waking, &way->cleared};
    switch (rule->part) {
    case HAND_WRITTEN:
        hand_store(&way->ring.written, false, (uint32_t)hand_value(rule, way, written));
        break;
    case HAND_WRITTEN_START:
        hand_store(&way->ring.written, true, (uint32_t)hand_value(rule, way, written >> 32));
        break;
    case HAND_TAKEN:
        hand_store(&way->ring.taken, false, (uint32_t)hand_value(rule, way, taken));
        break;
    case HAND_TAKEN_LEFT:
        hand_store(&way->ring.taken, true, (uint32_t)hand_value(rule, way, taken >> 32));
        break;
    case HAND_WOKEN:
    case HAND_WAKING:
    case HAND_CLEARED:
        atomic_store(words[rule->part - HAND_WOKEN],
                     (uint32_t)hand_value(rule, way, atomic_load(words[rule->part - HAND_WOKEN])));
        break;
    case HAND_BY_SOCKET:
        atomic_store(&way->by_socket, hand_value(rule, way, atomic_load(&way->by_socket)));
        break;
    case HAND_CLOSED:
        atomic_store(&way->closed, (uint32_t)hand_value(rule, way, atomic_load(&way->closed)));
        break;
    case HAND_BYTE:
        ((char *)memory)[rule->offset % sizeof(*memory)] = (char)rule->value;
        break;
    default:
        hand_record(rule, way);
    }
}

/* Descriptors for notes: a file, a folder, a device, a file that cannot be read. They stay open. */
static const int *hand_files(void)
{
    enum { BYTES = 600 * 1000 };
    static int fds[4];
    char path[32];
    if (fds[0])
        return fds;
    int both;
    expect(oribi_os_temp_file(&both) == 0 && ftruncate(both, BYTES) == 0);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", both);
    fds[0] = open(path, O_RDONLY | O_CLOEXEC);
    fds[1] = open("/", O_RDONLY | O_CLOEXEC);
    fds[2] = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    fds[3] = open(path, O_WRONLY | O_CLOEXEC);
    expect(fds[0] > 0 && fds[1] > 0 && fds[2] > 0 && fds[3] > 0);
    close(both);
    return fds;
}

static void hand_note(uint64_t value, uint16_t which)
{
    const struct {
        char mark[8];
        uint64_t offset;
    } note = {{which & 32 ? 0 : 1}, value};
    const struct iovec vec = {(void *)(uintptr_t)&note, which & 16 ? 5 : sizeof(note)};
    (void)oribi_inbox_send(hand_socket, &vec, 1, which & 64 ? -1 : hand_files()[which & 3]);
}

static void hand_move(const struct hand_rule *rule)
{
    enum { NOTE = 8 };
    static const char zeros[4096];
    uint64_t value = hand_values[rule->value % (sizeof(hand_values) / sizeof(hand_values[0]))];
    hand_has_moved = true;
    if (rule->part == HAND_PLACE && hand_place_count)
        atomic_store(&hand_places[rule->offset % hand_place_count], (uint16_t)value);
    else if (rule->part == HAND_WORD && hand_word)
        atomic_fetch_add(hand_word, (uint32_t)value);
    else if (rule->part == HAND_SOCKET && hand_socket >= 0 && (rule->how & NOTE))
        hand_note(value, rule->offset);
    else if (rule->part == HAND_SOCKET && hand_socket >= 0)
        (void)send(hand_socket, zeros, value % sizeof(zeros), MSG_DONTWAIT | MSG_NOSIGNAL);
    else if (rule->part < HAND_PLACE && hand_count)
        hand_move_way(rule, hand_memories[rule->memory / 2 % hand_count]);
}

/* In front of an access. */
static void hand_moves(void)
{
    enum { REPEATS = 4 };
    if (!hand_is_in)
        return;
    if (++hand_moves_count > HAND_MOVES_MAX) {
        (void)fprintf(stderr, "a loop without an end\n");
        abort();
    }
    for (uint32_t i = 0; i < hand_rule_count; i++) {
        struct hand_rule *rule = &hand_rules[i];
        if (rule->delay > 0) {
            rule->delay--;
            continue;
        }
        hand_move(rule);
        if (!(rule->how & REPEATS))
            hand_rules[i--] = hand_rules[--hand_rule_count];
        else
            rule->delay = rule->how >> 5;
    }
}

/* The code under test runs, until hand_moves_out(). */
__attribute__((unused)) static void hand_moves_in(void)
{
    hand_moves_count = 0;
    hand_is_in = true;
}

__attribute__((unused)) static void hand_moves_out(void)
{
    hand_is_in = false;
}

__attribute__((unused)) static void hand_rule_add(struct bytes *in)
{
    struct hand_rule rule = {.part = next_byte(in) % HAND_PARTS, .memory = next_byte(in), .how = next_byte(in)};
    rule.value = next_byte(in);
    rule.offset = (uint16_t)(next_byte(in) << 8);
    rule.offset |= next_byte(in);
    rule.delay = next_byte(in);
    if (hand_rule_count < HAND_RULES)
        hand_rules[hand_rule_count++] = rule;
}

__attribute__((unused)) static void hand_rests(void)
{
    hand_rule_count = 0;
}

/* --- the rings, in the hand --- */

#undef atomic_load_explicit
#undef atomic_store_explicit
#define atomic_load_explicit(object, order)         (hand_moves(), __c11_atomic_load(object, order))
#define atomic_store_explicit(object, value, order) (hand_moves(), __c11_atomic_store(object, value, order))
#define memcpy(dst, src, n)                         (hand_moves(), __builtin_memcpy(dst, src, n))
#define mmap                                        hand_map
#define munmap                                      hand_unmap
#include "../src/base/ring.c"
#include "../src/worker/channel_ring.c"
#undef memcpy
#undef mmap
#undef munmap
#undef atomic_load_explicit
#undef atomic_store_explicit
#define atomic_load_explicit  __c11_atomic_load
#define atomic_store_explicit __c11_atomic_store

#endif
