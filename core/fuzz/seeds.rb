# frozen_string_literal: true

# Seeds of a fuzz target as one file of text, a line each: printable ASCII as it is, every other byte as an escape of C
# (\n, \r, \t, \\, \xHH), so that a seed can be read, searched and written by hand.
#
#   ruby seeds.rb unpack FILE FOLDER    makes a file of each line; without FILE the folder is empty
#   ruby seeds.rb pack FOLDER FILE      makes a line of each file
require "fileutils"

ESCAPES = { "\n" => "\\n", "\r" => "\\r", "\t" => "\\t", "\\" => "\\\\" }.freeze
BYTES = ESCAPES.invert.freeze

def line_of(seed) = seed.b.gsub(/[^ -\[\]-~]| \z/n) { |byte| ESCAPES[byte] || format("\\x%02x", byte.ord) }
def seed_of(line) = line.b.gsub(/\\(?:x(\h\h)|.)/n) { $1 ? $1.hex.chr : BYTES.fetch($&) }

verb, from, to = ARGV
case verb
when "unpack"
  FileUtils.rm_rf(to)
  FileUtils.mkdir_p(to)
  lines = File.exist?(from) ? File.binread(from).lines(chomp: true) : []
  lines.each.with_index { |line, index| File.binwrite(format("%s/%04d", to, index), seed_of(line)) }
when "pack"
  seeds = Dir["#{from}/*"].map { |path| line_of(File.binread(path)) }.uniq.sort
  File.binwrite(to, seeds.map { |seed| "#{seed}\n" }.join)
  puts "#{to}: #{seeds.size} seeds"
else
  abort "usage: ruby seeds.rb unpack FILE FOLDER | pack FOLDER FILE"
end
