# frozen_string_literal: true

# Writes the Makefile of the extension: the client's C and what it needs of the server's core become a static library in
# the build folder and are linked in. In a checkout both are the repository's; a packaged gem carries copies beside this
# file.
require "mkmf"

abort "oribi-redis: the extension needs CRuby, and this is #{RUBY_ENGINE}." unless RUBY_ENGINE == "ruby"
host = RbConfig::CONFIG["host_os"]
unless host.match?(/linux|darwin|freebsd|openbsd|netbsd/)
  abort "oribi-redis: OS unsupported: it runs on Linux, builds on macOS and the BSDs, and this is #{host}: use a container or a virtual machine with Linux."
end
puts "oribi-redis: this is #{host}, where the makers could build the client and not run it. Please report." unless host.match?(/linux/)
make = ENV["MAKE"] || ENV["make"] || "make"
unless host.match?(/linux/) || IO.popen([make, "--version"], err: %i[child out], &:read).include?("GNU")
  abort "oribi-redis: the client is built by GNU make: MAKE=gmake gem install oribi-redis"
end

packaged = File.file?(File.join(__dir__, "redis_core/Makefile"))
client, base = (packaged ? %w[redis_core core] : %w[../../../core ../../../../core]).map { |name| File.expand_path(name, __dir__) }
abort "oribi-redis: the C of the client is missing beside #{__dir__}" unless File.file?(File.join(client, "Makefile"))

$INCFLAGS << " -I#{client}/include -I#{base}/include"
$CPPFLAGS << " -D_GNU_SOURCE"
$CFLAGS << " -fvisibility=hidden -fno-strict-aliasing"
append_cflags(%w[-fstack-protector-strong -fcf-protection])
$CPPFLAGS << " -D_FORTIFY_SOURCE=2" unless have_macro("_FORTIFY_SOURCE")
append_ldflags(%w[-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack])
$LOCAL_LIBS << " redis/liboribi_redis.a -pthread"

create_makefile("oribi/redis/oribi_redis")

File.write("Makefile", <<~MAKEFILE, mode: "a")

  $(DLLIB): redis/liboribi_redis.a
  $(OBJS): $(wildcard #{client}/include/oribi/redis/*.h) $(wildcard #{__dir__}/*.h)

  redis/liboribi_redis.a: ask-the-client
  \t@$(MAKE) --no-print-directory -C #{client} OUT=$(CURDIR)/redis BASE=#{base} CC="$(CC)" all

  ask-the-client:

  clean: clean-client
  clean-client:
  \t-$(Q)$(RM_RF) redis

  .PHONY: ask-the-client clean-client
MAKEFILE
