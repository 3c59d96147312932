/* The cache against a model: files come, change and go at random, precompressed files too, while they are asked for and
 * held. What the cache gives was on the disk within the last second and does not change while it is held; the cache
 * keeps its limits and its books at every step. */
#include "files/cache.c"

#include "tap.h"
#include "tree.h"

#include <time.h>

enum { NAMES = 7, HELD_MAX = 6, STATES_MAX = 4000, STEPS = 3000, LARGE = ORIBI_CACHE_BODY_BYTES_MAX + 1 };

static const struct oribi_cache_limits limits = {.open_max = 3, .missing_max = 2, .memory_max = 5000};

/* One state of a name: number 0 is no file, else what its bytes begin with. */
struct state {
    uint32_t number;
    uint32_t precompressed; /* the number in its .gz; 0: there is none */
    int64_t from_ms;
};

struct history {
    uint32_t count;
    struct state states[STATES_MAX];
};

struct model {
    uint32_t random;
    uint32_t last_number;
    struct oribi_cache_now now;
    struct history names[NAMES];
    uint32_t held_count;
    struct {
        const struct oribi_file *file;
        uint32_t number;
        uint32_t precompressed;
    } held[HELD_MAX];
    uint32_t wrong;
    uint32_t given;
    uint32_t missing;
};

static struct oribi_types *types;
static struct oribi_root *root;
static struct oribi_cache *cache;

static uint32_t draw(struct model *model, uint32_t below)
{
    model->random = model->random * 1664525u + 1013904223u;
    return (model->random >> 8) % below;
}

static void wrong(struct model *model, const char *what)
{
    diag("random number %u: %s", model->random, what);
    model->wrong++;
}

/* --- the disk --- */

/* Two of the names are large files. */
static void write_number(uint32_t name, const char *suffix, uint32_t number)
{
    static char bytes[LARGE];
    char path[32];
    size_t n = name < 2 && !*suffix ? LARGE : 100 + name;
    memcpy(bytes, &number, sizeof(number));
    (void)snprintf(path, sizeof(path), "site/%u%s", name, suffix);
    make_bytes("new", bytes, n);
    must(rename(at("new"), at(path)) == 0);
}

static void remove_number(uint32_t name, const char *suffix)
{
    char path[32];
    (void)snprintf(path, sizeof(path), "site/%u%s", name, suffix);
    (void)unlink(at(path));
}

static struct state *state_of(struct model *model, uint32_t name)
{
    return &model->names[name].states[model->names[name].count - 1];
}

static void change(struct model *model)
{
    uint32_t name = draw(model, NAMES);
    struct history *history = &model->names[name];
    struct state next = *state_of(model, name);
    switch (draw(model, 4)) {
    case 0:
        next.number = 0;
        next.precompressed = 0;
        break;
    case 1:
        next.precompressed = next.number && !next.precompressed ? ++model->last_number : 0;
        break;
    default:
        next.number = ++model->last_number;
        next.precompressed = 0;
    }
    if (history->count == STATES_MAX)
        return;
    next.from_ms = model->now.ms;
    if (!next.precompressed)
        remove_number(name, ".gz");
    if (!next.number)
        remove_number(name, "");
    else if (next.number != state_of(model, name)->number)
        write_number(name, "", next.number);
    if (next.precompressed)
        write_number(name, ".gz", next.precompressed);
    history->states[history->count++] = next;
}

/* --- what the cache says --- */

/* The number that a content begins with. */
static uint32_t number_in(const struct oribi_file_content *content)
{
    uint32_t number = 0;
    if (!content->is_there)
        return 0;
    if (content->body)
        memcpy(&number, content->body, sizeof(number));
    else if (pread(content->fd, &number, sizeof(number), 0) != sizeof(number))
        return UINT32_MAX;
    return number;
}

/* Was this on the disk at a moment that the cache may still go by? Many changes have no time between them. */
static bool was_there(const struct model *model, uint32_t name, uint32_t number, uint32_t precompressed)
{
    const struct history *history = &model->names[name];
    for (uint32_t i = history->count; i-- > 0;) {
        bool is_last = i + 1 == history->count;
        if (!is_last && history->states[i + 1].from_ms <= model->now.ms - ORIBI_CACHE_CHECK_MS)
            return false;
        if (history->states[i].number == number && history->states[i].precompressed == precompressed)
            return true;
    }
    return false;
}

static void release(struct model *model, uint32_t i)
{
    if (number_in(&model->held[i].file->contents[ORIBI_CODING_IDENTITY]) != model->held[i].number ||
        number_in(&model->held[i].file->contents[ORIBI_CODING_GZIP]) != model->held[i].precompressed)
        wrong(model, "a held file has changed");
    oribi_cache_release(model->held[i].file);
    model->held[i] = model->held[--model->held_count];
}

static void ask(struct model *model)
{
    char path[16];
    const struct oribi_file *file = NULL;
    uint32_t name = draw(model, NAMES);
    if (model->held_count == HELD_MAX)
        release(model, draw(model, HELD_MAX));
    (void)snprintf(path, sizeof(path), "%u", name);
    enum oribi_file_verdict verdict = oribi_cache_get(cache, root, path, model->now, &file);
    if (verdict != ORIBI_FILE_OK && verdict != ORIBI_FILE_MISSING)
        wrong(model, oribi_file_verdict_text(verdict));
    uint32_t number = file ? number_in(&file->contents[ORIBI_CODING_IDENTITY]) : 0;
    uint32_t precompressed = file ? number_in(&file->contents[ORIBI_CODING_GZIP]) : 0;
    if (!was_there(model, name, number, precompressed))
        wrong(model, "what was given was not there within the last second");
    model->given += file != NULL;
    model->missing += file == NULL;
    if (!file)
        return;
    model->held[model->held_count].file = file;
    model->held[model->held_count].number = number;
    model->held[model->held_count++].precompressed = precompressed;
}

/* --- books --- */

/* Counts a list from both ends, and each of its entries in the table. */
static void check_list(struct model *model, const struct oribi__entries *list)
{
    uint32_t count = 0;
    uint32_t back = 0;
    uint32_t open_count = 0;
    uint64_t bytes = 0;
    for (const struct oribi__entry *entry = list->newest; entry; entry = entry->older) {
        count++;
        open_count += entry->open_count;
        bytes += entry->bytes;
        if (!entry->listed || find(cache, entry->root, entry->path, entry->hash) != entry)
            wrong(model, "an entry of a list is not in the table");
    }
    for (const struct oribi__entry *entry = list->oldest; entry; entry = entry->newer)
        back++;
    if (count != list->count || back != count || open_count != list->open_count || bytes != list->bytes)
        wrong(model, "a list is not what it counts");
}

static void check_books(struct model *model, int descriptors)
{
    struct oribi_cache_counts counts;
    uint32_t held_open = 0;
    uint32_t in_table = 0;
    oribi_cache_count(cache, &counts);
    check_list(model, &cache->files);
    check_list(model, &cache->missing);
    for (uint32_t i = 0; i < cache->place_count; i++)
        for (const struct oribi__entry *entry = cache->places[i]; entry; entry = entry->next)
            in_table++;
    if (in_table != counts.files + counts.missing)
        wrong(model, "the table has something that no list has");
    if (counts.open > limits.open_max || counts.missing > limits.missing_max || counts.memory_bytes > limits.memory_max)
        wrong(model, "a limit is exceeded");
    for (uint32_t i = 0; i < model->held_count; i++) {
        const struct oribi__entry *entry = (const struct oribi__entry *)model->held[i].file;
        bool again = false;
        for (uint32_t k = 0; k < i; k++)
            again = again || model->held[k].file == model->held[i].file;
        held_open += entry->listed || again ? 0 : entry->open_count;
    }
    if (open_descriptors() != descriptors + (int)(counts.open + held_open))
        wrong(model, "a descriptor is open that nobody has");
}

static void play(uint32_t seed)
{
    static struct model model;
    memset(&model, 0, sizeof(model));
    model.random = seed;
    model.now = (struct oribi_cache_now){.ms = 10000, .wall_s = (int64_t)time(NULL) + 3600};
    tree_begin();
    make_folder("site");
    types = oribi_types_create("utf-8");
    must(oribi_root_create(&root, at("site"), NULL, 0, NULL) == 0);
    int descriptors = open_descriptors();
    cache = oribi_cache_create(&limits, types);
    cache->place_count = seed % 2 ? 1 : cache->place_count; /* once with all entries in one place */
    for (uint32_t i = 0; i < NAMES; i++)
        model.names[i].count = 1; /* no file, since ever */
    for (int i = 0; i < STEPS && model.wrong < 5; i++) {
        uint32_t what = draw(&model, 10);
        if (what < 2)
            change(&model);
        else if (what < 4)
            model.now.ms += draw(&model, 400);
        else if (what < 5 && model.held_count > 0)
            release(&model, draw(&model, model.held_count));
        else
            ask(&model);
        check_books(&model, descriptors);
    }
    while (model.held_count > 0)
        release(&model, 0);
    oribi_cache_destroy(cache);
    ok_named(open_descriptors() == descriptors, "seed %u: no descriptor is left open", seed);
    oribi_root_destroy(root);
    oribi_types_destroy(types);
    tree_end();
    ok_named(model.wrong == 0, "seed %u: %u files given, %u missing, as the model says", seed, model.given,
             model.missing);
    ok_named(model.given > 500 && model.missing > 100, "seed %u: both happened often", seed);
}

static void test_the_cache_is_what_a_model_says(void)
{
    for (uint32_t seed = 1; seed <= 4; seed++)
        play(seed);
}

int main(void)
{
    test_the_cache_is_what_a_model_says();
    return done_testing();
}
