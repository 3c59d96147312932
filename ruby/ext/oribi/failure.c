/* Oribi::Core.failure_page: the core's page of an error, from facts that Oribi::Development has gathered. */
#include "ext.h"

#include "oribi/base/buf.h"
#include "oribi/base/limits.h"
#include "oribi/develop/failure_page.h"

enum { FACT_WORDS = 3 }; /* kind, name, value */

/* @param words [Array<String>] kind, name and value of each fact; failure_page.h has the kinds
 * @return [Array<String>] the content type, and the page */
static VALUE core_failure_page(VALUE self, VALUE words)
{
    struct oribi_failure_fact facts[ORIBI_FAILURE_FACTS_MAX];
    struct oribi_buf out = {0};
    Check_Type(words, T_ARRAY);
    for (long i = 0; i < RARRAY_LEN(words); i++)
        Check_Type(RARRAY_AREF(words, i), T_STRING);
    size_t count = (size_t)RARRAY_LEN(words) / FACT_WORDS;
    if (count > ORIBI_FAILURE_FACTS_MAX)
        count = ORIBI_FAILURE_FACTS_MAX;
    for (size_t i = 0; i < count; i++) { /* nothing is allocated in Ruby until the page is made */
        facts[i].kind = ext_slice(RARRAY_AREF(words, (long)i * FACT_WORDS));
        facts[i].name = ext_slice(RARRAY_AREF(words, (long)i * FACT_WORDS + 1));
        facts[i].value = ext_slice(RARRAY_AREF(words, (long)i * FACT_WORDS + 2));
    }
    const char *type = oribi_failure_page(facts, count, &out);
    RB_GC_GUARD(words);
    VALUE page = rb_utf8_str_new(out.p, (long)out.len);
    oribi_buf_deinit(&out);
    return rb_ary_new_from_args(2, rb_utf8_str_new_cstr(type), page);
}

void ext_failure_setup(void)
{
    VALUE core = rb_define_module_under(ext_module, "Core");
    rb_define_singleton_method(core, "failure_page", core_failure_page, 1);
}
