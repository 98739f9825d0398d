// A place to test in: a directory of its own with a file, an outside world, and a server, all real
// processes on loopback, gone at the end.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile, mkdir } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const LAVRA = process.env.LAVRA_BIN;
if (!LAVRA) throw new Error("LAVRA_BIN must name the program; run this by `cargo xtask test`");

export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** Asks again until it is so. */
export async function until(what, question, patience = 30_000) {
  const end = Date.now() + patience;
  for (;;) {
    let answer;
    let trouble = "";
    try { answer = await question(); } catch (error) { trouble = `: ${error.message}`; }
    if (answer) return answer;
    if (Date.now() > end) throw new Error(`${what}: not within ${patience} ms${trouble}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export class Place {
  #children = new Set();

  static async make() {
    const place = new Place();
    place.directory = await mkdtemp(join(tmpdir(), "lavra-browser-"));
    // The pauses of a real fleet are for real sites.
    const settings = "[fleet]\npolling_session_ms = 100\npolling_job_ms = 150\n";
    await writeFile(join(place.directory, "lavra.toml"), settings);
    place.port = await freePort();
    place.base = `http://127.0.0.1:${place.port}`;
    return place;
  }

  start(...args) {
    const environment = { ...process.env, HOME: this.directory };
    for (const name of Object.keys(environment)) if (name.startsWith("LAVRA_") || name.startsWith("DB_")) delete environment[name];
    const child = spawn(LAVRA, args, { cwd: this.directory, env: environment, stdio: ["pipe", "pipe", "pipe"] });
    child.said = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => { child.said += chunk; });
    this.#children.add(child);
    child.once("exit", () => this.#children.delete(child));
    return child;
  }

  /** Runs a command to its end and returns what it printed. */
  async run(args, input = "") {
    const child = this.start(...args);
    child.stdin.end(input);
    const [code] = await once(child, "close");
    if (code !== 0) throw new Error(`lavra ${args.join(" ")}: exit ${code}\n${child.said}`);
    return child.said;
  }

  async serve(...more) {
    this.server = this.start("serve", "--listen", `127.0.0.1:${this.port}`, ...more);
    await until("the server answers", async () => {
      if (this.server.exitCode !== null) throw new Error(this.server.said);
      return (await fetch(`${this.base}/readyz`)).ok;
    });
  }

  async kill(signal = "SIGKILL") {
    const gone = once(this.server, "exit");
    this.server.kill(signal);
    await gone;
  }

  /** Doubles of workers and a writer, and the PNCP API. */
  async world(...more) {
    this.fleetPort = await freePort();
    this.pncpPort = await freePort();
    this.pncp = `http://127.0.0.1:${this.pncpPort}/api/consulta`;
    this.start("world", "--listen", `127.0.0.1:${this.pncpPort}`, "--fleet", `127.0.0.1:${this.fleetPort}`, ...more);
    await until("the world answers", async () => {
      const answer = await fetch(`http://127.0.0.1:${this.fleetPort}/worker/0/session/status`);
      return answer.status < 500;
    });
  }

  /** A fleet that can work: workers, a proxy for each and one more, a writer. */
  async fleet(workers = 2) {
    const at = (path) => `http://127.0.0.1:${this.fleetPort}/${path}`;
    for (let place = 0; place < workers; place += 1) {
      await this.api("POST", "/fleet/workers", { name: `worker-${place}`, url: at(`worker/${place}`), api_key: "worker-key", storage_domain: at(`worker/${place}`) });
    }
    for (let place = 0; place <= workers; place += 1) {
      await this.api("POST", "/fleet/proxies", { name: `proxy-br-${place}`, host: "127.0.0.1", port: 9000 + place });
    }
    await this.api("POST", "/fleet/writers", { name: "writer-1", url: at("writer/0"), api_key: "writer-key" });
  }

  async api(method, path, body) {
    const answer = await fetch(this.base + path, {
      method,
      headers: body ? { "content-type": "application/json" } : {},
      body: body && JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : null;
  }

  async end() {
    for (const child of [...this.#children]) {
      const gone = once(child, "exit");
      child.kill("SIGKILL");
      await gone;
    }
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** Where pictures are kept. */
export async function pictures() {
  const directory = process.env.LAVRA_PICTURES;
  if (!directory) throw new Error("LAVRA_PICTURES must name a directory for the pictures");
  await mkdir(directory, { recursive: true });
  return directory;
}
