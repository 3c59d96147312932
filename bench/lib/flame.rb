# frozen_string_literal: true

module Bench
  # A flame graph as one small SVG: a row for each depth of the stack, the caller below, a box as wide as its share of
  # the samples. What is narrower than LEAST of the whole is left out; a box tells its name and share as its title.
  class Flame
    WIDTH = 1200
    ROW = 15
    HEAD = 44
    LEAST = 0.0015
    LETTER = 6.1 # of the text's width, in pixels
    COLORS = { /\Aoribi|\Aapp_|\Aforms?_/ => "#e07a3f", /\A(rb|ruby|vm|gc|iv|st|obj|str|ary|hash|invoke|method|newobj|class)_/ => "#d9a5a0",
               /\A(Perl|XS|S)_|\Aperl/ => "#b8cfa0", /\A(__x64_sys|do_syscall|entry_SYSCALL|tcp|sock|ip|vfs|ext4|sys|__?se_sys|skb)_?/ => "#a9b9cf" }.freeze
    OTHER = "#d8d6d0"

    # stacks: { "outer;inner;..." => samples }
    def initialize(stacks, title)
      @title = title
      @total = stacks.values.sum
      @root = { name: "all", count: 0, below: {} }
      stacks.each { |stack, count| add(stack.split(";"), count) }
    end

    def to_s
      @boxes = []
      place(@root, 0.0, 0)
      depth = @boxes.map { |box| box[:depth] }.max
      height = HEAD + (depth + 1) * ROW + 4
      [head(height), *@boxes.map { |box| drawn(box, height) }, "</svg>", ""].join("\n")
    end

    private

    def add(names, count)
      @root[:count] += count
      names.reduce(@root) do |node, name|
        child = node[:below][name] ||= { name: name, count: 0, below: {} }
        child[:count] += count
        child
      end
    end

    def place(node, left, depth)
      @boxes << { name: node[:name], count: node[:count], left: left, depth: depth }
      node[:below].values.sort_by { |child| child[:name] }.each do |child|
        place(child, left, depth + 1) if child[:count] >= LEAST * @total
        left += child[:count].to_f / @total
      end
    end

    def head(height)
      %(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 #{WIDTH} #{height}" font-family="sans-serif" font-size="10">\n) +
        %(<rect width="100%" height="100%" fill="#fff"/>\n<text x="8" y="18" font-size="14">#{escaped(@title)}</text>\n) +
        %(<text x="8" y="34" fill="#666">#{@total} samples of processor time. Orange: Oribi, red: Ruby, green: Perl, blue: the kernel's calls.</text>)
    end

    def drawn(box, height)
      x = (box[:left] * WIDTH).round(1)
      width = (box[:count].to_f / @total * WIDTH).round(1)
      y = height - 4 - (box[:depth] + 1) * ROW
      room = ((width - 4) / LETTER).floor
      name = box[:name]
      label = room >= 3 ? (name.size > room ? "#{name[0, room - 1]}…" : name) : ""
      text = label.empty? ? "" : %(<text x="#{(x + 2).round(1)}" y="#{y + 11}">#{escaped(label)}</text>)
      share = format("%.1f %%", box[:count] * 100.0 / @total)
      %(<g><title>#{escaped(name)}, #{share}</title><rect x="#{x}" y="#{y}" width="#{width}" height="#{ROW - 1}" fill="#{color(name)}"/>#{text}</g>)
    end

    def color(name) = COLORS.find { |pattern, _| name.match?(pattern) }&.last || OTHER
    def escaped(text) = text.gsub(/[&<>"]/, "&" => "&amp;", "<" => "&lt;", ">" => "&gt;", '"' => "&quot;")
  end
end
