// An editor on the official library of ACP: starts the agent's command; a line of JSON in is a request, the line out what came of it.
// `answer` is the option that the person chooses; `cancel_at` the kind of update at which they cancel.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";

const [, , library, program, ...command] = process.argv;
const acp = await import(library);
const agent = spawn(program, command, { stdio: ["pipe", "pipe", "inherit"] });
let told = {};
let asked = {};
const editor = acp
  .client({ name: "editor" })
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
    told.asked.push(params);
    return { outcome: asked.answer ? { outcome: "selected", optionId: asked.answer } : { outcome: "cancelled" } };
  })
  .onNotification(acp.methods.client.session.update, ({ params: { sessionId, update }, agent: peer }) => {
    told.updates.push(update);
    if (update.sessionUpdate === asked.cancel_at) peer.notify(acp.methods.agent.session.cancel, { sessionId });
  });

await editor.connectWith(acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)), async (context) => {
  for await (const line of createInterface({ input: process.stdin })) {
    asked = JSON.parse(line);
    told = { asked: [], updates: [] };
    try {
      told.value = await context.request(asked.method, asked.params);
    } catch (error) {
      told.error = { code: error.code ?? null, message: error.message };
    }
    process.stdout.write(`${JSON.stringify(told)}\n`);
  }
});
agent.stdin.end();
