// Before anything else of a process: the names of a test are on this machine, at the ports that PAPAVER_HOSTS says
// ({"shop.example": 12345}). TLS verifies the name as ever.
import tls from 'node:tls';

const hosts = JSON.parse(process.env.PAPAVER_HOSTS ?? '{}');
const connect = tls.connect;
tls.connect = (options, ...more) => {
  const port = hosts[options.host];
  if (port === undefined || options.socket) return connect.call(tls, options, ...more);
  return connect.call(tls, { ...options, host: '127.0.0.1', port, servername: options.host }, ...more);
};

// oidc-provider refuses to fetch from loopback. It says so with a dispatcher; here, and only here, that is taken away.
const plain = globalThis.fetch;
globalThis.fetch = (url, options) => plain(url, options && { ...options, dispatcher: undefined });
