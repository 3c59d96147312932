# frozen_string_literal: true

# Writes the Makefile of the extension: the core becomes a static library in the build folder and is linked in. In a
# checkout the core is the repository's; a packaged gem carries its own copy beside this file.
require "etc"
require "mkmf"

# The core asks the kernel for epoll, or kqueue; CRuby's C API is what the extension is written for.
host = RbConfig::CONFIG["host_os"]
unless host.match?(/linux|darwin|freebsd|openbsd|netbsd/)
  abort "oribi: OS unsupported: the server runs on Linux, builds on macOS and the BSDs, and this is #{host}: use a container or a virtual machine with Linux."
end
puts "oribi: this is #{host}, where the makers could build the server and not run it: doc/platforms.md. Please report." unless host.match?(/linux/)
make = ENV["MAKE"] || ENV["make"] || "make"
unless host.match?(/linux/) || IO.popen([make, "--version"], err: %i[child out], &:read).include?("GNU")
  abort "oribi: the core is built by GNU make: MAKE=gmake gem install oribi"
end
abort "oribi: the extension needs CRuby, and this is #{RUBY_ENGINE}." unless RUBY_ENGINE == "ruby"

core = [File.join(__dir__, "core"), File.expand_path("../../../core", __dir__)].find { |path| File.file?(File.join(path, "Makefile")) }
abort "oribi: the C core is missing beside #{__dir__}" unless core

# A gem is compiled beside its sources: names without the path of the gem's folder, which may have blanks.
core, out = File.identical?(core, "core") ? ["core", "../core"] : [core, "$(CURDIR)/core"]

$INCFLAGS << " -I#{core}/include"
$CPPFLAGS << " -D_GNU_SOURCE"
$CFLAGS << " -fvisibility=hidden -fno-strict-aliasing"

# Hardening, as far as the compiler and the linker at hand know it: this Ruby may have been built without.
# e2e/hardening_test.rb looks at the result.
append_cflags(%w[-fstack-protector-strong -fcf-protection])
$CPPFLAGS << " -D_FORTIFY_SOURCE=2" unless have_macro("_FORTIFY_SOURCE")
append_ldflags(%w[-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack])

# Lets environments be filled by place; without it they are built key by key.
have_func("rb_hash_tbl", "ruby.h")

# The same within the collector's write barrier.
have_func("rb_hash_tbl_raw")
have_func("rb_gc_writebarrier_remember")

# Looks at an answer's headers without a frame for code that might raise meanwhile: there is none.
have_func("rb_hash_stlike_foreach")

# The frames of another thread than the one that looks (Ruby 3.3).
have_func("rb_profile_thread_frames", "ruby/debug.h")

# Compression of answers: each library is taken where its header is there and it links, and missed in silence elsewhere
# (--version says it, and the option refuses its coding).
CODINGS = {
  "gzip" => ["zlib.h", "z", "deflateSetHeader"],
  "zstd" => ["zstd.h", "zstd", "ZSTD_compressStream2"],
  "br" => ["brotli/encode.h", "brotlienc", "BrotliEncoderCompressStream"]
}.select { |_, (header, library, function)| have_header(header) && have_library(library, function, header) }.keys

# A frontend is built where the core's Makefile finds these two.
TLS = %w[libnghttp2:1.52 openssl:3.0].all? do |library|
  name, version = library.split(":")
  system("pkg-config", "--atleast-version=#{version}", name, %i[out err] => File::NULL)
end

# Installers show what this file prints only when it fails, so a line about what is left out goes to the standard error
# of the installer itself too, where that is a terminal or a pipe. (In a file that it writes, lines would collide.)
def tell(line)
  puts line
  theirs = "/proc/#{Process.ppid}/fd/2"
  return if File.identical?(theirs, "/proc/self/fd/2") || !%w[characterSpecial fifo].include?(File.stat(theirs).ftype)

  File.open(theirs, "a") { |file| file.puts(line) }
rescue SystemCallError
  nil # a system without /proc
end

PACKAGES = { "gzip" => %w[zlib1g-dev], "zstd" => %w[libzstd-dev], "br" => %w[libbrotli-dev] }.freeze
missing = PACKAGES.keys - CODINGS
if missing.any? || !TLS
  lacks = [("compression by #{missing.join(", ")}" if missing.any?), ("TLS and HTTP/2" unless TLS)].compact.join(", and without ")
  debian = [*PACKAGES.values_at(*missing), *(%w[libssl-dev libnghttp2-dev pkg-config] unless TLS)].join(" ")
  tell "oribi: built without #{lacks}. To have them: apt-get install #{debian} (Debian's names), then gem pristine oribi"
end

# After the probe: the archive is made by the Makefile that this file writes.
$LOCAL_LIBS << " core/liboribi.a -pthread"

create_makefile("oribi/oribi")

# RubyGems and Bundler call make without -j: this Makefile asks for jobs by itself, unless the caller has said how many.
# More than eight save no time that anybody would notice, and each takes up to 100 MiB.
JOBS = Etc.nprocessors.clamp(2, 8)

# The core's own Makefile knows when it must be built anew, so it is always asked; the library changes only if a source
# did.
File.write("Makefile", <<~MAKEFILE, mode: "a")

  ifeq ($(MAKECMDGOALS)$(shell printenv MAKEFLAGS | grep -E '(^-?| -)[a-zA-Z]*j|--jobs'),)
  MAKEFLAGS += -j#{JOBS}
  endif

  CORE = #{core}

  $(DLLIB): core/liboribi.a
  $(OBJS): $(wildcard $(CORE)/include/oribi/*/*.h)

  core/liboribi.a: ask-the-core
  \t@$(MAKE) --no-print-directory -C $(CORE) OUT=#{out} CC="$(CC)" CODINGS="#{CODINGS.join(" ")}" CHECKED= all

  ask-the-core:

  # The frontend, where the core has it: a program beside the extension.
  install-so: install-frontend
  install-frontend: core/liboribi.a
  \t@test ! -x core/oribi-frontend || { $(MAKEDIRS) $(RUBYARCHDIR) && $(INSTALL_PROG) core/oribi-frontend $(RUBYARCHDIR); }

  clean: clean-core
  clean-core:
  \t-$(Q)$(RM_RF) core/obj core/liboribi.a core/liboribi_frontend.a core/oribi-frontend

  .PHONY: ask-the-core clean-core install-frontend
MAKEFILE
