# frozen_string_literal: true

require_relative "support"

# What the compiler and the linker were asked for is in the extension as it was built. No program of ours is built for
# users, so there is none to be position-independent; the interpreters are.
class HardeningTest < Minitest::Test
  LIBRARY = E2E::RUBY ? "ruby/lib/oribi/oribi.so" : "perl/blib/arch/auto/Oribi/Oribi.so"
  ENTRY = E2E::RUBY ? "Init_oribi" : "boot_Oribi"

  def readelf(*options) = output("readelf", *options)

  def output(*command)
    text = IO.popen([*command, File.join(E2E::ROOT, LIBRARY)], err: File::NULL, &:read)
    assert $?.success?, "#{command.join(" ")} #{LIBRARY}"
    text
  end

  def test_the_stack_is_not_executable
    stack = readelf("-lW").lines.grep(/GNU_STACK/)
    assert_equal 1, stack.size
    assert_match(/ RW +0x/, stack.first)
  end

  def test_no_segment_is_writable_and_executable
    segments = readelf("-lW").lines.grep(/^\s+LOAD /)
    assert_operator segments.size, :>=, 2
    assert_empty(segments.grep(/ RWE /))
  end

  def test_the_code_is_not_relocated
    refute_match(/TEXTREL/, readelf("-dW"))
  end

  def test_the_table_of_functions_is_read_only_once_it_is_loaded
    assert_match(/GNU_RELRO/, readelf("-lW"))
    assert_match(/BIND_NOW|Flags:.* NOW/, readelf("-dW"))
  end

  def test_the_stack_and_lengths_are_guarded
    symbols = output("nm", "-D", "--undefined-only")
    assert_match(/__stack_chk_fail/, symbols)
    assert_match(/__snprintf_chk/, symbols)
  end

  def test_jumps_are_checked_where_the_processor_can
    skip "no such checks on #{RbConfig::CONFIG["host_cpu"]}" unless RbConfig::CONFIG["host_cpu"] == "x86_64"
    # The note of the whole library depends on the C library's own start files; what counts is in the code.
    code = output("objdump", "-d", "--no-show-raw-insn")
    assert code.match?(/<#{ENTRY}>:\n[^\n]*endbr64/), "#{ENTRY} begins without endbr64"
    assert_operator code.scan("endbr64").size, :>, 100
  end

  def test_nothing_is_exported_but_the_entry
    assert_equal([ENTRY], output("nm", "-D", "--defined-only").lines.map { |line| line.split[2] })
  end
end
