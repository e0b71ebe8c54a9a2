// The `eventsource` package as the reader of a conversation's stream: a JSON line for each thing that it is told.
// Each connection, the first one and those that it makes by itself, asks for the fields of a new request and gets them
// on stdin: a Session header is good for one request. The URL is the first argument.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import readline from 'node:readline/promises';

const require = createRequire(`${process.env.PAPAVER_MODULES}/`);
const { EventSource } = await import(pathToFileURL(require.resolve('eventsource')));
const say = (found) => console.log(JSON.stringify(found));
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const source = new EventSource(process.argv[2], {
  fetch: async (url, init) => {
    say({ connects: init.headers['Last-Event-ID'] ?? null, accept: init.headers.Accept });
    const fields = JSON.parse((await lines.next()).value);
    return fetch(url, { ...init, headers: { ...init.headers, ...fields } });
  },
});
for (const type of ['message', 'text-delta']) {
  source.addEventListener(type, (event) => say({ type, id: event.lastEventId, data: JSON.parse(event.data) }));
}
source.addEventListener('error', (error) => {
  if (source.readyState === EventSource.CLOSED) {
    say({ over: error.message });
    process.exit(0);
  }
});
