// Runs one thread of AG-UI's own client: a line of JSON in is a run, a line out is what came of it.
import { createInterface } from "node:readline";

const [, , library, url, threadId] = process.argv;
const warnings = [];
console.warn = (...told) => warnings.push(told.join(" "));
console.error = (...told) => told[0].startsWith("Agent execution failed") || warnings.push(told.join(" "));
const { HttpAgent } = await import(library);
const agent = new HttpAgent({ url, threadId });

async function run({ say, abort_at, ...more }) {
  const events = [];
  if (say !== undefined) agent.addMessage({ id: crypto.randomUUID(), role: "user", content: say });
  let failure = null;
  let result = null;
  try {
    const answer = await agent.runAgent(more, {
      onEvent: ({ event }) => {
        events.push(event);
        if (event.type === abort_at) agent.abortRun();
      },
    });
    result = answer.result ?? null;
  } catch (error) {
    failure = { message: String(error.message), status: error.status ?? null, payload: error.payload ?? null };
  }
  return { events, failure, result, messages: agent.messages, warnings };
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await run(JSON.parse(line)))}\n`);
}
