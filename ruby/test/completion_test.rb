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
      File.write("#{dir}/my config.rb", "")
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
    assert_equal %w[import], bash("imp")
    assert_includes bash("c"), "ctl"
    assert_includes bash("c"), "config.ru"
    assert_equal %w[config.ru config].sort, bash("--workers", "2", "c")
  end

  def test_values_in_bash
    assert_equal %w[json text], bash("--error-log-format", "")
    assert_equal %w[config], bash("--chdir", "")
    assert_equal %w[auto], bash("--workers", "")
    assert_empty bash("--threads", "")
    assert_equal ["my config.rb"], bash("-C", "my")
    assert_equal ["-", "ask", "config", "config.ru", "my config.rb", "off", "script"], bash("--access-log", "")
    assert_equal %w[root], bash("--user", "roo")
    assert_equal %w[production], bash("-E", "p")
  end

  # The equals sign is a word of its own.
  def test_values_behind_an_equals_sign_in_bash
    assert_equal %w[json text], bash("--error-log-format", "=")
    assert_equal %w[json], bash("--error-log-format", "=", "j")
    assert_equal %w[memory], bash("ctl", "top", "--sort", "=", "m")
  end

  def test_subcommands_in_bash
    assert_equal %w[reload reopen], bash("ctl", "re")
    assert_empty bash("ctl", "reload", "")
    assert_equal %w[memory], bash("ctl", "top", "--sort", "m")
    assert_equal %w[--json], bash("check", "--js")
    assert_equal %w[--workers], bash("check", "--wor")
    assert_includes bash("check", "--error-log-format", ""), "json"
    assert_equal %w[--force --help --output], bash("import", "--")
    assert_equal ["config", "config.ru"], bash("import", "c")
    assert_equal ["my config.rb"], bash("import", "-o", "my")
  end

  # What --help of a sub-command names is offered behind it.
  def test_flags_of_all_subcommands
    exe = File.expand_path("../exe/oribi", __dir__)
    words = Oribi::Options.help[/or\n(.*?)\n\n/m, 1].scan(/^  (\w+) /).flatten
    assert_operator words.size, :>=, 3
    words.each do |word|
      help, status = Open3.capture2e(RbConfig.ruby, exe, word, "--help")
      assert status.success?, help
      flags = help.scan(/^ +(?:-\w, )?(--\w+)/).flatten
      refute_empty flags, word
      assert_empty flags - bash(word, "--"), "oribi #{word}"
    end
  end

  def test_fish
    assert_includes fish("oribi --wor"), "--workers"
    assert_equal %w[json text], fish("oribi --error-log-format ")
    assert_equal %w[reload reopen], fish("oribi ctl re")
    assert_empty fish("oribi ctl reload re")
    assert_includes fish("oribi c"), "ctl"
    assert_includes fish("oribi c"), "config.ru"
    assert_includes fish("oribi --access-log o"), "off"
    assert_equal %w[--error-log-format=json], fish("oribi --error-log-format=j")
    assert_includes fish("oribi check --"), "--strict"
    assert_includes fish("oribi check --"), "--workers"
    assert_equal %w[--force --help --output], fish("oribi import --")
    assert_includes fish("oribi import c"), "config.ru"
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
      ask 'oribi --error-log-format=te' 'oribi --error-log-format=text'
      ask 'oribi -E prod' 'oribi -E production'
      ask 'oribi --access-log of' 'oribi --access-log off'
      ask 'oribi check --str' 'oribi check --strict'
      ask 'oribi import --for' 'oribi import --force'
      ask 'oribi imp' 'oribi import'
      ask 'oribi import config.r' 'oribi import config.ru'
      zpty -d one
    ZSH
    wanted = ask.scan(/ask '[^']*' '([^']*)'/).flatten
    assert_operator wanted.size, :>=, 10
    assert_equal wanted, offered("zsh", %w[zsh -f], ask).lines(chomp: true)
  end

  def test_another_shell
    error = assert_raises(Oribi::Error) { Oribi::Options.completion("tcsh") }
    assert_equal "completion is for bash, zsh or fish, not 'tcsh'", error.message
  end
end
