/* The entries of a large Hash by their number: reading and setting one without hashing its key. Ruby's header shows the
 * table (struct st_table) and not its entries, which are three words each since Ruby 2.4: so each template is looked at
 * before its copies are used in this way, ext_entries_are(). Included by env.c alone. */
#ifndef ORIBI_EXT_ENTRIES_H
#define ORIBI_EXT_ENTRIES_H

#include "ext.h"

#include <ruby/st.h>

#ifdef HAVE_RB_HASH_TBL

enum { EXT_HASH_WITHOUT_TABLE_MAX = 8 }; /* entries: a Hash of more has a table (RHASH_AR_TABLE_MAX_SIZE) */

struct ext_entry {
    st_index_t hash; /* all bits set: it was deleted */
    st_data_t key;
    st_data_t value;
};

/* RHASH_TBL() takes the Hash out of the collector's write barrier for good, which the two functions of internal/hash.h
 * and internal/gc.h do not: they are exported since Ruby 2.7. */
#if defined(HAVE_RB_HASH_TBL_RAW) && defined(HAVE_RB_GC_WRITEBARRIER_REMEMBER)
struct st_table *rb_hash_tbl_raw(VALUE hash, const char *file, int line);
void rb_gc_writebarrier_remember(VALUE object);
#define EXT_TABLE(hash)    rb_hash_tbl_raw(hash, __FILE__, __LINE__)
#define EXT_REMEMBER(hash) rb_gc_writebarrier_remember(hash)
#else
#define EXT_TABLE(hash)    RHASH_TBL(hash)
#define EXT_REMEMBER(hash) (void)0
#endif

static inline struct ext_entry *ext_entries(VALUE hash)
{
    return (struct ext_entry *)EXT_TABLE(hash)->entries;
}

/* True when the first `count` entries of this Hash have these keys and the value nil: so they lie as this file says. */
static inline bool ext_entries_are(VALUE hash, const VALUE *keys, uint32_t count)
{
    if (RHASH_SIZE(hash) <= EXT_HASH_WITHOUT_TABLE_MAX || RHASH_SIZE(hash) < count ||
        EXT_TABLE(hash)->entries_start != 0)
        return false;
    const struct ext_entry *entries = ext_entries(hash);
    for (uint32_t i = 0; i < count; i++)
        if (entries[i].key != keys[i] || entries[i].value != Qnil)
            return false;
    return true;
}

/* Sets the first `count` values of a copy of such a Hash. Nothing is allocated between: one call tells the collector of
 * all of them. */
static inline void ext_entries_fill(VALUE hash, const VALUE *values, uint32_t count)
{
    struct ext_entry *entries = ext_entries(hash);
    for (uint32_t i = 0; i < count; i++)
        entries[i].value = values[i];
    EXT_REMEMBER(hash);
}

/* The value under this very key, where it is still the entry of this number; else Qundef, which says nothing. */
static inline VALUE ext_entries_at(VALUE hash, uint32_t number, VALUE key)
{
    if (RHASH_SIZE(hash) <= EXT_HASH_WITHOUT_TABLE_MAX)
        return Qundef;
    const struct st_table *table = EXT_TABLE(hash);
    const struct ext_entry *entry = &((const struct ext_entry *)table->entries)[number];
    bool there = number >= table->entries_start && number < table->entries_bound && entry->key == key &&
                 entry->hash != (st_index_t)-1;
    return there ? (VALUE)entry->value : Qundef;
}

#endif

#endif
