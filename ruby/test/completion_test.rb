# frozen_string_literal: true

require "support"
require "open3"
require "tmpdir"

# What shells offer with the scripts of --completion.
class CompletionTest < Minitest::Test
  def offered(shell, argv, text)
    skip "#{shell} is not installed" unless ENV["PATH"].split(":").any? { |folder| File.executable?("#{folder}/#{shell}") }
    Dir.mktmpdir do |dir|
      File.write("#{dir}/script", Oribi::Options.completion(shell))
      Dir.mkdir("#{dir}/config")
      File.write("#{dir}/config.ru", "")
      File.write("#{dir}/ask", text)
      output, errors, status = Open3.capture3("timeout", "30", *argv, "#{dir}/ask", chdir: dir)
      assert_equal ["", true], [errors, status.success?]
      output
    end
  end

  def bash(*words)
    ask = "source ./script; COMP_WORDS=(oribi #{words.map { |word| "'#{word}'" }.join(" ")}); COMP_CWORD=#{words.size}; " \
          '_oribi; printf "%s\n" "${COMPREPLY[@]}"'
    offered("bash", %w[bash --norc], ask).split("\n").reject(&:empty?).sort
  end

  def fish(line)
    offered("fish", %w[fish --no-config], "source ./script; complete -C '#{line}'").lines.map { |entry| entry.split("\t").first.chomp }.sort
  end

  def test_bash
    assert_equal %w[--workers], bash("--wor")
    assert_equal %w[--no-preload], bash("--no-prel")
    assert_equal %w[text json].sort, bash("--error-log-format", "")
    assert_equal %w[config], bash("--chdir", "")
    assert_empty bash("--workers", "")
    assert_includes bash("c"), "ctl"
    assert_includes bash("c"), "config.ru"
    assert_equal %w[reload reopen], bash("ctl", "re")
    assert_equal %w[import], bash("imp")
    assert_equal %w[--output], bash("import", "--o")
    assert_equal %w[memory], bash("ctl", "top", "--sort", "m")
  end

  def test_fish
    assert_includes fish("oribi --wor"), "--workers"
    assert_equal %w[json text], fish("oribi --error-log-format ")
    assert_equal %w[reload reopen], fish("oribi ctl re")
    assert_includes fish("oribi c"), "ctl"
    assert_includes fish("oribi import --"), "--output"
    assert_includes fish("oribi c"), "config.ru"
  end

  # zsh completes on terminals alone, so this gives it one, and waits until it has written the rest of each word.
  def test_zsh
    ask = <<~'ZSH'
      zmodload zsh/zpty
      zpty one zsh -f -i
      zpty -w one 'PS1=; autoload -U compinit; compinit -D -u; source ./script; print READY'
      zpty -r -m one answer '*READY*READY*'
      ask() {
        zpty -w -n one "$1"$'\t'
        zpty -r -m one answer "*$2*" && print -r -- "$2"
        zpty -w -n one $'\C-u'
      }
      ask 'oribi --worker' 'oribi --workers'
      ask 'oribi ctl relo' 'oribi ctl reload'
      ask 'oribi --error-log-format te' 'oribi --error-log-format text'
      zpty -d one
    ZSH
    assert_equal ["oribi --workers", "oribi ctl reload", "oribi --error-log-format text"], offered("zsh", %w[zsh -f], ask).lines(chomp: true)
  end

  def test_another_shell
    error = assert_raises(Oribi::Error) { Oribi::Options.completion("tcsh") }
    assert_equal "completion is for bash, zsh or fish, not 'tcsh'", error.message
  end
end
