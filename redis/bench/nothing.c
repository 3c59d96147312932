/* Cost of a call from Perl into C by itself: Bench::Nothing->command, which takes any arguments and gives nothing.
 * clients.pl compiles it and loads it by DynaLoader. */
#define PERL_NO_GET_CONTEXT
#include <EXTERN.h>
#include <perl.h>

#include <XSUB.h>

XS_EXTERNAL(bench_nothing);
XS_EXTERNAL(boot_bench_nothing);

XS_EXTERNAL(bench_nothing)
{
    dXSARGS;
    PERL_UNUSED_VAR(items);
    XSRETURN_EMPTY;
}

XS_EXTERNAL(boot_bench_nothing)
{
    dXSARGS;
    PERL_UNUSED_VAR(items);
    newXS("Bench::Nothing::command", bench_nothing, __FILE__);
    XSRETURN_EMPTY;
}
