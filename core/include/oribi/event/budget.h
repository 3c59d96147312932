/* How many bytes all connections of a worker together may keep: in memory, and in unlinked files. A connection's own
 * limits come first; the budget bounds many connections at a time. */
#ifndef ORIBI_EVENT_BUDGET_H
#define ORIBI_EVENT_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct oribi_budget {
    int64_t memory_max; /* 0: no maximum; beyond it bytes go to a file instead of memory */
    int64_t file_max;   /* 0: no maximum; beyond it no byte is kept */
    int64_t memory_used;
    int64_t file_used;
    uint32_t temp_file_open;          /* holders that use files now */
    uint64_t temp_file_count;         /* holders that have begun to use files since the start */
    uint64_t temp_file_written_bytes; /* bytes that went to files since the start */
};

/* The part of the budget that one body or one output queue (a holder) uses. All-zero: none. */
struct oribi_charge {
    int64_t memory;
    int64_t file;
};

/* Sets what the holder uses now. */
static inline void oribi_budget_set(struct oribi_budget *budget, struct oribi_charge *charge, int64_t memory,
                                    int64_t file)
{
    budget->memory_used += memory - charge->memory;
    budget->file_used += file - charge->file;
    if (file != charge->file) {
        budget->temp_file_open = budget->temp_file_open + (file > 0) - (charge->file > 0);
        budget->temp_file_count += charge->file == 0;
        budget->temp_file_written_bytes += file > charge->file ? (uint64_t)(file - charge->file) : 0;
    }
    *charge = (struct oribi_charge){memory, file};
}

/* How much a holder that keeps `own` bytes in memory, and may keep own_max, may have there in all. */
static inline int64_t oribi_budget_memory(const struct oribi_budget *budget, int64_t own, int64_t own_max)
{
    int64_t left = budget->memory_max - budget->memory_used;
    if (budget->memory_max == 0 || left >= own_max)
        return own_max;
    int64_t all = own + (left > 0 ? left : 0);
    return all < own_max ? all : own_max;
}

/* How much a holder that may become large may have in memory: as oribi_budget_memory(), but beyond small_max it leaves
 * a quarter of the budget to small ones. */
static inline int64_t oribi_budget_large(const struct oribi_budget *budget, int64_t own, int64_t own_max,
                                         int64_t small_max)
{
    if (own_max <= small_max || budget->memory_max == 0)
        return oribi_budget_memory(budget, own, own_max);
    int64_t small = oribi_budget_memory(budget, own, small_max);
    int64_t left = budget->memory_max - budget->memory_max / 4 - budget->memory_used;
    int64_t all = own + (left > 0 ? left : 0);
    if (left < 0 || all < small)
        return small;
    return all < own_max ? all : own_max;
}

/* True if n more bytes may go to files. */
static inline bool oribi_budget_file(const struct oribi_budget *budget, int64_t n)
{
    return budget->file_max == 0 || budget->file_used + n <= budget->file_max;
}

#endif
