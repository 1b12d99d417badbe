// A worker over HTTP in JavaScript: Node 18 or later, no packages, one file to copy and change.
//
//     WORKER_TOKEN=hf_… node examples/http_worker.mjs http://127.0.0.1:8420 --queue words --capacity 4
//
// It survives restarts of the server, registers anew when it was given up, beats while its tasks run,
// stops what was cancelled, and on SIGTERM or Ctrl-C finishes what it has and leaves.

import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

// -- your tasks: name → async function. `job.signal` fires when the result is no longer wanted -------

const tasks = {
  async words({ text }, job) {
    return { words: text.split(/\s+/).filter(Boolean).length, attempt: job.attempt, pid: process.pid };
  },
  async wait({ seconds }, job) {
    await sleep(seconds * 1000, undefined, { signal: job.signal });
    return { waited: seconds, attempt: job.attempt, pid: process.pid };
  },
  async fail({ message = "no luck", retriable = true }) {
    throw retriable ? new Error(message) : new Hopeless(message);
  },
};

class Hopeless extends Error {} // throw it when trying again would not help

// -- the worker ---------------------------------------------------------------------------------------

const { values: given, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    queue: { type: "string", multiple: true, short: "q", default: ["default"] },
    capacity: { type: "string", short: "c", default: "4" },
    capability: { type: "string", multiple: true, default: [] },
  },
});
const server = positionals[0].replace(/\/$/, "");
const token = process.env.WORKER_TOKEN;
const me = {
  capabilities: given.capability,
  capacity: Number(given.capacity),
  queues: given.queue,
  version: "http_worker.mjs 1",
};
const drainSeconds = 30;
const cancelWithin = 2; // seconds between beats while there is something that could be cancelled
const jobs = new Map(); // task id → { attempt, owner, signal, stop, done }
const stopping = new AbortController();
let id, beatSeconds, registering;
let beatSoon = () => {};

const say = (event, facts = {}) => console.log(JSON.stringify({ event, ...facts }));

class Refused extends Error {
  constructor(status, { code = "unknown", detail = "" } = {}) {
    super(`${status} ${code}: ${detail}`);
    Object.assign(this, { status, code });
  }
}

async function post(path, body) {
  const response = await fetch(`${server}/internal/workers/${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(45_000),
  });
  if (response.ok) return response.json();
  throw new Refused(response.status, await response.json().catch(() => ({})));
}

/** Ask until there is an answer, however often the server restarts meanwhile. */
async function ask(path, body) {
  for (let pause = 100; ; pause = Math.min(2 * pause, 2000)) {
    try {
      return await post(path, body);
    } catch (error) {
      const { status } = error;
      if (status && status < 500 && status !== 408 && status !== 429) throw error;
      say("waiting", { doing: path, why: String(error.cause ?? error) });
      await sleep(pause * (0.5 + Math.random() / 2));
    }
  }
}

/** Ask under an id; undefined if that is gone, and another was got. */
async function askAs(owner, what, body) {
  try {
    return await ask(`${owner}/${what}`, body);
  } catch (error) {
    if (error.code !== "worker_gone" && error.code !== "worker_not_found") throw error;
    if (!stopping.signal.aborted) await register(owner);
  }
}

/** Get an id; what was done under the old one belongs to others now. */
function register(gone) {
  if (id !== gone) return registering; // it is under way, or done
  id = undefined;
  for (const job of jobs.values()) job.stop();
  registering = ask("register", me).then((told) => {
    [id, beatSeconds] = [told.worker_id, told.heartbeat_seconds];
    say("registered", { worker: id });
  });
  return registering;
}

async function poll() {
  while (!stopping.signal.aborted) {
    await registering;
    const free = me.capacity - jobs.size;
    if (free < 1) {
      await Promise.race([...jobs.values()].map((job) => job.done));
      continue;
    }
    const owner = id;
    const answer = await askAs(owner, "poll", { available_capacity: free });
    for (const task of answer?.tasks ?? []) start(task, owner);
  }
}

async function beat() {
  for (;;) {
    await registering;
    const status = stopping.signal.aborted ? "draining" : "active";
    const running = [...jobs.keys()];
    const answer = await askAs(id, "heartbeat", { current_load: jobs.size, status, running });
    for (const task of answer?.cancel ?? []) jobs.get(task)?.stop();
    if (answer?.drain) stopping.abort();
    const pause = running.length ? Math.min(cancelWithin, beatSeconds) : beatSeconds;
    const sooner = running.length ? [] : [new Promise((wake) => (beatSoon = wake))];
    await Promise.race([sleep(pause * 1000, undefined, { ref: false }), ...sooner]);
  }
}

function start(task, owner) {
  const stopper = new AbortController();
  const job = { attempt: task.attempt, owner, signal: stopper.signal, stop: () => stopper.abort() };
  jobs.set(task.task_id, job);
  beatSoon();
  job.done = work(task, job)
    .catch((error) => say("lost", { task: task.task_id, why: String(error) }))
    .finally(() => jobs.delete(task.task_id));
}

async function work(task, job) {
  say("started", { task: task.task_id, type: task.task_type, attempt: task.attempt });
  const result = { task_id: task.task_id, attempt: task.attempt, ...(await outcome(task, job)) };
  try {
    await ask(`${job.owner}/result`, result);
    say("reported", { task: task.task_id, status: result.status });
  } catch (error) {
    say("refused", { task: task.task_id, why: String(error) });
    if (error.status !== 422) return; // too late: somebody else has the task
    const { task_id, attempt } = result; // a result that cannot be stored: say so instead
    await ask(`${job.owner}/result`, { task_id, attempt, ...failed("BadResult", error, false) });
  }
}

/** Run the task, and say how it ended. */
async function outcome({ task_type, parameters }, job) {
  const run = tasks[task_type];
  if (!run) return failed("UnknownTask", `no task ${task_type} in this worker`, false);
  try {
    return { status: "completed", result: (await run(parameters, job)) ?? null };
  } catch (error) {
    if (job.signal.aborted) return { status: "released" };
    return failed(error.constructor.name, error.message ?? error, !(error instanceof Hopeless));
  }
}

function failed(type, message, retriable) {
  return { status: "failed", error: { type, message: String(message), retriable } };
}

/** Take no more, finish, hand back what does not end in time. */
async function leave() {
  if (!id) process.exit(0); // there is nothing to leave
  say("leaving", { running: jobs.size });
  await drain();
  await Promise.race([allDone(), sleep(drainSeconds * 1000, undefined, { ref: false })]);
  for (const job of jobs.values()) job.stop();
  await Promise.race([allDone(), sleep(5000, undefined, { ref: false })]);
  await drain();
  say("left");
  process.exit(0);
}

/** Once: if the server is away, it will find out by itself. */
async function drain() {
  await post(`${id}/drain`, {}).catch((error) => say("not drained", { why: String(error) }));
}

async function allDone() {
  while (jobs.size) await Promise.allSettled([...jobs.values()].map((job) => job.done));
}

for (const name of ["SIGTERM", "SIGINT"]) process.on(name, () => stopping.abort());
stopping.signal.addEventListener("abort", leave);
await register(undefined);
beat();
await poll();
