// Serves the `provider` that a module exports over TLS: provider.mjs MODULE CERTIFICATE KEY.
import fs from 'node:fs';
import https from 'node:https';
import { pathToFileURL } from 'node:url';

const [module, cert, key] = process.argv.slice(2);
const { provider } = await import(pathToFileURL(module));
provider.on('server_error', (context, error) => console.error(error));
for (const event of ['grant.error', 'authorization.error', 'device_authorization.error', 'revocation.error']) {
  provider.on(event, (context, error) => console.error(event, error.message, error.error_description, error.error_detail));
}
// What a test asks about, never a token: which were issued, and whose grants ended.
const note = (event, about) => console.error(JSON.stringify({ event, ...about }));
for (const event of ['access_token.issued', 'access_token.saved']) {
  provider.on(event, (token) => note('access_token', {
    account: token.accountId, aud: token.aud, jkt: token.jkt, scope: token.scope, format: token.format ?? 'opaque',
  }));
}
provider.on('grant.revoked', () => note('grant_revoked', {}));
const server = https.createServer({ cert: fs.readFileSync(cert), key: fs.readFileSync(key) }, provider.callback());
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ listening: server.address().port })));
