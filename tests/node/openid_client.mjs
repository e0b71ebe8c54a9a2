// openid-client as a Personal Agent's OAuth half: one sign-in at an issuer, a JSON line for each thing it found.
// Links go out as {"open": …}; where the browser ended comes back on stdin. The task is the first argument, as JSON.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import readline from 'node:readline/promises';

const require = createRequire(`${process.env.PAPAVER_MODULES}/`);
const oc = await import(pathToFileURL(require.resolve('openid-client')));
const task = JSON.parse(process.argv[2]);
const say = (step, found) => console.log(JSON.stringify({ step, ...found }));
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const typed = async () => (await lines.next()).value;
const refused = async (step, doing) => {
  try {
    say(step, { error: null, answer: await doing });
  } catch (error) {
    say(step, { error: error.error ?? error.code ?? error.message, status: error.status });
  }
};

const key = { key: await crypto.subtle.importKey('jwk', task.jwk, { name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign']), kid: task.kid };
let audience;
const as = (change) => oc.PrivateKeyJwt(key, { [oc.modifyAssertion]: (header, payload) => { change?.(header, payload); audience = payload.aud; } });
const find = (auth) => oc.discovery(new URL(task.issuer), task.client_id, undefined, auth, { algorithm: 'oauth2' });
const config = await find(as());
say('discovered', { issuer: config.serverMetadata().issuer, dpop: config.serverMetadata().dpop_signing_alg_values_supported });

const options = task.dpop ? { DPoP: oc.getDPoPHandle(config, await oc.randomDPoPKeyPair('ES256')) } : {};
const resource = task.resource ? { resource: task.resource } : {};
const told = (tokens) => ({
  type: tokens.token_type, scope: tokens.scope ?? null, expires_in: tokens.expires_in, refreshable: Boolean(tokens.refresh_token), audience,
});

let tokens;
if (task.device) {
  const begun = await oc.initiateDeviceAuthorization(config, { scope: task.scope, ...resource });
  say('open', { url: begun.verification_uri, user_code: begun.user_code });
  await typed();
  tokens = await oc.pollDeviceAuthorizationGrant(config, { ...begun, interval: 1 }, undefined, options);
} else {
  const verifier = oc.randomPKCECodeVerifier();
  const state = oc.randomState();
  const challenge = { code_challenge: await oc.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256' };
  const asked = { redirect_uri: task.redirect_uri, scope: task.scope, state, ...challenge, ...resource };
  say('open', { url: oc.buildAuthorizationUrl(config, asked).href });
  const back = new URL(await typed());
  const checks = { pkceCodeVerifier: verifier, expectedState: state };
  const mixed = new URL(back);
  mixed.searchParams.set('iss', 'https://other.example');
  await refused('mixed_up', oc.authorizationCodeGrant(config, mixed, checks, undefined, options));
  tokens = await oc.authorizationCodeGrant(config, back, checks, resource, options);
}
say('tokens', told(tokens));

const next = await oc.refreshTokenGrant(config, tokens.refresh_token, { ...resource }, options);
say('refreshed', told(next));
await refused('other_resource', oc.refreshTokenGrant(config, next.refresh_token, { resource: 'https://other.example' }, options));
const wrong = await find(as((header, payload) => { payload.aud = config.serverMetadata().token_endpoint; }));
await refused('endpoint_as_audience', oc.refreshTokenGrant(wrong, next.refresh_token, undefined, options));
const listed = await find(as((header, payload) => { payload.aud = [task.issuer]; }));
await refused('audience_as_list', oc.refreshTokenGrant(listed, next.refresh_token, undefined, options));
if (task.dpop) await refused('without_proof', oc.refreshTokenGrant(config, next.refresh_token));
await oc.tokenRevocation(config, next.refresh_token, { token_type_hint: 'refresh_token' });
await refused('revoked', oc.refreshTokenGrant(config, next.refresh_token, undefined, options));
process.exit(0);
