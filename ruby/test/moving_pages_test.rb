# frozen_string_literal: true

require "support"
require "oribi/import"

# The tables of doc/moving/*.md: each line of another server's configuration becomes what the page says, and every word
# that the server has is in them.
class MovingPagesTest < Minitest::Test
  FOLDER = File.expand_path("../../doc/moving", __dir__)
  # Page, the configuration file as people name it, and the class that has a method for each word, in a file of the gem.
  SERVERS = [
    ["puma", nil, "config/puma.rb", "puma", "lib/puma/dsl.rb"],
    ["unicorn", "Unicorn", "config/unicorn.rb", "unicorn", "lib/unicorn/configurator.rb"],
    ["unicorn", "Pitchfork", "config/pitchfork.conf.rb", "pitchfork", "lib/pitchfork/configurator.rb"],
    ["passenger", "Passengerfile", "Passengerfile.json", "passenger",
     "/usr/lib/ruby/vendor_ruby/phusion_passenger/standalone/config_options_list.rb"]
  ].freeze
  # Methods that are no words of a configuration.
  OTHERS = %w[initialize get inject reload load commit! listeners expand_addr set_int canonicalize_tcp set_path check_bool set_bool set_hook
              parse_rackup_file add_pem_values_to_options_store process_hook warn_if_in_single_mode [] _load_from _offer_plugins
              self.ssl_bind_str].freeze

  # @param title [String, nil] of tables: those with another title are about another server
  # @return [Array<Array>] lines, and what they become or nil
  def rows(page, title)
    text = File.read("#{FOLDER}/#{page}.md")
    %w[Options Hooks].flat_map do |heading|
      text[/^## #{heading}$.*?(?=^## |\z)/m].split("\n\n").grep(/\A\| .*#{title}/).flat_map { |table| table.lines.drop(2) }
    end.map { |line| line.split(/(?<!\\)\|/).values_at(1, 2).map { |cell| lines_in(cell) } }
  end

  # @return [Array<String>, nil] nil for a cell that says "the same" as the one before it
  def lines_in(cell) = (cell.gsub("\\|", "|").scan(/`([^`]+)`/).flatten unless cell.strip == "the same")

  # The lines of a configuration without its comments.
  def imported(file, line)
    return imported_json(file, line) if file.end_with?(".json")

    body = Oribi::Import.outcome(Oribi::Import::Source.new(file, line)).body
    body.sub(/^# What .* unless told otherwise:\n.*/m, "").lines.reject { |one| one.start_with?("#") || one.strip.empty? }.map(&:chomp)
  end

  # Beside a setting that tells whose file it is.
  def imported_json(file, line)
    body = Oribi::Import.outcome(Oribi::Import::Source.new(file, %({ "address": "::9", #{line} }))).body
    body.sub(/^# What .* unless told otherwise:\n.*/m, "").lines.grep(/\A[^#\n]/).map(&:chomp) - ['host "::9"']
  end

  # @return [Array<String>, nil] the words that the server has, of a gem or of Debian's package
  def words_of(gem, source)
    path = source.start_with?("/") ? source : File.join(Gem::Specification.find { |one| one.name == gem }&.full_gem_path.to_s, source)
    return unless File.file?(path)

    text = File.read(path)
    path.include?("options_list") ? text.scan(/:name +=> :(\w+)/).flatten : text.scan(/^ +def ([\w.]+[!?]?|\[\])/).flatten - OTHERS
  end

  SERVERS.each do |page, title, file, gem, source|
    define_method("test_#{gem}_lines_become_what_the_page_says") do
      found = rows(page, title)
      assert_operator found.size, :>, 15
      found.each { |lines, here| lines.each { |line| assert_equal here || [line], imported(file, line), line } }
    end

    define_method("test_#{page}_page_has_every_word_of_#{gem}") do
      words = words_of(gem, source) or skip "no #{gem} here"
      assert_operator words.size, :>, 10
      assert_empty words.uniq - rows(page, title).flat_map(&:first).map { |line| line[/[\w!]+/] }
    end
  end
end
