package web_test

import (
	"testing"

	"seatcast/internal/browsertest"
)

func TestHashesAreThoseTheBrowserHas(t *testing.T) {
	p := browsertest.Open(t, client(t, noAPI))
	if wrong := browsertest.Eval[string](p, browsertest.Modules+`
		const { sha256, hmac } = await use('sha256.js');
		const same = (a, b) => String([...a]) === String([...new Uint8Array(b)]);
		for (let n = 0; n < 200; n++) {
			const message = crypto.getRandomValues(new Uint8Array(n));
			if (!same(sha256(message), await crypto.subtle.digest('SHA-256', message))) return 'the hash of ' + n + ' bytes';
			const key = crypto.getRandomValues(new Uint8Array(1 + n % 64));
			const theirs = await crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
			if (!same(hmac(key)(message), await crypto.subtle.sign('HMAC', theirs, message))) return 'the HMAC of ' + n + ' bytes';
		}
		return '';`); wrong != "" {
		t.Errorf("%s differs", wrong)
	}
}

// Round 1000 of quicknet, as drand has published it.
func TestANumberOfSomebodyElseIsJudgedAsFarAsABrowserCan(t *testing.T) {
	p := browsertest.Open(t, client(t, noAPI))
	for what, c := range map[string]struct{ record, want string }{
		"a round's signature": {`{ announcement: { closes: '2023-08-23T15:00:00Z', external: { kind: 'drand', genesis: 1692803367, period: 3, round: 1000 } },
			told: 'b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39' }`,
			"fe290beca10872ef2fb164d2aa4442de4566183ec51c56ff3cd603d930e54fdd"},
		"a round of before the list closed": {`{ announcement: { closes: '2023-08-23T17:00:00Z', external: { kind: 'drand', genesis: 1692803367, period: 3, round: 1000 } }, told: 'b4' }`,
			"early"},
		"a number where none was announced": {`{ announcement: { external: { kind: 'none' } }, told: '00' }`, "unannounced"},
		"none":                              {`{ announcement: { external: { kind: 'none' } } }`, ""},
		"one that is no hex":                {`{ announcement: { external: { kind: 'none' } }, told: 'zz' }`, "hex zz"},
	} {
		got := browsertest.Eval[string](p, browsertest.Modules+`
			const { external, Faulty, hex } = await use('draw.js');
			try { return hex(external(`+c.record+`)); } catch (err) { if (err instanceof Faulty) return err.message.trim(); throw err; }`)
		if got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

func TestAnAnnouncementIsReadByteForByte(t *testing.T) {
	p := browsertest.Open(t, client(t, noAPI))
	got := browsertest.Eval[string](p, browsertest.Modules+`
		const { announced } = await use('draw.js');
		return announced('{"state":"drawn","announcement":{"event":"a } \\" {","n": 1.0,"external":{"kind":"none"}},"digest":{}}');`)
	if got != `{"event":"a } \" {","n": 1.0,"external":{"kind":"none"}}` {
		t.Errorf("%s", got)
	}
}
