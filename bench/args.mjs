// The command line and the result line that all drivers share; see src/lib.rs.

export function request() {
  const [command, ...rest] = process.argv.slice(2);
  const options = {};
  for (let at = 0; at < rest.length; at += 2) {
    if (!rest[at].startsWith('--') || rest[at + 1] === undefined) throw new Error(`cannot read ${rest[at]}`);
    options[rest[at].slice(2)] = rest[at + 1];
  }
  return { command, n: Number(options.n), database: options.database, broker: options.broker };
}

export function report(result) {
  console.log(JSON.stringify(result));
}

export const perSecond = (n, milliseconds) => Math.round((n * 1000) / milliseconds);
