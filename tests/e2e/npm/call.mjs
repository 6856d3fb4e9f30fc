// Calls methods of a vendor's own client: a line of JSON in is a call, the line out is what came of it.
// `path` names the method and `args` its arguments. Of a stream the events are collected, up to the first of the type `until`;
// `meanwhile` is a call that is made when the stream is open.
import { createInterface } from "node:readline";

const [, , library, baseURL] = process.argv;
const { default: Client } = await import(library);
let requests = 0;
const counted = (...request) => {
  requests += 1;
  return fetch(...request);
};
const client = new Client({ baseURL, apiKey: "any", fetch: counted });

async function call({ path, args = [], until, meanwhile }) {
  const names = path.split(".");
  const method = names.pop();
  const answer = await names.reduce((there, name) => there[name], client)[method](...args);
  if (meanwhile) await call(meanwhile);
  if (!answer[Symbol.asyncIterator]) return answer;
  const events = [];
  for await (const event of answer) {
    events.push(event);
    if (until && event.type === until) break;
  }
  return events;
}

for await (const line of createInterface({ input: process.stdin })) {
  requests = 0;
  const told = {};
  try {
    told.value = await call(JSON.parse(line));
  } catch (error) {
    const { status = null, code = null, type = null, message } = error;
    told.error = { name: error.constructor.name, status, code, type, message };
  }
  process.stdout.write(`${JSON.stringify({ ...told, requests })}\n`);
}
