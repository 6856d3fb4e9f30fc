// Parses server-sent events from a fetch body by the HTML standard. EventSource cannot send a token or a POST.

/** Takes text in pieces of any size and gives whole events: `{type, data, id}`, `id` being the last one seen. */
export class EventStreamParser {
  #rest = "";
  #afterCarriageReturn = false;
  #data = [];
  #type = "";
  #id = "";

  push(text) {
    let piece = text;
    if (this.#afterCarriageReturn && piece.startsWith("\n")) piece = piece.slice(1);
    if (text) this.#afterCarriageReturn = piece.endsWith("\r");
    const lines = (this.#rest + piece).split(/\r\n|\r|\n/);
    this.#rest = lines.pop();
    return lines.map((line) => this.#takeLine(line)).filter(Boolean);
  }

  #takeLine(line) {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return null;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#type = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    return null;
  }

  #dispatch() {
    const event = this.#data.length ? { type: this.#type || "message", data: this.#data.join("\n"), id: this.#id } : null;
    this.#data = [];
    this.#type = "";
    return event;
  }
}

// The gateway sends a comment at least every 15 s; three of them missed is a dead connection.
const SILENCE_MS = 45_000;

async function readWithin(reader, silence_ms) {
  let timer;
  const silence = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new TypeError("the event stream fell silent")), silence_ms);
  });
  try {
    return await Promise.race([reader.read(), silence]);
  } finally {
    clearTimeout(timer);
  }
}

/** The events of a response until it ends; a broken or silent connection throws. Leaving the loop closes it. */
export async function* readEvents(response, silence_ms = SILENCE_MS) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const parser = new EventStreamParser();
  try {
    for (;;) {
      const { done, value } = await readWithin(reader, silence_ms);
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
