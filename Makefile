# Builds and checks everything: the C core, the Ruby extension, the Perl extension. Every target ends with one line
# saying what passed.
JOBS  ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu)
RUBY  ?= ruby
PERL  ?= perl
BUILD ?= $(CURDIR)/build
T     ?= parser

all: core ruby perl redis-perl redis-ruby
	@echo "built: core, ruby extension, perl extension, redis client"

core:
	@$(MAKE) --no-print-directory -C core -j$(JOBS) OUT=$(BUILD)/core
	@$(MAKE) --no-print-directory -C redis/core -j$(JOBS) OUT=$(BUILD)/redis

# extconf.rb builds the core itself, so that a packaged gem builds the same way; the folder keeps objects out of the
# sources. The library is replaced, not overwritten: running servers have the old one mapped.
ruby:
	@mkdir -p $(BUILD)/ruby
	@cd $(BUILD)/ruby && { [ Makefile -nt $(CURDIR)/ruby/ext/oribi ] && [ Makefile -nt $(CURDIR)/ruby/ext/oribi/extconf.rb ] || $(RUBY) $(CURDIR)/ruby/ext/oribi/extconf.rb; }
	@$(MAKE) --no-print-directory -C $(BUILD)/ruby -j$(JOBS)
	@mkdir -p ruby/lib/oribi
	@for lib in $(BUILD)/ruby/*.so $(BUILD)/ruby/*.bundle $(BUILD)/ruby/core/oribi-frontend; do [ ! -e $$lib ] || cmp -s $$lib ruby/lib/oribi/$${lib##*/} || { rm -f ruby/lib/oribi/$${lib##*/} && cp $$lib ruby/lib/oribi/; }; done

perl:
	@cd perl && { [ Makefile -nt Makefile.PL ] && [ -z "$$(find lib bin -type d -newer Makefile)" ] || $(PERL) Makefile.PL; }
	@$(MAKE) --no-print-directory -C perl

# The Redis client's distribution; its C is built for it.
redis-ruby:
	@mkdir -p $(BUILD)/redis-ruby
	@cd $(BUILD)/redis-ruby && { [ Makefile -nt $(CURDIR)/redis/ruby/ext/oribi_redis ] && [ Makefile -nt $(CURDIR)/redis/ruby/ext/oribi_redis/extconf.rb ] || $(RUBY) $(CURDIR)/redis/ruby/ext/oribi_redis/extconf.rb; }
	@$(MAKE) --no-print-directory -C $(BUILD)/redis-ruby
	@for lib in $(BUILD)/redis-ruby/*.so $(BUILD)/redis-ruby/*.bundle; do [ ! -e $$lib ] || cmp -s $$lib redis/ruby/lib/oribi/redis/$${lib##*/} || { rm -f redis/ruby/lib/oribi/redis/$${lib##*/} && cp $$lib redis/ruby/lib/oribi/redis/; }; done

redis-perl:
	@cd redis/perl && { [ Makefile -nt Makefile.PL ] && [ -z "$$(find lib -type d -newer Makefile)" ] || $(PERL) Makefile.PL; }
	@$(MAKE) --no-print-directory -C redis/perl

# Manual pages of both commands, of ctl and of the configuration files, in build/man.
man:
	@tools/man-pages all $(BUILD)/man

test:
	@script/test

# The C tests once more under AddressSanitizer and UndefinedBehaviorSanitizer, then under ThreadSanitizer.
SANITIZED = $(MAKE) --no-print-directory -C core -j$(JOBS) HARDEN= OPTIM="-O1 -g1 -fno-omit-frame-pointer"
SANITIZED_REDIS = $(subst -C core,-C redis/core,$(SANITIZED))
asan:
	@$(SANITIZED) OUT=$(BUILD)/asan SANITIZE="-fsanitize=address,undefined -fno-sanitize-recover=all" test
	@$(SANITIZED_REDIS) OUT=$(BUILD)/redis-asan SANITIZE="-fsanitize=address,undefined -fno-sanitize-recover=all" test
	@echo "asan: C tests passed under AddressSanitizer and UndefinedBehaviorSanitizer"

tsan:
	@$(SANITIZED) OUT=$(BUILD)/tsan SANITIZE="-fsanitize=thread" test
	@$(SANITIZED_REDIS) OUT=$(BUILD)/redis-tsan SANITIZE="-fsanitize=thread" test
	@echo "tsan: C tests passed under ThreadSanitizer"

# Both extensions too, under all sanitizers, with their suites and a part of e2e: a quarter of an hour.
sanitize:
	@script/sanitize
	@redis/perl/sanitized

# Both servers with all their processes under valgrind: three minutes.
valgrind: all
	@for command in oribi oribi-psgi; do E2E_COMMAND=$$command ruby -Ie2e e2e/memcheck/memcheck_test.rb -v || exit 1; done
	@echo "valgrind: $$(command -v valgrind >/dev/null && echo both servers passed || echo skipped, it is not installed)"

# The gems, installed as users do and asked for an answer; the precompiled ones without a compiler in PATH.
gems:
	@ruby -Ie2e e2e/packages/gems_test.rb -v
	@echo "gems: each was installed and has answered"

# What takes minutes, plain and under ThreadSanitizer: a million hand-offs, a minute of calls around a millisecond, ten
# million records of a ring, and as many calls over a channel.
SOAKED = worker/placement/handoff_test worker/placement/handoff_death_test worker/placement/helper_test base/ring_test \
         worker/channel_ring_threads_test
soak-core:
	@$(MAKE) --no-print-directory -C core -j$(JOBS) OUT=$(BUILD)/core tests
	@$(SANITIZED) OUT=$(BUILD)/tsan SANITIZE="-fsanitize=thread" tests
	@ORIBI_SOAK=1 prove -e '' $(SOAKED:%=$(BUILD)/core/test/%) $(SOAKED:%=$(BUILD)/tsan/test/%)
	@echo "soak: hand-offs, helper and rings passed"

# The C tests of the build for other systems, all of them, and whole servers with it.
soak-portable: all
	@$(MAKE) --no-print-directory -C core -j$(JOBS) OUT=$(BUILD)/portable ORIBI_OS=portable test
	@script/portable
	@echo "soak: the portable build passed"

# The same for macOS and the BSDs: the core's tests over the model of kqueue.
soak-bsd:
	@$(MAKE) --no-print-directory -C core -j$(JOBS) OUT=$(BUILD)/bsd ORIBI_OS=bsd test
	@echo "soak: the build for macOS and the BSDs passed on the model of kqueue"

# Thousands of slow and idle clients, with the strict bounds: wants a machine with nothing else to do.
soak-crowd: all
	@bench/crowd $(W)

# The cut test with 5,000 clients, for three minutes each: alone, all at once, with a reload each second, with two
# frontends, with a frontend that is killed. COMMANDS=oribi-psgi, WIRES=h2s (h1,h2,h1s,h2s), FRONTENDS=2, CASE=/cut/: a
# part of it.
soak-cut: all
	@for command in $(or $(COMMANDS),oribi oribi-psgi); do \
	  E2E_COMMAND=$$command CUT_CLIENTS=$(or $(N),5000) CUT_SECONDS=$(or $(S),180) CUT_FRONTENDS=$(or $(FRONTENDS),1) \
	  $(if $(WIRES),CUT_WIRES=$(WIRES)) ruby -Ie2e e2e/cut_test.rb $(if $(CASE),-n '$(CASE)') || exit 1; done
	@echo "soak: no client that was cut lost a message, or got one twice"

# The core and its unit tests for other processors, with another C library, and for macOS.
soak-cross:
	@for target in aarch64 armhf s390x musl macos-arm64 macos-x86_64; do tools/cross $$target || exit 1; done
	@echo "soak: the core passed for other processors, or was skipped with a reason"

lint:
	@script/lint

bench: all
	@$(MAKE) --no-print-directory -C core bench OUT=$(BUILD)/core
	@bench/run --quick

# Everything long, a night of it: half an hour of every fuzz target, and last requests without pause while processes are
# replaced, 100,000 a row. W=--write puts tables into the documentation. N, ALL_S, CHAOS_N: other numbers.
soak: all soak-core soak-portable soak-bsd soak-crowd soak-cut soak-cross sanitize valgrind soak-scarcity soak-saturation soak-certificates soak-frontend soak-frontend-http1 soak-transports soak-chaos soak-perl soak-redis soak-rack soak-fleet gems packages fuzz-all
	@script/soak --requests $(or $(N),100000) $(W)

# oribi/rack beside Rack's own parsers, ten minutes for each Rack that is here.
soak-rack: all
	@for lib in "" $(wildcard $(BUILD)/rack2/gems/rack-2*/lib); do \
	  ruby -W0 $${lib:+-I$$lib} -Iruby/lib ruby/test/for_rack_fuzz.rb $(or $(S),600) || exit 1; done
	@echo "soak: oribi/rack and Rack agree"

# Debian packages in clean Debians, and the image of the board. Needs root; says what it skips, and why.
packages: all
	@script/packages-test

# Out of memory at every single allocation of a start.
soak-scarcity: all
	@for command in oribi oribi-psgi; do E2E_COMMAND=$$command SCARCITY=full ruby -Ie2e e2e/scarcity_test.rb || exit 1; done
	@echo "soak: every allocation has failed once"

# Newcomers beside clients that leave no worker idle: many clients, all lengths of calls, one worker to four.
soak-saturation: all
	@for command in oribi oribi-psgi; do E2E_COMMAND=$$command ORIBI_SOAK=1 ruby -Ie2e e2e/saturation_test.rb || exit 1; done
	@echo "soak: newcomers waited as all others did"

# 20,000 handshakes while certificates change each second, and as many while an authority's come and go.
soak-certificates: all
	@for command in oribi oribi-psgi; do for file in frontend_use acme; do \
	  E2E_COMMAND=$$command ORIBI_SOAK=1 ruby -Ie2e e2e/$${file}_test.rb -n /handshakes/ || exit 1; done; done
	@echo "soak: no handshake failed while certificates changed"

# 100,000 requests over 32 connections of HTTP/2 with TLS, while there is a reload each second, or a worker is killed;
# and twenty stops and kills of each kind at random moments; then 500 deaths of each kind under a mixed load, and with
# files.
soak-frontend: all
	@for command in oribi oribi-psgi; do \
	  E2E_COMMAND=$$command ORIBI_SOAK=1 ruby -Ie2e e2e/tls_test.rb -n '/reloads|killed/' || exit 1; done
	@for command in oribi oribi-psgi; do \
	  E2E_COMMAND=$$command ORIBI_SOAK=1 ruby -Ie2e e2e/frontend_ends_test.rb -n /random/ || exit 1; done
	@for file in frontend_deaths frontend_files_deaths; do \
	  E2E_COMMAND=oribi ORIBI_SOAK=1 ruby -Ie2e e2e/$${file}_test.rb || exit 1; done
	@echo "soak: the frontend's clients lost nothing"

# Subscribers over every transport, a hundred reloads, upgrades, killed workers and frontends each.
soak-transports: all
	@for command in oribi oribi-psgi; do E2E_COMMAND=$$command ORIBI_SOAK=1 ruby -Ie2e e2e/transports_test.rb || exit 1; done
	@echo "soak: subscribers of every transport lost nothing"

# HTTP/1.1 through a frontend: the suites that spec/rules.txt names, all of them.
THROUGH_FRONTEND = letter persistence answers bodies limits basics clients proxies
soak-frontend-http1: all
	@for command in oribi oribi-psgi; do for file in $(THROUGH_FRONTEND); do \
	  E2E_COMMAND=$$command E2E_TRANSPORT=frontend ruby -Ie2e e2e/$${file}_test.rb || exit 1; done; done
	@echo "soak: HTTP/1.1 is the same through a frontend"

# Half an hour of hostile clients and workers at a frontend.
soak-frontend-fuzz:
	@$(MAKE) --no-print-directory fuzz T=frontend S=$(or $(S_FRONTEND),1800)
	@echo "soak: the frontend stood"

# A fleet behind HAProxy and nginx, 100,000 requests a case.
soak-fleet: all
	@for command in oribi oribi-psgi; do \
	  E2E_COMMAND=$$command FLEET_REQUESTS=$(or $(N),100000) FLEET_RATE=0 ruby -Ie2e e2e/fleet_test.rb || exit 1; done
	@echo "soak: the fleet lost only what a node had in its hands, or the network broke"

# A million requests of clients that behave at random, each answer known beforehand.
CHAOS_N ?= 1000000
soak-chaos:
	@for command in oribi oribi-psgi; do E2E_COMMAND=$$command CHAOS_REQUESTS=$$(($(CHAOS_N) / 4)) ruby -Ie2e e2e/chaos_test.rb || exit 1; done
	@echo "soak: chaos passed"

# Forms, cookies, bodies and Plack::Request beside the modules of CPAN, ten minutes from another seed each time.
soak-perl: perl
	@cd perl && ORIBI_SOAK_S=600 $(PERL) -Mblib t/55-beside.t
	@echo "soak: Perl's forms are those of its other modules"

# The Redis client beside killed connections, exceptions in handlers, forks and restarts, ten minutes; and twenty other
# masters for each server, five minutes each.
FAILOVERS ?= 20
soak-redis: all
	@cd redis/perl && ORIBI_SOAK_S=$(or $(S_REDIS),600) $(PERL) -Mblib t/55-chaos.t
	@for command in oribi oribi-psgi; do \
	  E2E_COMMAND=$$command FAILOVERS=$(FAILOVERS) ruby -Ie2e e2e/redis_failover_test.rb || exit 1; done
	@echo "soak: no reply of Redis was another's"

fuzz:
	@$(MAKE) --no-print-directory -C core fuzz T=$(T) S=$(or $(S),60) OUT=$(BUILD)/fuzz

# The same for the targets of redis/core.
redis-fuzz:
	@$(MAKE) --no-print-directory -C redis/core fuzz T=$(T) S=$(or $(S),60) OUT=$(BUILD)/redis-fuzz

# What the target's runs have found becomes its seeds, as few and as short as will do.
fuzz-merge:
	@$(MAKE) --no-print-directory -C core fuzz-merge T=$(T) OUT=$(BUILD)/fuzz

# Every fuzz target one after the other, half an hour each unless ALL_S says otherwise; W=--write puts the table into
# doc/conformance.md.
ALL_S ?= 1800
fuzz-all:
	@$(MAKE) --no-print-directory -C core -j$(JOBS) fuzzers OUT=$(BUILD)/fuzz
	@for target in $(BUILD)/fuzz/fuzz/*_fuzz; do name=$${target##*/}; \
	    $(MAKE) --no-print-directory fuzz T=$${name%_fuzz} S=$(ALL_S) || exit 1; done
	@$(MAKE) --no-print-directory -C redis/core -j$(JOBS) fuzzers OUT=$(BUILD)/redis-fuzz
	@for target in $(BUILD)/redis-fuzz/fuzz/*_fuzz; do name=$${target##*/}; \
	    $(MAKE) --no-print-directory redis-fuzz T=$${name%_fuzz} S=$(ALL_S) || exit 1; done
	@tools/fuzz-report $(if $(W),--write) $(BUILD)/fuzz/fuzz/*.log $(BUILD)/redis-fuzz/fuzz/*.log
	@echo "fuzz-all: every target ran for $(ALL_S) s and found nothing"

ci:
	@.ci/run

clean:
	@rm -rf $(BUILD)/core $(BUILD)/ruby $(BUILD)/asan $(BUILD)/tsan $(BUILD)/fuzz $(BUILD)/bench ruby/lib/oribi/*.so ruby/lib/oribi/*.bundle
	@rm -rf redis/core/build* $(BUILD)/redis $(BUILD)/redis-asan $(BUILD)/redis-tsan $(BUILD)/redis-fuzz
	@if [ -f redis/perl/Makefile ]; then $(MAKE) --no-print-directory -C redis/perl distclean >/dev/null 2>&1 || true; fi
	@if [ -f perl/Makefile ]; then $(MAKE) --no-print-directory -C perl distclean >/dev/null 2>&1 || true; fi
	@echo "clean: build products removed"

# Both extensions build the core's archive; one after the other.
.NOTPARALLEL:
.PHONY: all core ruby perl redis-perl redis-ruby man gems test asan tsan sanitize soak-core soak-portable soak-bsd soak-crowd soak-cut soak-cross soak-fleet soak-scarcity soak-saturation soak-certificates soak-frontend soak-perl soak-rack packages valgrind lint bench soak fuzz redis-fuzz fuzz-merge fuzz-all ci clean soak-redis
