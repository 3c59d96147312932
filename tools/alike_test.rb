# frozen_string_literal: true

# What tools/alike takes for alike, and what not: ruby tools/alike_test.rb.
require "minitest/autorun"

load File.expand_path("alike", __dir__)

class AlikeTest < Minitest::Test
  # Thirteen lines that count, of more than six shapes.
  FUNCTION = <<~C
    static int take(struct item *item, size_t count)
    {
        size_t used = 0;
        if (!item)
            return -1;
        for (size_t i = 0; i < count; i++)
            used += item[i].len;
        while (used > 7)
            used -= item->len;
        item->used = used;
        item->name = "text";
        note(item, 'x');
        free(item->rest);
        return used ? 1 : 0;
    }
  C

  def test_the_letter = assert_equal(["a.c:1-14 b.c:1-14"], found("a.c" => FUNCTION, "b.c" => FUNCTION))

  def test_other_names_strings_and_numbers
    other = FUNCTION.gsub("item", "entry").gsub("used", "sum").sub("text", "words").sub("7", "4096")
    assert_equal ["a.c:1-14 b.c:1-14"], found("a.c" => FUNCTION, "b.c" => other)
  end

  def test_a_name_stands_for_one_other_name = assert_empty(found("a.c" => FUNCTION, "b.c" => FUNCTION.sub("note(item", "note(used")))

  def test_twelve_lines_are_allowed
    shorter = FUNCTION.sub(/^    free.*\n/, "")
    assert_empty found("a.c" => shorter, "b.c" => shorter)
  end

  def test_comments_blank_lines_and_includes_do_not_count
    other = FUNCTION.sub("{", "{ /* what\n * follows */\n\n").sub("    while", "#include <x.h>\n    while")
    assert_equal ["a.c:1-14 b.c:1-18"], found("a.c" => FUNCTION, "b.c" => other)
  end

  def test_a_run_is_as_long_as_it_is
    longer = "#{FUNCTION}\nint other(void)\n{\n    return 4 + take(NULL, 2);\n}\n"
    assert_equal ["a.c:3-21 b.c:1-19"], found("a.c" => "int a;\n\n#{longer}", "b.c" => longer)
  end

  def test_twice_in_one_file = assert_equal(["a.c:1-14 a.c:17-30"], found("a.c" => "#{FUNCTION}\n#{FUNCTION}"))

  def test_lists_are_alike_by_nature
    calls = (1..20).map { |i| "    test_#{i}();\n" }.join
    rows = "static const int table[] = {\n#{(1..20).map { |i| "    {#{i}, NAME_#{i}, f(x)},\n" }.join}};\n"
    assert_empty found("a.c" => calls + rows, "b.c" => calls + rows)
  end

  def test_a_declared_pair
    assert_empty found("a.c" => "/* Alike on purpose with b.c: why. */\n#{FUNCTION}", "b.c" => FUNCTION)
    assert_empty found("a.c" => FUNCTION, "b.c" => FUNCTION.sub("    while", "    /* Alike on\n     * purpose with a.c. */\n    while"))
  end

  def test_a_declaration_is_of_one_file_and_one_place
    assert_equal 1, found("a.c" => "/* Alike on purpose with c.c: why. */\n#{FUNCTION}", "b.c" => FUNCTION).size
    assert_equal 1, found("a.c" => "/* Alike on purpose with b.c: why. */\n#{"int a;\n" * 13}#{FUNCTION}", "b.c" => FUNCTION).size
  end

  private

  def found(files)
    texts = files.map { |path, text| Text.new(path, text) }
    Alike.new(texts).pairs.map { |pair| pair.join(" ") }
  end
end
