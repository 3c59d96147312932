/* The table of the supervisor's modules, and the walks through it. */
#include "supervisor/module.h"

#include "supervisor/context.h"

#include "oribi/base/mem.h"

#include <string.h>

#define DECLARE(name) extern const struct oribi__module oribi__##name##_module;
ORIBI__MODULES(DECLARE)

struct line {
    const struct oribi__module *module;
    size_t place; /* of the pointer to its state in the context */
};

#define LINE(name) {&oribi__##name##_module, offsetof(struct oribi__context, name)},
static const struct line table[] = {ORIBI__MODULES(LINE)};

enum { COUNT = sizeof(table) / sizeof(table[0]) };

static void put_state(struct oribi__context *context, const struct line *line, void *state)
{
    memcpy((char *)context + line->place, &state, sizeof(state));
}

static void free_state(struct oribi__context *context, const struct line *line)
{
    void *state;
    memcpy(&state, (char *)context + line->place, sizeof(state));
    oribi_mem_free(state);
    put_state(context, line, NULL);
}

void oribi__modules_create(struct oribi__context *context)
{
    for (size_t i = 0; i < COUNT; i++)
        put_state(context, &table[i], oribi_mem_alloc(1, table[i].module->bytes));
    for (size_t i = 0; i < COUNT; i++)
        if (table[i].module->init)
            table[i].module->init(context);
}

int oribi__modules_begin(struct oribi__context *context, char *error)
{
    int code = 0;
    for (size_t i = 0; i < COUNT && code == 0; i++)
        if (table[i].module->begin)
            code = table[i].module->begin(context, error);
    return code;
}

bool oribi__modules_settle(struct oribi__context *context)
{
    for (size_t i = COUNT; i-- > 0 && context->events.count == 0;)
        if (table[i].module->settle)
            table[i].module->settle(context);
    return context->events.count > 0;
}

void oribi__modules_let_go(struct oribi__context *context)
{
    for (size_t i = COUNT; i-- > 0;)
        if (table[i].module->let_go)
            table[i].module->let_go(context);
}

void oribi__modules_forget(struct oribi__context *context)
{
    oribi__modules_let_go(context);
    for (size_t i = COUNT; i-- > 0;)
        if (table[i].module->forget)
            table[i].module->forget(context);
    for (size_t i = COUNT; i-- > 0;)
        free_state(context, &table[i]);
}

void oribi__modules_end(struct oribi__context *context)
{
    for (size_t i = COUNT; i-- > 0;)
        if (table[i].module->end)
            table[i].module->end(context);
    for (size_t i = COUNT; i-- > 0;)
        free_state(context, &table[i]);
}
