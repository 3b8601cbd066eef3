// Passes of a waiting room, checked by nginx (njs 0.7.9 or newer). A pass is a JSON
// Web Token signed with ES256: who has the public keys needs nobody to tell a good
// one. See README.md beside it.

const TYPE = 'seatcast-pass+jwt';
const USER = 'sub'; // the claim of session tokens that names the account: user= of SEATCAST_SESSION_CLAIMS
const LONGEST = 2048; // bytes of a token
const BACK = 1800; // seconds for which whoever was inside may come back to the page, to pay

/** booking is a call that takes seats. */
function booking(r) { return call(r, r.variables.edge_room); }

/**
 * map is a call that reads the map. A ticket stands for session and pass, and only a
 * node can tell whether it was used: it is let through, as one of a stream is.
 */
function map(r) {
  if (r.args.ticket && r.uri.endsWith('/seatmap')) return r.internalRedirect('@inside');
  return call(r, r.variables.edge_map);
}

/** often refuses a pass that is shown more often than one person would. */
function often(r) {
  r.headersOut['Retry-After'] = '1';
  problem(r, 429, 'too_many_requests', 'so many calls with this pass are too many: the same again in a second');
}

/** call lets a call through that shows a good pass, and else answers with a problem. */
async function call(r, guarded) {
  if (guarded !== '1') return r.internalRedirect('@inside');
  const seen = await judge(r, r.headersIn['Seatcast-Pass'], 0);
  if (seen === 'good' && !theirs(r)) return problem(r, 403, 'pass_invalid', 'this is not a pass of the account that asks');
  switch (seen) {
    case 'good':
      return r.internalRedirect('@inside');
    case 'none':
      return problem(r, 403, 'pass_required', 'people are let in one by one: POST /v1/queue/{event} for a place, and show the pass you get as Seatcast-Pass');
    case 'late':
      return problem(r, 403, 'pass_expired', 'the time inside is over: POST /v1/queue/{event} for another place');
    case 'unknown':
      r.headersOut['Retry-After'] = '2';
      return problem(r, 503, 'store_unavailable', 'passes cannot be checked at the moment: try again');
    default:
      return problem(r, 403, 'pass_invalid', 'this is no pass for this event');
  }
}

/** page shows the page of an event to who has a pass, in a cookie, and leads all others to the line. */
async function page(r) {
  if (r.variables.edge_room !== '1') return r.internalRedirect('@inside');
  const seen = await judge(r, r.variables['cookie_seatcast-pass'], BACK);
  if (seen === 'good' || seen === 'unknown') return r.internalRedirect('@inside'); // nobody is let in by a page
  r.headersOut['Cache-Control'] = 'no-store';
  r.headersOut.Location = '/queue/' + encodeURIComponent(r.variables.edge_event);
  r.return(302);
}

/**
 * judge says what a pass is worth at the event of the request: good, none, late (its
 * time is over for longer than grace), bad, or unknown while there are no keys.
 */
async function judge(r, token, grace) {
  if (!token) return 'none';
  const parts = token.split('.');
  if (token.length > LONGEST || parts.length !== 3) return 'bad';
  const head = decoded(parts[0]);
  const pass = decoded(parts[1]);
  if (!head || !pass || head.alg !== 'ES256' || head.typ !== TYPE || typeof head.kid !== 'string') return 'bad';
  if (pass.event !== r.variables.edge_event || typeof pass.exp !== 'number' || !pass.sub || !pass.jti) return 'bad';
  let key = await keyOf(r, '/_edge/keys', head.kid);
  if (!key) key = await keyOf(r, '/_edge/fresh', head.kid);
  if (key === null) return 'unknown';
  if (key === undefined || !await signed(key, parts)) return 'bad';
  r.edgeUser = pass.sub;
  return Date.now() / 1000 < pass.exp + grace ? 'good' : 'late';
}

/** keyOf finds a public key by its name: undefined when there is none, null when nobody says. */
async function keyOf(r, where, kid) {
  const answer = await r.subrequest(where, { method: 'GET' });
  if (answer.status !== 200) return null;
  try {
    return JSON.parse(answer.responseText).keys.filter((k) => k.kid === kid && k.kty === 'EC' && k.crv === 'P-256')[0];
  } catch (e) {
    return null;
  }
}

// What comes before the two numbers of a point on P-256 in a SubjectPublicKeyInfo.
const SPKI = Buffer.from('3059301306072a8648ce3d020106082a8648ce3d03010703420004', 'hex');

async function signed(key, parts) {
  try {
    const spki = Buffer.concat([SPKI, Buffer.from(key.x, 'base64url'), Buffer.from(key.y, 'base64url')]);
    const signature = Buffer.from(parts[2], 'base64url');
    if (signature.length !== 64) return false;
    const known = await crypto.subtle.importKey('spki', spki, { name: 'ECDSA', namedCurve: 'P-256' }, false, ['verify']);
    return await crypto.subtle.verify({ name: 'ECDSA', hash: 'SHA-256' }, known, signature, Buffer.from(parts[0] + '.' + parts[1]));
  } catch (e) {
    return false;
  }
}

/**
 * theirs says that the session token beside a pass says it is of the same account.
 * Whether that token is good the node finds out.
 */
function theirs(r) {
  const session = /^Bearer ([^.]+)\.([^.]+)\.[^.]*$/i.exec(r.headersIn.Authorization || '');
  const says = session && decoded(session[2]);
  return Boolean(says) && says[USER] === r.edgeUser;
}

function decoded(part) {
  try {
    const o = JSON.parse(Buffer.from(part, 'base64url').toString());
    return o && typeof o === 'object' ? o : null;
  } catch (e) {
    return null;
  }
}

const TITLES = { 403: 'Forbidden', 429: 'Too Many Requests', 503: 'Service Unavailable' };

function problem(r, status, code, detail) {
  r.headersOut['Content-Type'] = 'application/problem+json';
  r.headersOut['Cache-Control'] = 'no-store';
  r.return(status, JSON.stringify({ type: 'about:blank', title: TITLES[status], status: status, code: code, detail: detail }));
}

export default { booking, map, often, page };
