// Commands and events as lines of JSON (stranger.rb).
const tell = (...event) => process.stdout.write(`${JSON.stringify(event)}\n`);
const obey = (commands) => {
  const lines = require('readline').createInterface({ input: process.stdin, crlfDelay: Infinity });
  lines.on('line', (line) => {
    const [name, ...words] = JSON.parse(line);
    commands[name](...words);
  });
  lines.on('close', () => process.exit());
};
module.exports = { tell, obey };
